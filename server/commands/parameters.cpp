// rigstep set, get: the parameters of a live server's mechanism.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "server/commands/commands.h"
#include "server/commands/parameter_options.h"
#include "server/output/terminal.h"
#include "server/rig/status.h"

namespace rigstep::server {

namespace {

struct ParameterOptions {
  std::string target = "127.0.0.1:47001", key;
  std::vector<std::string> settings;
  std::uint32_t ramp_steps = 0;
  bool json = false;
};

StatusTarget target_of(const ParameterOptions& options) {
  StatusTarget target = parse_target(options.target);
  target.key_file = options.key;
  return target;
}

int set(const ParameterOptions& options) {
  std::vector<RigParameterValue> values;
  for (const config::ParameterSetting& each : read_settings(options.settings))
    values.push_back({each.name, each.value});
  const std::uint64_t step = change_parameters(target_of(options), values, options.ramp_steps);
  if (options.json)
    print_json(nlohmann::json{{"schema", 1}, {"acts_from_step", step}});
  else
    print_text("acts from step {}\n", step);
  return kExitOk;
}

int get(const ParameterOptions& options) {
  const std::vector<RigParameter> all = query_parameters(target_of(options));
  nlohmann::json parameters = nlohmann::json::array();
  for (const RigParameter& p : all) {
    parameters.push_back({{"name", p.name},
                          {"unit", p.unit},
                          {"value", p.value},
                          {"minimum", p.minimum},
                          {"maximum", p.maximum},
                          {"kind", p.tunable ? "tunable" : "fixed"}});
    if (!options.json)
      print_text("{:<24} {:<8} {:>12.9g} [{}], {:.6g} to {:.6g}\n", p.name, p.tunable ? "tunable" : "fixed", p.value,
                 p.unit, p.minimum, p.maximum);
  }
  if (options.json) print_json(nlohmann::json{{"schema", 1}, {"parameters", parameters}});
  return kExitOk;
}

CLI::App* add_parameter_command(CLI::App& app, const char* name, const char* what, ParameterOptions& options) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("HOST:PORT", options.target, "Address of the server")->capture_default_str()->required();
  command->add_option("--key", options.key, "Key file of `rigstep keygen`, where the server has keys");
  command->add_flag("--json", options.json, "Print the answer as JSON");
  return command;
}

}  // namespace

Command add_set(CLI::App& app) {
  auto options = std::make_shared<ParameterOptions>();
  CLI::App* command =
      add_parameter_command(app, "set", "Change parameters of a live server's mechanism between two steps", *options);
  command->add_option("NAME=VALUE", options->settings, "Tunable parameters, all changed between the same two steps")
      ->required();
  command->add_option("--ramp", options->ramp_steps, "In equal parts over so many steps; at once if not given")
      ->check(CLI::Range(1u, 1'000'000'000u));
  command->footer(
      std::string("Examples:\n  rigstep set 127.0.0.1:47001 payload=2.5\n"
                  "  rigstep set 127.0.0.1:47001 front_spring=30000 rear_spring=28000 --ramp 500\n"
                  "  rigstep set 10.0.0.5:47001 --key desk.key grip=0.4\n\n"
                  "Prints the first step that the values act in. What is unknown, fixed or out of its range\n"
                  "is refused by name, and nothing changes. `rigstep get` tells what there is.\n\n") +
      kExitCodeHelp);
  return [options] { return set(*options); };
}

Command add_get(CLI::App& app) {
  auto options = std::make_shared<ParameterOptions>();
  CLI::App* command = add_parameter_command(
      app, "get", "Parameters of a live server's mechanism: kind, value that acts now, unit, range", *options);
  command->footer(std::string("Examples:\n  rigstep get 127.0.0.1:47001\n"
                              "  rigstep get 10.0.0.5:47001 --key desk.key --json\n\n") +
                  kExitCodeHelp);
  return [options] { return get(*options); };
}

}  // namespace rigstep::server
