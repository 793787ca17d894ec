// The C interface: arguments are checked, no exception leaves.
#include "server/plugin/rigstep.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>

#include "proto/snapshot_file.h"
#include "server/plugin/floating_point_mode.h"
#include "server/plugin/instance.h"

using rigstep::Body;
using rigstep::Channel;
using rigstep::Mechanism;
using rigstep::MechanismError;
using rigstep::Parameter;
using rigstep::ParameterValue;
using rigstep::StepStatus;
using rigstep::config::ConfigError;
using rigstep::config::LoadedMechanism;
using rigstep::plugin::FloatingPointMode;
using rigstep::plugin::Instance;

struct rigstep_stepper : Instance {
  using Instance::Instance;
};

namespace {

static_assert(static_cast<int>(StepStatus::not_converged) == RIGSTEP_NOT_CONVERGED &&
              static_cast<int>(StepStatus::diverged) == RIGSTEP_DIVERGED &&
              static_cast<int>(StepStatus::output_not_finite) == RIGSTEP_OUTPUT_NOT_FINITE);

// What the host gives of a structure that begins with its size. Throws ConfigError where it knows more than this
// library.
rigstep_settings settings_of(const rigstep_settings* given) {
  rigstep_settings settings{};
  if (given == nullptr) return settings;
  if (given->size < sizeof(std::size_t) || given->size > sizeof settings)
    throw ConfigError("settings.size: " + std::to_string(given->size) +
                      " is not the size of rigstep_settings, which is " + std::to_string(sizeof settings) +
                      " here: set it to sizeof, and use header and library together");
  std::memcpy(static_cast<void*>(&settings), given, given->size);
  return settings;
}

rigstep::index3::Settings stepper_settings(const rigstep_settings& given) {
  const auto refuse = [](const std::string& what) { throw ConfigError("settings." + what); };
  if (given.period_ns < 0 || given.period_ns > 1'000'000'000)
    refuse("period_ns: " + std::to_string(given.period_ns) + " ns is no step: give 1 to 1000000000");
  if (given.iterations < 0 || given.iterations > 100)
    refuse("iterations: " + std::to_string(given.iterations) + " is out of range: give 1 to 100");
  if (given.projection_passes < 0 || given.projection_passes > 100)
    refuse("projection_passes: " + std::to_string(given.projection_passes) + " is out of range: give 1 to 100");
  if (!(given.relative_compliance >= 0.0 && given.relative_compliance <= 1.0))
    refuse("relative_compliance: " + std::to_string(given.relative_compliance) +
           " is out of range: give more than 0, at most 1");
  rigstep::index3::Settings settings;
  if (given.period_ns > 0) settings.dt_ns = given.period_ns;
  if (given.iterations > 0) settings.iterations = given.iterations;
  settings.projection_passes = given.projection_passes;
  if (given.relative_compliance > 0.0) settings.relative_compliance = given.relative_compliance;
  if (given.order != 0) settings.order_of_accuracy = given.order;
  return settings;
}

std::vector<ParameterValue> values_of(const rigstep_settings& given, const Mechanism& mechanism) {
  std::vector<ParameterValue> values;
  if (given.parameter_count > 0 && given.parameters == nullptr)
    throw ConfigError("settings.parameters: is NULL, parameter_count is not 0: give the values, or 0");
  for (std::size_t i = 0; i < given.parameter_count; ++i) {
    const rigstep_parameter& parameter = given.parameters[i];
    if (parameter.name == nullptr) throw ConfigError("settings.parameters: the name of one is NULL: give its name");
    values.push_back({mechanism.parameter(parameter.name), parameter.value});
  }
  return values;
}

void tell(const char* what, char* message, std::size_t size) noexcept {
  if (message != nullptr && size > 0) std::snprintf(message, size, "%s", what);
}

// make(): a stepper of the host; no exception leaves
template <class Make>
rigstep_stepper* make_for_host(const Make& make, char* message, std::size_t message_size) noexcept {
  tell("", message, message_size);
  const FloatingPointMode mode;
  try {
    return make();
  } catch (const std::bad_alloc&) {
    tell("there is not enough memory for this mechanism", message, message_size);
  } catch (const std::exception& error) {
    tell(error.what(), message, message_size);
  } catch (...) {
    tell("the mechanism cannot be loaded", message, message_size);
  }
  return nullptr;
}

// load(): the mechanism
template <class Load>
rigstep_stepper* create(const Load& load, const rigstep_settings* given, char* message,
                        std::size_t message_size) noexcept {
  const auto make = [&] {
    const rigstep_settings settings = settings_of(given);
    const rigstep::index3::Settings of_stepper = stepper_settings(settings);
    LoadedMechanism mechanism = load();
    const std::vector<ParameterValue> values = values_of(settings, mechanism.mechanism);
    return new rigstep_stepper(std::move(mechanism), of_stepper, values);
  };
  return make_for_host(make, message, message_size);
}

rigstep::index3::Settings stepper_settings(const rigstep::wire::SnapshotFile& snapshot) {
  rigstep::index3::Settings settings;
  settings.dt_ns = static_cast<std::int64_t>(snapshot.dt_ns());
  settings.iterations = static_cast<int>(snapshot.iterations());
  settings.projection_passes = static_cast<int>(snapshot.projection_passes());
  settings.relative_compliance = snapshot.relative_compliance();
  settings.order_of_accuracy = static_cast<int>(snapshot.order());
  return settings;
}

// f(index, name) of all of a kind, until it returns true
template <class F>
bool find_among(const Mechanism& m, rigstep_kind kind, const F& f) noexcept {
  const auto among = [&f](const auto& all) {
    for (std::size_t i = 0; i < all.size(); ++i)
      if (f(i, all[i].name)) return true;
    return false;
  };
  switch (kind) {
    case RIGSTEP_INPUT:
      return among(m.input_channels());
    case RIGSTEP_OUTPUT:
      return among(m.output_channels());
    case RIGSTEP_PARAMETER:
      return among(m.parameters());
    case RIGSTEP_BODY:
      return among(m.bodies());
    default:
      return false;
  }
}

rigstep_info info_of(const Instance& instance, rigstep_kind kind, std::size_t index) noexcept {
  const Mechanism& m = instance.mechanism();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  rigstep_info info{sizeof(rigstep_info), "", "", 0.0, -kInfinity, kInfinity, 0};
  if (kind == RIGSTEP_PARAMETER) {
    const Parameter& p = m.parameters()[index];
    info = {sizeof(rigstep_info),
            p.name.c_str(),
            p.unit.c_str(),
            instance.start_parameter(static_cast<int>(index)),
            p.minimum,
            p.maximum,
            p.tunable};
  } else if (kind == RIGSTEP_BODY) {
    info.name = m.bodies()[index].name.c_str();
    info.start = m.bodies()[index].mass;
  } else {
    const Channel& channel = (kind == RIGSTEP_INPUT ? m.input_channels() : m.output_channels())[index];
    info.name = channel.name.c_str();
    info.unit = channel.unit.c_str();
    if (kind == RIGSTEP_OUTPUT) info.start = instance.start_output(static_cast<int>(index));
  }
  return info;
}

// *to, which begins with its size, becomes as much of `from` as the host knows
template <class Structure>
rigstep_status hand_over(Instance& instance, const Structure& from, Structure* to) noexcept {
  if (to == nullptr || to->size < sizeof(std::size_t)) {
    instance.explain("size: the structure is NULL or its size is not set: set it to sizeof before the call");
    return RIGSTEP_BAD_ARGUMENT;
  }
  const std::size_t size = std::min(to->size, sizeof from), asked = to->size;
  std::memcpy(static_cast<void*>(to), &from, size);
  to->size = asked;
  return RIGSTEP_OK;
}

rigstep_status refuse_count(Instance& instance, const char* what, std::size_t given, std::size_t needed) noexcept {
  instance.explain("%s: room for %zu numbers was given, there are %zu: give NULL never, and their count", what, given,
                   needed);
  return RIGSTEP_BAD_ARGUMENT;
}

rigstep_status worse(rigstep_status a, rigstep_status b) noexcept { return std::max(a, b); }

}  // namespace

extern "C" {

const char* rigstep_version(void) { return RIGSTEP_VERSION; }
uint32_t rigstep_abi(void) { return RIGSTEP_ABI; }

rigstep_stepper* rigstep_create_from_file(const char* path, const rigstep_settings* settings, char* message,
                                          size_t message_size) {
  return create(
      [path] {
        if (path == nullptr) throw ConfigError("path: is NULL: give the name of a mechanism file");
        return rigstep::config::load_mechanism(path);
      },
      settings, message, message_size);
}

rigstep_stepper* rigstep_create_from_text(const char* text, size_t length, const rigstep_settings* settings,
                                          char* message, size_t message_size) {
  return create(
      [=] {
        if (text == nullptr) throw ConfigError("text: is NULL: give the text of a mechanism file");
        if (length > rigstep::config::kLargestConfigFile)
          throw ConfigError("text: has " + std::to_string(length) + " bytes: a mechanism has " +
                            std::to_string(rigstep::config::kLargestConfigFile) + " at most");
        return rigstep::config::parse_mechanism({text, length}, "text");
      },
      settings, message, message_size);
}

rigstep_stepper* rigstep_create_from_snapshot(const char* path, char* message, size_t message_size) {
  const auto make = [path] {
    if (path == nullptr) throw ConfigError("path: is NULL: give the name of a file of `rigstep snapshot`");
    const rigstep::wire::SnapshotFile snapshot = rigstep::config::read_snapshot(path);
    auto stepper = std::make_unique<rigstep_stepper>(rigstep::config::mechanism_of(snapshot, path),
                                                     stepper_settings(snapshot), std::span<const ParameterValue>());
    stepper->start_from(snapshot, path);
    return stepper.release();
  };
  return make_for_host(make, message, message_size);
}

void rigstep_destroy(rigstep_stepper* stepper) { delete stepper; }

size_t rigstep_count(const rigstep_stepper* stepper, rigstep_kind kind) {
  std::size_t count = 0;
  find_among(stepper->mechanism(), kind, [&count](std::size_t, const std::string&) { return ++count, false; });
  return count;
}

int32_t rigstep_find(const rigstep_stepper* stepper, rigstep_kind kind, const char* name) {
  std::int32_t found = -1;
  if (name != nullptr)
    find_among(stepper->mechanism(), kind, [&](std::size_t index, const std::string& other) {
      if (other != name) return false;
      found = static_cast<std::int32_t>(index);
      return true;
    });
  return found;
}

rigstep_status rigstep_describe(rigstep_stepper* stepper, rigstep_kind kind, size_t index, rigstep_info* info) {
  if (const std::size_t count = rigstep_count(stepper, kind); index >= count) {
    stepper->explain("index %zu: there are %zu of kind %d, counted from 0", index, count, static_cast<int>(kind));
    return RIGSTEP_BAD_ARGUMENT;
  }
  return hand_over(*stepper, info_of(*stepper, kind, index), info);
}

int64_t rigstep_period_ns(const rigstep_stepper* stepper) { return stepper->settings().dt_ns; }

double* rigstep_inputs(rigstep_stepper* stepper) { return stepper->inputs().data(); }
const double* rigstep_outputs(const rigstep_stepper* stepper) { return stepper->outputs().data(); }

rigstep_status rigstep_set_inputs(rigstep_stepper* stepper, const double* values, size_t count) {
  const std::span<double> inputs = stepper->inputs();
  if (count != inputs.size() || (values == nullptr && count > 0))
    return refuse_count(*stepper, "inputs", values == nullptr ? 0 : count, inputs.size());
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(values[i])) {
      stepper->explain("input %s: %g is no finite number: give one",
                       stepper->mechanism().input_channels()[i].name.c_str(), values[i]);
      return RIGSTEP_BAD_ARGUMENT;
    }
  std::copy_n(values, count, inputs.begin());
  return RIGSTEP_OK;
}

rigstep_status rigstep_get_outputs(rigstep_stepper* stepper, double* values, size_t count) {
  const std::span<const double> outputs = stepper->outputs();
  if (count != outputs.size() || (values == nullptr && count > 0))
    return refuse_count(*stepper, "outputs", values == nullptr ? 0 : count, outputs.size());
  std::copy(outputs.begin(), outputs.end(), values);
  return RIGSTEP_OK;
}

rigstep_status rigstep_set_parameter(rigstep_stepper* stepper, size_t index, double value) {
  const int as_int = index > static_cast<std::size_t>(std::numeric_limits<int>::max()) ? -1 : static_cast<int>(index);
  return stepper->set_parameter(as_int, value) ? RIGSTEP_OK : RIGSTEP_BAD_ARGUMENT;
}

rigstep_status rigstep_get_parameter(rigstep_stepper* stepper, size_t index, double* value) {
  if (const std::size_t count = stepper->mechanism().parameters().size(); index >= count || value == nullptr) {
    stepper->explain("parameter %zu: there are %zu, counted from 0, and a place for the value is needed", index, count);
    return RIGSTEP_BAD_ARGUMENT;
  }
  *value = stepper->parameter(static_cast<int>(index));
  return RIGSTEP_OK;
}

rigstep_status rigstep_get_poses(rigstep_stepper* stepper, double* values, size_t count) {
  const auto& bodies = stepper->state().body;
  if (count != 7 * bodies.size() || values == nullptr)
    return refuse_count(*stepper, "poses", values == nullptr ? 0 : count, 7 * bodies.size());
  for (const auto& body : bodies) {
    values = std::copy_n(body.r.data(), 3, values);
    for (int k = 0; k < 4; ++k) *values++ = body.p[k];
  }
  return RIGSTEP_OK;
}

rigstep_status rigstep_step(rigstep_stepper* stepper, uint64_t steps) {
  return rigstep_run(stepper, steps, nullptr, nullptr);
}

rigstep_status rigstep_run(rigstep_stepper* stepper, uint64_t steps, const double* inputs, double* outputs) {
  const std::span<double> applied = stepper->inputs();
  const std::span<const double> reached = stepper->outputs();
  rigstep_status worst = RIGSTEP_OK;
  for (std::uint64_t k = 0; k < steps && !RIGSTEP_FAILED(worst); ++k) {
    if (inputs != nullptr) std::copy_n(inputs + k * applied.size(), applied.size(), applied.begin());
    worst = worse(worst, static_cast<rigstep_status>(stepper->step()));
    if (outputs != nullptr && !RIGSTEP_FAILED(worst)) outputs = std::copy(reached.begin(), reached.end(), outputs);
  }
  return worst;
}

rigstep_status rigstep_get_report(rigstep_stepper* stepper, rigstep_report* report) {
  const rigstep::StepReport& of = stepper->report();
  const rigstep_report all{sizeof(rigstep_report),
                           stepper->step_index(),
                           stepper->time_ns(),
                           stepper->state_hash(),
                           static_cast<rigstep_status>(of.status),
                           of.body,
                           of.joint,
                           of.output,
                           of.last_increment,
                           of.position_residual,
                           of.velocity_residual,
                           of.acceleration_residual,
                           stepper->step_ns(),
                           of.position_error,
                           of.orientation_error,
                           of.error_body};
  return hand_over(*stepper, all, report);
}

void rigstep_reset(rigstep_stepper* stepper) { stepper->reset(); }

size_t rigstep_state_size(const rigstep_stepper* stepper) { return stepper->saved_size(); }

rigstep_status rigstep_save_state(rigstep_stepper* stepper, void* bytes, size_t size) {
  if (bytes == nullptr || size != stepper->saved_size()) {
    stepper->explain("size: a saved state has %zu bytes, room for %zu was given: ask rigstep_state_size",
                     stepper->saved_size(), bytes == nullptr ? 0 : size);
    return RIGSTEP_BAD_ARGUMENT;
  }
  stepper->save({static_cast<std::byte*>(bytes), size});
  return RIGSTEP_OK;
}

rigstep_status rigstep_restore_state(rigstep_stepper* stepper, const void* bytes, size_t size) {
  return stepper->restore({static_cast<const std::byte*>(bytes), bytes == nullptr ? 0 : size}) ? RIGSTEP_OK
                                                                                               : RIGSTEP_BAD_STATE;
}

const char* rigstep_last_error(const rigstep_stepper* stepper) { return stepper->error(); }

}  // extern "C"
