// rigstep tune: the step and the solver settings that a deadline and an error ask for.
#include "server/machine/tune.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "server/commands/commands.h"
#include "server/commands/parameter_options.h"
#include "server/live/session.h"
#include "server/machine/timing.h"
#include "server/output/terminal.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

namespace fs = std::filesystem;

struct TuneOptions {
  TuneRequest request;
  std::string output = "tuned.textproto";
  bool json = false;
};

bool was_written_by_tune(const std::string& path) {
  try {
    return config::read_text_file(path).starts_with(std::string(kTuneMark) + "\n");
  } catch (const config::ConfigError&) {
    return false;
  }
}

// Before the long work: nobody's own rig file is to be lost, and what comes of it must find its place.
void check_output(const std::string& path) {
  require_writable(path);
  std::error_code error;
  if (fs::exists(path, error) && !was_written_by_tune(path))
    throw config::ConfigError("--output: " + path + " was not written by rigstep tune and is kept: name another file");
}

int tune(const TuneOptions& options) {
  check_output(options.output);
  watch_interrupts();
  TuneReport report;
  try {
    Progress progress("tuning", 1.0);
    report = server::tune(options.request, [&progress](double done) {
      if (interrupted) throw Interrupted();
      progress.at(done);
    });
  } catch (const Interrupted&) {
    return kExitInterrupted;
  } catch (const StepFailed& failure) {
    print_error("rigstep: the reference cannot be stepped: {}; a shorter --duration ends before that", failure.what());
    return kExitNumerical;
  }
  if (report.chosen) write_text(options.output, report.rig_file(fs::path(options.output).parent_path().string()));
  if (options.json) {
    nlohmann::json out = report.json();
    out["rig_file"] = report.chosen ? nlohmann::json(options.output) : nlohmann::json();
    print_json(out);
  } else {
    print_text("{}", report.text());
    if (report.chosen) print_text("{} written: rigstep serve {}\n", options.output, options.output);
  }
  return report.chosen ? kExitOk : kExitVerdict;
}

}  // namespace

Command add_tune(CLI::App& app) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand(
      "tune",
      "Find step, iterations, projection passes and threads that keep a deadline and an error, and write a rig file");
  TuneRequest& request = options->request;
  command->add_option("MECHANISM", request.mechanism, "Mechanism file")->required();
  add_set(command, request.parameters);
  command
      ->add_option("--deadline", request.deadline_us,
                   "Longest time that a step with its outputs may take [us]; also less than dt")
      ->required();
  command
      ->add_option("--error", request.error, "Largest distance of a body from the reference, its rotation counted [m]")
      ->required();
  command->add_option("--duration", request.duration, "Simulated time [s]")
      ->check(between(1e-3, 1e4))
      ->capture_default_str();
  command->add_option("--inputs", request.inputs, "CSV with a column t [s] and columns named like input channels");
  command->add_option("--dt", request.dt_us, "Steps to try [us], separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--iterations", request.iterations, "Newton iterations to try")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--projection-passes", request.projection_passes, "Passes of each projection to try")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--order", request.orders, "Orders of accuracy to try, 2 or 4; stops and ropes have 2 only")
      ->delimiter(',')
      ->check(CLI::IsMember({2, 4}))
      ->capture_default_str();
  command->add_option("--threads", request.threads, "Threads to try; 1, 2, 4, ... up to all cores if not given")
      ->delimiter(',');
  command->add_option("--samples", request.samples, "Steps to time for each setting, at least")
      ->check(CLI::Range(100, 1'000'000))
      ->capture_default_str();
  command->add_option("--output", options->output, "Rig file to write; one of an earlier tune is replaced")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print all settings as JSON");
  command->footer(
      std::string(
          "Examples:\n"
          "  rigstep tune config/mechanisms/four_bar.textproto --deadline 200 --error 1e-3\n"
          "  rigstep tune config/mechanisms/full_car.textproto --deadline 500 --error 1e-4 --dt 500,1000,2000 "
          "--output car.textproto\n\n"
          "A setting is in time when 99.9 % of its steps, outputs included, take less than the deadline and less\n"
          "than dt; steps that another process interrupts are not counted: what the machine adds is for rigstep\n"
          "commission. It is accurate when all its steps converge and no body is further from the reference than\n"
          "--error, the reference's own uncertainty included: neither its mass centre, nor its angle times its\n"
          "longest arm from there to a joint, or times its radius of gyration where that is longer. Of those that\n"
          "are both, the one with the least load (p99.9 over dt) is written.\n"
          "Exit code 1 when there is none.\n\n") +
      kExitCodeHelp);
  return [options] { return tune(*options); };
}

}  // namespace rigstep::server
