// rigstep info, export, plot, cut, diff: what a recording holds, as text, as numbers, as a figure, in part, and beside
// another.
#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <memory>

#include "proto/load_mechanism.h"
#include "proto/printable.h"
#include "server/commands/commands.h"
#include "server/output/terminal.h"
#include "server/recordings/cut.h"
#include "server/recordings/recorded_run.h"
#include "server/recordings/run_difference.h"
#include "server/recordings/run_export.h"
#include "server/recordings/run_figure.h"
#include "server/recordings/run_info.h"

namespace rigstep::server {

namespace {

// --from, --to, --every, --channel
void add_selection(CLI::App* command, RunSelection& selection) {
  command->add_option(
      "--channel", selection.names,
      "Name of a channel, as `rigstep info` lists them, or of timing: run.wake_up, run.step, "
      "run.missed_deadlines, run.input_age, run.status, run.flags. All inputs and outputs if not given");
  command->add_option("--from", selection.from, "First simulated time [s]")->check(between(0.0, kLongest));
  command->add_option("--to", selection.to, "Last simulated time [s]")->check(between(0.0, kLongest));
  command->add_option("--every", selection.every, "Every N-th step")->check(CLI::Range(1, 1'000'000'000));
}

RecordedRun::Progress tell(Progress& progress) {
  return [&progress](std::uint64_t step) { progress.at(static_cast<double>(step)); };
}

// What is whole was used; the rest is told.
int code_of(const std::string& path, const std::string& damage) {
  if (damage.empty()) return kExitOk;
  print_error("rigstep: {}: damaged at {}; everything before it was used", wire::printable_line(path), damage);
  return kExitRecording;
}

RunFigure figure_of(const std::vector<std::string>& recordings, const RunSelection& selection) {
  RunFigure figure;
  Progress progress("reading step", 0.0);
  for (const std::string& path : recordings) {
    const RecordedRun run(path);
    figure.title += (figure.title.empty() ? "" : ", ") + wire::printable_line(path);
    if (recordings.size() > 1) figure.names.push_back(wire::printable_line(path));
    figure.runs.push_back(read_table(run, selection, run.columns_of(selection.names), tell(progress)));
  }
  if (recordings.size() == 1) figure.events = describe_run(recordings[0], {}).events;
  return figure;
}

// "1e-6", or "CHANNEL=1e-6"
void add_tolerance(const std::string& text, Tolerances& tolerances) {
  const std::size_t sign = text.rfind('=');
  const std::string number = sign == std::string::npos ? text : text.substr(sign + 1);
  double value = 0.0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || !(value >= 0.0))
    throw config::ConfigError("--tolerance: \"" + text + "\" is none: give a number, or CHANNEL=NUMBER");
  if (sign == std::string::npos)
    tolerances.all = value;
  else
    tolerances.of_channel.emplace_back(text.substr(0, sign), value);
}

}  // namespace

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

Command add_plot(CLI::App& app) {
  struct Options {
    std::vector<std::string> recordings;
    std::string output;
    RunSelection selection;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("plot", "Channels of recordings as a figure or as a web page with zoom");
  command->add_option("RECORDING", options->recordings, "MCAP files; several are drawn over one another")->required();
  add_selection(command, options->selection);
  command->add_option("--output", options->output, "FIGURE.svg, or PAGE.html in which one can zoom")->required();
  command->footer(std::string("Examples:\n  rigstep plot four_bar.mcap --channel phi --output phi.svg\n"
                              "  rigstep plot four_bar.mcap --output run.html\n"
                              "  rigstep plot before.mcap after.mcap --channel phi --output both.html\n\n"
                              "A panel for each unit; the page marks faults, missed deadlines and silence of the rig, "
                              "and needs no network.\n\n") +
                  kExitCodeHelp);
  return [options] {
    const RunFigure figure = figure_of(options->recordings, options->selection);
    write_figure(figure, options->output);
    print_error("{}: written", options->output);
    int code = kExitOk;
    for (std::size_t k = 0; k < figure.runs.size(); ++k)
      code = std::max(code, code_of(options->recordings[k], figure.runs[k].damage));
    return code;
  };
}

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
    return kExitOk;
  };
}

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
  command->add_option("--tolerance", options->tolerances,
                      "Largest difference that is no difference, in the channel's unit: a number for all channels, or "
                      "CHANNEL=NUMBER for one. 0 if not given");
  command->add_option("--picture", options->picture, "FIGURE.svg or PAGE.html with both");
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->footer(std::string("Examples:\n  rigstep diff before.mcap after.mcap\n"
                              "  rigstep diff before.mcap after.mcap --tolerance 1e-9 --tolerance phi=1e-4\n"
                              "  rigstep diff before.mcap after.mcap --channel phi --picture phi.html\n\n"
                              "Instants of equal simulated time are compared. Exit code 1: a channel differs by more "
                              "than its tolerance,\nor one of the two has channels or instants that the other has "
                              "not.\n\n") +
                  kExitCodeHelp);
  return [options] {
    Tolerances tolerances;
    for (const std::string& text : options->tolerances) add_tolerance(text, tolerances);
    const RecordedRun a(options->a), b(options->b);
    for (const auto& [name, tolerance] : tolerances.of_channel) a.columns_of({name});
    Progress progress("comparing step", 0.0);
    const RunDifference found = compare_runs(a, b, options->selection, tolerances, tell(progress));
    if (options->json)
      print_json(found.json());
    else
      print_text("{}", found.text());
    if (!options->picture.empty())
      write_figure(figure_of({options->a, options->b}, options->selection), options->picture);
    return found.within_tolerance() ? kExitOk : kExitVerdict;
  };
}

}  // namespace rigstep::server
