// rigstep replay: was it the same, bit for bit? And what if the plant, the inputs or the period were others?
#include "server/live/replay.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "proto/printable.h"
#include "server/commands/commands.h"
#include "server/live/session.h"
#include "server/output/terminal.h"
#include "server/recordings/run_difference.h"
#include "server/recordings/run_figure.h"
#include "server/recordings/variant.h"

namespace rigstep::server {

namespace {

struct ReplayOptions {
  std::string recording, picture;
  VariantRequest variant;
  bool json = false;

  bool asks_for_variant() const {
    return !variant.mechanism.empty() || !variant.inputs.empty() || variant.period > 0.0 || variant.from > 0 ||
           !variant.output.empty() || !picture.empty();
  }
};

int repeat(const ReplayOptions& options) {
  Progress progress("replaying step", 0.0);
  const ReplayReport report =
      replay(options.recording, [&progress](std::uint64_t step) { progress.at(static_cast<double>(step)); });
  if (options.json)
    print_json(report.json());
  else
    print_text("{}", report.text());
  if (report.verdict == ReplayReport::Verdict::differs) return kExitVerdict;
  return report.damage.empty() ? kExitOk : kExitRecording;
}

// RUN.mcap -> RUN.variant.mcap in the working directory
std::string usual_output(const std::string& recording) {
  return std::filesystem::path(recording).stem().string() + ".variant.mcap";
}

void draw(const RecordedRun& run, const RecordedRun& variant, const std::string& path) {
  RunFigure figure{
      .title = wire::printable_line(variant.path()), .names = {"run", "variant"}, .runs = {}, .events = {}};
  for (const RecordedRun* each : {&run, &variant})
    figure.runs.push_back(read_table(*each, {}, each->columns_of({}), {}));
  write_figure(figure, path);
}

void require_places(const ReplayOptions& options) {
  if (!options.variant.output.ends_with(".mcap"))
    throw config::ConfigError("--output: \"" + options.variant.output + "\" is no recording: name an .mcap");
  if (!options.picture.empty()) require_figure(options.picture);
}

int what_if(ReplayOptions options) {
  if (options.variant.output.empty()) options.variant.output = usual_output(options.recording);
  require_places(options);
  watch_interrupts();
  const RecordedRun run(options.recording);
  Progress progress("stepping", 0.0);
  const auto tell = [&progress](std::uint64_t step) { progress.at(static_cast<double>(step)); };
  const Variant variant = make_variant(run, options.variant, [&tell](std::uint64_t step) {
    tell(step);
    return !interrupted;
  });
  const RecordedRun made(variant.recording);
  RunSelection selection;  // the start itself is no step of the variant
  selection.from = exact_seconds(static_cast<std::int64_t>(options.variant.from * run.header().dt_ns()) + 1);
  const RunDifference difference = compare_runs(run, made, selection, {}, tell);
  if (!options.picture.empty()) draw(run, made, options.picture);
  if (options.json) {
    nlohmann::json out = difference.json();
    out["variant"] = variant.recording;
    out["steps"] = variant.steps;
    out["failure"] = variant.failure;
    print_json(out);
  } else {
    print_text("{}: {} steps\n{}", wire::printable_line(variant.recording), variant.steps, difference.text());
  }
  if (variant.interrupted) return kExitInterrupted;
  if (variant.failure.empty()) return kExitOk;
  print_error("rigstep: the variant stopped: {}", variant.failure);
  return kExitNumerical;
}

}  // namespace

Command add_replay(CLI::App& app) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command =
      app.add_subcommand("replay", "Re-run a recording and compare every step bit for bit, or ask what if");
  command->add_option("RECORDING", options->recording, "MCAP file of a live run or a simulation")->required();
  command->add_option("--mechanism", options->variant.mechanism, "What if: another mechanism file");
  command->add_option("--inputs", options->variant.inputs, "What if: other inputs, a table or a recording");
  command->add_option("--period", options->variant.period, "What if: another step [s]")->check(between(1e-6, 1.0));
  command->add_option("--from", options->variant.from,
                      "What if: start with the state that the run had after this step");
  command->add_option("--output", options->variant.output,
                      "What if: recording to write; NAME.variant.mcap here if not given");
  command->add_option("--picture", options->picture, "What if: FIGURE.svg or PAGE.html with both");
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->footer(
      std::string("Examples:\n  rigstep replay four_bar.mcap\n  rigstep replay --json four_bar.mcap\n"
                  "  rigstep replay four_bar.mcap --mechanism softer.textproto --picture what_if.html\n"
                  "  rigstep replay four_bar.mcap --from 12000 --inputs edited.csv --output variant.mcap\n\n"
                  "Steps at which the recorder fell behind are passed over and counted. A recording by "
                  "another build or\nprocessor is compared within a tolerance, and the report says so.\n"
                  "What if: the inputs of the run on another plant, from another state or with another period; the\n"
                  "result is a recording, and what changes is told by channel. `rigstep export --inputs` writes the\n"
                  "table to edit.\n\n") +
      kExitCodeHelp);
  return [options] { return options->asks_for_variant() ? what_if(*options) : repeat(*options); };
}

}  // namespace rigstep::server
