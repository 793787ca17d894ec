// rigstep info: what a recording holds and what happened in its run.
#include "server/recordings/run_info.h"

#include <memory>

#include "server/commands/run_options.h"
#include "server/output/terminal.h"

namespace rigstep::server {

Command add_info(CLI::App& app) {
  struct Options {
    std::string recording;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("info", "What a recording holds and what happened in its run");
  command->add_option("RECORDING", options->recording, "MCAP file of a live run or a simulation")->required();
  command->add_flag("--json", options->json, "Print it as JSON");
  command->footer(std::string("Examples:\n  rigstep info four_bar.mcap\n  rigstep info --json four_bar.mcap\n\n"
                              "Reads the file without a replay: channels, length, what the machine granted, missed "
                              "deadlines,\nfaults, silence of the rig, gaps.\n\n") +
                  kExitCodeHelp);
  return [options] {
    Progress progress("reading step", 0.0);
    const RunInfo info = describe_run(options->recording, tell(progress));
    if (options->json)
      print_json(info.json());
    else
      print_text("{}", info.text());
    return info.damage.empty() ? kExitOk : kExitRecording;
  };
}

}  // namespace rigstep::server
