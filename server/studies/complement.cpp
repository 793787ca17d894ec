#include "server/studies/complement.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/output/chart.h"
#include "server/output/text_file.h"
#include "server/studies/complement_findings.h"

namespace rigstep::server {

namespace {

using offline::Instant;

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

// Of figures 2 to 5.
constexpr const char* kTitles[kStabilisations] = {"without constraint stabilization",
                                                  "with the Baumgarte stabilization",
                                                  "with stabilization of the position constraints"};

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
  Chart chart{fmt::format("{} McPherson strut {}", figure.strut == kSimplified ? "Simplified" : "Overconstrained",
                          kTitles[figure.stabilisation]),
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

std::vector<FigureOnPage> write_figures(const Results& results, const std::filesystem::path& folder) {
  std::vector<FigureOnPage> figures;
  for (const TimeFigure& figure : kTimeFigures) {
    write_time_figure(figure, results, folder);
    figures.push_back(
        {fmt::format("{}_time.svg", figure.name),
         fmt::format(
             "Figure {}: time against tolerance; how far the curves are apart is what the choice of a method is worth.",
             std::string_view(figure.name).substr(6))});
  }
  for (std::size_t level = 0; level < kLevelCount; ++level)
    for (std::size_t strut = 0; strut < kStruts; ++strut)
      figures.push_back({write_drift_figure(strut, level, results, folder),
                         fmt::format("Drift of {}, {} strut: which level each stabilisation holds.", kLevelNames[level],
                                     kStrutNames[strut])});
  return figures;
}

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

constexpr const char* kComplementIntroduction =
    "# The comparison of natural complements, section 4, done again\n\n"
    "Pekal, Fraczek: Comparison of natural complement formulations for multibody dynamics (2016): eight methods, "
    "three\n"
    "stabilisations of the constraints, four tolerances, two McPherson struts.\n\n"
    "Not the paper's: its geometry is in a missing figure and ours is inferred from table 1; Dormand-Prince 5(4) of\n"
    "SUNDIALS in place of MATLAB's ode45; compiled code, in which all methods share everything but their linear\n"
    "algebra. Singular values (by divide and conquer) and Schur's form are those of the reference LAPACK; MATLAB's\n"
    "come from LAPACK, too. Other decompositions are Eigen's, compiled like the rest. Times are those of the "
    "processor, not of the wall clock: medians over runs in which all methods "
    "take\n"
    "turns. Newton-Raphson corrects positions after steps that leave more than 1e-10 m or rad. The paper plots its "
    "times,\n"
    "so its statements are compared, not numbers; where right-hand sides can stand for times, they are compared. "
    "Errors\n"
    "are distances of mass centres from the motion in relative coordinates at 1e-12.\n\n";

std::string sections(const Results& results) {
  std::string text =
      "## Times\n\nMedian [s], in brackets right-hand sides.\n\n" + table(results, [](const StrutRun& s) {
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
  return text + "\n";
}

}  // namespace

StudyPart study_complement(const StudyRequest& study) {
  const Struts struts = load_struts(study);
  const Results results = simulate_all(study, struts);
  write_tables(struts, results, study.folder);
  StudyPart part = complement_findings(results);
  part.figures = write_figures(results, study.folder);
  part.text = sections(results);
  const char* quick = "**A quick run: 0.2 s, two tolerances, one run each; times and drift say little.**";
  write_text(study.folder / "complement.md", page_of(study, kComplementIntroduction, quick, part));
  return part;
}

}  // namespace rigstep::server
