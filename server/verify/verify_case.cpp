#include "server/verify/verify_case.h"

#include <fmt/format.h>

#include <cmath>

#include "proto/recording_reader.h"
#include "server/live/recorder.h"
#include "server/live/session.h"
#include "server/output/csv.h"
#include "server/verify/verify.h"

namespace rigstep::server {

namespace {

constexpr std::size_t kManyBodies = 60;

VerifyCase from_mechanism(const VerifyRequest& request) {
  VerifyCase a{load_mechanism_file(request.path, request.parameters), {}, 0, {}};
  a.settings.dt_ns = std::llround(request.dt * 1e9);
  a.settings.order_of_accuracy = request.order;
  const double standard = a.has_many_bodies() ? 0.2 : 1.0;
  const double duration = request.duration > 0.0 ? request.duration : standard;
  a.steps = static_cast<std::uint64_t>(std::llround(duration * 1e9 / static_cast<double>(a.settings.dt_ns)));
  if (request.inputs.empty()) return a;
  const InputTable table(request.inputs, a.described().input_channels());
  for (std::uint64_t k = 1; k <= a.steps; ++k)
    table.read(seconds(static_cast<std::int64_t>(k) * a.settings.dt_ns), a.applied.emplace_back());
  return a;
}

void read_steps(wire::RecordingReader& reader, double duration, VerifyCase& a) {
  wire::RecordedStep step;
  wire::RecordedState state;
  for (auto item = reader.next(step, state); item != wire::RecordingReader::Item::end;
       item = reader.next(step, state)) {
    if (item != wire::RecordingReader::Item::step) continue;
    const StepRecord record = from_message(step);
    if (is_reset(record.transition)) {
      a.cut = fmt::format("the run was set back after step {}", a.steps);
      break;
    }
    if (record.transition == Transition::parameters) {
      if (record.parameters.count != static_cast<int>(a.described().parameters().size()))
        throw wire::RecordingError(a.mechanism.path, "a recorded change of parameters does not fit the mechanism",
                                   "the file is damaged: use a copy");
      a.changes.push_back({a.steps, record.parameters});
      continue;
    }
    if (record.transition != Transition::none) continue;
    if (record.step != a.steps + 1 || failed(record.status)) {
      a.cut = fmt::format("the recording has a {} after step {}", failed(record.status) ? "fault" : "gap", a.steps);
      break;
    }
    a.applied.push_back(record.inputs);
    ++a.steps;
    if (duration > 0.0 && a.duration() >= duration) break;
  }
  if (reader.damage()) a.cut = "the recording is damaged at " + reader.damage_text();
}

VerifyCase from_recording(const VerifyRequest& request) {
  if (!request.inputs.empty()) throw config::ConfigError("--inputs: a recording has its own: leave it out");
  if (!request.parameters.empty()) throw config::ConfigError("--set: a recording has its own values: leave it out");
  wire::RecordingReader reader(request.path);
  const wire::RecordingHeader& header = reader.header();
  VerifyCase a{mechanism_of(header), settings_of(header), 0, {}};
  read_steps(reader, request.duration, a);
  if (a.steps == 0)
    throw wire::RecordingError(request.path, a.cut.empty() ? "there is no step in it" : "no step can be read: " + a.cut,
                               "record a run from its beginning, or use a copy that is whole");
  const index3::Stepper fresh = make_stepper(a.mechanism, a.settings);
  if (fresh.state().hash() != header.start_hash() || !header.from_snapshot().empty())
    throw wire::RecordingError(request.path, "it does not begin at the start of its mechanism, of this build",
                               "record a run from its beginning, or use rigstep replay");
  return a;
}

}  // namespace

const Inputs& VerifyCase::inputs(std::uint64_t step) const {
  static const Inputs kNoInputs{};
  return step < applied.size() ? applied[step] : kNoInputs;
}

bool VerifyCase::has_many_bodies() const { return described().bodies().size() > kManyBodies; }

double VerifyCase::duration() const { return seconds(static_cast<std::int64_t>(steps) * settings.dt_ns); }

VerifyCase load_case(const VerifyRequest& request) {
  return request.path.ends_with(".mcap") ? from_recording(request) : from_mechanism(request);
}

std::vector<offline::HeldInputs> held_inputs(const VerifyCase& a) {
  std::vector<offline::HeldInputs> held;
  const std::size_t channels = a.described().input_channels().size();
  for (std::size_t k = 0; k < a.applied.size() && channels > 0; ++k) {
    const auto begin = a.applied[k].value.begin();
    std::vector<double> value(begin, begin + static_cast<std::ptrdiff_t>(channels));
    if (held.empty() || held.back().value != value)
      held.push_back({seconds(static_cast<std::int64_t>(k) * a.settings.dt_ns), std::move(value)});
  }
  return held;
}

std::vector<ParameterValue> tunable_values(const Mechanism& mechanism, const ParameterValues& values) {
  std::vector<ParameterValue> tunable;
  for (int k = 0; k < values.count; ++k)
    if (mechanism.parameters()[static_cast<std::size_t>(k)].tunable)
      tunable.push_back({k, values.value[static_cast<std::size_t>(k)]});
  return tunable;
}

double expected_order(const VerifyCase& a) {
  if (!a.changes.empty()) return 1.0;
  Inputs before;
  for (std::uint64_t k = 0; k < a.steps; ++k) {
    const Inputs now = a.inputs(k);
    if (now.value != before.value) return 1.0;
    before = now;
  }
  return 2.0;
}

}  // namespace rigstep::server
