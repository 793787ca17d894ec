// rigstep plot: channels of recordings or tables as a figure or as a page.
#include <memory>

#include "proto/printable.h"
#include "server/commands/run_options.h"
#include "server/output/terminal.h"

namespace rigstep::server {

Command add_plot(CLI::App& app) {
  struct Options {
    std::vector<std::string> recordings;
    std::string output;
    RunSelection selection;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("plot", "Channels of recordings or tables as a figure or as a web page with zoom");
  command
      ->add_option("RECORDING", options->recordings,
                   "MCAP files, or tables with a column t (.csv); several are drawn over one another")
      ->required();
  add_selection(command, options->selection);
  command->add_option("--output", options->output, "FIGURE.svg, or PAGE.html in which one can zoom")->required();
  command->footer(std::string("Examples:\n  rigstep plot four_bar.mcap --channel phi --output phi.svg\n"
                              "  rigstep plot four_bar.mcap --output run.html\n"
                              "  rigstep plot simulated.csv --channel phi --output phi.svg\n"
                              "  rigstep plot before.mcap after.mcap --channel phi --output both.html\n\n"
                              "A panel for each unit; the page marks faults, missed deadlines and silence of the rig, "
                              "and needs no network.\n\n") +
                  kExitCodeHelp);
  return [options] {
    require_figure(options->output);
    const RunFigure figure = figure_of(options->recordings, options->selection);
    write_figure(figure, options->output);
    print_error("{}: written", wire::printable_line(options->output));
    int code = kExitOk;
    for (std::size_t k = 0; k < figure.runs.size(); ++k)
      code = std::max(code, code_of(options->recordings[k], figure.runs[k].damage));
    return code;
  };
}

}  // namespace rigstep::server
