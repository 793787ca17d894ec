// rigstep diff: what differs between two recordings.
#include <algorithm>
#include <memory>

#include "proto/config_text.h"
#include "server/commands/run_options.h"
#include "server/output/terminal.h"
#include "server/recordings/run_difference.h"

namespace rigstep::server {

namespace {

// "1e-6", or "CHANNEL=1e-6": a channel by its name, with its unit or without.
void add_tolerance(const std::string& text, const RecordedRun& run, Tolerances& tolerances) {
  const std::size_t sign = text.rfind('=');
  const auto value = finite_number(std::string_view(text).substr(sign == std::string::npos ? 0 : sign + 1));
  if (!value || *value < 0.0)
    throw config::ConfigError("--tolerance: \"" + text + "\" is no tolerance: give a number, or CHANNEL=NUMBER");
  if (sign == std::string::npos) {
    tolerances.all = *value;
    return;
  }
  const std::string name = run.columns_of({text.substr(0, sign)})[0].name;
  for (const auto& [channel, tolerance] : tolerances.of_channel)
    if (channel == name) throw config::ConfigError("--tolerance: \"" + name + "\" is given twice: leave one out");
  tolerances.of_channel.emplace_back(name, *value);
}

}  // namespace

Command add_diff(CLI::App& app) {
  struct Options {
    std::string a, b, picture;
    std::vector<std::string> tolerances;
    RunSelection selection;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("diff", "What differs between two recordings");
  command->add_option("A", options->a, "MCAP file")->required();
  command->add_option("B", options->b, "MCAP file")->required();
  add_selection(command, options->selection);
  command
      ->add_option("--tolerance", options->tolerances,
                   "Largest difference that is no difference, in the channel's unit: a number for all channels, or "
                   "CHANNEL=NUMBER for one. 0 if not given")
      ->allow_extra_args(false);
  command->add_option("--picture", options->picture, "FIGURE.svg or PAGE.html with both");
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->footer(std::string("Examples:\n  rigstep diff before.mcap after.mcap\n"
                              "  rigstep diff before.mcap after.mcap --tolerance 1e-9 --tolerance phi=1e-4\n"
                              "  rigstep diff before.mcap after.mcap --channel phi --picture phi.html\n\n"
                              "Instants of equal simulated time are compared. Exit code 1: a channel differs by more "
                              "than its tolerance,\nor one of the two has channels or instants that the other has "
                              "not.\n\n") +
                  kExitCodeHelp);
  return [options]() -> int {
    if (!options->picture.empty()) require_figure(options->picture);
    const RecordedRun a(options->a), b(options->b);
    Tolerances tolerances;
    for (const std::string& text : options->tolerances) add_tolerance(text, a, tolerances);
    Progress progress("comparing step", 0.0);
    const RunDifference found = compare_runs(a, b, options->selection, tolerances, tell(progress));
    if (options->json)
      print_json(found.json());
    else
      print_text("{}", found.text());
    if (!options->picture.empty())
      write_figure(figure_of({options->a, options->b}, options->selection), options->picture);
    const int code = std::max(code_of(a.path(), found.damage_of_a), code_of(b.path(), found.damage_of_b));
    if (code != kExitOk) return code;
    return found.within_tolerance() ? kExitOk : kExitVerdict;
  };
}

}  // namespace rigstep::server
