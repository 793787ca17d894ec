// rigstep fmusim: runs a unit for co-simulation, of this program or of any other, and says what breaks the standard.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "server/commands/commands.h"
#include "server/commands/parameter_options.h"
#include "server/fmu/simulate_fmu.h"
#include "server/output/terminal.h"

namespace rigstep::server {

namespace {

constexpr std::size_t kMostMessages = 100;  // of a unit that are shown

struct Options {
  std::string unit;
  FmuRun run;
  bool json = false;
};

void print(const Options& options, const FmuRunResult& result) {
  if (options.json) {
    print_json({{"schema", 1},
                {"steps", result.steps},
                {"time", result.time},
                {"wall_s", result.wall},
                {"state_hash", result.state_hash},
                {"failure", result.failure},
                {"violations", result.violations}});
    return;
  }
  if (options.run.output == "-") return;
  print_text("{} steps to {:.9g} s in {:.3f} s ({:.2f} us a step)\n", result.steps, result.time, result.wall,
             result.steps > 0 ? 1e6 * result.wall / static_cast<double>(result.steps) : 0.0);
  const std::size_t broken = result.violations.size();
  print_text("standard         {}\n", broken == 0   ? std::string("no rule is broken")
                                      : broken == 1 ? std::string("a rule is broken")
                                                    : fmt::format("{} rules are broken", broken));
}

void tell(const std::string& unit, const std::vector<std::string>& violations) {
  for (const std::string& violation : violations) print_error("rigstep: {}: {}", unit, violation);
}

int fmusim(Options options) {
  for (const auto& [path, what] : {std::pair{&options.unit, "the unit itself"}, {&options.run.inputs, "the inputs"}}) {
    std::error_code is_new;
    if (std::filesystem::equivalent(options.run.output, *path, is_new))
      throw config::ConfigError(fmt::format("--output: names {}: name another file", what));
  }
  watch_interrupts();
  Progress progress("simulating", options.run.stop_time);
  options.run.progress = [&progress](double time) {
    progress.at(time);
    if (interrupted.load(std::memory_order_relaxed)) throw Interrupted{};
  };
  std::size_t told = 0;
  options.run.tell = [&told](const std::string& message) {
    if (++told <= kMostMessages) print_error("the unit says: {}", message);
    if (told == kMostMessages + 1) print_error("the unit says more, which is not shown");
  };
  try {
    const FmuRunResult result = simulate_fmu(options.unit, options.run);
    tell(options.unit, result.violations);
    print(options, result);
    if (!result.failure.empty()) {
      print_error("rigstep: {}: {}", options.unit, result.failure);
      return kExitNumerical;
    }
    return result.violations.empty() ? kExitOk : kExitVerdict;
  } catch (const FmuError& error) {
    tell(options.unit, error.violations);
    throw FmuError(options.unit + ": " + error.what());
  } catch (const Interrupted&) {
    return kExitInterrupted;
  }
}

}  // namespace

Command add_fmusim(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("fmusim", "Run any unit for co-simulation, FMI 2.0 or 3.0, and check its rules");
  command->add_option("FILE", options->unit, "The unit, a .fmu. Its binary is run here: take it from whom you trust")
      ->required();
  command->add_option(
      "--inputs", options->run.inputs,
      "CSV with a column t [s] and columns named like inputs, interpolated linearly at the end of each step");
  command->add_option("--stop", options->run.stop_time, "Stop time [s]; default: the unit's own, else 10")
      ->check(between(1e-9, kLongest));
  command->add_option("--step", options->run.step_size, "Communication step [s]; default: the unit's own, else 0.001")
      ->check(between(1e-9, 1e3));
  add_set(command, options->run.parameters);
  command->add_option("--output", options->run.output, "CSV of the outputs after each step; - is standard output");
  command->add_flag("--json", options->json, "Print the summary as JSON");
  command->footer(std::string("Examples:\n"
                              "  rigstep fmusim four_bar.fmu --stop 2 --output four_bar.csv\n"
                              "  rigstep fmusim four_bar.fmu --inputs inputs.csv --stop 10 --json\n\n"
                              "Each broken rule is told with its clause; exit code 1: there are some. 2: it cannot be\n"
                              "used at all, and why. 6: a step failed.\n\n") +
                  kExitCodeHelp);
  return [options] { return fmusim(*options); };
}

}  // namespace rigstep::server
