// rigstep export: a recording as a table or as JSON lines.
#include "server/recordings/run_export.h"

#include <memory>

#include "server/commands/run_options.h"

namespace rigstep::server {

Command add_export(CLI::App& app) {
  struct Options {
    std::string recording, output = "-";
    RunSelection selection;
    bool inputs = false, json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("export", "A recording as a table or as JSON lines");
  command->add_option("RECORDING", options->recording, "MCAP file of a live run or a simulation")->required();
  add_selection(command, options->selection);
  command->add_flag("--inputs", options->inputs, "The inputs alone, as `rigstep simulate --inputs` takes them")
      ->excludes("--channel");
  command->add_option("--output", options->output, "File to write; - is standard output")->capture_default_str();
  command->add_flag("--json", options->json, "A JSON object a line instead of a table");
  command->footer(
      std::string(
          "Examples:\n  rigstep export four_bar.mcap --output four_bar.csv\n"
          "  rigstep export four_bar.mcap --channel phi --channel run.wake_up --from 2 --to 3\n"
          "  rigstep export four_bar.mcap --inputs --output inputs.csv\n\n"
          "Outputs that the recording does not hold are computed by replay. A row is a step that ran, its time\n"
          "that of the state after it. Exit code 7: damaged; the rows before that are written.\n\n") +
      kExitCodeHelp);
  return [options] {
    const RecordedRun run(options->recording);
    const auto columns = options->inputs ? run.inputs() : run.columns_of(options->selection.names);
    Progress progress("exporting step", 0.0);
    const Exported done =
        export_run(run, options->selection, columns, options->json ? ExportFormat::json_lines : ExportFormat::csv,
                   options->output, tell(progress));
    return code_of(options->recording, done.damage);
  };
}

}  // namespace rigstep::server
