#include "server/studies/complement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>

#include "core/offline/compare.h"
#include "core/offline/featherstone_dca.h"
#include "core/offline/natural_complement.h"
#include "proto/load_mechanism.h"
#include "server/output/chart.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

using offline::Complement;
using offline::Instant;
using offline::Stabilisation;

constexpr std::size_t kStruts = 2, kStabilisations = 3, kComplements = 8;
constexpr std::size_t kSimplified = 0, kRedundant = 1;  // struts
constexpr std::size_t kNone = 0, kBaumgarte = 1, kNewton = 2;
constexpr const char* kStrutFiles[kStruts] = {"mcpherson", "mcpherson_redundant"};
constexpr const char* kStrutNames[kStruts] = {"simplified", "redundant"};
constexpr const char* kStabilisationNames[kStabilisations] = {"none", "Baumgarte", "Newton-Raphson"};
constexpr Stabilisation kStabilisation[kStabilisations] = {Stabilisation::none, Stabilisation::baumgarte,
                                                           Stabilisation::newton_raphson};
constexpr double kStrutTolerances[] = {1e-3, 1e-6, 1e-8, 1e-10};  // of section 4.1
constexpr double kReferenceTolerance = 1e-12;
constexpr int kIndependent = 26;  // constraints of both struts: 30 coordinates, 4 freedoms

struct ComplementMethod {
  Complement complement;
  const char* name;
};
enum MethodIndex : std::size_t { kZero, kSchur, kPutdH, kPutdG, kSvd, kQr, kPartitioning, kWangHuston };
constexpr ComplementMethod kComplementList[kComplements] = {{Complement::zero_eigenvalue, "zero eigenvalue"},
                                                            {Complement::schur, "Schur"},
                                                            {Complement::putd_householder, "PUTD-H"},
                                                            {Complement::putd_gauss, "PUTD-G"},
                                                            {Complement::svd, "SVD"},
                                                            {Complement::qr, "QR"},
                                                            {Complement::partitioning, "partitioning"},
                                                            {Complement::wang_huston, "Wang-Huston"}};

// Largest row of the constraints: positions [m, rad], velocities [m/s, rad/s], accelerations [m/s^2, rad/s^2].
constexpr double Instant::*kLevels[] = {&Instant::position_residual, &Instant::velocity_residual,
                                        &Instant::acceleration_residual};
constexpr std::size_t kLevelCount = std::size(kLevels);
constexpr const char* kLevelNames[kLevelCount] = {"positions", "velocities", "accelerations"};
constexpr const char* kLevelUnits[kLevelCount] = {"m, rad", "m/s, rad/s", "m/s^2, rad/s^2"};

// One method with one stabilisation at one tolerance.
struct StrutRun {
  std::size_t strut = 0, stabilisation = 0, tolerance = 0, method = 0;
  std::vector<double> seconds;  // ascending; of each timed run
  offline::ComplementRun run;   // with instants
  std::array<double, kLevelCount> drift{};
  double error = 0.0;   // largest distance of a mass centre from the reference [m]
  std::string gave_up;  // why; empty: it did not
  double median() const { return seconds[seconds.size() / 2]; }
  bool done() const { return gave_up.empty(); }
};

struct Struts {
  std::array<Mechanism, kStruts> mechanism;
  std::array<offline::Trajectory, kStruts> reference;
  std::vector<double> instants;
};

// The whole experiment, struts slowest, methods fastest.
struct Results {
  std::size_t tolerances = 0;
  std::vector<StrutRun> samples;
  const StrutRun& at(std::size_t strut, std::size_t stabilisation, std::size_t tolerance, std::size_t method) const {
    return samples[((strut * kStabilisations + stabilisation) * tolerances + tolerance) * kComplements + method];
  }
};

// What else the machine does is not counted.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

offline::Scenario scenario(const Mechanism& mechanism, std::vector<double> instants) {
  offline::Scenario of;
  of.mechanism = &mechanism;
  of.instants = std::move(instants);
  return of;
}

Struts load_struts(const StudyRequest& study) {
  const double duration = study.quick ? 0.2 : 10.0;
  const int intervals = study.quick ? 20 : 100;
  Struts struts;
  for (int k = 0; k <= intervals; ++k) struts.instants.push_back(duration * k / intervals);
  offline::Options fine;
  fine.relative_tolerance = fine.absolute_tolerance = kReferenceTolerance;
  for (std::size_t s = 0; s < kStruts; ++s) {
    struts.mechanism[s] = config::load_mechanism(study.mechanism_file(kStrutFiles[s])).mechanism;
    struts.reference[s] = offline::featherstone_dca(scenario(struts.mechanism[s], struts.instants), fine);
  }
  return struts;
}

void simulate(const Struts& struts, int timed_runs, const std::function<void(double)>& progress, StrutRun& sample) {
  const Mechanism& mechanism = struts.mechanism[sample.strut];
  const double end = struts.instants.back();
  offline::Options options;
  options.relative_tolerance = options.absolute_tolerance = kStrutTolerances[sample.tolerance];
  int runs = 0;
  options.progress = [&](double t) {
    progress((runs + t / end) / (timed_runs + 1));
    return true;
  };
  offline::ComplementSettings settings;
  settings.method = kComplementList[sample.method].complement;
  settings.stabilisation = kStabilisation[sample.stabilisation];
  settings.velocity_tolerance = std::numeric_limits<double>::infinity();  // the paper corrects positions alone
  try {
    sample.run = offline::natural_complement(scenario(mechanism, struts.instants), options, settings);
    for (runs = 1; runs <= timed_runs; ++runs) {
      const double begin = processor_seconds();
      offline::natural_complement(scenario(mechanism, {0.0, end}), options, settings);
      sample.seconds.push_back(processor_seconds() - begin);
    }
  } catch (const offline::SolverError& failed) {
    sample.gave_up = failed.what();
    return;
  }
  std::sort(sample.seconds.begin(), sample.seconds.end());
  for (std::size_t level = 0; level < kLevelCount; ++level)
    for (const Instant& at : sample.run.trajectory.instants)
      sample.drift[level] = std::max(sample.drift[level], at.*kLevels[level]);
  sample.error =
      offline::compare(mechanism, struts.reference[sample.strut].instants, sample.run.trajectory.instants, {})
          .largest(offline::Quantity::position);
}

Results simulate_all(const StudyRequest& study, const Struts& struts) {
  Results results;
  results.tolerances = study.quick ? 2 : std::size(kStrutTolerances);
  const std::size_t all = kStruts * kStabilisations * results.tolerances * kComplements;
  for (std::size_t s = 0; s < kStruts; ++s)
    for (std::size_t stabilisation = 0; stabilisation < kStabilisations; ++stabilisation)
      for (std::size_t t = 0; t < results.tolerances; ++t)
        for (std::size_t m = 0; m < kComplements; ++m) {
          const double before = static_cast<double>(results.samples.size());
          const auto tell = [&](double part) {
            if (study.progress) study.progress((before + part) / static_cast<double>(all));
          };
          StrutRun& sample = results.samples.emplace_back();
          sample.strut = s, sample.stabilisation = stabilisation, sample.tolerance = t, sample.method = m;
          simulate(struts, study.quick ? 1 : 3, tell, sample);
        }
  return results;
}

// --- tables and figures

std::string head(const StrutRun& s) {
  return fmt::format("{},{},{:g},{}", kStrutNames[s.strut], kStabilisationNames[s.stabilisation],
                     kStrutTolerances[s.tolerance], kComplementList[s.method].name);
}

void write_tables(const Struts& struts, const Results& results, const std::filesystem::path& folder) {
  const std::string keys = "strut,stabilisation,tolerance,method";
  std::string times = keys + ",median_s,lowest_s,highest_s,right_hand_sides,gave_up\n";
  std::string drift = keys + ",positions,velocities,accelerations,error_m\n";
  std::string ranks = keys + ",coordinates,rows,lowest_rank,highest_rank,selections,charts,corrections\n";
  std::string over_time = keys + ",t_s,positions,velocities,accelerations\n";
  for (const StrutRun& s : results.samples) {
    if (!s.done()) {
      times += fmt::format("{},,,,,1\n", head(s));
      continue;
    }
    times += fmt::format("{},{:.6f},{:.6f},{:.6f},{},0\n", head(s), s.median(), s.seconds.front(), s.seconds.back(),
                         s.run.trajectory.right_hand_sides);
    drift += fmt::format("{},{:.6e},{:.6e},{:.6e},{:.6e}\n", head(s), s.drift[0], s.drift[1], s.drift[2], s.error);
    ranks +=
        fmt::format("{},{},{},{},{},{},{},{}\n", head(s), 6 * struts.mechanism[s.strut].bodies().size(), s.run.rows,
                    s.run.lowest_rank, s.run.highest_rank, s.run.selections, s.run.charts, s.run.corrections);
    for (const Instant& at : s.run.trajectory.instants)
      over_time += fmt::format("{},{:g},{:.4e},{:.4e},{:.4e}\n", head(s), at.time, at.position_residual,
                               at.velocity_residual, at.acceleration_residual);
  }
  write_text(folder / "times.csv", times);
  write_text(folder / "drift.csv", drift);
  write_text(folder / "drift_over_time.csv", over_time);
  write_text(folder / "ranks.csv", ranks);
}

struct TimeFigure {
  const char* name;
  std::size_t strut, stabilisation;
  bool wang_huston;
};
constexpr TimeFigure kTimeFigures[] = {
    {"figure2a", kSimplified, kNone, true},  {"figure2b", kSimplified, kBaumgarte, true},
    {"figure3a", kRedundant, kNone, true},   {"figure3b", kRedundant, kBaumgarte, true},
    {"figure4", kSimplified, kNewton, true}, {"figure5a", kRedundant, kNewton, true},
    {"figure5b", kRedundant, kNewton, false}};

void write_time_figure(const TimeFigure& figure, const Results& results, const std::filesystem::path& folder) {
  Chart chart{
      fmt::format("{} strut, stabilisation: {}", kStrutNames[figure.strut], kStabilisationNames[figure.stabilisation]),
      "tolerance",
      "median time [s]",
      true,
      true,
      {}};
  for (std::size_t m = 0; m < kComplements; ++m) {
    if (m == kWangHuston && !figure.wang_huston) continue;
    ChartLine line{kComplementList[m].name, {}};
    for (std::size_t t = 0; t < results.tolerances; ++t) {
      const StrutRun& s = results.at(figure.strut, figure.stabilisation, t, m);
      if (s.done()) line.points.push_back({kStrutTolerances[t], s.median()});
    }
    chart.lines.push_back(std::move(line));
  }
  write_svg(chart, (folder / fmt::format("{}_time.svg", figure.name)).string());
}

// Drift of QR with each stabilisation, and of Wang-Huston, which the paper blames for it.
std::string write_drift_figure(std::size_t strut, std::size_t level, const Results& results,
                               const std::filesystem::path& folder) {
  const std::size_t t = std::min<std::size_t>(1, results.tolerances - 1);
  Chart chart{fmt::format("{} strut, {}, tolerance {:g}", kStrutNames[strut], kLevelNames[level], kStrutTolerances[t]),
              "time [s]",
              fmt::format("largest row [{}]", kLevelUnits[level]),
              false,
              true,
              {}};
  for (const std::size_t method : {std::size_t{kQr}, std::size_t{kWangHuston}})
    for (std::size_t stabilisation = 0; stabilisation < kStabilisations; ++stabilisation) {
      ChartLine line{fmt::format("{}, {}", kComplementList[method].name, kStabilisationNames[stabilisation]), {}};
      for (const Instant& at : results.at(strut, stabilisation, t, method).run.trajectory.instants)
        line.points.push_back({at.time, std::max(kSmallest, at.*kLevels[level])});
      chart.lines.push_back(std::move(line));
    }
  const std::string file = fmt::format("drift_{}_{}.svg", kLevelNames[level], kStrutNames[strut]);
  write_svg(chart, (folder / file).string());
  return file;
}

std::vector<std::string> write_figures(const Results& results, const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const TimeFigure& figure : kTimeFigures) {
    write_time_figure(figure, results, folder);
    files.push_back(fmt::format("{}_time.svg", figure.name));
  }
  for (std::size_t strut = 0; strut < kStruts; ++strut)
    for (std::size_t level = 0; level < kLevelCount; ++level)
      files.push_back(write_drift_figure(strut, level, results, folder));
  return files;
}

// --- what agrees

struct Range {
  double low = 1e300, high = 0.0;
  int below = 0, count = 0;  // of one
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
    below += value < 1.0 ? 1 : 0;
    ++count;
  }
};

// Times of one method over those of another in the same case, over all cases of a strut.
Range times_of(const Results& results, std::size_t strut, std::size_t method, std::size_t over) {
  Range range;
  for (std::size_t stabilisation = 0; stabilisation < kStabilisations; ++stabilisation)
    for (std::size_t t = 0; t < results.tolerances; ++t) {
      const StrutRun &one = results.at(strut, stabilisation, t, method),
                     &other = results.at(strut, stabilisation, t, over);
      if (one.done() && other.done()) range.add(one.median() / other.median());
    }
  return range;
}

// Calls with the eight samples of every strut, stabilisation and tolerance.
template <class Call>
void for_cases(const Results& results, const Call& call) {
  for (std::size_t first = 0; first < results.samples.size(); first += kComplements) call(&results.samples[first]);
}

Finding find_slowest(const Results& results) {
  int putd = 0, cases = 0;
  std::array<int, kComplements> slowest{};
  for_cases(results, [&](const StrutRun* of) {
    std::size_t worst = 0;
    for (std::size_t m = 1; m < kComplements; ++m)
      if (of[m].done() && (!of[worst].done() || of[m].median() > of[worst].median())) worst = m;
    ++slowest[worst];
    ++cases;
    putd += worst == kPutdH || worst == kPutdG ? 1 : 0;
  });
  std::string ours;
  for (std::size_t m = 0; m < kComplements; ++m)
    if (slowest[m] > 0) ours += fmt::format(", {} in {}", kComplementList[m].name, slowest[m]);
  return {"The PUTD methods are the slowest in most examples", fmt::format("slowest of {} cases{}", cases, ours),
          2 * putd > cases};
}

void find_putd(const Results& results, std::vector<Finding>& findings) {
  const Range simplified = times_of(results, kSimplified, kPutdG, kPutdH);
  const Range redundant = times_of(results, kRedundant, kPutdG, kPutdH);
  findings.push_back({"PUTD-H and PUTD-G take almost the same time on the simplified strut",
                      fmt::format("PUTD-G / PUTD-H: {:.2f} to {:.2f}", simplified.low, simplified.high),
                      simplified.low > 0.8 && simplified.high < 1.25});
  findings.push_back({"PUTD-G seems faster than PUTD-H on the redundant strut",
                      fmt::format("PUTD-G / PUTD-H: {:.2f} to {:.2f}", redundant.low, redundant.high),
                      redundant.high < 1.0});
}

// The largest time over the smallest of zero eigenvalue, Schur, SVD and QR.
Finding find_spread(const Results& results) {
  Range spread;
  for_cases(results, [&](const StrutRun* of) {
    double low = 1e300, high = 0.0;
    for (const std::size_t m : {kZero, kSchur, kSvd, kQr})
      if (of[m].done()) low = std::min(low, of[m].median()), high = std::max(high, of[m].median());
    spread.add(high / low);
  });
  return {"Times of zero eigenvalue, Schur, SVD and QR are close to each other",
          fmt::format("slowest / fastest of the four: {:.2f} to {:.2f}", spread.low, spread.high), spread.high < 1.5};
}

// How far each method is from the fastest one in its worst case.
Finding find_robust(const Results& results) {
  std::array<double, kComplements> worst_time{}, worst_error{};
  std::array<int, kComplements> failures{};
  for_cases(results, [&](const StrutRun* of) {
    double time = 1e300, error = 1e300;
    for (std::size_t m = 0; m < kComplements; ++m)
      if (of[m].done()) time = std::min(time, of[m].median()), error = std::min(error, of[m].error);
    for (std::size_t m = 0; m < kComplements; ++m) {
      failures[m] += of[m].done() ? 0 : 1;
      if (!of[m].done()) continue;
      worst_time[m] = std::max(worst_time[m], of[m].median() / time);
      worst_error[m] = std::max(worst_error[m], of[m].error / error);
    }
  });
  std::string ours;
  bool best = failures[kQr] == 0;
  for (std::size_t m = 0; m < kComplements; ++m) {
    ours += fmt::format("{}{} {:.1f} and {:.1f}", m == 0 ? "" : ", ", kComplementList[m].name, worst_time[m],
                        worst_error[m]);
    if (failures[m] > 0) ours += fmt::format(" (gave up {} times)", failures[m]);
    best = best && (failures[m] > 0 || worst_time[kQr] <= worst_time[m]);
  }
  return {"QR is the most robust and one of the most efficient: its worst case is the best",
          "time and error over those of the best method, worst case: " + ours, best};
}

void find_wang_huston(const Results& results, std::vector<Finding>& findings) {
  Range slow, velocity;
  for (std::size_t t = 0; t < results.tolerances; ++t) {
    const StrutRun &wang = results.at(kRedundant, kNewton, t, kWangHuston),
                   &qr = results.at(kRedundant, kNewton, t, kQr);
    if (!wang.done() || !qr.done()) continue;
    slow.add(wang.median() / qr.median());
    velocity.add(wang.drift[1] / qr.drift[1]);
  }
  findings.push_back(
      {"Wang-Huston is many times slower than others on the redundant strut with stabilised positions "
       "(figure 5)",
       fmt::format("Wang-Huston / QR: {:.2f} to {:.2f}", slow.low, slow.high), slow.high > 2.0});
  findings.push_back(
      {"because it loses the accuracy of the velocity constraints there",
       fmt::format("largest velocity violation, Wang-Huston / QR: {:.2f} to {:.2f}", velocity.low, velocity.high),
       velocity.high > 2.0});
  int fast = 0, cases = 0;
  for (std::size_t strut = 0; strut < kStruts; ++strut) {
    const Range of = times_of(results, strut, kWangHuston, kQr);
    fast += of.below, cases += of.count;
  }
  findings.push_back(
      {"Wang-Huston is faster than QR in some cases", fmt::format("in {} of {}", fast, cases), fast > 0});
}

// Right-hand sides count as well: they do not depend on the machine.
Finding find_accuracy_cost(const Results& results) {
  int time = 0, count = 0, pairs = 0;
  for (const StrutRun& coarse : results.samples) {
    if (coarse.tolerance + 1 == results.tolerances) continue;
    const StrutRun& fine = results.at(coarse.strut, coarse.stabilisation, coarse.tolerance + 1, coarse.method);
    if (!coarse.done() || !fine.done()) continue;
    ++pairs;
    time += fine.median() > coarse.median() ? 1 : 0;
    count += fine.run.trajectory.right_hand_sides > coarse.run.trajectory.right_hand_sides ? 1 : 0;
  }
  return {
      "The computation time grows with the accuracy",
      fmt::format("time in {0} of {2} steps to the next tolerance, right-hand sides in {1} of {2}", time, count, pairs),
      time == pairs};
}

void find_stabilisation(const Results& results, std::vector<Finding>& findings) {
  for (const std::size_t stabilisation : {kBaumgarte, kNewton}) {
    Range longer, drift;
    for (const StrutRun& s : results.samples) {
      if (s.stabilisation != stabilisation || !s.done()) continue;
      const StrutRun& free = results.at(s.strut, kNone, s.tolerance, s.method);
      if (!free.done()) continue;
      longer.add(s.median() / free.median());
      drift.add(s.drift[0] / free.drift[0]);
    }
    findings.push_back(
        {fmt::format("Simulations with stabilisation take longer: {}", kStabilisationNames[stabilisation]),
         fmt::format("with / without: {:.2f} to {:.2f}, longer in {} of {}", longer.low, longer.high,
                     longer.count - longer.below, longer.count),
         longer.below == 0});
    findings.push_back(
        {fmt::format("Without stabilisation the constraints are less accurate: {}", kStabilisationNames[stabilisation]),
         fmt::format("position drift with / without: {:.1e} to {:.1e}, smaller in {} of {}", drift.low, drift.high,
                     drift.below, drift.count),
         drift.below == drift.count});
  }
}

void find_decisions(const Results& results, std::vector<Finding>& findings) {
  long low = 1000, high = 0;
  int selections = 0, runs = 0, finished = 0;
  for (const StrutRun& s : results.samples) {
    if (!s.done()) continue;
    ++finished;
    low = std::min(low, s.run.lowest_rank);
    high = std::max(high, s.run.highest_rank);
    if (s.method != kPartitioning) continue;
    selections += s.run.selections;
    ++runs;
  }
  findings.push_back(
      {"Both struts have four freedoms, two of them local: rank 26 of 30 coordinates",
       fmt::format("rank {} to {} in all right-hand sides of {} runs that finished", low, high, finished),
       low == kIndependent && high == kIndependent});
  findings.push_back({"One partition of the coordinates is sufficient",
                      fmt::format("{} new ones in {} runs", selections, runs), selections == 0});
}

// Agreement stands in for the paper's comparison with Adams.
Finding find_correctness(const Results& results) {
  const std::size_t finest = results.tolerances - 1;
  double error = 0.0;
  for (const StrutRun& s : results.samples)
    if (s.tolerance == finest && s.done()) error = std::max(error, s.error);
  return {"The motions are those of an independent program (section 4.1)",
          fmt::format("at most {:.1e} m from relative coordinates at {:g}, tolerance {:g}", error, kReferenceTolerance,
                      kStrutTolerances[finest]),
          error < 1e4 * kStrutTolerances[finest]};
}

std::vector<Finding> find(const Results& results) {
  std::vector<Finding> findings{find_correctness(results), find_slowest(results)};
  find_putd(results, findings);
  findings.push_back(find_spread(results));
  findings.push_back(find_robust(results));
  find_wang_huston(results, findings);
  findings.push_back(find_accuracy_cost(results));
  find_stabilisation(results, findings);
  find_decisions(results, findings);
  return findings;
}

// --- the page

std::string table_head(const char* first) {
  std::string names = first, rule = "|---|---|---|";
  for (const ComplementMethod& method : kComplementList) names += fmt::format(" {} |", method.name), rule += "---|";
  return names + "\n" + rule + "\n";
}

// Rows of strut, stabilisation and tolerance, columns of methods.
template <class Cell>
std::string table(const Results& results, const Cell& cell) {
  std::string text = table_head("| strut | stabilisation | tolerance |");
  for_cases(results, [&](const StrutRun* of) {
    text += fmt::format("| {} | {} | {:g} |", kStrutNames[of->strut], kStabilisationNames[of->stabilisation],
                        kStrutTolerances[of->tolerance]);
    for (std::size_t m = 0; m < kComplements; ++m)
      text += of[m].done() ? fmt::format(" {} |", cell(of[m])) : " gave up |";
    text += '\n';
  });
  return text;
}

constexpr const char* kIntroduction =
    "# The comparison of natural complements, section 4, done again\n\n"
    "Pekal, Fraczek: Comparison of natural complement formulations for multibody dynamics (2016): eight methods, "
    "three\n"
    "stabilisations of the constraints, four tolerances, two McPherson struts.\n\n"
    "Not the paper's: its geometry is in a missing figure and ours is inferred from table 1; Dormand-Prince 5(4) of\n"
    "SUNDIALS in place of MATLAB's ode45; compiled code, in which all methods share everything but their linear\n"
    "algebra. Times are those of the processor, not of the wall clock; medians over the runs. Newton-Raphson corrects\n"
    "positions after steps that leave more than 1e-10 m or rad. The paper plots its times, so its statements are\n"
    "compared, not numbers. The decompositions are Eigen's, compiled for short builds (-O1): what is slow here is "
    "this\n"
    "implementation, not the method as such. Singular values come from two-sided Jacobi rotations, which cost more "
    "than the\n"
    "bidiagonalisation that MATLAB uses. Errors are distances of mass centres from the motion in relative coordinates "
    "at 1e-12.\n\n";

void write_page(const StudyRequest& study, const Results& results, const std::vector<Finding>& findings,
                const std::vector<std::string>& figures) {
  std::string text = kIntroduction;
  if (study.quick) text += "**A quick run: 0.2 s, two tolerances, one run each; times and drift say little.**\n\n";
  text += findings_section(findings) + "\n## Times\n\nMedian [s], in brackets right-hand sides.\n\n" +
          table(results, [](const StrutRun& s) {
            return fmt::format("{:.3f} ({})", s.median(), s.run.trajectory.right_hand_sides);
          });
  for (std::size_t level = 0; level < kLevelCount; ++level)
    text += fmt::format("\n## Drift of {}\n\nLargest row of the constraints over the run [{}].\n\n", kLevelNames[level],
                        kLevelUnits[level]) +
            table(results, [&](const StrutRun& s) { return fmt::format("{:.1e}", s.drift[level]); });
  text += "\n## Errors\n\nLargest distance from the reference [m].\n\n" +
          table(results, [](const StrutRun& s) { return fmt::format("{:.1e}", s.error); });
  text += fmt::format(
              "\n## Rank decisions\n\nOf {} and {} rows, {} are independent. Lowest to highest rank in the right-hand "
              "sides; new selections of\nrows or coordinates; new Euler angles; steps corrected by Newton-Raphson.\n\n",
              results.at(kSimplified, 0, 0, kQr).run.rows, results.at(kRedundant, 0, 0, kQr).run.rows, kIndependent) +
          table(results, [](const StrutRun& s) {
            return fmt::format("{}-{}; {}; {}; {}", s.run.lowest_rank, s.run.highest_rank, s.run.selections,
                               s.run.charts, s.run.corrections);
          });
  for (const StrutRun& s : results.samples)
    if (!s.done()) text += fmt::format("\nGave up, {}: {}\n", head(s), s.gave_up);
  text += "\n## Figures\n\n";
  for (const std::string& file : figures) text += fmt::format("![{0}]({0})\n", file);
  write_text(study.folder / "complement.md", text);
}

}  // namespace

std::vector<Finding> study_complement(const StudyRequest& study) {
  const Struts struts = load_struts(study);
  const Results results = simulate_all(study, struts);
  write_tables(struts, results, study.folder);
  const std::vector<std::string> figures = write_figures(results, study.folder);
  const std::vector<Finding> findings = find(results);
  write_page(study, results, findings, figures);
  return findings;
}

}  // namespace rigstep::server
