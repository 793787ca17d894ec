#include "server/commands/run_options.h"

#include "proto/printable.h"
#include "server/output/terminal.h"
#include "server/recordings/run_info.h"

namespace rigstep::server {

void add_selection(CLI::App* command, RunSelection& selection) {
  command
      ->add_option("--channel", selection.names,
                   "Name of a channel, as `rigstep info` lists them, or of timing: run.wake_up, run.step, "
                   "run.missed_deadlines, run.input_age, run.status, run.position_error, run.orientation_error, "
                   "run.flags. All inputs and outputs if not given")
      ->allow_extra_args(false);
  command->add_option("--from", selection.from, "First simulated time [s]")->check(between(0.0, kLongest));
  command->add_option("--to", selection.to, "Last simulated time [s]")->check(between(0.0, kLongest));
  command->add_option("--every", selection.every, "Every N-th step")->check(CLI::Range(1, 1'000'000'000));
}

RecordedRun::Progress tell(Progress& progress) {
  return [&progress](std::uint64_t step) { progress.at(static_cast<double>(step)); };
}

int code_of(const std::string& path, const std::string& damage) {
  if (damage.empty()) return kExitOk;
  print_error("rigstep: {}: damaged at {}; everything before it was used, and `rigstep cut` saves it",
              wire::printable_line(path), damage);
  return kExitRecording;
}

static bool is_table(const std::string& path) { return path.ends_with(".csv"); }

RunFigure figure_of(const std::vector<std::string>& recordings, const RunSelection& selection) {
  RunFigure figure;
  Progress progress("reading step", 0.0);
  for (const std::string& path : recordings) {
    figure.title += (figure.title.empty() ? "" : ", ") + wire::printable_line(path);
    if (recordings.size() > 1) figure.names.push_back(wire::printable_line(path));
    if (is_table(path)) {
      figure.runs.push_back(read_table(path, selection));
      continue;
    }
    const RecordedRun run(path);
    figure.runs.push_back(read_table(run, selection, run.columns_of(selection.names), tell(progress)));
  }
  if (recordings.size() == 1 && !is_table(recordings[0])) figure.events = describe_run(recordings[0], {}).events;
  return figure;
}

}  // namespace rigstep::server
