#include "server/live/snapshot.h"

#include <fmt/format.h>

#include <algorithm>

namespace rigstep::server {

namespace {

void require_same(const std::string& path, const char* what, double in_file, double here) {
  if (in_file != here)
    throw config::ConfigError(
        fmt::format("{}: snapshot: {} is {:.10g} in it and {:.10g} here: the same bits take the "
                    "same settings: give those of the file",
                    path, what, in_file, here));
}

}  // namespace

wire::SnapshotFile snapshot_of(const rt::SavedRun& run, const config::LoadedMechanism& mechanism,
                               const index3::Settings& settings, index3::State like) {
  const rt::SavedRun::Numbers& from = run.numbers;
  wire::SnapshotFile snapshot;
  snapshot.set_mechanism(mechanism.mechanism.name());
  snapshot.set_mechanism_file(mechanism.path);
  snapshot.set_mechanism_text(mechanism.text);
  snapshot.set_mechanism_id(mechanism.mechanism.id());
  snapshot.set_dt_ns(static_cast<std::uint64_t>(settings.dt_ns));
  snapshot.set_iterations(static_cast<std::uint32_t>(settings.iterations));
  snapshot.set_relative_compliance(settings.relative_compliance);
  snapshot.set_projection_passes(static_cast<std::uint32_t>(settings.projection_passes));
  snapshot.set_order(static_cast<std::uint32_t>(settings.order_of_accuracy));
  for (std::size_t k = 0; k < mechanism.mechanism.parameters().size(); ++k) {
    const Parameter& parameter = mechanism.mechanism.parameters()[k];
    wire::SnapshotParameter& to = *snapshot.add_parameter();
    to.set_name(parameter.name);
    to.set_start(parameter.value);
    to.set_value(from.parameters.value[k]);
    to.set_ramp_from(from.ramp[k].from);
    to.set_ramp_to(from.ramp[k].to);
    to.set_ramp_steps(from.ramp[k].steps);
    to.set_ramp_done(from.ramp[k].done);
  }
  snapshot.set_step(from.step);
  snapshot.set_state_step(from.state_step);
  snapshot.mutable_state()->Add(run.state.begin(), run.state.end());
  like.restore(run.state, from.state_step);
  snapshot.set_state_hash(like.hash());
  const auto channels = static_cast<std::ptrdiff_t>(mechanism.mechanism.input_channels().size());
  const auto put = [channels](const auto& values, google::protobuf::RepeatedField<double>* to) {
    to->Add(values.begin(), values.begin() + channels);
  };
  put(from.applied.value, snapshot.mutable_applied());
  put(from.newest.value, snapshot.mutable_newest());
  put(from.guard.rate, snapshot.mutable_rate());
  put(from.guard.ramp_start, snapshot.mutable_ramp_start());
  snapshot.set_age_steps(from.age_steps);
  snapshot.set_connected(from.connected);
  snapshot.set_steps_since_start(from.steps_since_start);
  return snapshot;
}

index3::Settings settings_of(const wire::SnapshotFile& snapshot) {
  index3::Settings settings;
  settings.dt_ns = static_cast<std::int64_t>(snapshot.dt_ns());
  settings.iterations = static_cast<int>(snapshot.iterations());
  settings.relative_compliance = snapshot.relative_compliance();
  settings.projection_passes = static_cast<int>(snapshot.projection_passes());
  settings.order_of_accuracy = static_cast<int>(snapshot.order());
  return settings;
}

rt::SavedRun run_in(const wire::SnapshotFile& snapshot, const std::string& path, const Mechanism& mechanism,
                    const index3::Settings& settings, index3::State like) {
  config::require_fit(snapshot, path, mechanism);
  require_same(path, "the period [ns]", static_cast<double>(snapshot.dt_ns()), static_cast<double>(settings.dt_ns));
  require_same(path, "solver.iterations", snapshot.iterations(), settings.iterations);
  require_same(path, "solver.relative_compliance", snapshot.relative_compliance(), settings.relative_compliance);
  require_same(path, "solver.projection_passes", snapshot.projection_passes(), settings.projection_passes);
  require_same(path, "solver.order", snapshot.order(), settings.order_of_accuracy);
  rt::SavedRun run;
  rt::SavedRun::Numbers& to = run.numbers;
  to.parameters.count = snapshot.parameter_size();
  for (std::size_t k = 0; k < mechanism.parameters().size(); ++k) {
    const wire::SnapshotParameter& from = snapshot.parameter(static_cast<int>(k));
    to.parameters.value[k] = from.value();
    to.ramp[k] = {from.ramp_from(), from.ramp_to(), from.ramp_steps(), from.ramp_done()};
  }
  to.applied.count = to.newest.count = snapshot.applied_size();
  std::copy(snapshot.applied().begin(), snapshot.applied().end(), to.applied.value.begin());
  std::copy(snapshot.newest().begin(), snapshot.newest().end(), to.newest.value.begin());
  std::copy(snapshot.rate().begin(), snapshot.rate().end(), to.guard.rate.begin());
  std::copy(snapshot.ramp_start().begin(), snapshot.ramp_start().end(), to.guard.ramp_start.begin());
  to.age_steps = snapshot.age_steps();
  to.connected = snapshot.connected();
  to.steps_since_start = snapshot.steps_since_start();
  to.step = snapshot.step();
  to.state_step = snapshot.state_step();
  run.state.assign(snapshot.state().begin(), snapshot.state().end());
  const bool fits = run.state.size() == like.flat_size();
  if (fits) like.restore(run.state, to.state_step);
  if (!fits || like.hash() != snapshot.state_hash()) config::refuse_state(path, run.state.size(), like.flat_size());
  return run;
}

}  // namespace rigstep::server
