#include "server/recordings/variant.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "server/live/replay.h"
#include "server/live/session.h"
#include "server/recordings/simulated_recording.h"

namespace rigstep::server {

namespace {

config::LoadedMechanism mechanism_of(const RecordedRun& run, const VariantRequest& request) {
  if (!request.mechanism.empty()) return load_mechanism_file(request.mechanism);
  return parse_mechanism_text(run.header().mechanism_text(), run.header().mechanism_file());
}

index3::Settings variant_settings(const RecordedRun& run, const VariantRequest& request) {
  index3::Settings settings = settings_of(run.header());
  if (request.period > 0.0) settings.dt_ns = std::llround(request.period * 1e9);
  return settings;
}

InputTable variant_inputs(const RecordedRun& run, const VariantRequest& request, const Mechanism& mechanism) {
  const std::string& path = request.inputs;
  if (path.empty()) return {inputs_of(run), run.path(), mechanism.input_channels()};
  if (path.ends_with(".mcap")) return {inputs_of(RecordedRun(path)), path, mechanism.input_channels()};
  return {path, mechanism.input_channels()};
}

// The state after a step of the run, by replay.
std::vector<double> state_after(const RecordedRun& run, std::uint64_t step, const RecordedRun::Progress& progress) {
  std::vector<double> flat;
  const ReplayReport report =
      replay(run.path(), progress, [&](const index3::State& state, const StepRecord& record, const Outputs&) {
        if (record.step != step) return;
        flat.resize(state.flat_size());
        state.flatten(flat);
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

// Simulated time continues where the run was, whatever the period.
void start_there(index3::Stepper& stepper, const RecordedRun& run, std::uint64_t step,
                 const RecordedRun::Progress& progress) {
  const std::vector<double> flat = state_after(run, step, progress);
  if (flat.size() != stepper.state().flat_size())
    throw config::ConfigError("--from: the state of " + run.path() + " does not fit the mechanism " +
                              stepper.mechanism().name() + ": its bodies and joints must be the same");
  const double t = static_cast<double>(step) * static_cast<double>(run.header().dt_ns());
  stepper.restore(flat, static_cast<std::uint64_t>(std::llround(t / static_cast<double>(stepper.settings().dt_ns))));
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

Variant make_variant(const RecordedRun& run, const VariantRequest& request, const RecordedRun::Progress& progress) {
  const config::LoadedMechanism mechanism = mechanism_of(run, request);
  const InputTable table = variant_inputs(run, request, mechanism.mechanism);
  index3::Stepper stepper = make_stepper(mechanism, variant_settings(run, request));
  if (request.from > 0) start_there(stepper, run, request.from, progress);
  std::int64_t end_ns = 0;
  run.read({}, {}, {}, [&end_ns](const RunRow& row) { end_ns = row.sim_time_ns; });

  SimulatedRecording recording(request.output, mechanism, stepper, description(run, request));
  Variant variant{.recording = recording.path(), .steps = 0, .failure = {}};
  Inputs inputs;
  Outputs outputs;
  const std::int64_t dt_ns = stepper.settings().dt_ns;
  while (static_cast<std::int64_t>(stepper.state().step + 1) * dt_ns <= end_ns) {
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
    if (progress && (step & 0xfff) == 0) progress(step);
  }
  recording.close(variant.failure.empty() ? "end of the run" : variant.failure);
  return variant;
}

}  // namespace rigstep::server
