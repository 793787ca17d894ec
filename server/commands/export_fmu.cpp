// rigstep export-fmu: a mechanism as a functional mock-up unit for other simulators.
#include "server/fmu/export_fmu.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "server/commands/commands.h"
#include "server/commands/parameter_options.h"
#include "server/live/session.h"
#include "server/output/terminal.h"

namespace rigstep::server {

Command add_export_fmu(CLI::App& app) {
  struct Options {
    std::string mechanism, output;
    double period = 1e-3;
    int order = 2;
    std::vector<config::ParameterSetting> parameters;
    int fmi = 3;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("export-fmu", "A mechanism as a unit for co-simulation in other simulators");
  command->add_option("MECHANISM", options->mechanism, "Mechanism file")->required();
  command->add_option("--fmi", options->fmi, "Version of the standard: 3 or 2")
      ->check(CLI::IsMember({2, 3}))
      ->capture_default_str();
  command->add_option("--order", options->order, "Order of the stepper's accuracy, 2 or 4")
      ->check(CLI::IsMember({2, 4}))
      ->capture_default_str();
  command->add_option("--period", options->period, "Internal step [s], whole microseconds")
      ->check(between(1e-6, 1.0))
      ->capture_default_str();
  add_set(command, options->parameters);
  command->add_option("--output", options->output, "File to write; default: the mechanism's name with .fmu");
  command->add_flag("--json", options->json, "Print what was written as JSON");
  command->footer(std::string("Examples:\n"
                              "  rigstep export-fmu config/mechanisms/four_bar.textproto\n"
                              "  rigstep export-fmu config/mechanisms/stewart.textproto --fmi 2 --period 0.002 "
                              "--output stewart.fmu\n\n"
                              "The unit needs nothing of Rigstep where it runs. `rigstep fmusim` runs it here.\n\n") +
                  kExitCodeHelp);
  return [options] {
    FmuExport wanted;
    wanted.version = options->fmi == 2 ? FmiVersion::fmi2 : FmiVersion::fmi3;
    wanted.order = options->order;
    wanted.period_us = std::llround(options->period * 1e6);
    if (std::abs(static_cast<double>(wanted.period_us) * 1e-6 - options->period) > 1e-9 * options->period)
      throw config::ConfigError(fmt::format("--period: {:.12g} s is no whole number of microseconds", options->period));
    wanted.parameters = options->parameters;
    const config::LoadedMechanism mechanism = load_mechanism_file(options->mechanism);
    std::string output = options->output;
    if (output.empty()) output = model_identifier_of(mechanism.mechanism.name()) + ".fmu";
    if (std::filesystem::path(output).extension() != ".fmu")
      throw config::ConfigError("--output: \"" + output + "\" does not end with .fmu, which importers ask for");
    export_fmu(mechanism, wanted, output);
    const std::uintmax_t bytes = std::filesystem::file_size(output);
    if (options->json)
      print_json({{"schema", 1}, {"file", output}, {"bytes", bytes}, {"fmi", options->fmi}});
    else
      print_text("{}: FMI {}.0 for co-simulation, {:.1f} MiB\n", output, options->fmi,
                 static_cast<double>(bytes) / (1 << 20));
    return static_cast<int>(kExitOk);
  };
}

}  // namespace rigstep::server
