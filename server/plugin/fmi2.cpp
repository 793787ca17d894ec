// FMI 2.0 (co-simulation): every function of the standard that such a unit has.
#include "server/plugin/fmi2.h"

#include <memory>
#include <string>

#include "server/plugin/unit_states.h"

using rigstep::plugin::deserialise_state;
using rigstep::plugin::free_state;
using rigstep::plugin::get_serialised_size;
using rigstep::plugin::get_state;
using rigstep::plugin::kAnyPhase;
using rigstep::plugin::kError;
using rigstep::plugin::kFailed;
using rigstep::plugin::kInitialization;
using rigstep::plugin::kInstantiated;
using rigstep::plugin::kStepping;
using rigstep::plugin::kTerminated;
using rigstep::plugin::Phase;
using rigstep::plugin::serialise_state;
using rigstep::plugin::set_state;
using rigstep::plugin::Status;
using rigstep::plugin::Unit;

namespace {

struct Component2 {
  Unit unit;
  double start_time = 0.0, stop_time = 0.0;
  bool has_stop_time = false;
};

// FMI 2.0.4, 4.2.4: in which states which kinds of functions may be called
constexpr unsigned kMayRead = kInitialization | kStepping | kFailed | kTerminated | kError;
constexpr unsigned kMayWrite = kInstantiated | kInitialization | kStepping;

fmi2Status to_fmi(Status status) noexcept { return static_cast<fmi2Status>(status); }

Unit* unit_of(fmi2Component component) noexcept { return &static_cast<Component2*>(component)->unit; }

// f(unit) where the function may be called in this phase; no exception leaves
template <class F>
fmi2Status call(fmi2Component component, const char* function, unsigned phases, const F& f) noexcept {
  if (component == nullptr) return fmi2Error;
  Unit* const unit = unit_of(component);
  if (!unit->may(function, phases)) return fmi2Error;
  try {
    return to_fmi(f(*unit));
  } catch (const std::exception& error) {
    return to_fmi(unit->fail(Status::error, error.what()));
  }
}

// of what this unit does not have
fmi2Status none(fmi2Component component, const char* function, Status status = Status::error) noexcept {
  if (component == nullptr) return fmi2Error;
  const std::string text =
      std::string(function) + ": this unit has nothing for it: modelDescription.xml says what it has";
  unit_of(component)->tell(status, text.c_str());
  return to_fmi(status);
}

int hexadecimal(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

// "file:///a/b%20c" -> "/a/b c"; some importers give the path as it is
std::string path_of(const std::string& location) {
  std::string rest = location;
  for (const char* prefix : {"file://localhost", "file://", "file:"})
    if (location.rfind(prefix, 0) == 0) {
      rest = location.substr(std::string(prefix).size());
      break;
    }
  if (rest == location) return rest;
  std::string path;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const bool is_escape =
        rest[i] == '%' && i + 2 < rest.size() && hexadecimal(rest[i + 1]) >= 0 && hexadecimal(rest[i + 2]) >= 0;
    path += is_escape ? static_cast<char>(16 * hexadecimal(rest[i + 1]) + hexadecimal(rest[i + 2])) : rest[i];
    if (is_escape) i += 2;
  }
  return path;
}

}  // namespace

extern "C" {

const char* fmi2GetTypesPlatform(void) { return "default"; }
const char* fmi2GetVersion(void) { return "2.0"; }

fmi2Status fmi2SetDebugLogging(fmi2Component component, fmi2Boolean logging_on, size_t, const fmi2String[]) {
  return call(component, "fmi2SetDebugLogging", kAnyPhase,
              [=](Unit& unit) { return unit.set_logging(logging_on != fmi2False), Status::ok; });
}

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resource_location,
                              const fmi2CallbackFunctions* callbacks, fmi2Boolean, fmi2Boolean logging_on) {
  if (callbacks == nullptr) return nullptr;
  const fmi2CallbackFunctions importer = *callbacks;
  const std::string instance_name = name == nullptr ? "" : name;
  const auto tell = [=](Status status, const char* category, const char* text) {
    if (importer.logger != nullptr)
      importer.logger(importer.componentEnvironment, instance_name.c_str(), to_fmi(status), category, "%s", text);
  };
  const auto refuse = [&](const char* text) -> fmi2Component {
    return tell(Status::error, "logStatusError", text), nullptr;
  };
  if (instance_name.empty() || guid == nullptr || resource_location == nullptr)
    return refuse("fmi2Instantiate: name, guid or resource location is empty: give all three");
  if (type != fmi2CoSimulation) return refuse("fmi2Instantiate: this unit is one for co-simulation");
  try {
    std::string folder = path_of(resource_location);
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    auto component = std::make_unique<Component2>(Component2{Unit(folder, guid, Unit::Standard::fmi2, tell)});
    component->unit.set_logging(logging_on != fmi2False);
    return component.release();
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}

void fmi2FreeInstance(fmi2Component component) { delete static_cast<Component2*>(component); }

/* --- initialisation, termination */

fmi2Status fmi2SetupExperiment(fmi2Component component, fmi2Boolean, fmi2Real, fmi2Real start_time,
                               fmi2Boolean stop_time_defined, fmi2Real stop_time) {
  return call(component, "fmi2SetupExperiment", kInstantiated, [=](Unit&) {
    auto& all = *static_cast<Component2*>(component);
    all.start_time = start_time;
    all.has_stop_time = stop_time_defined != fmi2False;
    all.stop_time = stop_time;
    return Status::ok;
  });
}

fmi2Status fmi2EnterInitializationMode(fmi2Component component) {
  return call(component, "fmi2EnterInitializationMode", kInstantiated, [=](Unit& unit) {
    const auto& all = *static_cast<Component2*>(component);
    return unit.enter_initialization(all.start_time, all.has_stop_time, all.stop_time);
  });
}

fmi2Status fmi2ExitInitializationMode(fmi2Component component) {
  return call(component, "fmi2ExitInitializationMode", kInitialization,
              [](Unit& unit) { return unit.exit_initialization(); });
}

fmi2Status fmi2Terminate(fmi2Component component) {
  return call(component, "fmi2Terminate", kStepping | kFailed,
              [](Unit& unit) { return unit.set_phase(kTerminated), Status::ok; });
}

fmi2Status fmi2Reset(fmi2Component component) {
  return call(component, "fmi2Reset", kAnyPhase, [=](Unit& unit) {
    auto& all = *static_cast<Component2*>(component);
    all.start_time = 0.0;
    all.has_stop_time = false;
    return unit.reset();
  });
}

/* --- values */

fmi2Status fmi2GetReal(fmi2Component component, const fmi2ValueReference references[], size_t count,
                       fmi2Real values[]) {
  return call(component, "fmi2GetReal", kMayRead,
              [=](Unit& unit) { return unit.get_reals(references, count, values, count); });
}
fmi2Status fmi2GetInteger(fmi2Component component, const fmi2ValueReference references[], size_t count,
                          fmi2Integer values[]) {
  return call(component, "fmi2GetInteger", kMayRead,
              [=](Unit& unit) { return unit.get_integers(references, count, values, count); });
}
fmi2Status fmi2GetBoolean(fmi2Component component, const fmi2ValueReference[], size_t count, fmi2Boolean[]) {
  return call(component, "fmi2GetBoolean", kMayRead,
              [=](Unit& unit) { return unit.refuse_values("fmi2GetBoolean", count); });
}
fmi2Status fmi2GetString(fmi2Component component, const fmi2ValueReference references[], size_t count,
                         fmi2String values[]) {
  return call(component, "fmi2GetString", kMayRead,
              [=](Unit& unit) { return unit.get_texts(references, count, values, count); });
}
fmi2Status fmi2SetReal(fmi2Component component, const fmi2ValueReference references[], size_t count,
                       const fmi2Real values[]) {
  return call(component, "fmi2SetReal", kMayWrite,
              [=](Unit& unit) { return unit.set_reals(references, count, values, count); });
}
fmi2Status fmi2SetInteger(fmi2Component component, const fmi2ValueReference[], size_t count, const fmi2Integer[]) {
  return call(component, "fmi2SetInteger", kMayWrite,
              [=](Unit& unit) { return unit.refuse_values("fmi2SetInteger", count); });
}
fmi2Status fmi2SetBoolean(fmi2Component component, const fmi2ValueReference[], size_t count, const fmi2Boolean[]) {
  return call(component, "fmi2SetBoolean", kMayWrite,
              [=](Unit& unit) { return unit.refuse_values("fmi2SetBoolean", count); });
}
fmi2Status fmi2SetString(fmi2Component component, const fmi2ValueReference[], size_t count, const fmi2String[]) {
  return call(component, "fmi2SetString", kMayWrite,
              [=](Unit& unit) { return unit.refuse_values("fmi2SetString", count); });
}

/* --- steps */

fmi2Status fmi2DoStep(fmi2Component component, fmi2Real time, fmi2Real step_size, fmi2Boolean) {
  return call(component, "fmi2DoStep", kStepping, [=](Unit& unit) {
    bool early_return = false;
    double last_time = 0.0;
    const Status status = unit.step(time, step_size, early_return, last_time);
    if (status == Status::discard) unit.set_phase(kFailed);
    return status;
  });
}

fmi2Status fmi2CancelStep(fmi2Component component) { return none(component, "fmi2CancelStep"); }

fmi2Status fmi2GetStatus(fmi2Component component, const fmi2StatusKind kind, fmi2Status* value) {
  if (component != nullptr && kind == fmi2DoStepStatus && value != nullptr) {
    *value = unit_of(component)->phase() == kFailed ? fmi2Discard : fmi2OK;
    return fmi2OK;
  }
  return none(component, "fmi2GetStatus", Status::discard);
}

fmi2Status fmi2GetRealStatus(fmi2Component component, const fmi2StatusKind kind, fmi2Real* value) {
  if (component != nullptr && kind == fmi2LastSuccessfulTime && value != nullptr) {
    *value = unit_of(component)->time();
    return fmi2OK;
  }
  return none(component, "fmi2GetRealStatus", Status::discard);
}

fmi2Status fmi2GetIntegerStatus(fmi2Component component, const fmi2StatusKind, fmi2Integer*) {
  return none(component, "fmi2GetIntegerStatus", Status::discard);
}

fmi2Status fmi2GetBooleanStatus(fmi2Component component, const fmi2StatusKind kind, fmi2Boolean* value) {
  if (component != nullptr && kind == fmi2Terminated && value != nullptr) return *value = fmi2False, fmi2OK;
  return none(component, "fmi2GetBooleanStatus", Status::discard);
}

fmi2Status fmi2GetStringStatus(fmi2Component component, const fmi2StatusKind, fmi2String*) {
  return none(component, "fmi2GetStringStatus", Status::discard);
}

fmi2Status fmi2SetRealInputDerivatives(fmi2Component component, const fmi2ValueReference[], size_t, const fmi2Integer[],
                                       const fmi2Real[]) {
  return none(component, "fmi2SetRealInputDerivatives");
}
fmi2Status fmi2GetRealOutputDerivatives(fmi2Component component, const fmi2ValueReference[], size_t,
                                        const fmi2Integer[], fmi2Real[]) {
  return none(component, "fmi2GetRealOutputDerivatives");
}
fmi2Status fmi2GetDirectionalDerivative(fmi2Component component, const fmi2ValueReference[], size_t,
                                        const fmi2ValueReference[], size_t, const fmi2Real[], fmi2Real[]) {
  return none(component, "fmi2GetDirectionalDerivative");
}

/* --- state */

fmi2Status fmi2GetFMUstate(fmi2Component component, fmi2FMUstate* state) {
  return call(component, "fmi2GetFMUstate", kAnyPhase,
              [=](Unit& unit) { return get_state(unit, "fmi2GetFMUstate", state); });
}
fmi2Status fmi2SetFMUstate(fmi2Component component, fmi2FMUstate state) {
  return call(component, "fmi2SetFMUstate", kAnyPhase,
              [=](Unit& unit) { return set_state(unit, "fmi2SetFMUstate", state); });
}
fmi2Status fmi2FreeFMUstate(fmi2Component component, fmi2FMUstate* state) {
  return call(component, "fmi2FreeFMUstate", kAnyPhase, [=](Unit&) { return free_state(state); });
}
fmi2Status fmi2SerializedFMUstateSize(fmi2Component component, fmi2FMUstate state, size_t* size) {
  return call(component, "fmi2SerializedFMUstateSize", kAnyPhase,
              [=](Unit& unit) { return get_serialised_size(unit, "fmi2SerializedFMUstateSize", state, size); });
}
fmi2Status fmi2SerializeFMUstate(fmi2Component component, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
  return call(component, "fmi2SerializeFMUstate", kAnyPhase,
              [=](Unit& unit) { return serialise_state(unit, "fmi2SerializeFMUstate", state, bytes, size); });
}
fmi2Status fmi2DeSerializeFMUstate(fmi2Component component, const fmi2Byte bytes[], size_t size, fmi2FMUstate* state) {
  return call(component, "fmi2DeSerializeFMUstate", kAnyPhase,
              [=](Unit& unit) { return deserialise_state(unit, "fmi2DeSerializeFMUstate", bytes, size, state); });
}

}  // extern "C"
