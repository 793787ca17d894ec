// rigstep bench: what a step costs on this machine, beside the printed form of its algorithm and other engines.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/index3/kernels/sweeps.h"
#include "rt/thread_setup.h"
#include "server/bench/error_costs.h"
#include "server/bench/loop.h"
#include "server/bench/loop_misses.h"
#include "server/bench/peers.h"
#include "server/bench/plugin_costs.h"
#include "server/bench/solvers.h"
#include "server/bench/step_comparison.h"
#include "server/bench/step_costs.h"
#include "server/commands/commands.h"
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
  std::string config_dir, peers, output, instruction_set;
  std::string against;  // earlier result; empty: none
  bool quick = false, json = false, without_peers = false;
};

constexpr const char* kFiles[] = {"four_bar", "stewart", "full_car"};

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
  const auto is_requested = [&](const std::string& name) {
    return options.mechanisms.empty() ||
           std::find(options.mechanisms.begin(), options.mechanisms.end(), name) != options.mechanisms.end();
  };
  if (!options.bodies.empty()) sizes = options.bodies;
  for (const char* name : kChains)
    if (is_requested(name))
      for (const int n : sizes) all.push_back({name, n, "", 1e-2});
  for (const char* name : kFiles) {
    if (!is_requested(name)) continue;
    const std::string file = mechanism_file(options, name);
    if (!file.empty())
      all.push_back({name, 0, file, 1e-2});
    else if (!options.mechanisms.empty())
      throw config::ConfigError(std::string("--mechanism: there is no mechanisms/") + name + ".textproto");
  }
  for (const std::string& name : options.mechanisms)
    if (std::none_of(all.begin(), all.end(), [&](const BenchMechanism& m) { return m.name == name; }))
      throw config::ConfigError(
          "--mechanism: \"" + name +
          "\" is not known: use spherical_chain, revolute_chain, motor_chain, four_bar, stewart or full_car");
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

BenchRequest request_of(const BenchOptions& options, const std::vector<int>& sizes) {
  BenchRequest request;
  request.mechanisms = selected(options, sizes);
  request.threads = thread_counts(options);
  request.has_own_step = options.dt <= 0.0;
  request.duration = options.duration;
  request.quick = options.quick;
  request.instruction_set = options.instruction_set;
  if (options.without_peers) return request;
  request.peers = find_peers(options.peers);
  if (request.peers.empty())
    request.peers_problem = "there is no rigstep_bench_peers beside this program: build it, or name it with --peers";
  return request;
}

// Why a stepper cannot have this instruction set; empty: it can.
std::string problem_of_instruction_set(const std::string& name) {
  try {
    index3::kernels_for_this_processor(name.c_str());
    return {};
  } catch (const MechanismError& error) {
    return error.what();
  }
}

// before minutes are spent; empty: none is asked for
fs::path made_folder(const std::string& name) {
  if (name.empty()) return {};
  std::error_code error;
  fs::create_directories(name, error);
  if (error || !fs::is_directory(name)) throw FileError(name + ": cannot be made: " + error.message());
  return name;
}

int bench_step(const BenchOptions& options) {
  rt::set_floating_point_mode();
  watch_interrupts();
  const fs::path folder = made_folder(options.output);
  std::optional<EarlierCosts> earlier;
  if (!options.against.empty()) earlier = read_earlier_costs(options.against);
  StepCosts costs;
  try {
    const BenchRequest request =
        request_of(options, options.quick ? std::vector<int>{2, 8} : std::vector<int>{2, 8, 32, 128, 512, 1024});
    Progress progress("measuring", static_cast<double>(request.mechanisms.size()));
    costs = measure_step_costs(request, interrupted, [&](double done) { progress.at(done); });
  } catch (const StepFailed& error) {
    print_error("rigstep: {}", error.what());
    return kExitNumerical;
  }
  if (interrupted) return kExitInterrupted;
  std::vector<StepChange> changes;
  if (earlier) changes = compare(*earlier, costs);
  if (!folder.empty()) write_step_costs(costs, folder);
  if (options.json) {
    nlohmann::json result = to_json(costs);
    if (earlier) result["against"] = to_json(changes);
    print_json(result);
  } else {
    print(costs);
    if (earlier) print(changes, *earlier);
  }
  return is_slower(changes) ? kExitVerdict : kExitOk;
}

ErrorCosts error_costs(BenchOptions options) {
  if (options.mechanisms.empty()) options.mechanisms = {"spherical_chain", "four_bar", "stewart", "full_car"};
  const BenchRequest request = request_of(options, {8});
  Progress progress("measuring", static_cast<double>(request.mechanisms.size()));
  return measure_error_costs(request, interrupted, [&](double done) { progress.at(done); });
}

int bench_error(const BenchOptions& options) {
  rt::set_floating_point_mode();
  watch_interrupts();
  const fs::path folder = made_folder(options.output);
  const ErrorCosts costs = error_costs(options);
  if (interrupted) return kExitInterrupted;
  if (!folder.empty()) write_error_costs(costs, options.duration, folder);
  if (options.json)
    print_json(to_json(costs, options.duration));
  else
    print(costs, options.duration);
  return kExitOk;
}

int bench_misses(const LoopBenchRequest& request, bool json) {
  rt::set_floating_point_mode();
  LoopMisses misses;
  {
    Progress progress("measuring", 1.0);
    misses = measure_loop_misses(bare_rig(request.rig_file), request.misses_seconds, interrupted,
                                 [&](double done) { progress.at(done); });
  }
  print_text("{}", json ? json_text(misses.json()) : misses.text());
  return interrupted ? kExitInterrupted : kExitOk;
}

int bench_loop_command(const LoopBenchRequest& request, bool json) {
  watch_interrupts();
  if (request.misses_seconds > 0.0) return bench_misses(request, json);
  LoopBenchReport report;
  {
    Progress progress("measuring", 1.0);
    report = bench_loop(request, interrupted, [&](const char*, double done) { progress.at(done); });
  }
  print_text("{}", json ? json_text(report.json()) : report.text());
  return interrupted ? kExitInterrupted : kExitOk;
}

struct PluginBenchOptions {
  std::vector<std::string> files;
  bool quick = false, json = false;
};

int bench_plugin(PluginBenchOptions options) {
  rt::set_floating_point_mode();
  watch_interrupts();
  if (options.files.empty())
    for (const char* name : {"mechanisms/four_bar.textproto", "mechanisms/stewart.textproto",
                             "mechanisms/full_car.textproto", "templates/cart_pole/mechanism.textproto"})
      options.files.push_back(shipped_file(name));
  Progress progress("measuring", static_cast<double>(options.files.size()));
  const std::vector<PluginCost> costs =
      measure_plugin_costs(options.files, options.quick, interrupted, [&](double done) { progress.at(done); });
  if (interrupted) return kExitInterrupted;
  if (options.json)
    print_json(to_json(costs));
  else
    print_text("{}", plugin_costs_text(costs));
  return kExitOk;
}

void add_shared_options(CLI::App& command, BenchOptions& options) {
  command.add_option(
      "--mechanism", options.mechanisms,
      "spherical_chain, revolute_chain, motor_chain, four_bar, stewart, full_car; may be repeated (default: all there "
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
  step->add_option("--instruction-set", step_options->instruction_set,
                   "Of the stepper: x86-64-v4, x86-64-v3 or x86-64 (default: the fastest of this processor)")
      ->check([](const std::string& name) { return problem_of_instruction_set(name); });
  step->add_option("--dt", step_options->dt, "Step [s] (default: 0.01, with springs 0.001)")->check(between(1e-9, 1.0));
  step->add_option("--against", step_options->against,
                   "Earlier result (step.json) on this type of processor: compare by ratios to the printed form")
      ->check(CLI::ExistingFile);
  step->footer(std::string("Examples:\n"
                           "  rigstep bench step --quick\n"
                           "  rigstep bench step --mechanism spherical_chain --bodies 8 --bodies 128 --json\n"
                           "  rigstep bench step --output bench_results\n"
                           "  rigstep bench step --without-peers --against bench_results/step.json\n\n"
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
  error->footer(
      std::string(
          "Examples:\n"
          "  rigstep bench error --quick\n"
          "  rigstep bench error --mechanism four_bar --duration 2 --output bench_results\n\n"
          "A step counts if the smaller ones, down to half of it, stay within the error as well. 'rigstep' has 3\n"
          "iterations; its rows with fewer have the cheapest of 1, 2 and 3. Engines that close loops by springs\n"
          "have the best of ten stiffnesses. What has drivers, motors or tyres, which some engines lack, is moved\n"
          "on springs instead.\n") +
      kOthersHelp + kExitCodeHelp);
  auto loop_options = std::make_shared<LoopBenchRequest>();
  auto loop_json = std::make_shared<bool>(false);
  CLI::App* loop = command->add_subcommand(
      "loop",
      "Wake-ups and round trips beside cyclictest, raw UDP datagrams and readers of the page; a tick beside its step");
  loop->add_option("RIG_FILE", loop_options->rig_file, "Rig file: mechanism, period, address, real-time settings")
      ->required()
      ->check(CLI::ExistingFile);
  loop->add_option("--seconds", loop_options->seconds, "Of each measurement in each round")
      ->capture_default_str()
      ->check(between(0.1, 1e4));
  loop->add_option("--rounds", loop_options->rounds, "Whose medians count")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  loop->add_option("--misses", loop_options->misses_seconds,
                   "Instead: the loop at its deadlines for so long [s], and what each miss is due to")
      ->check(between(0.1, 1e5));
  loop->add_flag("--json", *loop_json, "Print the result as JSON");
  loop->footer(std::string("Examples:\n"
                           "  rigstep bench loop config/rigs/ci_loopback.textproto\n"
                           "  rigstep bench loop my_rig.textproto --seconds 10 --rounds 7 --json\n"
                           "  rigstep bench loop my_rig.textproto --misses 60\n\n") +
               kExitCodeHelp);

  auto plugin_options = std::make_shared<PluginBenchOptions>();
  CLI::App* plugin = command->add_subcommand(
      "plugin", "A step through the C library and through units of FMI 2.0 and 3.0, beside one of the stepper");
  plugin->add_option("MECHANISM", plugin_options->files,
                     "Mechanism files (default: four_bar, stewart, full_car, cart_pole)");
  plugin->add_flag("--quick", plugin_options->quick, "Few steps: shows that it works, measures nothing well");
  plugin->add_flag("--json", plugin_options->json, "Print the result as JSON");
  plugin->footer(std::string("Examples:\n"
                             "  rigstep bench plugin\n"
                             "  rigstep bench plugin config/mechanisms/pipelayer.textproto --json\n\n"
                             "At each step inputs are set and all outputs read. The ways are measured by turns.\n\n") +
                 kExitCodeHelp);
  return [step, loop, plugin, step_options, error_options, loop_options, loop_json, plugin_options] {
    if (plugin->parsed()) return bench_plugin(*plugin_options);
    if (loop->parsed()) return bench_loop_command(*loop_options, *loop_json);
    return step->parsed() ? bench_step(*step_options) : bench_error(*error_options);
  };
}

}  // namespace rigstep::server
