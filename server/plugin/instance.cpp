#include "server/plugin/instance.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/index3/start/initial_state.h"
#include "proto/snapshot_file.h"
#include "server/plugin/floating_point_mode.h"

namespace rigstep::plugin {

namespace {

// What stands before the numbers of saved bytes.
struct SavedHeader {
  char magic[8];
  char version[16];  // of the library
  std::uint64_t mechanism;
  std::int64_t dt_ns;
  std::int32_t iterations, projection_passes;
  std::int64_t order;
  double relative_compliance;
  std::uint64_t step;
  std::uint64_t flat, inputs, outputs, parameters;  // counts
  StepReport report;
};
static_assert(std::is_trivially_copyable_v<SavedHeader> && sizeof(SavedHeader) % sizeof(double) == 0);
constexpr char kMagic[8] = {'R', 'I', 'G', 'S', 'T', 'A', 'T', 'E'};

std::size_t numbers_of(const SavedHeader& h) noexcept { return h.flat + h.inputs + h.outputs + h.parameters; }

SavedHeader header_of(const Mechanism& mechanism, const index3::Stepper& stepper) noexcept {
  const index3::Settings& settings = stepper.settings();
  SavedHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::snprintf(header.version, sizeof header.version, "%s", RIGSTEP_VERSION);
  header.mechanism = mechanism.id();
  header.dt_ns = settings.dt_ns;
  header.iterations = settings.iterations;
  header.projection_passes = settings.projection_passes;
  header.order = settings.order_of_accuracy;
  header.relative_compliance = settings.relative_compliance;
  header.flat = stepper.state().flat_size();
  header.inputs = mechanism.input_channels().size();
  header.outputs = mechanism.output_channels().size();
  header.parameters = mechanism.parameters().size();
  return header;
}

// What these bytes are of is what this header says: everything before the step and the counts after it.
bool is_same(const SavedHeader& a, const SavedHeader& b) noexcept {
  return std::memcmp(&a, &b, offsetof(SavedHeader, step)) == 0 &&
         std::memcmp(&a.flat, &b.flat, offsetof(SavedHeader, report) - offsetof(SavedHeader, flat)) == 0;
}

index3::Stepper make_stepper(const config::LoadedMechanism& loaded, const index3::Settings& settings,
                             std::span<const ParameterValue> values) {
  try {
    index3::Stepper stepper(values.empty() ? loaded.mechanism : with_parameters(loaded.mechanism, values), settings);
    Outputs outputs;
    stepper.read_outputs({}, outputs);
    if (const int c = first_not_finite(outputs); c >= 0)
      throw MechanismError("output",
                           "the channel " + loaded.mechanism.output_channels()[c].name + " is not finite at the start",
                           "give masses and start velocities that it can be formed of");
    return stepper;
  } catch (const index3::StartError& error) {
    throw loaded.at_joint(error.joint, error);
  }
}

}  // namespace

Instance::Instance(config::LoadedMechanism loaded, const index3::Settings& settings,
                   std::span<const ParameterValue> values)
    : loaded_(std::move(loaded)), asked_(settings) {
  build(values);
}

void Instance::build(std::span<const ParameterValue> values) {
  const FloatingPointMode mode;
  index3::Stepper stepper = make_stepper(loaded_, asked_, values);
  std::vector<double> parameters, state(stepper.state().flat_size());
  for (std::size_t i = 0; i < loaded_.mechanism.parameters().size(); ++i)
    parameters.push_back(stepper.parameter(static_cast<int>(i)));
  stepper.state().flatten(state);
  saved_state_.resize(state.size());
  tunable_.clear();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (loaded_.mechanism.parameters()[i].tunable) tunable_.push_back({static_cast<int>(i), parameters[i]});
  stepper_.emplace(std::move(stepper));
  start_parameters_ = std::move(parameters);
  start_state_ = std::move(state);
  start_step_ = 0;
  start_inputs_ = {.count = static_cast<int>(loaded_.mechanism.input_channels().size()), .value = {}};
  read_start();
}

void Instance::start_from(const wire::SnapshotFile& snapshot, const std::string& path) {
  const FloatingPointMode mode;
  config::require_fit(snapshot, path, loaded_.mechanism);
  std::vector<double> state(snapshot.state().begin(), snapshot.state().end());
  if (state.size() != start_state_.size()) config::refuse_state(path, state.size(), start_state_.size());
  set_tunable([&](std::size_t i) { return snapshot.parameter(static_cast<int>(i)).value(); });
  stepper_->restore(state, snapshot.state_step());
  if (state_hash() != snapshot.state_hash()) config::refuse_state(path, state.size(), state.size());
  for (std::size_t i = 0; i < start_parameters_.size(); ++i) start_parameters_[i] = parameter(static_cast<int>(i));
  start_state_ = std::move(state);
  start_step_ = snapshot.state_step();
  std::copy(snapshot.applied().begin(), snapshot.applied().end(), start_inputs_.value.begin());
  read_start();
}

void Instance::read_start() noexcept {
  inputs_ = start_inputs_;
  report_ = {};
  step_ns_ = 0;
  stepper_->read_outputs(report_, start_outputs_);
  outputs_ = start_outputs_;
}

std::int64_t Instance::time_ns() const noexcept {
  return static_cast<std::int64_t>(step_index()) * stepper_->settings().dt_ns;
}

std::span<double> Instance::inputs() noexcept {
  return {inputs_.value.data(), loaded_.mechanism.input_channels().size()};
}

std::span<const double> Instance::outputs() const noexcept {
  return {outputs_.value.data(), loaded_.mechanism.output_channels().size()};
}

bool Instance::set_parameter(int index, double value) noexcept {
  const std::vector<Parameter>& all = loaded_.mechanism.parameters();
  if (index < 0 || index >= static_cast<int>(all.size())) {
    explain("there is no parameter %d: the mechanism has %zu, from 0 on", index, all.size());
    return false;
  }
  const Parameter& parameter = all[static_cast<std::size_t>(index)];
  if (!parameter.allows(value)) {
    explain("parameter %s: %g is out of range: give %g to %g %s", parameter.name.c_str(), value, parameter.minimum,
            parameter.maximum, parameter.unit.c_str());
    return false;
  }
  if (!parameter.tunable) {
    explain("parameter %s is fixed: it can be set before the start only", parameter.name.c_str());
    return false;
  }
  const FloatingPointMode mode;
  if (stepper_->set_parameter(index, value)) return true;
  explain("parameter %s: the mechanism cannot be stepped with %g: give another value", parameter.name.c_str(), value);
  return false;
}

template <class Value>
bool Instance::set_tunable(const Value& value) noexcept {
  for (ParameterValue& parameter : tunable_) parameter.value = value(static_cast<std::size_t>(parameter.index));
  return tunable_.empty() || stepper_->set_parameters(tunable_);
}

bool Instance::inputs_are_finite() noexcept {
  for (int i = 0; i < inputs_.count; ++i)
    if (!std::isfinite(inputs_.value[i])) {
      report_.status = StepStatus::not_finite;
      explain("input %s is %g: set a finite value; the state stays at step %llu",
              loaded_.mechanism.input_channels()[i].name.c_str(), inputs_.value[i],
              static_cast<unsigned long long>(step_index()));
      return false;
    }
  return true;
}

StepStatus Instance::step() noexcept {
  if (!inputs_are_finite()) return report_.status;
  const auto begin = std::chrono::steady_clock::now();
  {
    const FloatingPointMode mode;
    report_ = stepper_->step(inputs_, outputs_);
  }
  step_ns_ = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  if (failed(report_.status)) explain_failed_step();
  return report_.status;
}

void Instance::explain_failed_step() noexcept {
  const Mechanism& m = loaded_.mechanism;
  const char *what = "", *name = "";
  if (report_.output >= 0) {
    what = " at output ", name = m.output_channels()[static_cast<std::size_t>(report_.output)].name.c_str();
  } else if (const auto joint = static_cast<std::size_t>(report_.joint); report_.joint >= 0) {
    const std::size_t coupling = joint - m.joints().size(), driver = coupling - m.couplings().size();
    if (joint < m.joints().size())
      what = " at joint ", name = m.joints()[joint].name.c_str();
    else if (coupling < m.couplings().size())
      what = " at coupling ", name = m.couplings()[coupling].name.c_str();
    else
      what = " at driver ", name = m.drivers()[driver].name.c_str();
  } else if (report_.body >= 0) {
    what = " at body ", name = m.bodies()[static_cast<std::size_t>(report_.body)].name.c_str();
  }
  explain("step %llu is %s%s%s: the state stays at step %llu; use a smaller period or look at the loads there",
          static_cast<unsigned long long>(step_index() + 1), to_string(report_.status), what, name,
          static_cast<unsigned long long>(step_index()));
}

void Instance::reset() noexcept {
  const FloatingPointMode mode;
  set_tunable([this](std::size_t i) { return start_parameters_[i]; });
  stepper_->restore(start_state_, start_step_);
  read_start();
}

std::size_t Instance::saved_size() const noexcept {
  return sizeof(SavedHeader) + sizeof(double) * numbers_of(header_of(loaded_.mechanism, *stepper_));
}

void Instance::save(std::span<std::byte> bytes) const noexcept {
  SavedHeader header = header_of(loaded_.mechanism, *stepper_);
  header.step = step_index();
  header.report = report_;
  stepper_->state().flatten(saved_state_);
  std::byte* to = bytes.data();
  const auto put = [&to](const void* from, std::size_t size) {
    to = std::copy_n(static_cast<const std::byte*>(from), size, to);
  };
  put(&header, sizeof header);
  put(saved_state_.data(), sizeof(double) * header.flat);
  put(inputs_.value.data(), sizeof(double) * header.inputs);
  put(outputs_.value.data(), sizeof(double) * header.outputs);
  for (std::size_t i = 0; i < header.parameters; ++i) {
    const double value = parameter(static_cast<int>(i));
    put(&value, sizeof value);
  }
}

std::optional<std::vector<ParameterValue>> Instance::parameters_of(std::span<const std::byte> bytes) const {
  SavedHeader header;
  if (bytes.size() != saved_size()) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (!is_same(header, header_of(loaded_.mechanism, *stepper_))) return {};
  std::vector<double> values(header.parameters);
  if (!values.empty())
    std::memcpy(values.data(), bytes.data() + bytes.size() - sizeof(double) * values.size(),
                sizeof(double) * values.size());
  std::vector<ParameterValue> parameters;
  for (std::size_t i = 0; i < values.size(); ++i) parameters.push_back({static_cast<int>(i), values[i]});
  return parameters;
}

bool Instance::restore(std::span<const std::byte> bytes) noexcept {
  SavedHeader header;
  if (bytes.size() != saved_size()) {
    explain("a saved state of this mechanism has %zu bytes, not %zu: save it with the same mechanism", saved_size(),
            bytes.size());
    return false;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (!is_same(header, header_of(loaded_.mechanism, *stepper_))) {
    explain("these bytes are no state of this mechanism with these settings, saved by rigstep %s", RIGSTEP_VERSION);
    return false;
  }
  const std::byte* const numbers = bytes.data() + sizeof header;
  const auto number = [numbers](std::size_t k) {
    double value;
    std::memcpy(&value, numbers + k * sizeof value, sizeof value);
    return value;
  };
  const std::size_t inputs = header.flat, outputs = inputs + header.inputs, parameters = outputs + header.outputs;
  for (std::size_t k = 0; k < numbers_of(header); ++k)
    if (!std::isfinite(number(k))) {
      explain("number %zu of the saved state is not finite: the bytes are damaged", k);
      return false;
    }
  for (std::size_t i = 0; i < header.parameters; ++i) {
    const Parameter& p = loaded_.mechanism.parameters()[i];
    const double value = number(parameters + i);
    if (value == parameter(static_cast<int>(i))) continue;
    if (!p.tunable || !p.allows(value)) {
      explain("the state was saved with %s = %g, here it is %g: create the stepper with that value", p.name.c_str(),
              value, parameter(static_cast<int>(i)));
      return false;
    }
  }
  const FloatingPointMode mode;
  if (!set_tunable([&](std::size_t i) { return number(parameters + i); })) {
    explain("the mechanism cannot be stepped with the parameters of the saved state: the bytes are damaged");
    return false;
  }
  std::memcpy(saved_state_.data(), numbers, sizeof(double) * header.flat);
  stepper_->restore(saved_state_, header.step);
  for (std::size_t i = 0; i < header.inputs; ++i) inputs_.value[i] = number(inputs + i);
  for (std::size_t i = 0; i < header.outputs; ++i) outputs_.value[i] = number(outputs + i);
  report_ = header.report;
  return true;
}

void Instance::explain(const char* format, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(error_.data(), error_.size(), format, arguments);
  va_end(arguments);
}

}  // namespace rigstep::plugin
