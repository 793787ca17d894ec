#include "server/plugin/unit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include "proto/load_rig.h"
#include "server/plugin/floating_point_mode.h"
#include "server/plugin/token.h"

namespace rigstep::plugin {

namespace {

// What stands before parameters and instance in saved bytes.
struct UnitHeader {
  char magic[8];
  std::uint32_t phase, has_stop_time;
  double start_time, stop_time;
};
constexpr char kUnitMagic[8] = {'R', 'I', 'G', 'U', 'N', 'I', 'T', '1'};

index3::Settings settings_of(const config::RigConfig& rig) {
  index3::Settings settings;
  settings.dt_ns = rig.period_ns;
  settings.iterations = rig.iterations;
  settings.relative_compliance = rig.relative_compliance;
  settings.projection_passes = rig.projection_passes;
  settings.order_of_accuracy = rig.order;
  return settings;
}

const char* to_string(Phase phase) noexcept {
  switch (phase) {
    case kInstantiated:
      return "instantiated";
    case kInitialization:
      return "in initialization mode";
    case kStepping:
      return "between two steps";
    case kFailed:
      return "after a step that failed";
    case kTerminated:
      return "terminated";
    case kError:
      return "after an error";
    case kAnyPhase:
      break;
  }
  return "";
}

const char* category_of(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return "logAll";
    case Status::warning:
      return "logStatusWarning";
    case Status::discard:
      return "logStatusDiscard";
    case Status::error:
      return "logStatusError";
    case Status::fatal:
      return "logStatusFatal";
  }
  return "logAll";
}

// A text for the importer, made without an allocation.
struct Text {
  [[gnu::format(printf, 2, 3)]] explicit Text(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
  }
  char text[640];
};

}  // namespace

Unit::Unit(const std::string& resources, const std::string& token, Standard standard, Log log)
    : log_(std::move(log)), standard_(standard) {
  const FloatingPointMode mode;
  const config::RigConfig rig = config::load_rig(resources + "/rig.textproto");
  config::LoadedMechanism mechanism = config::load_mechanism(rig.mechanism_path);
  if (const std::string needed = instantiation_token(mechanism.text, rig.text); token != needed)
    throw config::ConfigError("instantiation token: \"" + token + "\" is not that of the files in " + resources + ", " +
                              needed + ": description, resources and binary must come from one .fmu");
  config::set_start_parameters(mechanism, rig);
  instance_.emplace(std::move(mechanism), settings_of(rig), std::span<const ParameterValue>());
  variables_ = variables_of(instance_->mechanism(), config::input_policies(rig, instance_->mechanism()));
  set_start_inputs();
  for (std::size_t i = 0; i < variables_.size(); ++i)
    for (int element = 0; element < variables_[i].elements(); ++element) places_.push_back({i, element});
  for (std::size_t i = 0; i < instance_->mechanism().parameters().size(); ++i)
    defaults_.push_back(instance_->start_parameter(static_cast<int>(i)));
  asked_ = defaults_;
}

void Unit::tell(Status status, const char* text) noexcept {
  const bool is_told = logging_ || (standard_ == Standard::fmi2 && status >= Status::discard);
  if (is_told) log_(status, category_of(status), text);
}

Status Unit::fail(Status status, const char* text) noexcept {
  tell(status, text);
  if (status >= Status::error) phase_ = standard_ == Standard::fmi3 ? kTerminated : kError;
  return status;
}

bool Unit::may(const char* function, unsigned phases) noexcept {
  if ((phase_ & phases) != 0) return true;
  std::string when;  // of a wrong call: it may allocate
  for (unsigned bit = kInstantiated; bit < kAnyPhase; bit <<= 1)
    if ((bit & phases) != 0) when += (when.empty() ? "" : ", ") + std::string(to_string(static_cast<Phase>(bit)));
  tell(Status::error, Text("%s: cannot be called %s, only %s", function, to_string(phase_), when.c_str()).text);
  return false;
}

double Unit::time() const noexcept { return start_time_ + static_cast<double>(instance_->time_ns()) / 1e9; }

Status Unit::enter_initialization(double start_time, bool has_stop_time, double stop_time) noexcept {
  if (!std::isfinite(start_time) || (has_stop_time && !(stop_time > start_time)))
    return fail(Status::error,
                Text("start time %g, stop time %g: give a finite start and a later stop", start_time, stop_time).text);
  if (start_time != 0.0) tell(Status::warning, "start time: the mechanism's own functions of time begin at 0 there");
  start_time_ = start_time;
  has_stop_time_ = has_stop_time;
  stop_time_ = stop_time;
  phase_ = kInitialization;
  return Status::ok;
}

Status Unit::exit_initialization() noexcept {
  if (!build_if_changed()) return Status::error;
  phase_ = kStepping;
  return Status::ok;
}

Status Unit::reset() noexcept {
  asked_ = defaults_;
  if (!build_if_changed()) return Status::error;
  instance_->reset();
  set_start_inputs();
  start_time_ = 0.0;
  has_stop_time_ = false;
  phase_ = kInstantiated;
  return Status::ok;
}

void Unit::set_start_inputs() noexcept {
  for (const Variable& variable : variables_)
    if (variable.source == Variable::Source::input)
      instance_->inputs()[static_cast<std::size_t>(variable.index)] = variable.start;
}

// put(variable, element, k) of all values; where it is not ok, the instance's error() is told
template <class Put>
Status Unit::for_values(const std::uint32_t* references, std::size_t count, std::size_t room, Variable::Type type,
                        const Put& put) noexcept {
  std::size_t at = 0;
  Status worst = Status::ok;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t reference = references[i];
    const Place place = reference < places_.size() ? places_[reference] : Place{variables_.size(), 0};
    const bool is_whole = standard_ == Standard::fmi3;
    if (place.variable == variables_.size() || variables_[place.variable].type() != type ||
        (is_whole && place.element != 0))
      return fail(
          Status::error,
          Text("value reference %u: no variable of this type has it: see modelDescription.xml", reference).text);
    const Variable& variable = variables_[place.variable];
    const int elements = is_whole ? variable.elements() : 1;
    if (room - at < static_cast<std::size_t>(elements))
      return fail(Status::error, Text("%s has %d values, there is room for %zu: count the elements of all variables",
                                      variable.name.c_str(), elements, room - at)
                                     .text);
    for (int k = 0; k < elements; ++k) {
      const Status status = put(variable, place.element + k, at++);
      if (status >= Status::error) return fail(status, instance_->error());
      if (status != Status::ok) tell(status, instance_->error());
      worst = std::max(worst, status);
    }
  }
  if (at == room) return worst;
  return fail(Status::error, Text("room for %zu values was given, the variables have %zu", room, at).text);
}

Status Unit::get_reals(const std::uint32_t* references, std::size_t count, double* values, std::size_t room) noexcept {
  if (!build_if_changed()) return Status::error;
  return for_values(references, count, room, Variable::Type::real,
                    [&](const Variable& variable, int element, std::size_t k) {
                      values[k] = number(variable, element);
                      return Status::ok;
                    });
}

Status Unit::get_integers(const std::uint32_t* references, std::size_t count, std::int32_t* values,
                          std::size_t room) noexcept {
  return for_values(references, count, room, Variable::Type::integer, [&](const Variable&, int, std::size_t k) {
    values[k] = static_cast<std::int32_t>(instance_->report().status);
    return Status::ok;
  });
}

Status Unit::get_texts(const std::uint32_t* references, std::size_t count, const char** values,
                       std::size_t room) noexcept {
  if (!build_if_changed()) return Status::error;
  return for_values(references, count, room, Variable::Type::text, [&](const Variable&, int, std::size_t k) {
    std::snprintf(state_hash_, sizeof state_hash_, "%016llx", static_cast<unsigned long long>(instance_->state_hash()));
    values[k] = state_hash_;
    return Status::ok;
  });
}

Status Unit::set_reals(const std::uint32_t* references, std::size_t count, const double* values,
                       std::size_t room) noexcept {
  return for_values(references, count, room, Variable::Type::real,
                    [&](const Variable& variable, int, std::size_t k) { return set_number(variable, values[k]); });
}

Status Unit::refuse_values(const char* function, std::size_t count) noexcept {
  if (count == 0) return Status::ok;
  return fail(Status::error, Text("%s: there is no variable for it: see modelDescription.xml", function).text);
}

double Unit::number(const Variable& variable, int element) const noexcept {
  const auto index = static_cast<std::size_t>(variable.index);
  switch (variable.source) {
    case Variable::Source::time:
      return time();
    case Variable::Source::parameter:
      return before_start() ? asked_[index] : instance_->parameter(variable.index);
    case Variable::Source::input:
      return const_cast<Instance&>(*instance_).inputs()[index];
    case Variable::Source::output:
      return instance_->outputs()[index];
    case Variable::Source::position:
      return instance_->state().body[index].r[element];
    case Variable::Source::orientation:
      return instance_->state().body[index].p[element];
    case Variable::Source::step_status:
    case Variable::Source::state_hash:
      break;
  }
  return 0.0;
}

// warning: a value in the range was set instead; error: none. instance_->error() says so
Status Unit::set_number(const Variable& variable, double value) noexcept {
  if (variable.source == Variable::Source::input) {
    if (!std::isfinite(value)) {
      instance_->explain("input %s: %g is no finite number: give one", variable.name.c_str(), value);
      return Status::error;
    }
    const double limited = std::clamp(value, variable.minimum, variable.maximum);
    instance_->inputs()[static_cast<std::size_t>(variable.index)] = limited;
    if (limited == value) return Status::ok;
    instance_->explain("input %s: %g is out of range, %g is applied: give %g to %g %s", variable.name.c_str(), value,
                       limited, variable.minimum, variable.maximum, variable.unit.c_str());
    return Status::warning;
  }
  if (variable.source != Variable::Source::parameter) {
    instance_->explain("%s cannot be set: inputs and parameters can", variable.name.c_str());
    return Status::error;
  }
  if (!before_start()) return instance_->set_parameter(variable.index, value) ? Status::ok : Status::error;
  if (!(value >= variable.minimum && value <= variable.maximum)) {
    instance_->explain("parameter %s: %g is out of range: give %g to %g %s", variable.name.c_str(), value,
                       variable.minimum, variable.maximum, variable.unit.c_str());
    return Status::error;
  }
  asked_[static_cast<std::size_t>(variable.index)] = value;
  return Status::ok;
}

bool Unit::build_if_changed() noexcept {
  if (!before_start()) return true;
  for (std::size_t i = 0; i < asked_.size(); ++i)
    if (asked_[i] != instance_->start_parameter(static_cast<int>(i))) return build(asked_);
  return true;
}

// anew from the start; inputs stay
bool Unit::build(std::span<const double> parameters) noexcept {
  try {
    std::vector<ParameterValue> values;
    for (std::size_t i = 0; i < parameters.size(); ++i) values.push_back({static_cast<int>(i), parameters[i]});
    const std::vector<double> inputs(instance_->inputs().begin(), instance_->inputs().end());
    instance_->build(values);
    std::copy(inputs.begin(), inputs.end(), instance_->inputs().begin());
    return true;
  } catch (const std::exception& error) {
    fail(Status::error, error.what());
  }
  return false;
}

// the number of internal steps
Status Unit::check_step(double time, double size, std::int64_t& steps) noexcept {
  const double period = static_cast<double>(instance_->settings().dt_ns) / 1e9;
  const double rounding = 1e-6 * period + 1e-12 * std::abs(time);
  if (!(std::abs(time - this->time()) <= rounding))
    return fail(Status::discard, Text("communication point %.12g s: the unit is at %.12g s: go on from there, or set a "
                                      "saved state",
                                      time, this->time())
                                     .text);
  const double whole = size >= 0.0 && size <= 1e9 * period ? std::nearbyint(size / period) : 0.0;
  if (!(whole >= 1.0 && std::abs(whole * period - size) <= rounding)) {
    const double below = std::max(1.0, std::floor(std::clamp(size / period, 0.0, 1e9)));
    return fail(Status::discard,
                Text("communication step %.12g s: is no multiple of the internal step %.12g s: %.12g s "
                     "or %.12g s would do",
                     size, period, below * period, (below + 1.0) * period)
                    .text);
  }
  if (has_stop_time_ && time + size > stop_time_ + rounding)
    return fail(Status::error, Text("communication step %.12g s from %.12g s leads beyond the stop time %.12g s", size,
                                    time, stop_time_)
                                   .text);
  steps = static_cast<std::int64_t>(whole);
  return Status::ok;
}

Status Unit::step(double time, double size, bool& early_return, double& last_time) noexcept {
  const bool may_return_early = std::exchange(early_return, false);
  last_time = this->time();
  std::int64_t steps = 0;
  if (const Status status = check_step(time, size, steps); status != Status::ok) return status;
  StepStatus worst = StepStatus::ok;
  for (std::int64_t k = 0; k < steps && !failed(worst); ++k) {
    worst = std::max(worst, instance_->step());
    if (failed(worst) && k > 0 && may_return_early) early_return = true;
  }
  last_time = this->time();
  if (worst == StepStatus::ok) return Status::ok;
  if (early_return) {
    tell(Status::warning, instance_->error());
    return Status::ok;
  }
  if (failed(worst)) return fail(Status::discard, instance_->error());
  tell(Status::warning, "a step did not converge: its result is less exact; a smaller period helps");
  return Status::warning;
}

std::vector<std::byte> Unit::save() const {
  UnitHeader header{{}, phase_, has_stop_time_, start_time_, stop_time_};
  std::memcpy(header.magic, kUnitMagic, sizeof kUnitMagic);
  const std::size_t parameters = sizeof(double) * asked_.size();
  std::vector<std::byte> bytes(sizeof header + parameters + instance_->saved_size());
  std::memcpy(bytes.data(), &header, sizeof header);
  if (parameters > 0) std::memcpy(bytes.data() + sizeof header, asked_.data(), parameters);
  instance_->save(std::span(bytes).subspan(sizeof header + parameters));
  return bytes;
}

Status Unit::restore(const std::vector<std::byte>& bytes) noexcept {
  UnitHeader header{};
  std::vector<double> asked(asked_.size());
  const std::size_t parameters = sizeof(double) * asked.size();
  const bool fits = bytes.size() == sizeof header + parameters + instance_->saved_size();
  if (fits) std::memcpy(&header, bytes.data(), sizeof header);
  const bool has_phase = (header.phase & kAnyPhase) == header.phase && std::popcount(header.phase) == 1;
  if (!fits || !has_phase || std::memcmp(header.magic, kUnitMagic, sizeof kUnitMagic) != 0 ||
      !std::isfinite(header.start_time) || std::isnan(header.stop_time)) {
    tell(Status::error, "these bytes are no state of this unit, or damaged: keep what was saved by it");
    return Status::error;
  }
  if (parameters > 0) std::memcpy(asked.data(), bytes.data() + sizeof header, parameters);
  if (!restore_instance(std::span(bytes).subspan(sizeof header + parameters), asked)) return Status::error;
  asked_ = std::move(asked);
  phase_ = static_cast<Phase>(header.phase);
  start_time_ = header.start_time;
  stop_time_ = header.stop_time;
  has_stop_time_ = header.has_stop_time != 0;
  return Status::ok;
}

// false: told why; everything stands as it was
bool Unit::restore_instance(std::span<const std::byte> bytes, std::span<const double> parameters) noexcept {
  try {
    const auto built_with = instance_->parameters_of(bytes);
    const auto& all = instance_->mechanism().parameters();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (const double value = parameters[i]; !all[i].allows(value)) {
        tell(Status::error, Text("the saved state has %s = %g: out of range", all[i].name.c_str(), value).text);
        return false;
      }
    bool same = true;
    for (std::size_t i = 0; built_with && i < all.size(); ++i)
      same = same && (all[i].tunable || (*built_with)[i].value == instance_->parameter(static_cast<int>(i)));
    if (same) {
      if (instance_->restore(bytes)) return true;
      tell(Status::error, instance_->error());
      return false;
    }
    std::vector<std::byte> before(instance_->saved_size());
    instance_->save(before);
    const auto parameters_before = instance_->parameters_of(before);
    instance_->build(*built_with);  // for the fixed ones
    if (instance_->restore(bytes)) return true;
    tell(Status::error, instance_->error());
    instance_->build(*parameters_before);
    instance_->restore(before);
  } catch (const std::exception& error) {
    tell(Status::error, error.what());
  }
  return false;
}

}  // namespace rigstep::plugin
