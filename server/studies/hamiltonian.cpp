#include "server/studies/hamiltonian.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/offline/featherstone_dca.h"
#include "core/offline/hamiltonian_dca.h"
#include "proto/load_mechanism.h"
#include "server/output/chart.h"
#include "server/output/csv.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

using offline::Integrator;
using offline::Trajectory;

constexpr int kCases = 3, kIntegrators = 3, kTolerances = 7;
constexpr double kAccuracyTolerance = 1e-6;  // of figures 5-9
constexpr double kRoundOff = 1e-10;          // [m/s, rad/s]

struct IntegratorName {
  Integrator integrator;
  const char* matlab;
};
constexpr IntegratorName kIntegratorNames[kIntegrators] = {
    {Integrator::dormand_prince, "ode45"}, {Integrator::adams, "ode113"}, {Integrator::bogacki_shampine, "ode23"}};

// Table 2 of [000]: wall-clock time DCA / HDCA, tolerances 1e-3 to 1e-9.
constexpr double kPaperRatio[kCases][kIntegrators][kTolerances] = {{{0.76, 0.99, 0.94, 0.87, 0.91, 0.96, 5.93},
                                                                    {1.21, 1.61, 1.47, 1.48, 1.32, 1.47, 5.96},
                                                                    {1.14, 1.42, 1.48, 1.51, 1.55, 1.78, 2.71}},
                                                                   {{0.83, 0.95, 0.89, 0.81, 0.78, 0.77, 0.77},
                                                                    {1.73, 1.77, 1.79, 1.64, 1.60, 1.73, 2.89},
                                                                    {1.57, 1.62, 1.70, 1.73, 1.74, 1.76, 1.80}},
                                                                   {{0.57, 0.62, 0.59, 0.56, 0.57, 0.57, 1.16},
                                                                    {0.89, 1.01, 1.07, 0.96, 0.99, 1.45, 4.73},
                                                                    {0.75, 0.76, 0.80, 0.82, 0.82, 0.84, 0.90}}};
// Table 1: mean time of a right-hand side [ms], HDCA and DCA.
constexpr double kPaperMilliseconds[kCases][2] = {{5.203, 7.394}, {8.806, 13.388}, {15.278, 15.501}};

constexpr const char* kForms[2] = {"HDCA", "DCA"};

struct PaperCase {
  Mechanism mechanism;
  int K_body = 0;               // whose point K is
  Vec3 K_point = Vec3::Zero();  // from its mass centre, body frame [m]
  Trajectory accuracy[2];       // HDCA, DCA at 1e-6
  // runs for speed
  Trajectory run[kIntegrators][kTolerances][2];
};

Trajectory simulate(int form, const Mechanism& mechanism, std::vector<double> instants, Integrator integrator,
                    double tolerance) {
  offline::Scenario scenario;
  scenario.mechanism = &mechanism;
  scenario.instants = std::move(instants);
  offline::Options options;
  options.integrator = integrator;
  options.relative_tolerance = options.absolute_tolerance = tolerance;
  return form == 0 ? offline::hamiltonian_dca(scenario, options) : offline::featherstone_dca(scenario, options);
}

double tolerance(int index) { return std::pow(10.0, -3 - index); }

// Point K: where the joint of that name is; in case 3 the centre of C.
PaperCase load_case(const StudyRequest& study, int number) {
  PaperCase c;
  c.mechanism = config::load_mechanism(study.mechanism_file(fmt::format("hdca_case{}", number))).mechanism;
  const auto find = [](const auto& list, const std::string& name) {
    return std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.name == name; });
  };
  if (number == 3) {
    c.K_body = static_cast<int>(find(c.mechanism.bodies(), "C") - c.mechanism.bodies().begin());
  } else {
    const Joint& joint = *find(c.mechanism.joints(), number == 1 ? "j3" : "j5");
    c.K_body = joint.first;
    c.K_point = joint.in_first.point_b;
  }
  return c;
}

// Height and vertical velocity of K.
std::array<double, 2> height_of_K(const PaperCase& c, const offline::Instant& at) {
  const offline::BodyMotion& body = at.body[c.K_body];
  const Eigen::Quaterniond turn(body.p[0], body.p[1], body.p[2], body.p[3]);
  const Vec3 arm = turn * c.K_point;
  return {body.r_0.y() + arm.y(), body.v_0.y() + body.omega_0.cross(arm).y()};
}

double energy_error(const Trajectory& run, std::size_t k) { return run.instants[k].energy - run.instants[0].energy; }

void write_accuracy(const PaperCase& c, int number, const std::filesystem::path& folder) {
  std::string text = "t_s";
  for (const char* form : {"hdca", "dca"})
    text += fmt::format(",{0}_energy_error_J,{0}_K_y_m,{0}_K_vy_m_per_s,{0}_velocity_violation,{0}_position_violation",
                        form);
  text += '\n';
  for (std::size_t k = 0; k < c.accuracy[0].instants.size(); ++k) {
    text += fmt::format("{:.6g}", c.accuracy[0].instants[k].time);
    for (const Trajectory& run : c.accuracy) {
      const auto& at = run.instants[k];
      const auto [y, vy] = height_of_K(c, at);
      text += fmt::format(",{:.6e},{:.12g},{:.12g},{:.6e},{:.6e}", energy_error(run, k), y, vy, at.velocity_residual,
                          at.position_residual);
    }
    text += '\n';
  }
  write_text(folder / fmt::format("accuracy_case{}.csv", number), text);
}

void write_accuracy_figures(const PaperCase& c, int number, const std::filesystem::path& folder) {
  const auto draw = [&](const std::string& name, const std::string& title, const std::string& label, bool log,
                        const auto& value) {
    Chart chart{fmt::format("PaperCase {}: {}", number, title), "time [s]", label, false, log, {}};
    for (int form = 0; form < 2; ++form) {
      ChartLine line{kForms[form], {}};
      const Trajectory& run = c.accuracy[form];
      for (std::size_t k = 0; k < run.instants.size(); ++k)
        line.points.push_back({run.instants[k].time, log ? std::max(kSmallest, value(run, k)) : value(run, k)});
      chart.lines.push_back(std::move(line));
    }
    write_svg(chart, (folder / fmt::format("{}_case{}.svg", name, number)).string());
  };
  draw("figure5_energy", "total energy error", "|E - E(0)| [J]", true,
       [](const Trajectory& run, std::size_t k) { return std::abs(energy_error(run, k)); });
  draw("figure6_height", "height of point K", "y [m]", false,
       [&c](const Trajectory& run, std::size_t k) { return height_of_K(c, run.instants[k])[0]; });
  draw("figure7_velocity", "vertical velocity of point K", "vy [m/s]", false,
       [&c](const Trajectory& run, std::size_t k) { return height_of_K(c, run.instants[k])[1]; });
  draw("figure8_velocity_violation", "violation of the constraints, velocities", "largest row [m/s, rad/s]", true,
       [](const Trajectory& run, std::size_t k) { return run.instants[k].velocity_residual; });
  draw("figure9_position_violation", "violation of the constraints, positions", "largest row [m, rad]", true,
       [](const Trajectory& run, std::size_t k) { return run.instants[k].position_residual; });
}

double wall_ratio(const Trajectory (&run)[2]) { return run[1].seconds / run[0].seconds; }
double count_ratio(const Trajectory (&run)[2]) {
  return static_cast<double>(run[1].right_hand_sides) / static_cast<double>(run[0].right_hand_sides);
}

void write_efficiency(const std::vector<PaperCase>& cases, const std::vector<int>& tolerances,
                      const std::filesystem::path& folder) {
  std::string text = "case,integrator,tolerance,form,wall_s,right_hand_sides,mean_right_hand_side_us\n";
  for (std::size_t c = 0; c < cases.size(); ++c)
    for (int i = 0; i < kIntegrators; ++i)
      for (const int t : tolerances)
        for (int form = 0; form < 2; ++form) {
          const Trajectory& run = cases[c].run[i][t][form];
          text += fmt::format("{},{},{:g},{},{:.6f},{},{:.4f}\n", c + 1, kIntegratorNames[i].matlab, tolerance(t),
                              kForms[form], run.seconds, run.right_hand_sides,
                              1e6 * run.right_hand_side_seconds / static_cast<double>(run.right_hand_sides));
        }
  write_text(folder / "efficiency.csv", text);
  const auto draw = [&](int i, const char* name, const char* title, double (*ratio)(const Trajectory(&)[2])) {
    Chart chart{
        fmt::format("{}, DCA / HDCA: {}", title, kIntegratorNames[i].matlab), "tolerance", "ratio", true, false, {}};
    for (std::size_t c = 0; c < cases.size(); ++c) {
      ChartLine line{fmt::format("case {}", c + 1), {}};
      for (const int t : tolerances) line.points.push_back({tolerance(t), ratio(cases[c].run[i][t])});
      chart.lines.push_back(std::move(line));
    }
    write_svg(chart, (folder / fmt::format("{}_{}.svg", name, kIntegratorNames[i].matlab)).string());
  };
  for (int i = 0; i < kIntegrators; ++i) {
    draw(i, "figure10_wall_clock", "Wall-clock time", wall_ratio);
    draw(i, "figure11_right_hand_sides", "Right-hand sides", count_ratio);
  }
}

double largest(const Trajectory& run, double offline::Instant::*residual) {
  double value = 0.0;
  for (const auto& at : run.instants) value = std::max(value, at.*residual);
  return value;
}

double largest_energy_error(const Trajectory& run) {
  double value = 0.0;
  for (std::size_t k = 0; k < run.instants.size(); ++k) value = std::max(value, std::abs(energy_error(run, k)));
  return value;
}

// Power of time with which a violation grows: of the running maximum, from the first fifth of the run to its end.
double growth(const Trajectory& run, double offline::Instant::*residual) {
  const std::size_t n = run.instants.size(), early = n / 5;
  double first = 0.0, all = 0.0;
  for (std::size_t k = 0; k < n; ++k) {
    all = std::max(all, run.instants[k].*residual);
    if (k == early) first = all;
  }
  return std::log(all / first) / std::log(run.instants.back().time / run.instants[early].time);
}

// Mean over all runs of a case [us].
double mean_microseconds(const PaperCase& c, const std::vector<int>& tolerances, int form) {
  double seconds = 0.0, count = 0.0;
  for (int i = 0; i < kIntegrators; ++i)
    for (const int t : tolerances) {
      seconds += c.run[i][t][form].right_hand_side_seconds;
      count += static_cast<double>(c.run[i][t][form].right_hand_sides);
    }
  return 1e6 * seconds / count;
}

std::vector<Finding> find_accuracy(const std::vector<PaperCase>& cases) {
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Trajectory &hdca = cases[i].accuracy[0], &dca = cases[i].accuracy[1];
    const auto add = [&](const char* claim, const std::string& ours, bool agrees) {
      findings.push_back({fmt::format("PaperCase {}: {}", i + 1, claim), ours, agrees});
    };
    const double energy[] = {largest_energy_error(hdca), largest_energy_error(dca)};
    add("HDCA keeps the total energy better (figure 5)", fmt::format("{:.2e} J against {:.2e} J", energy[0], energy[1]),
        energy[0] < energy[1]);
    double apart = 0.0;
    for (std::size_t k = 0; k < hdca.instants.size(); ++k)
      apart = std::max(
          apart, std::abs(height_of_K(cases[i], hdca.instants[k])[0] - height_of_K(cases[i], dca.instants[k])[0]));
    add("both give the same trajectory of K (figures 6, 7)", fmt::format("at most {:.2e} m apart", apart),
        apart < 1e-2);
    const double rate[] = {largest(hdca, &offline::Instant::velocity_residual),
                           largest(dca, &offline::Instant::velocity_residual)};
    add("HDCA satisfies the velocity constraints within numerical accuracy (figure 8)",
        fmt::format("{:.2e} m/s against {:.2e} m/s", rate[0], rate[1]), rate[0] < kRoundOff && rate[1] > kRoundOff);
    const double gap[] = {largest(hdca, &offline::Instant::position_residual),
                          largest(dca, &offline::Instant::position_residual)};
    add("its position drift is negligible beside that of DCA (figure 9)",
        fmt::format("{:.2e} m against {:.2e} m", gap[0], gap[1]), gap[0] < 0.1 * gap[1]);
    const double power = growth(dca, &offline::Instant::position_residual);
    add("positions of DCA drift quadratically in time (figure 9)", fmt::format("as t^{:.2f}", power),
        std::abs(power - 2.0) < 0.5);
  }
  return findings;
}

std::vector<Finding> find_efficiency(const std::vector<PaperCase>& cases, const std::vector<int>& tolerances) {
  std::vector<Finding> findings;
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const double us[] = {mean_microseconds(cases[c], tolerances, 0), mean_microseconds(cases[c], tolerances, 1)};
    findings.push_back({fmt::format("PaperCase {}: a right-hand side of HDCA costs less: {:.2f} of DCA (table 1)",
                                    c + 1, kPaperMilliseconds[c][0] / kPaperMilliseconds[c][1]),
                        fmt::format("{:.1f} us against {:.1f} us: {:.2f}", us[0], us[1], us[0] / us[1]),
                        us[0] < us[1]});
    for (int i = 0; i < kIntegrators; ++i) {
      int same = 0;
      for (const int t : tolerances)
        same += (wall_ratio(cases[c].run[i][t]) > 1.0) == (kPaperRatio[c][i][t] > 1.0) ? 1 : 0;
      findings.push_back(
          {fmt::format("PaperCase {}, {}: which form is faster (table 2)", c + 1, kIntegratorNames[i].matlab),
           fmt::format("the same one at {} of {} tolerances", same, tolerances.size()),
           same == static_cast<int>(tolerances.size())});
    }
  }
  return findings;
}

std::string table_2(const std::vector<PaperCase>& cases, const std::vector<int>& tolerances) {
  std::string text =
      "| case | tolerance | integrator | HDCA [s] | DCA [s] | ratio | the paper's ratio | right-hand sides, ratio |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (std::size_t c = 0; c < cases.size(); ++c)
    for (int i = 0; i < kIntegrators; ++i)
      for (const int t : tolerances) {
        const auto& run = cases[c].run[i][t];
        text += fmt::format("| {} | {:.0e} | {} | {:.3f} | {:.3f} | {:.2f} | {:.2f} | {:.2f} |\n", c + 1, tolerance(t),
                            kIntegratorNames[i].matlab, run[0].seconds, run[1].seconds, wall_ratio(run),
                            kPaperRatio[c][i][t], count_ratio(run));
      }
  return text;
}

void write_page(const StudyRequest& study, const std::vector<PaperCase>& cases, const std::vector<int>& tolerances,
                const std::vector<Finding>& findings) {
  std::string text =
      "# The Hamiltonian divide-and-conquer paper, section 3, done again\n\n"
      "Chadaj, Malczyk, Fraczek: A parallel Hamiltonian formulation for forward dynamics of closed-loop multibody\n"
      "systems (2017). HDCA: the paper's algorithm; DCA: the acceleration form with pseudo-inverse loop closure.\n\n"
      "Not the paper's: the geometry is inferred from the text, as figure 4 is missing; integrators are those of\n"
      "SUNDIALS (Dormand-Prince 5(4), Adams, Bogacki-Shampine 3(2)) in place of MATLAB's; both forms share all code\n"
      "but the algorithm, so ratios of times compare algorithms and not programs. The plotted figures of the paper "
      "are\n"
      "compared by its statements about them.\n\n";
  if (study.quick) text += "**A quick run: 1 s and few tolerances; growth and times say little.**\n\n";
  text += findings_section(findings);
  text +=
      "\n## Table 1: mean time of a right-hand side\n\n| case | HDCA [us] | DCA [us] | ratio | the paper: HDCA [ms] "
      "| DCA [ms] | ratio |\n|---|---|---|---|---|---|---|\n";
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const double us[] = {mean_microseconds(cases[c], tolerances, 0), mean_microseconds(cases[c], tolerances, 1)};
    const auto& ms = kPaperMilliseconds[c];
    text += fmt::format("| {} | {:.2f} | {:.2f} | {:.2f} | {:.3f} | {:.3f} | {:.2f} |\n", c + 1, us[0], us[1],
                        us[0] / us[1], ms[0], ms[1], ms[0] / ms[1]);
  }
  text += "\n## Table 2: wall-clock time\n\nRatios are DCA / HDCA: above 1 HDCA is faster.\n\n" +
          table_2(cases, tolerances) + "\n## Figures\n\n";
  for (const char* name : {"figure5_energy", "figure6_height", "figure7_velocity", "figure8_velocity_violation",
                           "figure9_position_violation"})
    for (std::size_t c = 1; c <= cases.size(); ++c) text += fmt::format("![{0}, case {1}]({0}_case{1}.svg)\n", name, c);
  for (const char* name : {"figure10_wall_clock", "figure11_right_hand_sides"})
    for (const IntegratorName& i : kIntegratorNames) text += fmt::format("![{0}, {1}]({0}_{1}.svg)\n", name, i.matlab);
  write_text(study.folder / "hamiltonian.md", text);
}

}  // namespace

std::vector<Finding> study_hamiltonian(const StudyRequest& study) {
  const double duration = study.quick ? 1.0 : 10.0;
  const std::vector<int> tolerances = study.quick ? std::vector{0, 3} : std::vector{0, 1, 2, 3, 4, 5, 6};
  std::vector<double> instants;
  for (int k = 0; k <= 200; ++k) instants.push_back(duration * k / 200);
  std::vector<PaperCase> cases;
  double done = 0.0;
  const double all = static_cast<double>(kCases * (1 + kIntegrators * tolerances.size()));
  const auto tell = [&] {
    done += 1.0;
    if (study.progress) study.progress(done / all);
  };
  for (int number = 1; number <= kCases; ++number) {
    PaperCase& c = cases.emplace_back(load_case(study, number));
    for (int form = 0; form < 2; ++form)
      c.accuracy[form] = simulate(form, c.mechanism, instants, Integrator::dormand_prince, kAccuracyTolerance);
    tell();
    for (int i = 0; i < kIntegrators; ++i)
      for (const int t : tolerances) {
        for (int form = 0; form < 2; ++form)
          c.run[i][t][form] =
              simulate(form, c.mechanism, {0.0, duration}, kIntegratorNames[i].integrator, tolerance(t));
        tell();
      }
    write_accuracy(c, number, study.folder);
    write_accuracy_figures(c, number, study.folder);
  }
  write_efficiency(cases, tolerances, study.folder);
  std::vector<Finding> findings = find_accuracy(cases);
  for (Finding& f : find_efficiency(cases, tolerances)) findings.push_back(std::move(f));
  write_page(study, cases, tolerances, findings);
  return findings;
}

}  // namespace rigstep::server
