#include "server/studies/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "core/mechanism/builder.h"
#include "core/offline/tree_hamiltonian.h"
#include "proto/load_mechanism.h"
#include "server/bench/solvers.h"
#include "server/output/chart.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

using offline::TreeMatrix;
using offline::TreeState;

struct MatrixMethod {
  TreeMatrix matrix;
  const char* name;
};
constexpr MatrixMethod kMethods[] = {
    {TreeMatrix::extended_ltdl, "EMH"}, {TreeMatrix::tangent, "DAH"}, {TreeMatrix::orthogonal, "HZU"}};
constexpr std::size_t kMethodCount = std::size(kMethods);

struct Structure {
  const char* name;
  TreeShape (*shape)(int bodies, int freedoms);
  TreeMatrix cubic;  // of the method that suffers
};
constexpr Structure kStructures[] = {{"chain", chain_shape, TreeMatrix::tangent},
                                     {"carousel", carousel_shape, TreeMatrix::orthogonal},
                                     {"binary tree", binary_tree_shape, TreeMatrix::extended_ltdl}};
constexpr std::size_t kStructureCount = std::size(kStructures);
constexpr int kHinges = 3;           // of figures 6 to 8: one, two and three freedoms
constexpr int kMostFreedoms = 5;     // of the diagrams
constexpr double kStepperDt = 0.01;  // [s]

// One mechanism of figures 6 to 8.
struct TreeSample {
  std::size_t structure = 0;
  int freedoms = 0, bodies = 0;
  struct Of {
    offline::TreeOperations operations;
    double table = 0.0, solve_us = 0.0, evaluate_us = 0.0;
  } method[kMethodCount];
  long sweep_lu = 0;        // operations of algorithm 1
  long momentum_rates = 0;  // operations of (23)
  double stepper_us = 0.0;
};

struct Work {
  double total = 0.0, done = 0.0;
  const StudyRequest* study = nullptr;
  void step(double part) {
    done += part;
    if (study->progress) study->progress(std::min(1.0, done / total));
  }
};

std::vector<offline::BodyMotion> at_start(const Mechanism& m) { return offline::start_motion(m); }

// Lowest time of some calls [us].
template <class Call>
double lowest_us(double budget_s, const Call& call) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double lowest = 1e300;
  do {
    const auto before = Clock::now();
    call();
    lowest = std::min(lowest, std::chrono::duration<double, std::micro>(Clock::now() - before).count());
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < budget_s);
  return lowest;
}

offline::TreeOperations count(TreeMatrix matrix, const offline::TreeSystem<double>& system) {
  offline::TreeSystem<offline::Counted> counted = offline::counted(system);
  offline::TreeSolver<offline::Counted> solver(matrix);
  solver.solve(counted);
  return solver.operations();
}

long count_momentum_rates(const offline::TreeEquations& equations) {
  offline::TreeSystem<offline::Counted> system = offline::counted(equations.system());
  std::vector<offline::Six<offline::Counted>> A_rate, wrench;
  for (const auto& column : equations.A_rate()) A_rate.push_back(column.cast<offline::Counted>());
  for (const auto& load : equations.wrenches()) wrench.push_back(load.cast<offline::Counted>());
  std::vector<offline::Counted> rates(A_rate.size());
  const long before = offline::Counted::operations;
  offline::momentum_rates<offline::Counted>(system, A_rate, wrench, rates.data());
  return offline::Counted::operations - before;
}

TreeSample measure(std::size_t structure, int freedoms, int bodies, double budget_s) {
  TreeSample sample;
  sample.structure = structure, sample.freedoms = freedoms, sample.bodies = bodies;
  const TreeShape shape = kStructures[structure].shape(bodies, freedoms);
  const Mechanism m = tree_mechanism(shape);
  for (std::size_t k = 0; k < kMethodCount; ++k) {
    offline::TreeEquations equations(m, at_start(m), 0.0, {TreeState::momenta, kMethods[k].matrix});
    std::vector<double> rate(equations.start().size());
    TreeSample::Of& of = sample.method[k];
    of.evaluate_us = lowest_us(budget_s, [&] { equations.evaluate(0.0, equations.start(), rate); });
    offline::TreeSystem<double> system = equations.system();
    offline::TreeSolver<double> solver(kMethods[k].matrix);
    solver.solve(system);  // allocates
    of.solve_us = lowest_us(budget_s, [&] { solver.solve(system); });
    of.operations = count(kMethods[k].matrix, system);
    of.table = table_1(kMethods[k].matrix, shape);
    if (k > 0) continue;
    sample.sweep_lu = count(TreeMatrix::extended_lu, system).all();
    sample.momentum_rates = count_momentum_rates(equations);
  }
  TimingProtocol protocol = quick_protocol();
  protocol.budget = budget_s;
  sample.stepper_us = time_steps(timed_stepper(m, kStepperDt, 1), protocol).lowest;
  return sample;
}

std::vector<int> sizes(const StudyRequest& study) {
  return study.quick ? std::vector{2, 8, 32} : std::vector{2, 4, 8, 16, 32, 64, 128, 256};
}

std::vector<TreeSample> measure_all(const StudyRequest& study, Work& work) {
  std::vector<TreeSample> samples;
  for (std::size_t s = 0; s < kStructureCount; ++s)
    for (int n = 1; n <= kHinges; ++n)
      for (const int bodies : sizes(study)) {
        samples.push_back(measure(s, n, bodies, study.quick ? 0.002 : 0.05));
        work.step(1.0);
      }
  return samples;
}

std::string file_name(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

void write_samples(const std::vector<TreeSample>& samples, const std::filesystem::path& folder) {
  std::string operations =
      "structure,freedoms,bodies,method,form,eliminate,substitute,all,table_1,closed_form,of_equation_23\n";
  std::string times = "structure,freedoms,bodies,method,solve_us,right_hand_side_us,stepper_step_us\n";
  for (const TreeSample& s : samples)
    for (std::size_t k = 0; k < kMethodCount; ++k) {
      const TreeSample::Of& of = s.method[k];
      const std::string head =
          fmt::format("{},{},{},{}", kStructures[s.structure].name, s.freedoms, s.bodies, kMethods[k].name);
      operations +=
          fmt::format("{},{},{},{},{},{:.0f},{:.0f},{}\n", head, of.operations.form, of.operations.eliminate,
                      of.operations.substitute, of.operations.all(), of.table,
                      closed_form_operations(kMethods[k].matrix, kStructures[s.structure].shape(s.bodies, s.freedoms)),
                      s.momentum_rates);
      times += fmt::format("{},{:.3f},{:.3f},{:.3f}\n", head, of.solve_us, of.evaluate_us, s.stepper_us);
    }
  write_text(folder / "operations.csv", operations);
  write_text(folder / "times.csv", times);
}

// Figures 6 to 8, one for each structure, and the operations of the same mechanisms.
std::vector<std::string> write_figures(const std::vector<TreeSample>& samples, const std::filesystem::path& folder) {
  std::vector<std::string> files;
  constexpr const char* kHingeNames[] = {"one freedom", "two freedoms", "three freedoms"};
  for (int n = 1; n <= kHinges; ++n)
    for (std::size_t structure = 0; structure < kStructureCount; ++structure) {
      const std::string what = fmt::format("{}, hinges of {}", kStructures[structure].name, kHingeNames[n - 1]);
      Chart time{"Time: " + what, "bodies", "lowest time [us]", true, true, {}};
      Chart operations{"Operations: " + what, "bodies", "operations", true, true, {}};
      ChartLine stepper{"stepper, a step", {}};
      for (std::size_t k = 0; k < kMethodCount; ++k) {
        ChartLine us{fmt::format("{}, evaluation", kMethods[k].name), {}},
            solve{fmt::format("{}, (22)", kMethods[k].name), {}};
        ChartLine counted{fmt::format("{}, counted", kMethods[k].name), {}},
            table{fmt::format("{}, table 1", kMethods[k].name), {}};
        for (const TreeSample& s : samples) {
          if (s.structure != structure || s.freedoms != n) continue;
          const double bodies = s.bodies;
          us.points.push_back({bodies, s.method[k].evaluate_us});
          solve.points.push_back({bodies, s.method[k].solve_us});
          counted.points.push_back({bodies, static_cast<double>(s.method[k].operations.all())});
          table.points.push_back({bodies, s.method[k].table});
          if (k == 0) stepper.points.push_back({bodies, s.stepper_us});
        }
        time.lines.push_back(std::move(us));
        time.lines.push_back(std::move(solve));
        operations.lines.push_back(std::move(counted));
        operations.lines.push_back(std::move(table));
      }
      time.lines.push_back(std::move(stepper));
      const std::string name = file_name(kStructures[structure].name);
      for (const auto& [kind, chart] : {std::pair{"", &time}, std::pair{"_operations", &operations}}) {
        files.push_back(fmt::format("figure{}_{}{}.svg", 5 + n, name, kind));
        write_svg(*chart, (folder / files.back()).string());
      }
    }
  return files;
}

// Which method takes the fewest operations for chains on a body.
struct Selection {
  int freedoms = 0;
  std::vector<int> table, counted;  // (chains x lengths) index of the method
};

using Cost = double (*)(TreeMatrix, const TreeShape&);

int cheapest(Cost cost, const TreeShape& shape) {
  int best = 0;
  for (std::size_t k = 1; k < kMethodCount; ++k)
    if (cost(kMethods[k].matrix, shape) < cost(kMethods[static_cast<std::size_t>(best)].matrix, shape))
      best = static_cast<int>(k);
  return best;
}

std::vector<Selection> select(const StudyRequest& study, std::vector<std::string>& files) {
  const int most = study.quick ? 12 : 20;
  std::vector<double> axis;
  for (int k = 1; k <= most; ++k) axis.push_back(k);
  std::vector<std::string> names;
  for (const MatrixMethod& method : kMethods) names.push_back(method.name);
  std::vector<Selection> all;
  std::string csv = "freedoms,chains,length,table_1,counted\n";
  for (int n = 1; n <= kMostFreedoms; ++n) {
    Selection& at = all.emplace_back();
    at.freedoms = n;
    for (int chains = 1; chains <= most; ++chains)
      for (int length = 1; length <= most; ++length) {
        const TreeShape shape = chains_shape(chains, length, n);
        at.table.push_back(cheapest(table_1, shape));
        at.counted.push_back(cheapest(closed_form_operations, shape));
        csv += fmt::format("{},{},{},{},{}\n", n, chains, length, names[at.table.back()], names[at.counted.back()]);
      }
    for (const auto& [kind, winner] : {std::pair{"table_1", &at.table}, std::pair{"counted", &at.counted}}) {
      files.push_back(fmt::format("figure9_{}_{}.svg", n, kind));
      write_svg(RegionMap{fmt::format("Fewest operations, hinges of {} freedom{}, {}", n, n > 1 ? "s" : "",
                                      std::string_view(kind) == "counted" ? "counted" : "table 1"),
                          "bodies of a chain", "chains", axis, axis, names, *winner},
                (study.folder / files.back()).string());
    }
  }
  write_text(study.folder / "selection.csv", csv);
  return all;
}

// The pipelayer by every method.
struct Pipelayer {
  struct Run {
    std::string name;
    offline::Trajectory trajectory;
    double apart = 0.0;          // largest distance from the first run [m]
    double energy_change = 0.0;  // [J]
  };
  std::vector<Run> runs;
  double stepper_us = 0.0;
  TreeShape shape;
  long counted[kMethodCount] = {};
};

Pipelayer run_pipelayer(const StudyRequest& study, Work& work) {
  const Mechanism m = config::load_mechanism(study.mechanism_file("pipelayer")).mechanism;
  const double duration = study.quick ? 0.1 : 2.0;
  Pipelayer result;
  offline::Scenario scenario{&m, {}, {}, {}};
  for (int k = 0; k <= 20; ++k) scenario.instants.push_back(duration * k / 20);
  for (const offline::Solver& solver : offline::solvers()) {
    if (!solver.name.starts_with("tree_")) continue;
    Pipelayer::Run run{std::string(solver.name), solver.simulate(scenario, {}), 0.0, 0.0};
    const auto& first = result.runs.empty() ? run.trajectory : result.runs.front().trajectory;
    for (std::size_t k = 0; k < run.trajectory.instants.size(); ++k) {
      const offline::Instant &at = run.trajectory.instants[k], &there = first.instants[k];
      for (std::size_t i = 0; i < at.body.size(); ++i)
        run.apart = std::max(run.apart, (at.body[i].r_0 - there.body[i].r_0).norm());
      run.energy_change = std::max(run.energy_change, std::abs(at.energy - run.trajectory.instants.front().energy));
    }
    result.runs.push_back(std::move(run));
    work.step(1.0);
  }
  offline::TreeEquations equations(m, at_start(m), 0.0, {});
  for (const auto& body : equations.system().body) {
    result.shape.inner.push_back(body.inner);
    result.shape.freedoms.push_back(body.freedoms);
  }
  for (std::size_t k = 0; k < kMethodCount; ++k)
    result.counted[k] = count(kMethods[k].matrix, equations.system()).all();
  TimingProtocol protocol = quick_protocol();
  result.stepper_us = time_steps(timed_stepper(m, 1e-3, 1), protocol).lowest;
  return result;
}

double microseconds(const offline::Trajectory& run) {
  return 1e6 * run.right_hand_side_seconds / static_cast<double>(run.right_hand_sides);
}

void write_pipelayer(const Pipelayer& pipelayer, const std::filesystem::path& folder) {
  std::string csv = "method,apart_m,energy_change_J,right_hand_sides,right_hand_side_us,wall_s\n";
  for (const Pipelayer::Run& run : pipelayer.runs)
    csv += fmt::format("{},{:.3e},{:.3e},{},{:.3f},{:.4f}\n", run.name, run.apart, run.energy_change,
                       run.trajectory.right_hand_sides, microseconds(run.trajectory), run.trajectory.seconds);
  write_text(folder / "pipelayer.csv", csv);
}

// Power of the number of bodies with which operations grow, from 1024 to 2048: of the closed form, which is what is
// counted (find_costs).
double exponent(TreeMatrix matrix, const Structure& structure, int freedoms) {
  return std::log2(closed_form_operations(matrix, structure.shape(2048, freedoms)) /
                   closed_form_operations(matrix, structure.shape(1024, freedoms)));
}

void find_growth(std::vector<Finding>& findings) {
  for (std::size_t s = 0; s < kStructureCount; ++s)
    for (std::size_t k = 0; k < kMethodCount; ++k) {
      const bool cubic = k > 0 && kStructures[s].cubic == kMethods[k].matrix;
      if (k > 0 && s == kStructureCount - 1) continue;  // of the binary tree the paper says it of EMH only
      double low = 9.0, high = 0.0;
      for (int n = 1; n <= kHinges; ++n) {
        const double power = exponent(kMethods[k].matrix, kStructures[s], n);
        low = std::min(low, power);
        high = std::max(high, power);
      }
      findings.push_back(
          {fmt::format("Operations of {} grow {} on a {}", kMethods[k].name,
                       cubic ? "with the cube of the number of bodies" : "linearly", kStructures[s].name),
           fmt::format("N^{:.2f} to N^{:.2f} from 1024 to 2048 bodies", low, high),
           std::abs(low - (cubic ? 3.0 : 1.0)) < 0.1 && std::abs(high - (cubic ? 3.0 : 1.0)) < 0.1});
    }
}

void find_costs(const std::vector<TreeSample>& samples, std::vector<Finding>& findings) {
  for (std::size_t k = 0; k < kMethodCount; ++k) {
    double low = 1e300, high = 0.0, gap = 0.0;
    for (const TreeSample& s : samples) {
      const double counted = static_cast<double>(s.method[k].operations.all());
      low = std::min(low, counted / s.method[k].table);
      high = std::max(high, counted / s.method[k].table);
      gap = std::max(gap, std::abs(counted - closed_form_operations(kMethods[k].matrix, kStructures[s.structure].shape(
                                                                                            s.bodies, s.freedoms))));
    }
    findings.push_back(
        {fmt::format("Table 1 tells the operations of {} within a quarter", kMethods[k].name),
         fmt::format("counted {:.2f} to {:.2f} of it; from our closed form at most {:.0f} off", low, high, gap),
         low > 0.75 && high < 1.25 && gap < 0.5});
  }
  double few = 0.0, many = 1e300, most = 0.0;
  for (int n = 1; n <= kMostFreedoms; ++n) {
    const Mechanism m = tree_mechanism(chain_shape(16, n));
    offline::TreeEquations equations(m, at_start(m), 0.0, {});
    const double ratio = static_cast<double>(count(TreeMatrix::extended_lu, equations.system()).all()) /
                         static_cast<double>(count(TreeMatrix::extended_ltdl, equations.system()).all());
    if (n <= 3) few = std::max(few, ratio);
    if (n > 3) many = std::min(many, ratio), most = std::max(most, ratio);
  }
  findings.push_back(
      {"The L'DL sweep is faster than the LU sweep above three freedoms, by 1.3 to 1.4 at most, and the same below",
       fmt::format("LU / L'DL operations: up to {:.2f} to three freedoms, {:.2f} to {:.2f} above", few, many, most),
       few < 1.15 && many > 1.0 && most <= 1.4});
}

// Whether the order of the methods by time is that of their operations in table 1.
void find_times(const std::vector<TreeSample>& samples, std::vector<Finding>& findings) {
  int same = 0;
  for (const TreeSample& s : samples) {
    std::size_t by_table = 0, by_time = 0;
    for (std::size_t k = 1; k < kMethodCount; ++k) {
      if (s.method[k].table < s.method[by_table].table) by_table = k;
      if (s.method[k].solve_us < s.method[by_time].solve_us) by_time = k;
    }
    same += by_table == by_time ? 1 : 0;
  }
  findings.push_back({"Times confirm the operations: the cheapest method by table 1 is the fastest (figures 6-8)",
                      fmt::format("in {} of {} mechanisms", same, samples.size()),
                      10 * same >= 9 * static_cast<int>(samples.size())});
}

void find_selection(const std::vector<Selection>& all, std::vector<Finding>& findings) {
  const auto share = [](const std::vector<int>& winners, int method) {
    return 100.0 * static_cast<double>(std::count(winners.begin(), winners.end(), method)) /
           static_cast<double>(winners.size());
  };
  std::string wins;
  bool only_there = true;
  for (const Selection& at : all) {
    const double table = share(at.table, 2), counted = share(at.counted, 2);
    wins += fmt::format("{}{} freedom{}: {:.0f} % ({:.0f} %)", wins.empty() ? "" : "; ", at.freedoms,
                        at.freedoms > 1 ? "s" : "", counted, table);
    only_there = only_there && (counted > 0.0) == (at.freedoms == 3 || at.freedoms == 4);
  }
  findings.push_back({"HZU is the cheapest only with hinges of three and four freedoms (figure 9)",
                      "of the diagram, counted (table 1): " + wins, only_there});
  bool falls = true, dah_short = true;
  std::string lengths;
  double before = 1e9;
  for (const Selection& at : all) {
    const int side = static_cast<int>(std::lround(std::sqrt(static_cast<double>(at.counted.size()))));
    int last = 0;  // longest single chains for which DAH is the cheapest
    while (last < side && at.counted[static_cast<std::size_t>(last)] == 1) ++last;
    lengths += fmt::format("{}{}", lengths.empty() ? "" : ", ", last);
    falls = falls && last <= before;
    if (at.freedoms <= 2) dah_short = dah_short && last > 0;
    before = last;
  }
  findings.push_back(
      {"DAH is the cheapest for short chains and few freedoms; the more freedoms, the earlier EMH is (figure 9)",
       fmt::format("longest chain for DAH with 1 to {} freedoms: {} bodies", kMostFreedoms, lengths),
       falls && dah_short});
}

void find_pipelayer(const Pipelayer& pipelayer, std::vector<Finding>& findings) {
  double apart = 0.0;
  for (const Pipelayer::Run& run : pipelayer.runs) apart = std::max(apart, run.apart);
  findings.push_back({"Both approaches and the three structures are the same equations (section 5): the pipelayer",
                      fmt::format("{} methods, at most {:.1e} m apart", pipelayer.runs.size(), apart), apart < 1e-7});
}

constexpr const char* kDifferences =
    "Our coefficients, exact for `TreeSolver` (here and in the tests they are compared with its counter), beside those "
    "of\n"
    "table 1; n freedoms of a hinge, m = 6 - n, eta, tau and theta of (39). Hinge kinematics (G, rho, A, Z) are in "
    "neither;\n"
    "(23) takes 84 + 23 n more per body. The paper does not split its numbers up: `exact` marks differences that our\n"
    "reading of what it counts gives to the last digit, `open` those that it leaves over.\n\n"
    "| method | term | table 1 | ours | why |\n|---|---|---|---|---|\n"
    "| EMH | n^3 | 1/3 | 1/3 | Cholesky factor of A'M\\*A |\n"
    "| EMH | n^2 | 39/2 | 14 | we form half of the symmetric A'M\\*A: 11/2 less (exact) |\n"
    "| EMH | n | 1105/6 | 1222/6 | ours: M\\*A 66, C'M\\*A 42, V'V 42, eta, phi, u and v 12 each, 17/3 for the factor "
    "and "
    "half of A'M\\*A; with all of A'M\\*A 14 more than the table (open) |\n"
    "| EMH | 1 | 864 | 603 | we form C'M\\*C by turning and shifting its three blocks, half of the symmetric ones: "
    "363; two "
    "full products with the blocks of C, -G rho~ and the sum take 624 (exact) |\n"
    "| EMH | first body saves | 84 n + 660 | 6 n^2 + 108 n + 459 | it has no V, C'M\\*C, C v, C'phi; the paper's keeps "
    "some of these (open) |\n"
    "| DAH | eta^3 | 1/3 | 1/3 | Cholesky factor of the path |\n"
    "| DAH | eta^2 | 17/2 | 8 | an entry of D takes 11 operations, 12 if added to a zero (exact) |\n"
    "| DAH | eta | 109/6 | 34/6 + 24 n/eta | it telescopes to 109/6 n: half of it for the entries of D as above, and "
    "12 n, "
    "where we count right-hand sides and v of (10), 24 n (exact) |\n"
    "| DAH | theta | 42 | 42 | C'f along the path |\n"
    "| DAH | 1 | 222, inner body 427 | 96, inner body 432 | ours: composite inertia from ten numbers 144, motions, "
    "momenta "
    "and right-hand side 48 for each C and each M; the table gives the first body what it does not need (open) |\n"
    "| HZU | tau^3 | 1/3 | 1/3 | Cholesky factor of the hinges of a body |\n"
    "| HZU | tau^2 | 17/2 | 8 | an entry of H takes 11 operations, 12 if added to a zero (exact) |\n"
    "| HZU | tau | 361/6 | 430/6 | M^-1 with a full 6x6 matrix takes 66; with 54 it would be the table's, given its 12 "
    "for "
    "an entry (exact) |\n"
    "| HZU | own hinge | -(1/3 m^3 + 5/2 m^2 + 1/6 m) | -(1/3 m^3 + 2 m^2 + 1/6 m) + 85/2 m | we count C'Z, 42 m, and "
    "the "
    "sum of the parts of both bodies, m (m + 1)/2 (exact) |\n"
    "| HZU | 1 | 420, -48 once | 486, first body 192 less | right-hand side and motions, both with M^-1 and C (open) "
    "|\n\n"
    "So the diagrams of figure 9 differ: EMH costs us less and HZU more than the table says, and HZU is the cheapest "
    "from\n"
    "four freedoms on. The paper's diagrams stop at four. Our LU sweep forms H and the product H M\\* as printed, "
    "whatever n\n"
    "is; that is what it loses to the L'DL sweep below four freedoms.\n\n";

std::string operations_table(const std::vector<TreeSample>& samples) {
  std::string text =
      "| structure | freedoms | bodies | EMH counted / table 1 | DAH | HZU | EMH by LU "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const TreeSample& s : samples) {
    text += fmt::format("| {} | {} | {} |", kStructures[s.structure].name, s.freedoms, s.bodies);
    for (const TreeSample::Of& of : s.method) text += fmt::format(" {} / {:.0f} |", of.operations.all(), of.table);
    text += fmt::format(" {} |\n", s.sweep_lu);
  }
  return text;
}

std::string time_table(const std::vector<TreeSample>& samples) {
  std::string text =
      "| structure | freedoms | bodies | EMH [us] | DAH [us] | HZU [us] | stepper, a step [us] |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const TreeSample& s : samples) {
    text += fmt::format("| {} | {} | {} |", kStructures[s.structure].name, s.freedoms, s.bodies);
    for (const TreeSample::Of& of : s.method) text += fmt::format(" {:.1f} ({:.1f}) |", of.evaluate_us, of.solve_us);
    text += fmt::format(" {:.1f} |\n", s.stepper_us);
  }
  return text;
}

std::string pipelayer_table(const Pipelayer& pipelayer) {
  std::string text =
      "| method | from the first one [m] | energy, largest change [J] | right-hand sides | each [us] |\n"
      "|---|---|---|---|---|\n";
  for (const Pipelayer::Run& run : pipelayer.runs)
    text += fmt::format("| `{}` | {:.1e} | {:.1e} | {} | {:.1f} |\n", run.name, run.apart, run.energy_change,
                        run.trajectory.right_hand_sides, microseconds(run.trajectory));
  text +=
      fmt::format("\nA step of the stepper takes {:.1f} us at 1 ms. Operations of an evaluation, counted / table 1:",
                  pipelayer.stepper_us);
  for (std::size_t k = 0; k < kMethodCount; ++k)
    text += fmt::format(" {} {} / {:.0f}{}", kMethods[k].name, pipelayer.counted[k],
                        table_1(kMethods[k].matrix, pipelayer.shape), k + 1 < kMethodCount ? "," : ".\n\n");
  return text;
}

void write_page(const StudyRequest& study, const std::vector<TreeSample>& samples, const Pipelayer& pipelayer,
                const std::vector<Finding>& findings, const std::vector<std::string>& figures) {
  std::string text =
      "# The paper on trees in Hamiltonian variables, section 8, done again\n\n"
      "Ivanov, Shimanovskiy: Matrix equations of the motion of multibody systems with a tree structure in Hamiltonian\n"
      "variables (2023). EMH: the extended system (22), swept by algorithm 2; DAH: rates from (30) by algorithm 3; "
      "HZU:\n"
      "multipliers from (37) by algorithm 3. A step of an integrator takes one evaluation (Adams) to seven\n"
      "(Dormand-Prince 5(4)); the stepper's step is complete, constraints of all joints and projections included.\n"
      "The paper plots times of its own machine and program, so orders are compared, not numbers.\n\n";
  if (study.quick) text += "**A quick run: few sizes, short measurements; times say little.**\n\n";
  text += findings_section(findings) + "\n## Operations of an evaluation\n\n" + kDifferences +
          operations_table(samples) +
          "\n## Times\n\nLowest of repeated evaluations of the whole right-hand side, in brackets the solution of the\n"
          "equations alone.\n\n" +
          time_table(samples) + "\n## Pipelayer\n\n" + pipelayer_table(pipelayer) + "## Figures\n\n";
  for (const std::string& file : figures) text += fmt::format("![{0}]({0})\n", file);
  write_text(study.folder / "tree.md", text);
}

}  // namespace

Mechanism tree_mechanism(const TreeShape& shape) {
  constexpr JointType kTypes[] = {JointType::fixed,     JointType::revolute,      JointType::universal,
                                  JointType::spherical, JointType::point_on_line, JointType::point_on_plane};
  MechanismBuilder builder("tree");
  builder.set_gravity({0.0, 0.0, -9.81});
  std::vector<Vec3> centre;
  for (std::size_t i = 0; i < shape.inner.size(); ++i) {
    const double angle = 2.4 * static_cast<double>(i);
    const Vec3 arm = 0.5 * Vec3(std::cos(angle), std::sin(angle), 0.3).normalized();
    const Vec3 across(-std::sin(angle), std::cos(angle), 0.0);
    const int inner = shape.inner[i];
    const Vec3 from = inner < 0 ? Vec3(Vec3::Zero()) : centre[static_cast<std::size_t>(inner)];
    centre.push_back(from + 2.0 * arm);
    Body body;
    body.name = fmt::format("B{}", i);
    body.mass = 1.0;
    body.inertia_b = Vec3(0.1, 0.2, 0.15).asDiagonal();
    body.position_0 = centre.back();
    builder.add_body(body);
    MechanismBuilder::JointAtStart joint;
    joint.name = fmt::format("J{}", i);
    joint.type = kTypes[shape.freedoms[i]];
    joint.first = inner < 0 ? "ground" : fmt::format("B{}", inner);
    joint.second = body.name;
    joint.point = from + arm;
    if (shape.freedoms[i] != 3) joint.axis = across;
    if (shape.freedoms[i] == 2) joint.second_axis = across.cross(arm).normalized();
    builder.add_joint(joint);
  }
  return builder.build();
}

std::vector<Finding> study_tree(const StudyRequest& study) {
  Work work;
  work.study = &study;
  work.total = static_cast<double>(kStructureCount * kHinges * sizes(study).size()) + 8.0;
  const std::vector<TreeSample> samples = measure_all(study, work);
  write_samples(samples, study.folder);
  std::vector<std::string> figures = write_figures(samples, study.folder);
  const std::vector<Selection> selection = select(study, figures);
  const Pipelayer pipelayer = run_pipelayer(study, work);
  write_pipelayer(pipelayer, study.folder);
  std::vector<Finding> findings;
  find_growth(findings);
  find_costs(samples, findings);
  find_times(samples, findings);
  find_selection(selection, findings);
  find_pipelayer(pipelayer, findings);
  write_page(study, samples, pipelayer, findings, figures);
  return findings;
}

}  // namespace rigstep::server
