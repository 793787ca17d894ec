// rigstep replay: was it the same, bit for bit?
#include "server/live/replay.h"

#include <fmt/format.h>

#include <memory>

#include "server/commands/commands.h"
#include "server/live/session.h"
#include "server/output/terminal.h"

namespace rigstep::server {

Command add_replay(CLI::App& app) {
  struct ReplayOptions {
    std::string recording;
    bool json = false;
  };
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand("replay", "Re-run a recording and compare every step bit for bit");
  command->add_option("RECORDING", options->recording, "MCAP file of a live run or a simulation")->required();
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->footer(
      std::string("Examples:\n  rigstep replay four_bar.mcap\n  rigstep replay --json four_bar.mcap\n\n"
                  "Steps at which the recorder fell behind are passed over and counted. A recording by "
                  "another build or\nprocessor is compared within a tolerance, and the report says so.\n\n") +
      kExitCodeHelp);
  return [options] {
    Progress progress("replaying step", 0.0);
    const ReplayReport report =
        replay(options->recording, [&progress](std::uint64_t step) { progress.at(static_cast<double>(step)); });
    if (options->json)
      print_json(report.json());
    else
      print_text("{}", report.text());
    if (report.verdict == ReplayReport::Verdict::differs) return kExitVerdict;
    return report.damage.empty() ? kExitOk : kExitRecording;
  };
}

}  // namespace rigstep::server
