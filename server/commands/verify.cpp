// rigstep verify: the stepper against the offline solvers.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "core/offline/families.h"
#include "rt/thread_setup.h"
#include "server/commands/commands.h"
#include "server/commands/parameter_options.h"
#include "server/live/session.h"
#include "server/output/terminal.h"
#include "server/verify/verify.h"

namespace rigstep::server {

namespace {

struct VerifyOptions {
  VerifyRequest request;
  bool list = false, json = false;
};

int list_solvers(const VerifyOptions& options) {
  const bool asked = !options.request.path.empty();
  std::optional<config::LoadedMechanism> mechanism;
  if (asked) mechanism.emplace(load_mechanism_file(options.request.path));
  nlohmann::json all = nlohmann::json::array();
  for (const offline::Solver& solver : offline::solvers()) {
    const std::string unsupported_reason = asked ? solver.unsupported_reason(mechanism->mechanism) : std::string();
    const std::string_view family = offline::family_of(solver.name).name;
    all.push_back({{"name", solver.name},
                   {"family", family},
                   {"method", solver.method},
                   {"unsupported_reason", unsupported_reason}});
    if (!options.json) print_text("{:<27} {}; family: {}\n", solver.name, solver.method, family);
    if (!options.json && asked)
      print_text("{:<27}   {}\n", "", unsupported_reason.empty() ? "can do it" : "cannot: " + unsupported_reason);
  }
  if (options.json) print_json(all);
  return kExitOk;
}

int exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::agrees:
      return kExitOk;
    case Verdict::incomplete:
      return kExitIncomplete;
    case Verdict::unverified:
      return kExitNumerical;
    case Verdict::no:
      break;
  }
  return kExitVerdict;
}

int verify(const VerifyOptions& options) {
  if (options.list) return list_solvers(options);
  if (options.request.path.empty()) throw config::ConfigError("a mechanism file or a recording is missing: name one");
  if (!(options.request.tolerance > 0.0 && options.request.tolerance <= 1e-2))
    throw config::ConfigError(
        fmt::format("--tolerance: {:g} is none: give a number above 0, at most 0.01", options.request.tolerance));
  rt::set_floating_point_mode();
  watch_interrupts();
  std::string running;
  std::unique_ptr<Progress> progress;
  const auto show = [&](std::string_view what, double done) {
    if (interrupted) throw Interrupted();
    if (what != running) {
      running = what;
      progress = std::make_unique<Progress>("verifying: " + running, 1.0);
    }
    progress->at(done);
  };
  try {
    const VerifyReport report = server::verify(options.request, show);
    progress.reset();
    print_text("{}", options.json ? json_text(report.json()) : report.text());
    return exit_code(report.verdict());
  } catch (const Interrupted&) {
    return kExitInterrupted;
  } catch (const offline::SolverError& error) {
    progress.reset();
    print_error("rigstep: {}", error.what());
    return kExitNumerical;
  }
}

}  // namespace

Command add_verify(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand(
      "verify", "Compare the stepper, extrapolated to dt = 0, with offline solvers that share no code with it");
  VerifyRequest& request = options->request;
  command->add_option("input", request.path, "Mechanism file, or recording.mcap: its inputs are taken as applied");
  add_set(command, options->request.parameters);
  command->add_option("--inputs", request.inputs,
                      "For a mechanism: CSV with a column t [s] and columns named like input channels; zero if not "
                      "given");
  command->add_option("--solver", request.solvers, "Reference solvers, separated by commas; all if not given")
      ->delimiter(',');
  command
      ->add_option("--tolerance", request.tolerance,
                   "Of the reference solvers' integrators, absolute and relative; one that differs is asked again with "
                   "a hundredth of it")
      ->capture_default_str();
  command
      ->add_option(
          "--alpha", request.alpha,
          "Penalty factor of index3_literal for steps of any length [N/m], [N m], 0: one that grows as steps get "
          "shorter; if not given, reference_solvers.penalty_factor of the file, or 0")
      ->check(between(0.0, 1e15));
  command
      ->add_option("--duration", request.duration,
                   "Simulated time [s]; 1 s if not given, 0.2 s for more than 60 bodies, the whole of a recording")
      ->check(between(1e-8, kLongest));
  command
      ->add_option(
          "--dt", request.dt,
          "Largest step of the stepper [s]; it runs with half and a quarter of it too, and on to a 64th where its "
          "order is too low yet. If not given 0.001, or 0.0001 or 0.00001 where that is too long to compare "
          "anything")
      ->check(between(1e-8, 1.0));
  command->add_option("--order", request.order, "Order of the stepper's accuracy, 2 or 4; a recording has its own")
      ->check(CLI::IsMember({2, 4}))
      ->capture_default_str();
  command
      ->add_option("--limit", request.limit,
                   "Processor time for each reference solver [s], four times that to its first instant; and for the "
                   "runs of the stepper with steps below a quarter of --dt")
      ->check(between(0.0, kLongest))
      ->capture_default_str();
  command->add_flag("--list", options->list,
                    "List the reference solvers; with a mechanism, which of them can do it and why not");
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->footer(
      fmt::format(
          "A reference solver agrees where its motion, velocities, accelerations and loads are within the\n"
          "uncertainty of the stepper's limit and the solver's own error, but never beyond {:g} % of the largest\n"
          "value that the body, joint or effort itself has. Every one of these must converge with the order of\n"
          "the scheme.\n\n",
          100.0 * kShareOfSignal) +
      std::string("Examples:\n"
                  "  rigstep verify config/mechanisms/four_bar.textproto\n"
                  "  rigstep verify config/mechanisms/pipelayer.textproto --solver ida,qr --tolerance 1e-10\n"
                  "  rigstep verify --list config/mechanisms/chain_128.textproto\n\n") +
      kExitCodeHelp);
  return [options] { return verify(*options); };
}

}  // namespace rigstep::server
