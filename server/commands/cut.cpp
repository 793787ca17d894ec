// rigstep cut: a piece of a recording as a recording of its own.
#include "server/recordings/cut.h"

#include <limits>
#include <memory>

#include "proto/printable.h"
#include "server/commands/run_options.h"
#include "server/output/terminal.h"

namespace rigstep::server {

Command add_cut(CLI::App& app) {
  struct Options {
    std::string recording, output;
    double from = 0.0, to = std::numeric_limits<double>::infinity();
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("cut", "A piece of a recording as a recording of its own");
  command->add_option("RECORDING", options->recording, "MCAP file of a live run or a simulation")->required();
  command->add_option("--from", options->from, "First simulated time [s]")->check(between(0.0, kLongest));
  command->add_option("--to", options->to, "Last simulated time [s]")->check(between(0.0, kLongest));
  command->add_option("--output", options->output, "Recording to write; none is replaced")->required();
  command->footer(std::string("Examples:\n  rigstep cut four_bar.mcap --from 12 --to 15 --output fault.mcap\n"
                              "  rigstep replay fault.mcap\n\n"
                              "The piece begins behind the newest full state before --from, so that it replays.\n\n") +
                  kExitCodeHelp);
  return [options] {
    const Cut cut = cut_recording(options->recording, options->from, options->to, options->output);
    print_text("{}: {} steps, {} to {}\n", wire::printable_line(options->output), cut.steps, cut.first_step,
               cut.last_step);
    return code_of(options->recording, cut.damage);
  };
}

}  // namespace rigstep::server
