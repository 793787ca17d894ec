// rigstep bench: what a step costs on this machine, beside the printed form of its algorithm and other engines.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/index3/compile/plan.h"
#include "rt/thread_setup.h"
#include "server/bench/accuracy.h"
#include "server/bench/loop.h"
#include "server/bench/mechanisms.h"
#include "server/bench/peers.h"
#include "server/bench/phases.h"
#include "server/bench/solvers.h"
#include "server/commands/commands.h"
#include "server/live/session.h"
#include "server/machine/timing.h"
#include "server/output/chart.h"
#include "server/output/csv.h"
#include "server/output/terminal.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

namespace fs = std::filesystem;

struct BenchOptions {
  std::vector<std::string> mechanisms;
  std::vector<int> bodies;
  int threads = 0;  // most to measure; 0: all cores
  double dt = 0.0;  // [s]; 0: that of each mechanism
  double duration = 10.0;
  std::string config_dir, peers, output;
  bool quick = false, json = false, without_peers = false;
};

// One line of the table.
struct Row {
  std::string mechanism, solver, version;
  int bodies = 0, threads = 1;
  double dt = 0.0;
  StepTimes times;
  double bytes_per_body = 0.0;  // 0: not known
  double speedup = 1.0;         // against one thread
  double multiply_adds = 0.0;   // per step; 0: not counted
  // share of each phase in a step, as the solver measures it; empty where it does not
  std::vector<std::pair<std::string, double>> phases;
  std::string problem;  // why there are no numbers

  double us_per_body() const { return times.median / bodies; }
  double efficiency() const { return speedup / threads; }
};

struct Result {
  std::vector<Row> rows;
  std::map<std::string, std::string> missing;  // solver -> package
  std::string peers_problem;
  double peak = 0.0;  // multiply-adds per second
};

constexpr const char* kChains[] = {"spherical_chain", "revolute_chain"};
constexpr const char* kFiles[] = {"four_bar", "stewart", "full_car"};
constexpr double kStepOfSprings = 1e-3;  // [s] where a mechanism has springs or inputs of its own time scale

// Path of a mechanism that comes with Rigstep; empty if this installation does not have it.
std::string mechanism_file(const BenchOptions& options, const std::string& name) {
  const std::string relative = "mechanisms/" + name + ".textproto";
  std::error_code error;
  if (!options.config_dir.empty()) {
    const fs::path path = fs::path(options.config_dir) / relative;
    return fs::exists(path, error) ? path.string() : std::string();
  }
  try {
    return shipped_file(relative);
  } catch (const config::ConfigError&) {
    return {};
  }
}

std::vector<BenchMechanism> selected(const BenchOptions& options, std::vector<int> sizes) {
  std::vector<BenchMechanism> all;
  const auto wanted = [&](const std::string& name) {
    return options.mechanisms.empty() ||
           std::find(options.mechanisms.begin(), options.mechanisms.end(), name) != options.mechanisms.end();
  };
  if (!options.bodies.empty()) sizes = options.bodies;
  for (const char* name : kChains)
    if (wanted(name))
      for (const int n : sizes) all.push_back({name, n, "", 1e-2});
  for (const char* name : kFiles) {
    if (!wanted(name)) continue;
    const std::string file = mechanism_file(options, name);
    if (!file.empty())
      all.push_back({name, 0, file, 1e-2});
    else if (!options.mechanisms.empty())
      throw config::ConfigError(std::string("--mechanism: there is no mechanisms/") + name + ".textproto");
  }
  for (const std::string& name : options.mechanisms)
    if (std::none_of(all.begin(), all.end(), [&](const BenchMechanism& m) { return m.name == name; }))
      throw config::ConfigError("--mechanism: \"" + name +
                                "\" is not known: use spherical_chain, revolute_chain, four_bar, stewart or full_car");
  for (BenchMechanism& m : all)
    if (options.dt > 0.0) m.dt = options.dt;
  return all;
}

std::vector<int> thread_counts(const BenchOptions& options) {
  const int most = options.threads > 0 ? options.threads : most_threads();
  if (most > most_threads())
    throw config::ConfigError(fmt::format(
        "--threads: {}: the stepper runs on {} here", most,
        most_threads() == 1 ? std::string("one thread") : fmt::format("at most {} threads", most_threads())));
  std::vector<int> counts;
  for (int n = 1; n < most; n = n < 8 ? n + 1 : 2 * n) counts.push_back(n);
  counts.push_back(most);
  return counts;
}

void time_own_solvers(const BenchOptions& options, const BenchMechanism& which, const Mechanism& mechanism,
                      const TimingProtocol& protocol, std::vector<Row>& rows) {
  Row row;
  row.mechanism = which.name;
  row.bodies = static_cast<int>(mechanism.bodies().size());
  row.dt = which.dt;
  row.version = product_version();
  double one_thread = 0.0;
  for (const int threads : thread_counts(options)) {
    row.solver = "rigstep";
    row.threads = threads;
    std::size_t bytes = 0;
    const TimedSolver solver = timed_stepper(mechanism, which.dt, threads, &bytes);
    {
      const rt::StayOnCores pinned(rt::StayOnCores::Which::only, rt::last_allowed_core());  // its workers have theirs
      row.times = time_steps(solver, protocol);
    }
    row.bytes_per_body = static_cast<double>(bytes) / row.bodies;
    row.multiply_adds = multiply_adds_per_step(mechanism, which.dt);
    row.phases.clear();
    if (threads == 1) row.phases = phase_shares(mechanism, which.dt, row.times.lowest);
    if (threads == 1) one_thread = row.times.median;
    row.speedup = one_thread / row.times.median;
    rows.push_back(row);
  }
  row.threads = 1;
  row.multiply_adds = 0.0;
  row.phases.clear();
  row.speedup = 1.0;
  try {
    for (const bool tuned : {false, true}) {
      std::size_t bytes = 0;
      const TimedSolver solver = timed_literal(mechanism, which.dt, tuned, &bytes);
      row.solver = solver.name;
      row.times = time_steps(solver, protocol);
      row.bytes_per_body = static_cast<double>(bytes) / row.bodies;
      rows.push_back(row);
    }
  } catch (const MechanismError&) {
    // not a serial chain: nothing to compare with
  }
}

void time_peers(const std::string& executable, const BenchOptions& options, const BenchMechanism& which, int bodies,
                Result& result) {
  std::vector<std::string> arguments = peer_arguments("time", which, options.quick);
  arguments.insert(arguments.end(), {"--dt", fmt::format("{:.12g}", which.dt)});
  const std::optional<nlohmann::json> document = run_peers(executable, arguments);
  if (!document) {
    result.peers_problem = executable + " failed on " + which.name;
    return;
  }
  for (const auto& peer : (*document)["peers"]) {
    Row row;
    row.mechanism = which.name;
    row.bodies = bodies;
    row.dt = which.dt;
    row.solver = peer.value("solver", "");
    row.version = peer.value("version", "");
    row.problem = peer.value("problem", "");
    row.times = {peer.value("lowest_us", 0.0), peer.value("median_us", 0.0), peer.value("p999_us", 0.0),
                 peer.value("samples", std::size_t{0})};
    result.rows.push_back(row);
  }
  for (const auto& peer : (*document)["missing"]) result.missing[peer.value("solver", "")] = peer.value("package", "");
}

Result measure(const BenchOptions& options) {
  const std::vector<BenchMechanism> mechanisms =
      selected(options, options.quick ? std::vector<int>{2, 8} : std::vector<int>{2, 8, 32, 128, 512, 1024});
  thread_counts(options);  // complains before anything is measured
  const std::string peers = options.without_peers ? std::string() : find_peers(options.peers);
  const TimingProtocol protocol = options.quick ? quick_protocol() : full_protocol();
  Result result;
  if (peers.empty() && !options.without_peers)
    result.peers_problem = "there is no rigstep_bench_peers beside this program: build it, or name it with --peers";
  result.peak = peak_multiply_adds();
  Progress progress("measuring", static_cast<double>(mechanisms.size()));
  for (std::size_t k = 0; k < mechanisms.size() && !interrupted; ++k) {
    progress.at(static_cast<double>(k));
    BenchMechanism which = mechanisms[k];
    const Mechanism mechanism = make_mechanism(which);
    if (options.dt <= 0.0 && !mechanism.springs().empty()) which.dt = kStepOfSprings;
    time_own_solvers(options, which, mechanism, protocol, result.rows);
    if (!peers.empty()) time_peers(peers, options, which, static_cast<int>(mechanism.bodies().size()), result);
  }
  return result;
}

nlohmann::json to_json(const Row& row, double peak) {
  nlohmann::json out{{"mechanism", row.mechanism}, {"bodies", row.bodies},   {"solver", row.solver},
                     {"version", row.version},     {"threads", row.threads}, {"dt_s", row.dt}};
  if (!row.problem.empty()) {
    out["problem"] = row.problem;
    return out;
  }
  out.update({{"lowest_us", row.times.lowest},
              {"median_us", row.times.median},
              {"p999_us", row.times.p999},
              {"samples", row.times.samples},
              {"us_per_body", row.us_per_body()},
              {"speedup", row.speedup},
              {"efficiency", row.efficiency()}});
  if (row.bytes_per_body > 0.0) out["bytes_per_body"] = row.bytes_per_body;
  if (row.multiply_adds > 0.0) {
    out["multiply_adds"] = row.multiply_adds;
    out["fraction_of_peak"] = row.multiply_adds / (1e-6 * row.times.median * peak);
  }
  for (const auto& [phase, share] : row.phases) out["phases"][phase] = share;
  return out;
}

nlohmann::json machine_json(double peak) {
  nlohmann::json machine{
      {"processor", cpu_fingerprint()}, {"cores", std::thread::hardware_concurrency()}, {"build", build_fingerprint()}};
  if (peak > 0.0) machine["peak_multiply_adds_per_s"] = peak;
  double load[1] = {0.0};
  if (getloadavg(load, 1) == 1) machine["load"] = load[0];  // other work on the machine shows in the times
  return machine;
}

nlohmann::json to_json(const Result& result) {
  nlohmann::json out{{"schema", 1},
                     {"machine", machine_json(result.peak)},
                     {"rows", nlohmann::json::array()},
                     {"missing_peers", nlohmann::json::array()}};
  for (const Row& row : result.rows) out["rows"].push_back(to_json(row, result.peak));
  for (const auto& [solver, package] : result.missing)
    out["missing_peers"].push_back({{"solver", solver}, {"install", "apt-get install " + package}});
  if (!result.peers_problem.empty()) out["peers_problem"] = result.peers_problem;
  return out;
}

void print_machine(const nlohmann::json& machine) {
  print_text("{}, {} cores, load {:.1f}", machine["processor"].get<std::string>(), machine["cores"].get<int>(),
             machine.value("load", 0.0));
  if (machine.contains("peak_multiply_adds_per_s"))
    print_text("; one core makes {:.1f} 10^9 multiply-adds/s",
               1e-9 * machine["peak_multiply_adds_per_s"].get<double>());
  print_text("\n");
}

void print_missing(const std::map<std::string, std::string>& missing, const std::string& problem) {
  for (const auto& [solver, package] : missing)
    print_text("{} was not there when this was built: apt-get install -y {}, configure and build again\n", solver,
               package);
  if (!problem.empty()) print_text("other engines: {}\n", problem);
}

void print(const Result& result) {
  print_machine(machine_json(result.peak));
  const bool phases =
      std::any_of(result.rows.begin(), result.rows.end(), [](const Row& r) { return !r.phases.empty(); });
  const bool counted =
      std::any_of(result.rows.begin(), result.rows.end(), [](const Row& r) { return r.multiply_adds > 0.0; });
  print_text("{:<16} {:>6} {:<16} {:>7} {:>9} {:>10} {:>10} {:>8} {:>9} {:>8} {:>10}{}{}\n", "mechanism", "bodies",
             "solver", "threads", "lowest us", "median us", "p99.9 us", "us/body", "bytes/bdy", "speed-up",
             "efficiency", counted ? "  of peak" : "", phases ? "  phases" : "");
  std::string last;
  for (const Row& row : result.rows) {
    const std::string block = row.mechanism + std::to_string(row.bodies);
    if (!last.empty() && block != last) print_text("\n");
    last = block;
    print_text("{:<16} {:>6} {:<16} {:>7} ", row.mechanism, row.bodies, row.solver, row.threads);
    if (!row.problem.empty()) {
      print_text("{}\n", row.problem);
      continue;
    }
    print_text("{:>9.2f} {:>10.2f} {:>10.2f} {:>8.3f} {:>9} {:>8.2f} {:>10.2f}", row.times.lowest, row.times.median,
               row.times.p999, row.us_per_body(),
               row.bytes_per_body > 0.0 ? fmt::format("{:.0f}", row.bytes_per_body) : std::string("-"), row.speedup,
               row.efficiency());
    if (row.multiply_adds > 0.0)
      print_text(" {:>7.1f} %", 100.0 * row.multiply_adds / (1e-6 * row.times.median * result.peak));
    for (const auto& [phase, share] : row.phases) print_text("  {} {:.0f} %", phase, 100.0 * share);
    print_text("\n");
  }
  print_missing(result.missing, result.peers_problem);
}

fs::path made_folder(const std::string& name) {
  std::error_code error;
  fs::create_directories(name, error);
  if (error || !fs::is_directory(name)) throw FileError(name + ": cannot be made: " + error.message());
  return name;
}

void write_csv(const Result& result, const fs::path& folder) {
  std::string text =
      "mechanism,bodies,solver,threads,dt_s,lowest_us,median_us,p999_us,us_per_body,bytes_per_body,speedup,"
      "efficiency\n";
  for (const Row& r : result.rows)
    if (r.problem.empty())
      text += fmt::format("{},{},{},{},{:g},{:.4f},{:.4f},{:.4f},{:.5f},{:.0f},{:.4f},{:.4f}\n", r.mechanism, r.bodies,
                          r.solver, r.threads, r.dt, r.times.lowest, r.times.median, r.times.p999, r.us_per_body(),
                          r.bytes_per_body, r.speedup, r.efficiency());
  write_text(folder / "step.csv", text);
}

// Lines over the number of bodies or of threads, one for each value of what is left.
template <class Keep, class Name, class Point>
std::vector<ChartLine> lines(const Result& result, const Keep& keep, const Name& name, const Point& point) {
  std::vector<ChartLine> all;
  for (const Row& row : result.rows) {
    if (!row.problem.empty() || !keep(row)) continue;
    const std::string line = name(row);
    auto at = std::find_if(all.begin(), all.end(), [&](const ChartLine& l) { return l.name == line; });
    if (at == all.end()) at = all.insert(all.end(), ChartLine{line, {}});
    at->points.push_back(point(row));
  }
  return all;
}

// The paper's figures 12 to 14 for one kind of chain.
void write_figures(const Result& result, const std::string& chain, const fs::path& folder) {
  const auto of_chain = [&](const Row& r) { return r.mechanism == chain; };
  const auto own = [&](const Row& r) { return of_chain(r) && r.solver == "rigstep"; };
  const auto solver = [](const Row& r) {
    return r.threads == 1 ? r.solver : fmt::format("{}, {} threads", r.solver, r.threads);
  };
  const auto threads = [](const Row& r) { return fmt::format("{} thread{}", r.threads, r.threads == 1 ? "" : "s"); };
  const auto bodies = [](const Row& r) { return fmt::format("{} bodies", r.bodies); };
  const auto over_bodies = [](double value, const Row& r) { return std::pair(static_cast<double>(r.bodies), value); };
  const auto over_threads = [](double value, const Row& r) { return std::pair(static_cast<double>(r.threads), value); };
  const std::string prefix = (folder / (chain + "_")).string();
  const std::string title = chain == "spherical_chain" ? "Spherical chain" : "Revolute chain";
  write_svg({title + ": time per step", "bodies", "median [us]", true, true,
             lines(result, of_chain, solver, [&](const Row& r) { return over_bodies(r.times.median, r); })},
            prefix + "time_over_bodies.svg");
  if (std::none_of(result.rows.begin(), result.rows.end(), [](const Row& r) { return r.threads > 1; })) return;
  write_svg({title + ": time per step", "threads", "median [us]", false, true,
             lines(result, own, bodies, [&](const Row& r) { return over_threads(r.times.median, r); })},
            prefix + "time_over_threads.svg");
  const auto quantity = [&](const char* name, double (*value)(const Row&)) {
    write_svg({title + ": " + name, "bodies", name, true, false,
               lines(result, own, threads, [&](const Row& r) { return over_bodies(value(r), r); })},
              prefix + name + "_over_bodies.svg");
    write_svg({title + ": " + name, "threads", name, false, false,
               lines(result, own, bodies, [&](const Row& r) { return over_threads(value(r), r); })},
              prefix + name + "_over_threads.svg");
  };
  quantity("speed-up", [](const Row& r) { return r.speedup; });
  quantity("efficiency", [](const Row& r) { return r.efficiency(); });
}

int bench_step(const BenchOptions& options) {
  rt::set_floating_point_mode();
  watch_interrupts();
  fs::path folder;
  if (!options.output.empty()) folder = made_folder(options.output);  // before minutes are spent
  Result result;
  try {
    result = measure(options);
  } catch (const StepFailed& error) {
    print_error("rigstep: {}", error.what());
    return kExitNumerical;
  }
  if (interrupted) return kExitInterrupted;
  if (!options.output.empty()) {
    write_csv(result, folder);
    write_text(folder / "step.json", json_text(to_json(result)));
    for (const char* chain : kChains)
      if (std::any_of(result.rows.begin(), result.rows.end(), [&](const Row& r) { return r.mechanism == chain; }))
        write_figures(result, chain, folder);
  }
  if (options.json)
    print_json(to_json(result));
  else
    print(result);
  return kExitOk;
}

// --- cost at equal error

struct ErrorRow {
  std::string mechanism, solver, version, problem;
  int bodies = 0;
  std::vector<AccuracyPoint> points;
};

struct ErrorResult {
  std::vector<ErrorRow> rows;
  std::map<std::string, std::string> missing;
  std::string peers_problem;
};

constexpr double kErrorLevels[] = {1e-2, 1e-3, 1e-4};  // [m]

// The largest step that stays within the tolerance; null if none does.
const AccuracyPoint* cheapest(const ErrorRow& row, double tolerance) {
  for (const AccuracyPoint& p : row.points)
    if (p.error <= tolerance) return &p;
  return nullptr;
}

void peer_errors(const std::string& executable, const BenchOptions& options, const BenchMechanism& which,
                 ErrorResult& result) {
  std::vector<std::string> arguments = peer_arguments("error", which, options.quick);
  arguments.insert(arguments.end(), {"--duration", fmt::format("{:.12g}", options.duration)});
  const std::optional<nlohmann::json> document = run_peers(executable, arguments);
  if (!document) {
    result.peers_problem = executable + " failed on " + which.name;
    return;
  }
  for (const auto& peer : (*document)["peers"]) {
    ErrorRow row{
        which.name, peer.value("solver", ""), peer.value("version", ""), peer.value("problem", ""), which.bodies, {}};
    for (const auto& p : peer.value("points", nlohmann::json::array()))
      row.points.push_back({p["dt"].get<double>(),
                            p["error"].is_null() ? std::numeric_limits<double>::infinity() : p["error"].get<double>(),
                            p["us_per_step"].get<double>(), p["ms_per_second"].get<double>()});
    result.rows.push_back(row);
  }
  for (const auto& peer : (*document)["missing"]) result.missing[peer.value("solver", "")] = peer.value("package", "");
}

nlohmann::json to_json(const ErrorResult& result, double duration) {
  nlohmann::json out{{"schema", 1},
                     {"machine", machine_json(0.0)},
                     {"duration_s", duration},
                     {"rows", nlohmann::json::array()},
                     {"missing_peers", nlohmann::json::array()}};
  for (const ErrorRow& row : result.rows) {
    nlohmann::json one{
        {"mechanism", row.mechanism}, {"bodies", row.bodies}, {"solver", row.solver}, {"version", row.version}};
    if (!row.problem.empty()) one["problem"] = row.problem;
    one["points"] = nlohmann::json::array();
    for (const AccuracyPoint& p : row.points)
      one["points"].push_back(
          {{"dt_s", p.dt}, {"error_m", p.error}, {"us_per_step", p.us_per_step}, {"ms_per_second", p.ms_per_second}});
    one["reached"] = nlohmann::json::array();
    for (const double tolerance : kErrorLevels)
      if (const AccuracyPoint* p = cheapest(row, tolerance))
        one["reached"].push_back({{"tolerance_m", tolerance},
                                  {"dt_s", p->dt},
                                  {"ms", duration * p->ms_per_second},
                                  {"ms_per_second", p->ms_per_second}});
    out["rows"].push_back(one);
  }
  for (const auto& [solver, package] : result.missing)
    out["missing_peers"].push_back({{"solver", solver}, {"install", "apt-get install " + package}});
  if (!result.peers_problem.empty()) out["peers_problem"] = result.peers_problem;
  return out;
}

void print(const ErrorResult& result, double duration) {
  print_machine(machine_json(0.0));
  print_text(
      "largest position error of any body over {0:g} s: the step that stays below it, and what it takes to simulate "
      "the {0:g} s then\n",
      duration);
  print_text("{:<16} {:>6} {:<16}", "mechanism", "bodies", "solver");
  for (const double tolerance : kErrorLevels) print_text(" {:>26}", fmt::format("{:g} m", tolerance));
  print_text("\n");
  for (const ErrorRow& row : result.rows) {
    print_text("{:<16} {:>6} {:<16}", row.mechanism, row.bodies, row.solver);
    if (!row.problem.empty()) print_text(" {}", row.problem);
    for (const double tolerance : kErrorLevels) {
      if (!row.problem.empty()) break;
      const AccuracyPoint* p = cheapest(row, tolerance);
      print_text(" {:>26}", p != nullptr ? fmt::format("{:g} ms: {:.2f} ms", 1e3 * p->dt, duration * p->ms_per_second)
                                         : std::string("not reached"));
    }
    print_text("\n");
  }
  print_missing(result.missing, result.peers_problem);
}

int bench_error(const BenchOptions& options) {
  rt::set_floating_point_mode();
  watch_interrupts();
  fs::path folder;
  if (!options.output.empty()) folder = made_folder(options.output);
  BenchOptions with_reference = options;
  if (options.mechanisms.empty()) with_reference.mechanisms = {"spherical_chain", "four_bar"};
  const std::string peers = options.without_peers ? std::string() : find_peers(options.peers);
  AccuracyLadder ladder;
  if (options.quick) ladder.smallest_dt = 2e-3;
  ErrorResult result;
  if (peers.empty() && !options.without_peers)
    result.peers_problem = "there is no rigstep_bench_peers beside this program: build it, or name it with --peers";
  const std::vector<BenchMechanism> mechanisms = selected(with_reference, {8});
  Progress progress("measuring", static_cast<double>(mechanisms.size()));
  for (std::size_t k = 0; k < mechanisms.size() && !interrupted; ++k) {
    progress.at(static_cast<double>(k));
    BenchMechanism which = mechanisms[k];
    const Mechanism mechanism = make_mechanism(which);
    which.bodies = static_cast<int>(mechanism.bodies().size());
    const ReferenceMotion reference = reference_motion(which, options.duration);
    const auto add = [&](const char* solver, const MakeSolver& make) {
      result.rows.push_back(
          {which.name, solver, product_version(), "", which.bodies, climb_down(make, reference, ladder)});
    };
    add("rigstep", [&](double dt) { return timed_stepper(mechanism, dt, 1); });
    add("literal", [&](double dt) { return timed_literal(mechanism, dt, false); });
    add("literal_tuned", [&](double dt) { return timed_literal(mechanism, dt, true); });
    if (!peers.empty()) peer_errors(peers, options, which, result);
  }
  if (interrupted) return kExitInterrupted;
  if (!options.output.empty()) {
    write_text(folder / "error.json", to_json(result, options.duration).dump(2) + "\n");
    std::string csv = "mechanism,bodies,solver,dt_s,error_m,us_per_step,ms_per_second\n";
    std::map<std::string, Chart> charts;
    for (const ErrorRow& row : result.rows) {
      Chart& chart = charts[row.mechanism];
      chart.title = row.mechanism + ": cost against error";
      chart.x_label = "largest position error [m]";
      chart.y_label = "wall time per simulated second [ms]";
      ChartLine line{row.solver, {}};
      for (const AccuracyPoint& p : row.points) {
        csv += fmt::format("{},{},{},{:g},{:.6g},{:.4f},{:.5f}\n", row.mechanism, row.bodies, row.solver, p.dt, p.error,
                           p.us_per_step, p.ms_per_second);
        if (p.error > 0.0 && p.error < 10.0) line.points.emplace_back(p.error, p.ms_per_second);
      }
      chart.lines.push_back(line);
    }
    write_text(folder / "error.csv", csv);
    for (const auto& [name, chart] : charts) write_svg(chart, (folder / (name + "_cost_over_error.svg")).string());
  }
  if (options.json)
    print_json(to_json(result, options.duration));
  else
    print(result, options.duration);
  return kExitOk;
}

int bench_loop_command(const LoopBenchRequest& request, bool json) {
  watch_interrupts();
  LoopBenchReport report;
  {
    Progress progress("measuring", 1.0);
    report = bench_loop(request, interrupted, [&](const char*, double done) { progress.at(done); });
  }
  print_text("{}", json ? json_text(report.json()) : report.text());
  return interrupted ? kExitInterrupted : kExitOk;
}

void add_shared_options(CLI::App& command, BenchOptions& options) {
  command.add_option(
      "--mechanism", options.mechanisms,
      "spherical_chain, revolute_chain, four_bar, stewart, full_car; may be repeated (default: all there "
      "are)");
  command.add_option("--bodies", options.bodies, "Bodies of the chains; may be repeated")
      ->check(CLI::Range(1, 100'000));
  command.add_option("--config-dir", options.config_dir, "Folder that holds mechanisms/ (default: as installed)")
      ->check(CLI::ExistingDirectory);
  command.add_option(
      "--peers", options.peers,
      "Executable that steps the same mechanisms with other engines (default: rigstep_bench_peers beside "
      "this program)");
  command.add_flag("--without-peers", options.without_peers, "Do not run other engines");
  command.add_flag("--quick", options.quick, "Few sizes and steps: shows that it works, measures nothing well");
  command.add_option("--output", options.output, "Folder for tables (CSV, JSON) and figures (SVG)");
  command.add_flag("--json", options.json, "Print the result as JSON");
}

constexpr const char* kOthersHelp =
    "literal: the printed form of the algorithm, blocks of 7 x 7 multiplied out as printed, a factorisation in each\n"
    "of three iterations and one for the projections; literal_tuned: the same scheme with what occurs twice formed\n"
    "once, in vector registers. Both for serial chains and single loops only.\n"
    "Other engines are measured by rigstep_bench_peers, which is built with the tests for those that are installed:\n"
    "  apt-get install -y libmujoco-dev libbullet-dev libsimbody-dev\n\n";

}  // namespace

Command add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Measure on this machine what a step costs");
  command->require_subcommand(1);
  command->footer(std::string("Examples:\n  rigstep bench step --quick\n  rigstep bench error --quick\n\n") +
                  kExitCodeHelp);

  auto step_options = std::make_shared<BenchOptions>();
  CLI::App* step = command->add_subcommand(
      "step", "Time per step over bodies and threads, beside the printed form of the algorithm and other engines");
  add_shared_options(*step, *step_options);
  step->add_option("--threads", step_options->threads, "Most threads to measure (default: all cores)")
      ->check(CLI::Range(1, 1024));
  step->add_option("--dt", step_options->dt, "Step [s] (default: 0.01, with springs 0.001)")->check(between(1e-9, 1.0));
  step->footer(std::string("Examples:\n"
                           "  rigstep bench step --quick\n"
                           "  rigstep bench step --mechanism spherical_chain --bodies 8 --bodies 128 --json\n"
                           "  rigstep bench step --output bench_results\n\n"
                           "After some steps the state is saved, then restored, and the same steps are measured again "
                           "and again.\n") +
               kOthersHelp + kExitCodeHelp);

  auto error_options = std::make_shared<BenchOptions>();
  CLI::App* error = command->add_subcommand(
      "error", "Step and time that each solver needs for errors of 10, 1 and 0.1 mm against an independent reference");
  add_shared_options(*error, *error_options);
  error->add_option("--duration", error_options->duration, "Simulated time [s]")
      ->capture_default_str()
      ->check(between(0.1, 100.0));
  error->footer(std::string("Examples:\n"
                            "  rigstep bench error --quick\n"
                            "  rigstep bench error --mechanism four_bar --duration 2 --output bench_results\n\n") +
                kOthersHelp + kExitCodeHelp);
  auto loop_options = std::make_shared<LoopBenchRequest>();
  auto loop_json = std::make_shared<bool>(false);
  CLI::App* loop = command->add_subcommand(
      "loop",
      "Wake-ups, lockstep round trips and pauses of the core beside cyclictest and raw UDP datagrams, in one run");
  loop->add_option("RIG_FILE", loop_options->rig_file, "Rig file: mechanism, period, address, real-time settings")
      ->required()
      ->check(CLI::ExistingFile);
  loop->add_option("--seconds", loop_options->seconds, "Of each measurement in each round")
      ->capture_default_str()
      ->check(between(0.1, 1e4));
  loop->add_option("--rounds", loop_options->rounds, "Whose medians count")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  loop->add_flag("--json", *loop_json, "Print the result as JSON");
  loop->footer(std::string("Examples:\n"
                           "  rigstep bench loop config/rigs/ci_loopback.textproto\n"
                           "  rigstep bench loop my_rig.textproto --seconds 10 --rounds 7 --json\n\n") +
               kExitCodeHelp);
  return [step, loop, step_options, error_options, loop_options, loop_json] {
    if (loop->parsed()) return bench_loop_command(*loop_options, *loop_json);
    return step->parsed() ? bench_step(*step_options) : bench_error(*error_options);
  };
}

}  // namespace rigstep::server
