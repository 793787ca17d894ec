// rigstep simulate: a mechanism file, offline, as fast as it can.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/stepper_access.h"
#include "core/offline/literal_solver.h"
#include "core/offline/outputs.h"
#include "core/offline/solver.h"
#include "rt/thread_setup.h"
#include "server/commands/commands.h"
#include "server/commands/parameter_options.h"
#include "server/live/offline_start.h"
#include "server/live/session.h"
#include "server/output/csv.h"
#include "server/output/terminal.h"
#include "server/recordings/recorded_run.h"
#include "server/recordings/simulated_recording.h"

namespace rigstep::server {

namespace {

struct SimulateOptions {
  int threads = 1, order = 2;
  std::string mechanism, solver = "index3", inputs, output, from;
  bool has_dt = false;  // it was given
  double duration = 10.0, dt = 1e-3, tolerance = 1e-9;
  std::vector<config::ParameterSetting> parameters;
  std::optional<double> alpha;  // of index3_literal; 0: extrapolated to steps of zero, with a penalty of its own
  std::uint64_t every = 1;
  bool json = false;
};

// Where a run goes: the exchange format, a recording, or nowhere.
class Sink {
 public:
  Sink(const SimulateOptions& options, const config::LoadedMechanism& mechanism, const index3::Stepper& stepper)
      : every_(options.every), start_(stepper.state().step) {
    if (options.output.ends_with(".mcap"))
      recording_.emplace(options.output, mechanism, stepper, Origin{.snapshot = options.from});
    else if (!options.output.empty())
      trajectory_.emplace(options.output, stepper);
  }

  void write(const index3::Stepper& stepper, const StepReport& report, const Inputs& inputs, const Outputs& outputs) {
    const std::uint64_t step = stepper.state().step;
    const bool selected = step % every_ == 0;
    if (trajectory_ && selected) trajectory_->write(stepper, report);
    if (recording_ && step > start_) recording_->write(stepper, report, inputs, outputs, selected);
  }

  void write_parameters(const index3::Stepper& stepper) {
    if (recording_) recording_->write_parameters(stepper);
  }

  // Empty: none is made.
  std::string recording() const { return recording_ ? recording_->path() : std::string(); }

  void close(const std::string& reason) {
    if (trajectory_) trajectory_->close();
    if (recording_) recording_->close(reason);
  }

 private:
  std::uint64_t every_, start_;  // steps
  std::optional<SimulatedRecording> recording_;
  std::optional<TrajectoryWriter> trajectory_;
};

// What the run says about itself at its end.
struct Summary {
  std::uint64_t steps = 0, not_converged = 0;
  double simulated = 0.0, wall = 0.0;                                                      // [s]
  double energy_start = 0.0, energy_end = 0.0, energy_lowest = 0.0, energy_highest = 0.0;  // total [J]
  StepReport worst;                                                                        // largest of each number
  std::uint64_t state_hash = 0;                                                            // of the last state
  std::uint64_t error_step = 0;                                                            // where it errs most
  std::string error_body, recording, failure;

  void add(const StepReport& report, double energy, const Mechanism& mechanism) {
    ++steps;
    not_converged += report.status == StepStatus::not_converged;
    worst.last_increment = std::max(worst.last_increment, report.last_increment);
    worst.position_residual = std::max(worst.position_residual, report.position_residual);
    worst.velocity_residual = std::max(worst.velocity_residual, report.velocity_residual);
    worst.acceleration_residual = std::max(worst.acceleration_residual, report.acceleration_residual);
    if (report.position_error > worst.position_error) {
      worst.position_error = report.position_error;
      error_step = steps;
      error_body = report.error_body >= 0 ? mechanism.bodies()[report.error_body].name : "";
    }
    worst.orientation_error = std::max(worst.orientation_error, report.orientation_error);
    energy_end = energy;
    energy_lowest = std::min(energy_lowest, energy);
    energy_highest = std::max(energy_highest, energy);
  }
};

void print(const SimulateOptions& options, const Summary& s) {
  if (options.json) {
    const nlohmann::json out{
        {"schema", 1},
        {"solver", options.solver},
        {"steps", s.steps},
        {"dt", options.dt},
        {"simulated_s", s.simulated},
        {"wall_s", s.wall},
        {"energy_start_J", s.energy_start},
        {"energy_end_J", s.energy_end},
        {"energy_lowest_J", s.energy_lowest},
        {"energy_highest_J", s.energy_highest},
        {"position_residual", s.worst.position_residual},
        {"velocity_residual", s.worst.velocity_residual},
        {"acceleration_residual", s.worst.acceleration_residual},
        {"last_increment", s.worst.last_increment},
        {"not_converged", s.not_converged},
        {"step_error_m", s.error_step == 0 ? nlohmann::json() : nlohmann::json(s.worst.position_error)},
        {"step_error_rad", s.error_step == 0 ? nlohmann::json() : nlohmann::json(s.worst.orientation_error)},
        {"step_error_body", s.error_body},
        {"step_error_step", s.error_step},
        {"state_hash", fmt::format("{:016x}", s.state_hash)},
        {"recording", s.recording},
        {"failure", s.failure}};
    print_json(out);
    return;
  }
  print_text("{} steps of {:g} s to {:.9g} s with {} in {:.3f} s ({:.2f} us a step, output included)\n", s.steps,
             options.dt, s.simulated, options.solver, s.wall,
             s.steps > 0 ? 1e6 * s.wall / static_cast<double>(s.steps) : 0.0);
  print_text("total energy     {:.9g} J at the start, {:.9g} J at the end, {:+.3g} .. {:+.3g} J in between\n",
             s.energy_start, s.energy_end, s.energy_lowest - s.energy_start, s.energy_highest - s.energy_start);
  print_text("residuals        {:.1e} position, {:.1e} velocity, {:.1e} acceleration (largest row, SI units)\n",
             s.worst.position_residual, s.worst.velocity_residual, s.worst.acceleration_residual);
  print_text("last increment   {:.1e} m or rad at most; {} steps not converged\n", s.worst.last_increment,
             s.not_converged);
  if (s.error_step > 0)
    print_text("step error       {:.1e} m, {:.1e} rad at most, estimated; the largest at step {} (\"{}\")\n",
               s.worst.position_error, s.worst.orientation_error, s.error_step, s.error_body);
  if (!s.recording.empty()) print_text("recording        {}\n", s.recording);
  if (!s.failure.empty()) print_text("FAILED           {}\n", s.failure);
}

std::string describe_failure(const index3::Stepper& stepper, const StepReport& report) {
  return fmt::format("step {} is {}: the state stays at step {}; use a smaller --dt or look at the loads there",
                     stepper.state().step + 1,
                     describe_fault(stepper.mechanism(), report.status, report.body, report.joint),
                     stepper.state().step);
}

std::uint64_t step_count(const SimulateOptions& options) {
  const double steps = options.duration / options.dt;
  if (!(steps >= 0.5 && steps <= 1e12))
    throw config::ConfigError(
        fmt::format("--duration: {:g} s is no run: give one step of {:g} s at least, 1e12 of them at most",
                    options.duration, options.dt));
  return static_cast<std::uint64_t>(std::llround(steps));
}

index3::Settings settings_of(const SimulateOptions& options) {
  if (!(options.dt >= 1e-9 && options.dt <= 1.0))
    throw config::ConfigError("--dt: " + fmt::format("{:g}", options.dt) + " s is no step: give 1e-9 to 1 s");
  const bool known = options.output.empty() || options.output == "-" || options.output.ends_with(".csv") ||
                     options.output.ends_with(".mcap") || options.output.starts_with("/dev/");
  if (!known || (!options.inputs.empty() && options.output == options.inputs))
    throw config::ConfigError("--output: \"" + options.output +
                              "\" is no place for a trajectory: name a new .csv or .mcap");
  index3::Settings settings;
  settings.dt_ns = std::llround(options.dt * 1e9);
  settings.threads = options.threads;
  settings.order_of_accuracy = options.order;
  if (std::abs(static_cast<double>(settings.dt_ns) * 1e-9 - options.dt) > 1e-6 * options.dt)
    throw config::ConfigError("--dt: " + fmt::format("{:.12g}", options.dt) + " s is no whole number of nanoseconds");
  return settings;
}

// The scenario of a reference solver: the inputs that the stepper would have, and every instant that is written.
offline::Scenario scenario_of(const SimulateOptions& options, const index3::Settings& settings,
                              const Mechanism& mechanism) {
  const std::uint64_t steps = step_count(options);
  const auto time = [&](std::uint64_t k) { return exact_seconds(static_cast<std::int64_t>(k) * settings.dt_ns); };
  offline::Scenario scenario;
  scenario.mechanism = &mechanism;
  scenario.instants.push_back(0.0);
  for (std::uint64_t k = options.every; k <= steps; k += options.every) scenario.instants.push_back(time(k));
  if (options.inputs.empty()) return scenario;
  const InputTable table = read_inputs(options.inputs, mechanism.input_channels());
  Inputs inputs;
  for (std::uint64_t k = 1; k <= steps; ++k) {
    table.read(time(k), inputs);
    std::vector<double> value(inputs.value.begin(), inputs.value.begin() + inputs.count);
    if (scenario.inputs.empty() || scenario.inputs.back().value != value)
      scenario.inputs.push_back({time(k - 1), std::move(value)});
  }
  return scenario;
}

void print(const SimulateOptions& options, const offline::Trajectory& run) {
  const offline::Instant &first = run.instants.front(), &last = run.instants.back();
  StepReport worst;
  double lowest = first.energy, highest = first.energy;
  for (const offline::Instant& at : run.instants) {
    worst.position_residual = std::max(worst.position_residual, at.position_residual);
    worst.velocity_residual = std::max(worst.velocity_residual, at.velocity_residual);
    worst.acceleration_residual = std::max(worst.acceleration_residual, at.acceleration_residual);
    lowest = std::min(lowest, at.energy);
    highest = std::max(highest, at.energy);
  }
  if (options.json) {
    const nlohmann::json out{{"schema", 1},
                             {"solver", options.solver},
                             {"tolerance", options.tolerance},
                             {"alpha", *options.alpha},
                             {"instants", run.instants.size()},
                             {"simulated_s", last.time},
                             {"wall_s", run.seconds},
                             {"right_hand_sides", run.right_hand_sides},
                             {"energy_start_J", first.energy},
                             {"energy_end_J", last.energy},
                             {"energy_lowest_J", lowest},
                             {"energy_highest_J", highest},
                             {"position_residual", worst.position_residual},
                             {"velocity_residual", worst.velocity_residual},
                             {"acceleration_residual", worst.acceleration_residual}};
    print_json(out);
    return;
  }
  const std::string accuracy = *options.alpha > 0.0
                                   ? fmt::format("with alpha = {:g}, steps of {:g} s", *options.alpha, options.dt)
                                   : fmt::format("at tolerance {:g}", options.tolerance);
  print_text("{} instants to {:g} s with {} {} in {:.3f} s ({} right-hand sides)\n", run.instants.size(), last.time,
             options.solver, accuracy, run.seconds, run.right_hand_sides);
  print_text("total energy     {:.9g} J at the start, {:.9g} J at the end, {:+.3g} .. {:+.3g} J in between\n",
             first.energy, last.energy, lowest - first.energy, highest - first.energy);
  print_text("residuals        {:.1e} position, {:.1e} velocity, {:.1e} acceleration (largest row, SI units)\n",
             worst.position_residual, worst.velocity_residual, worst.acceleration_residual);
}

void tell_left_out(const SimulateOptions& options, const Mechanism& mechanism,
                   const std::vector<std::string>& unsupported_reasons) {
  for (std::size_t k = 0; k < unsupported_reasons.size(); ++k)
    if (!unsupported_reasons[k].empty())
      print_error("rigstep: --output: \"{}\" has no columns with --solver {}: {}", mechanism.outputs()[k].name,
                  options.solver, unsupported_reasons[k]);
}

// As its paper runs it.
offline::LiteralSettings literal_settings(const SimulateOptions& options, const index3::Settings& settings) {
  offline::LiteralSettings of;
  of.dt_ns = settings.dt_ns;
  of.alpha = *options.alpha;
  of.threads = options.threads;
  return of;
}

// A reference solver in place of the stepper: --dt is the distance of the instants, and how long inputs are held.
int simulate_with_reference(SimulateOptions options) {
  const offline::Solver* solver = offline::find_solver(options.solver);
  if (!solver)
    throw config::ConfigError("--solver: \"" + options.solver +
                              "\" is no solver: use index3, or one of: " + offline::solver_names());
  if (!(options.tolerance > 0.0 && options.tolerance <= 1e-2))
    throw config::ConfigError(
        fmt::format("--tolerance: {:g} is none: give a number above 0, at most 0.01", options.tolerance));
  const index3::Settings settings = settings_of(options);
  if (options.output.ends_with(".mcap"))
    throw config::ConfigError("--output: \"" + options.output +
                              "\": recordings hold steps of index3, which this solver has not: name a .csv");
  const config::LoadedMechanism mechanism = load_mechanism_file(options.mechanism, options.parameters);
  if (!options.alpha) options.alpha = options.solver == "index3_literal" ? mechanism.penalty_factor : 0.0;
  const std::string unsupported_reason = solver->unsupported_reason(mechanism.mechanism);
  if (!unsupported_reason.empty())
    throw config::ConfigError("--solver: " + options.solver + " cannot do " + options.mechanism + ": " +
                              unsupported_reason + ": rigstep verify --list tells which can");
  const offline::Scenario scenario = scenario_of(options, settings, mechanism.mechanism);
  std::optional<TrajectoryTable> table;
  if (!options.output.empty()) table.emplace(options.output, mechanism.mechanism);
  watch_interrupts();
  Progress progress("simulating", std::max(options.dt, scenario.instants.back()));
  offline::Options how;
  how.relative_tolerance = how.absolute_tolerance = options.tolerance;
  how.threads = options.threads;
  how.progress = [&progress](double t) {
    progress.at(t);
    return !interrupted.load(std::memory_order_relaxed);
  };
  try {
    const offline::Trajectory run =
        *options.alpha > 0.0 ? offline::literal_index3_at_fixed_step(scenario, how, literal_settings(options, settings))
                             : solver->simulate(scenario, how);
    if (table && !run.instants.empty()) {
      const std::vector<std::string> unsupported_reasons = offline::output_unsupported_reasons(scenario, run.instants);
      tell_left_out(options, mechanism.mechanism, unsupported_reasons);
      table->begin("as this solver shares it", unsupported_reasons);
      for (const offline::Instant& instant : run.instants) table->write(instant);
      table->close();
    }
    if (interrupted.load(std::memory_order_relaxed)) return kExitInterrupted;
    if (options.output != "-") print(options, run);
    return kExitOk;
  } catch (const offline::SolverError& error) {
    print_error("rigstep: {}", error.what());
    return kExitNumerical;
  }
}

// Takes over the period of the snapshot.
wire::SnapshotFile read_start(SimulateOptions& options) {
  const auto refuse = [&](const std::string& option, const std::string& what) {
    throw config::ConfigError(option + ": " + what + ": leave it out with --from");
  };
  if (!options.mechanism.empty()) refuse("MECHANISM", "the snapshot holds its own");
  if (!options.parameters.empty()) refuse("--set", "the snapshot holds the values of all parameters");
  if (options.solver != "index3") refuse("--solver", "a snapshot is one of index3");
  wire::SnapshotFile snapshot = config::read_snapshot(options.from);
  const double dt = exact_seconds(static_cast<std::int64_t>(snapshot.dt_ns()));
  if (options.has_dt && options.dt != dt) refuse("--dt", fmt::format("the snapshot is one of steps of {:g} s", dt));
  options.dt = dt;
  return snapshot;
}

int simulate(SimulateOptions options) {
  rt::set_floating_point_mode();
  std::optional<wire::SnapshotFile> snapshot;
  if (!options.from.empty()) snapshot = read_start(options);
  if (!snapshot && options.mechanism.empty())
    throw config::ConfigError("MECHANISM: is missing: name a mechanism file, or a snapshot with --from");
  if (options.alpha && options.solver != "index3_literal")
    throw config::ConfigError("--alpha: only index3_literal has a penalty factor: add --solver index3_literal");
  if (options.solver != "index3") return simulate_with_reference(options);
  const index3::Settings settings = settings_of(options);
  const std::uint64_t steps = step_count(options);
  OfflineStart begin =
      snapshot ? OfflineStart(*snapshot, options.from, options.threads)
               : OfflineStart(load_mechanism_file(options.mechanism, options.parameters), settings_of(options));
  const config::LoadedMechanism& mechanism = begin.mechanism;
  index3::Stepper& stepper = begin.stepper;
  std::optional<rt::StayOnCores> pinned;
  if (stepper.threads() > 1)
    pinned.emplace(rt::StayOnCores::Which::only, rt::last_allowed_core());  // its workers have theirs
  std::optional<InputTable> table;
  if (!options.inputs.empty()) table = read_inputs(options.inputs, mechanism.mechanism.input_channels());
  Sink sink(options, mechanism, stepper);
  watch_interrupts();

  const auto energy = [&stepper] {
    const index3::Energy e = index3::energy(index3::plan_of(stepper), stepper.state(), index3::workspace_of(stepper));
    return e.kinetic + e.potential;
  };
  Inputs& inputs = begin.inputs;
  Summary summary;
  summary.recording = sink.recording();
  summary.energy_start = summary.energy_end = summary.energy_lowest = summary.energy_highest = energy();
  Progress progress("simulating", static_cast<double>(steps));
  const auto began = std::chrono::steady_clock::now();
  StepReport start;
  index3::residuals(index3::plan_of(stepper), stepper.state(), start);
  Outputs outputs;
  sink.write(stepper, start, inputs, outputs);
  for (std::uint64_t k = 1; k <= steps && !interrupted.load(std::memory_order_relaxed); ++k) {
    if (begin.change_parameters()) sink.write_parameters(stepper);
    const auto next = static_cast<std::int64_t>(stepper.state().step + 1);
    if (table) table->read(exact_seconds(next * settings.dt_ns), inputs);
    const StepReport report = stepper.step(inputs, outputs);
    if (failed(report.status)) {
      summary.failure = describe_failure(stepper, report);
      break;
    }
    summary.add(report, energy(), mechanism.mechanism);
    sink.write(stepper, report, inputs, outputs);
    if ((k & 0xff) == 0) progress.at(static_cast<double>(k));
  }
  const std::string reason = !summary.failure.empty() ? summary.failure : interrupted ? "interrupted" : "duration over";
  sink.close(reason);
  summary.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  summary.simulated = options.dt * static_cast<double>(summary.steps);
  summary.state_hash = stepper.state().hash();
  if (options.output != "-") print(options, summary);
  if (!summary.failure.empty()) {
    print_error("rigstep: {}", summary.failure);
    return kExitNumerical;
  }
  return interrupted ? kExitInterrupted : kExitOk;
}

}  // namespace

Command add_simulate(CLI::App& app) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand("simulate", "Run a mechanism offline, as fast as it can");
  command->add_option("MECHANISM", options->mechanism, "Mechanism file");
  command->add_option("--from", options->from,
                      "Instead of a mechanism file: go on from a file of `rigstep snapshot`, at its period, with its "
                      "parameters and ramps; inputs are held as they were applied, or come from --inputs");
  add_set(command, options->parameters);
  command->add_option("--duration", options->duration, "Simulated time [s], rounded to whole steps")
      ->capture_default_str();
  CLI::Option* const dt =
      command
          ->add_option("--dt", options->dt,
                       "Step [s]; of a reference solver: distance of the instants, and how long inputs are held")
          ->capture_default_str();
  command
      ->add_option("--order", options->order, "Order of the stepper's accuracy: 2, or 4 for about four times the time")
      ->check(CLI::IsMember({2, 4}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Threads that share a step; the same bits for any number")
      ->check(CLI::Range(1, index3::kMostThreads))
      ->capture_default_str();
  command
      ->add_option("--solver", options->solver,
                   "index3, the real-time stepper, or a reference solver of rigstep verify: " + offline::solver_names())
      ->capture_default_str();
  command
      ->add_option("--tolerance", options->tolerance,
                   "Of a reference solver's integrator, absolute and relative; a run with --alpha has none")
      ->capture_default_str();
  command
      ->add_option("--alpha", options->alpha,
                   "Penalty factor of index3_literal, which then runs as its paper does: steps of --dt, three "
                   "iterations, not extrapolated; its threads share it by the paper's own scheme [N/m], [N m]. If not "
                   "given, reference_solvers.penalty_factor of the file, or 0: extrapolated")
      ->check(between(0.0, 1e15));
  command->add_option("--inputs", options->inputs,
                      "CSV with a column t [s] and columns named like input channels, interpolated linearly at the end "
                      "of each step; or a recording, whose inputs are applied again");
  command->add_option(
      "--output", options->output,
      "trajectory.csv, - for standard output, or recording.mcap, which replaces none: where there is one, the "
      "time goes into the new one's name");
  command->add_option("--every", options->every, "Write every N-th step (recordings: full states)")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print the summary as JSON");
  command->footer(
      std::string(
          "Examples:\n"
          "  rigstep simulate config/mechanisms/double_pendulum.textproto --duration 10 --dt 0.01\n"
          "  rigstep simulate config/mechanisms/four_bar.textproto --duration 30 --dt 0.005 "
          "--output four_bar.csv --every 10\n"
          "  rigstep simulate config/mechanisms/four_bar.textproto --solver hamiltonian_dca "
          "--tolerance 1e-10 --duration 1 --dt 0.01 --output reference.csv\n"
          "  rigstep simulate config/mechanisms/chain_128.textproto --solver index3_literal --alpha 1e9 --dt 0.01 "
          "--every 100\n"
          "  rigstep simulate config/mechanisms/four_bar.textproto --inputs run.mcap --output what_if.mcap\n"
          "  rigstep simulate --from warm.snapshot --duration 5 --output on.mcap\n\n"
          "A table has a column for every output channel of the mechanism. A reference solver writes\n"
          "the same columns, without outputs that it does not have (it says which), at every N-th\n"
          "multiple of --dt, once it is done; it makes no recordings (.mcap).\n\n") +
      kExitCodeHelp);
  return [options, dt] {
    options->has_dt = dt->count() > 0;
    return simulate(*options);
  };
}

}  // namespace rigstep::server
