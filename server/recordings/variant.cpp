#include "server/recordings/variant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "rt/thread_setup.h"
#include "server/live/recorder.h"
#include "server/live/replay.h"
#include "server/live/session.h"
#include "server/recordings/simulated_recording.h"

namespace rigstep::server {

namespace {

config::LoadedMechanism variant_mechanism(const RecordedRun& run, const VariantRequest& request) {
  if (!request.mechanism.empty()) return load_mechanism_file(request.mechanism);
  return mechanism_of(run.header());
}

index3::Settings variant_settings(const RecordedRun& run, const VariantRequest& request) {
  index3::Settings settings = settings_of(run.header());
  if (request.period > 0.0) settings.dt_ns = std::llround(request.period * 1e9);
  return settings;
}

InputTable variant_inputs(const RecordedRun& run, const VariantRequest& request, const Mechanism& mechanism) {
  if (!request.inputs.empty()) return read_inputs(request.inputs, mechanism.input_channels());
  return {inputs_of(run), run.path(), mechanism.input_channels()};
}

config::ConfigError was_reset(const RecordedRun& run) {
  return config::ConfigError("--from: " + run.path() +
                             " was reset before this step, and a variant knows no resets: give a step before the "
                             "reset, or leave --from out");
}

// The state after a step of the run, by replay.
std::vector<double> state_after(const RecordedRun& run, std::uint64_t step) {
  std::vector<double> flat;
  const ReplayReport report = replay(run.path(), {}, [&](const ReplayedStep& replayed) {
    if (replayed.recorded.step != step || replayed.state == nullptr) return replayed.recorded.step < step;
    if (replayed.state->step != step) throw was_reset(run);
    flat.resize(replayed.state->flat_size());
    replayed.state->flatten(flat);
    return false;
  });
  if (report.verdict == ReplayReport::Verdict::differs)
    throw Error(run.path() +
                ": the replay differs from the recording, so that its state cannot be taken: use the "
                "version and the kind of processor that recorded it");
  if (flat.empty())
    throw config::ConfigError(
        fmt::format("--from: {} has no step {}: `rigstep info` tells which it has", run.path(), step));
  return flat;
}

// Simulated time continues where the run was. The start of a recording need not be that of its mechanism.
void start_there(index3::Stepper& stepper, const RecordedRun& run, std::uint64_t from) {
  const wire::RecordingHeader& header = run.header();
  const std::uint64_t step = from > 0 ? from : header.start_step();
  if (step == 0) return;
  if (from == 0 && header.has_start_state_step()) throw was_reset(run);
  const std::vector<double> flat = step == header.start_step()
                                       ? std::vector<double>(header.start_state().begin(), header.start_state().end())
                                       : state_after(run, step);
  if (flat.size() != stepper.state().flat_size() && flat.size() != stepper.state().flat_size_without_low())
    throw config::ConfigError("--from: the state of " + run.path() + " does not fit the mechanism " +
                              stepper.mechanism().name() + ": its bodies and joints must be the same");
  const double t = static_cast<double>(step) * static_cast<double>(header.dt_ns());
  stepper.restore(flat, static_cast<std::uint64_t>(std::llround(t / static_cast<double>(stepper.settings().dt_ns))));
}

// Changes of parameters of the run, as far as the mechanism of the variant has parameters of these names.
class RecordedChanges {
 public:
  explicit RecordedChanges(const RecordedRun& run) : header_(run.header()) {
    wire::RecordingReader reader(run.path());
    for (wire::RecordedStep step; reader.next(step);)
      if (step.parameter_size() > 0)
        changes_.push_back({step.sim_time_ns(), {step.parameter().begin(), step.parameter().end()}});
  }

  // What acts from `time_ns` on and has not been applied. Whether there was something.
  bool apply(std::int64_t time_ns, index3::Stepper& stepper) {
    bool applied = false;
    for (; next_ < changes_.size() && changes_[next_].time_ns <= time_ns; ++next_) {
      set(changes_[next_].value, stepper);
      applied = true;
    }
    return applied;
  }

  // Of all, in the order of the header.
  void set(const std::vector<double>& values, index3::Stepper& stepper) const {
    std::vector<ParameterValue> tunable;
    for (std::size_t k = 0; k < values.size() && k < static_cast<std::size_t>(header_.parameter_size()); ++k) {
      const auto& all = stepper.mechanism().parameters();
      const auto found = std::find_if(all.begin(), all.end(), [&](const Parameter& each) {
        return each.tunable && each.name == header_.parameter(static_cast<int>(k)).name();
      });
      if (found != all.end()) tunable.push_back({static_cast<int>(found - all.begin()), values[k]});
    }
    for (const ParameterValue& each : tunable)
      require_allowed(stepper.mechanism().parameters()[static_cast<std::size_t>(each.index)], each.value);
    stepper.set_parameters(tunable);
  }

 private:
  struct Change {
    std::int64_t time_ns;
    std::vector<double> value;
  };
  const wire::RecordingHeader& header_;
  std::vector<Change> changes_;
  std::size_t next_ = 0;
};

// The time of the newest step before the run was reset [ns].
std::int64_t end_ns(const RecordedRun& run) {
  wire::RecordingReader reader(run.path());
  wire::RecordedStep step;
  std::int64_t end = 0;
  while (reader.next(step)) {
    const StepRecord record = from_message(step);
    if (is_reset(record.transition)) return end;
    if (record.is_step()) end = record.sim_time_ns;
  }
  require_whole(run.path(), reader.damage_text());
  return end;
}

std::string description(const RecordedRun& run, const VariantRequest& request) {
  std::string text = run.path();
  if (!request.mechanism.empty()) text += ", with the mechanism " + request.mechanism;
  if (!request.inputs.empty()) text += ", with the inputs " + request.inputs;
  if (request.period > 0.0) text += fmt::format(", at {:g} s", request.period);
  if (request.from > 0) text += fmt::format(", from step {}", request.from);
  return text;
}

}  // namespace

Variant make_variant(const RecordedRun& run, const VariantRequest& request,
                     const std::function<bool(std::uint64_t step)>& progress) {
  rt::set_floating_point_mode();
  const config::LoadedMechanism mechanism = variant_mechanism(run, request);
  const InputTable table = variant_inputs(run, request, mechanism.mechanism);
  index3::Stepper stepper = make_stepper(mechanism, variant_settings(run, request));
  start_there(stepper, run, request.from);
  RecordedChanges changes(run);
  const auto time_ns = [&] { return static_cast<std::int64_t>(stepper.state().step) * stepper.settings().dt_ns; };
  if (stepper.state().step > 0) {
    const auto& begin = run.header().start_parameter();
    if (!begin.empty()) changes.set({begin.begin(), begin.end()}, stepper);
    changes.apply(time_ns() - 1, stepper);  // those at this time are the first of the variant
  }

  SimulatedRecording recording(request.output, mechanism, stepper,
                               {.variant_of = description(run, request), .snapshot = {}});
  Variant variant{.recording = recording.path(), .steps = 0, .failure = {}, .interrupted = false};
  Inputs inputs;
  Outputs outputs;
  const std::int64_t dt_ns = stepper.settings().dt_ns, end = end_ns(run);
  while (static_cast<std::int64_t>(stepper.state().step + 1) * dt_ns <= end && !variant.interrupted) {
    if (changes.apply(time_ns(), stepper)) recording.write_parameters(stepper);
    table.read(exact_seconds(static_cast<std::int64_t>(stepper.state().step + 1) * dt_ns), inputs);
    const StepReport report = stepper.step(inputs, outputs);
    if (failed(report.status)) {
      variant.failure =
          fmt::format("step {}: {}", stepper.state().step + 1,
                      describe_fault(mechanism.mechanism, report.status, report.body, report.joint, report.output));
      break;
    }
    const std::uint64_t step = stepper.state().step;
    recording.write(stepper, report, inputs, outputs, step % 1000 == 0);
    ++variant.steps;
    variant.interrupted = (step & 0xfff) == 0 && !progress(step);
  }
  recording.close(variant.interrupted ? "interrupted" : variant.failure.empty() ? "end of the run" : variant.failure);
  return variant;
}

}  // namespace rigstep::server
