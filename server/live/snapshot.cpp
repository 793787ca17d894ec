#include "server/live/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/index3/compile/plan.h"
#include "proto/printable.h"
#include "server/live/session.h"

namespace rigstep::server {

namespace {

[[noreturn]] void refuse_snapshot(const std::string& path, const std::string& problem, const std::string& remedy) {
  throw config::ConfigError(path + ": snapshot: " + problem + ": " + remedy);
}

constexpr const char* kForgedSnapshot = "the file is forged: have `rigstep snapshot` write a new one";

void require_same(const std::string& path, const char* what, double in_file, double here) {
  if (in_file != here)
    refuse_snapshot(path, fmt::format("{} is {:.10g} in it and {:.10g} here", what, in_file, here),
                    "the same bits take the same settings: give those of the file");
}

void require_same_mechanism(const wire::Snapshot& snapshot, const std::string& path, const Mechanism& mechanism) {
  if (snapshot.mechanism_id() == mechanism.id()) return;
  const bool has_name = snapshot.mechanism() == mechanism.name();
  refuse_snapshot(
      path,
      fmt::format("is of {} \"{}\" ({:016x}), and this is \"{}\" ({:016x})",
                  has_name ? "another version of the mechanism" : "the mechanism",
                  wire::printable(snapshot.mechanism(), 80), snapshot.mechanism_id(), mechanism.name(), mechanism.id()),
      "use the mechanism file that it was made with, whose text it holds");
}

template <class Numbers>
void take_channels(const google::protobuf::RepeatedField<double>& from, std::size_t channels, const std::string& path,
                   Numbers& to) {
  if (static_cast<std::size_t>(from.size()) != channels)
    refuse_snapshot(path, fmt::format("has {} input channels, and the mechanism has {}", from.size(), channels),
                    kForgedSnapshot);
  std::copy(from.begin(), from.end(), to.begin());
}

void take_parameter(const wire::SnapshotParameter& from, const Parameter& parameter, const std::string& path,
                    double& value, rt::ParameterRamps::Ramp& ramp) {
  ramp = {from.ramp_from(), from.ramp_to(), from.ramp_steps(), from.ramp_done()};
  const bool is_ramp = ramp.done < ramp.steps;
  const bool moves = is_ramp || from.value() != parameter.value;
  if (from.name() != parameter.name || !parameter.allows(from.value()) || ramp.done > ramp.steps ||
      (is_ramp && !(parameter.allows(ramp.from) && parameter.allows(ramp.to))) || (moves && !parameter.tunable))
    refuse_snapshot(path, "the values of parameter \"" + parameter.name + "\" are none that it can have",
                    kForgedSnapshot);
  value = from.value();
}

void take_parameters(const wire::Snapshot& snapshot, const Mechanism& mechanism, const std::string& path,
                     rt::SavedRun::Numbers& to) {
  const std::vector<Parameter>& all = mechanism.parameters();
  if (static_cast<std::size_t>(snapshot.parameter_size()) != all.size())
    refuse_snapshot(path,
                    fmt::format("has {} parameters, and the mechanism has {}", snapshot.parameter_size(), all.size()),
                    kForgedSnapshot);
  to.parameters.count = static_cast<int>(all.size());
  for (std::size_t k = 0; k < all.size(); ++k)
    take_parameter(snapshot.parameter(static_cast<int>(k)), all[k], path, to.parameters.value[k], to.ramp[k]);
}

// So that nothing that follows from it is infinite at once.
void require_sound(const std::vector<double>& state, std::size_t bodies, const std::string& path) {
  constexpr double kMost = 1e100;  // products of three of them are finite
  bool sound = std::all_of(state.begin(), state.end(), [](double x) { return std::abs(x) <= kMost; });
  for (std::size_t k = 0; k < bodies && sound; ++k) {
    const double* const p = state.data() + k * index3::kDoublesPerBody + 3;
    sound = std::abs(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3] - 1.0) < 1e-6;
  }
  if (!sound) refuse_snapshot(path, "its state is none that a stepper reaches", kForgedSnapshot);
}

}  // namespace

wire::Snapshot snapshot_of(const rt::SavedRun& run, const config::LoadedMechanism& mechanism,
                           const index3::Settings& settings, index3::State like) {
  const rt::SavedRun::Numbers& from = run.numbers;
  wire::Snapshot snapshot;
  snapshot.set_product_version(product_version());
  snapshot.set_mechanism(mechanism.mechanism.name());
  snapshot.set_mechanism_file(mechanism.path);
  snapshot.set_mechanism_text(mechanism.text);
  snapshot.set_mechanism_id(mechanism.mechanism.id());
  snapshot.set_dt_ns(static_cast<std::uint64_t>(settings.dt_ns));
  snapshot.set_iterations(static_cast<std::uint32_t>(settings.iterations));
  snapshot.set_relative_compliance(settings.relative_compliance);
  snapshot.set_projection_passes(static_cast<std::uint32_t>(settings.projection_passes));
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

config::LoadedMechanism mechanism_of(const wire::Snapshot& snapshot, const std::string& path) {
  config::LoadedMechanism mechanism = parse_mechanism_text(snapshot.mechanism_text(), snapshot.mechanism_file());
  set_start_parameters(mechanism, snapshot, path);
  return mechanism;
}

void set_start_parameters(config::LoadedMechanism& mechanism, const wire::Snapshot& snapshot, const std::string& path) {
  require_same_mechanism(snapshot, path, mechanism.mechanism);
  std::vector<config::ParameterSetting> settings;
  for (const wire::SnapshotParameter& each : snapshot.parameter()) settings.push_back({each.name(), each.start()});
  try {
    config::set_parameters(mechanism, settings);
  } catch (const MechanismError& error) {
    refuse_snapshot(path, error.what(), kForgedSnapshot);
  }
}

index3::Settings settings_of(const wire::Snapshot& snapshot) {
  index3::Settings settings;
  settings.dt_ns = static_cast<std::int64_t>(snapshot.dt_ns());
  settings.iterations = static_cast<int>(snapshot.iterations());
  settings.relative_compliance = snapshot.relative_compliance();
  settings.projection_passes = static_cast<int>(snapshot.projection_passes());
  return settings;
}

rt::SavedRun run_in(const wire::Snapshot& snapshot, const std::string& path, const Mechanism& mechanism,
                    const index3::Settings& settings, index3::State like) {
  require_same_mechanism(snapshot, path, mechanism);
  require_same(path, "the period [ns]", static_cast<double>(snapshot.dt_ns()), static_cast<double>(settings.dt_ns));
  require_same(path, "solver.iterations", snapshot.iterations(), settings.iterations);
  require_same(path, "solver.relative_compliance", snapshot.relative_compliance(), settings.relative_compliance);
  require_same(path, "solver.projection_passes", snapshot.projection_passes(), settings.projection_passes);
  rt::SavedRun run;
  rt::SavedRun::Numbers& to = run.numbers;
  take_parameters(snapshot, mechanism, path, to);
  const std::size_t channels = mechanism.input_channels().size();
  to.applied.count = to.newest.count = static_cast<int>(channels);
  take_channels(snapshot.applied(), channels, path, to.applied.value);
  take_channels(snapshot.newest(), channels, path, to.newest.value);
  take_channels(snapshot.rate(), channels, path, to.guard.rate);
  take_channels(snapshot.ramp_start(), channels, path, to.guard.ramp_start);
  to.age_steps = snapshot.age_steps();
  to.connected = snapshot.connected();
  to.steps_since_start = snapshot.steps_since_start();
  to.step = snapshot.step();
  to.state_step = snapshot.state_step();
  run.state.assign(snapshot.state().begin(), snapshot.state().end());
  if (run.state.size() != like.flat_size() || to.state_step > to.step)
    refuse_snapshot(
        path,
        fmt::format("its state has {} numbers, and one of the mechanism has {}", run.state.size(), like.flat_size()),
        kForgedSnapshot);
  require_sound(run.state, like.body.size(), path);
  like.restore(run.state, to.state_step);
  if (like.hash() != snapshot.state_hash())
    refuse_snapshot(path, "its state does not have the hash that stands beside it", kForgedSnapshot);
  return run;
}

}  // namespace rigstep::server
