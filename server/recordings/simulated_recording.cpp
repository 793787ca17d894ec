#include "server/recordings/simulated_recording.h"

#include <chrono>

#include "server/live/recorder.h"
#include "server/live/session.h"

namespace rigstep::server {

namespace {

std::int64_t wall_clock_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

wire::RecordingHeader header_of(const config::LoadedMechanism& mechanism, const index3::Stepper& stepper,
                                const RecordedOutputs& outputs, const Origin& origin) {
  wire::RecordingHeader header = recording_header(mechanism, nullptr, stepper, outputs, {});
  header.set_variant_of(origin.variant_of);
  header.set_from_snapshot(origin.snapshot);
  return header;
}

}  // namespace

SimulatedRecording::SimulatedRecording(const std::string& path, const config::LoadedMechanism& mechanism,
                                       const index3::Stepper& stepper, const Origin& origin)
    : path_(fresh_recording_path(path)),
      start_ns_(wall_clock_ns()),
      outputs_(all_outputs(mechanism.mechanism)),
      writer_(path_, header_of(mechanism, stepper, outputs_, origin), start_ns_) {}

void SimulatedRecording::write(const index3::Stepper& stepper, const StepReport& report, const Inputs& inputs,
                               const Outputs& outputs, bool with_state) {
  const index3::State& x = stepper.state();
  StepRecord record;
  record.step = x.step;
  record.sim_time_ns = static_cast<std::int64_t>(x.step) * stepper.settings().dt_ns;
  record.inputs = inputs;
  record.status = report.status;
  record.state_hash = x.hash();
  record.transitions = changes_;
  writer_.write(to_message(record), outputs_.of(x.step, outputs), start_ns_ + record.sim_time_ns);
  ++steps_;
  if (!with_state) return;
  state_.set_step(x.step);
  state_.set_sim_time_ns(record.sim_time_ns);
  state_.mutable_state()->Resize(static_cast<int>(x.flat_size()), 0.0);
  state_.set_transitions(changes_);
  state_.clear_parameter();
  for (const Parameter& each : stepper.mechanism().parameters()) state_.add_parameter(each.value);
  x.flatten({state_.mutable_state()->mutable_data(), x.flat_size()});
  writer_.write(state_, start_ns_ + record.sim_time_ns);
}

void SimulatedRecording::write_parameters(const index3::Stepper& stepper) {
  StepRecord record;
  record.step = stepper.state().step;
  record.sim_time_ns = static_cast<std::int64_t>(record.step) * stepper.settings().dt_ns;
  record.state_hash = stepper.state().hash();
  record.transition = Transition::parameters;
  record.transitions = ++changes_;
  for (const Parameter& each : stepper.mechanism().parameters())
    record.parameters.value[static_cast<std::size_t>(record.parameters.count++)] = each.value;
  writer_.write(to_message(record), {}, start_ns_ + record.sim_time_ns);
}

void SimulatedRecording::close(const std::string& reason) {
  wire::RecordingFooter footer;
  footer.set_steps(steps_);
  footer.set_reason(reason);
  writer_.finish(footer);
}

}  // namespace rigstep::server
