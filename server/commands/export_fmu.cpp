// rigstep export-fmu: a mechanism as a functional mock-up unit for other simulators.
#include "server/fmu/export_fmu.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "server/commands/commands.h"
#include "server/commands/parameter_options.h"
#include "server/live/session.h"
#include "server/output/terminal.h"

namespace rigstep::server {

namespace {

// The mechanism of one of the two files, and the rig where there is one.
config::LoadedMechanism load(const std::string& mechanism_file, const std::string& rig_file, config::RigConfig& rig) {
  if (mechanism_file.empty() && rig_file.empty())
    throw config::ConfigError("MECHANISM: is missing: name a mechanism file, or a rig file with --rig");
  if (rig_file.empty()) return load_mechanism_file(mechanism_file);
  rig = config::load_rig(rig_file);
  if (!rig.snapshot_path.empty())
    throw config::ConfigError(config::place_in(rig, "start.from") +
                              ": a unit begins at the start of its mechanism: leave it out");
  config::LoadedMechanism mechanism = load_mechanism_of(rig);
  config::input_policies(rig, mechanism.mechanism);  // for the lines of what is wrong
  return mechanism;
}

// What --set says counts before what the rig file says.
void set_parameters(config::LoadedMechanism mechanism, const std::vector<config::ParameterSetting>& settings,
                    config::RigConfig& rig) {
  config::set_parameters(mechanism, settings);
  for (const config::ParameterSetting& setting : settings) {
    std::erase_if(rig.parameters, [&](const auto& each) { return each.setting.name == setting.name; });
    rig.parameters.push_back({setting, 0, {}});
  }
}

std::int64_t whole_microseconds(double period) {
  const std::int64_t microseconds = std::llround(period * 1e6);
  if (std::abs(static_cast<double>(microseconds) * 1e-6 - period) > 1e-9 * period)
    throw config::ConfigError(fmt::format("--period: {:.12g} s is no whole number of microseconds", period));
  return 1000 * microseconds;
}

}  // namespace

Command add_export_fmu(CLI::App& app) {
  struct Options {
    std::string mechanism, rig, output;
    std::optional<double> period;
    std::optional<int> order;
    std::vector<config::ParameterSetting> parameters;
    int fmi = 3;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("export-fmu", "A mechanism as a unit for co-simulation in other simulators");
  CLI::Option* const mechanism_file = command->add_option("MECHANISM", options->mechanism, "Mechanism file");
  command
      ->add_option("--rig", options->rig,
                   "Rig file instead: its mechanism, period, solver, values of parameters, ranges and safe values of "
                   "inputs")
      ->excludes(mechanism_file);
  command->add_option("--fmi", options->fmi, "Version of the standard: 3 or 2")
      ->check(CLI::IsMember({2, 3}))
      ->capture_default_str();
  command->add_option("--order", options->order, "Order of the stepper's accuracy, 2 or 4; default: the rig's, else 2")
      ->check(CLI::IsMember({2, 4}));
  command
      ->add_option("--period", options->period, "Internal step [s], whole microseconds; default: the rig's, else 0.001")
      ->check(between(1e-6, 1.0));
  add_set(command, options->parameters);
  command->add_option("--output", options->output, "File to write; default: the mechanism's name with .fmu");
  command->add_flag("--json", options->json, "Print what was written as JSON");
  command->footer(std::string("Examples:\n"
                              "  rigstep export-fmu config/mechanisms/four_bar.textproto\n"
                              "  rigstep export-fmu config/mechanisms/stewart.textproto --fmi 2 --period 0.002 "
                              "--output stewart.fmu\n"
                              "  rigstep export-fmu --rig config/templates/cart_pole/rig.textproto\n\n"
                              "The unit needs nothing of Rigstep where it runs. `rigstep fmusim` runs it here.\n\n") +
                  kExitCodeHelp);
  return [options] {
    FmuExport wanted;
    wanted.version = options->fmi == 2 ? FmiVersion::fmi2 : FmiVersion::fmi3;
    const config::LoadedMechanism mechanism = load(options->mechanism, options->rig, wanted.rig);
    set_parameters(mechanism, options->parameters, wanted.rig);
    if (options->order) wanted.rig.order = *options->order;
    if (options->period) wanted.rig.period_ns = whole_microseconds(*options->period);
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
