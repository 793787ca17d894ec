// FMI 3.0 (co-simulation): every function of the standard; those of other interface types say that they are none.
#include "server/plugin/fmi3.h"

#include <memory>
#include <string>

#include "server/plugin/unit_states.h"

using rigstep::plugin::deserialise_state;
using rigstep::plugin::free_state;
using rigstep::plugin::get_serialised_size;
using rigstep::plugin::get_state;
using rigstep::plugin::kAnyPhase;
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

struct Instance3 {
  Unit unit;
  bool early_return_allowed;
};

constexpr unsigned kRunning = kInstantiated | kInitialization | kStepping | kTerminated;

fmi3Status to_fmi(Status status) noexcept { return static_cast<fmi3Status>(status); }

Unit* unit_of(fmi3Instance instance) noexcept { return &static_cast<Instance3*>(instance)->unit; }

// f(unit) where the function may be called in this phase; no exception leaves
template <class F>
fmi3Status call(fmi3Instance instance, const char* function, unsigned phases, const F& f) noexcept {
  if (instance == nullptr) return fmi3Error;
  Unit* const unit = unit_of(instance);
  if (!unit->may(function, phases)) return fmi3Error;
  try {
    return to_fmi(f(*unit));
  } catch (const std::exception& error) {
    return to_fmi(unit->fail(Status::error, error.what()));
  }
}

// of another interface type, or of what this unit does not have
fmi3Status none(fmi3Instance instance, const char* function) noexcept {
  if (instance == nullptr) return fmi3Error;
  const std::string text =
      std::string(function) + ": this unit has nothing for it: modelDescription.xml says what it has";
  unit_of(instance)->tell(Status::error, text.c_str());
  return fmi3Error;
}

fmi3Instance refuse(fmi3InstanceEnvironment environment, fmi3LogMessageCallback log, const char* text) noexcept {
  if (log != nullptr) log(environment, fmi3Error, "logStatusError", text);
  return nullptr;
}

}  // namespace

extern "C" {

fmi3String fmi3GetVersion(void) { return "3.0"; }

fmi3Status fmi3SetDebugLogging(fmi3Instance instance, fmi3Boolean logging_on, size_t, const fmi3String[]) {
  return call(instance, "fmi3SetDebugLogging", kAnyPhase,
              [=](Unit& unit) { return unit.set_logging(logging_on), Status::ok; });
}

fmi3Instance fmi3InstantiateModelExchange(fmi3String, fmi3String, fmi3String, fmi3Boolean, fmi3Boolean,
                                          fmi3InstanceEnvironment environment, fmi3LogMessageCallback log) {
  return refuse(environment, log, "this unit is one for co-simulation: call fmi3InstantiateCoSimulation");
}

fmi3Instance fmi3InstantiateScheduledExecution(fmi3String, fmi3String, fmi3String, fmi3Boolean, fmi3Boolean,
                                               fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                               fmi3ClockUpdateCallback, fmi3LockPreemptionCallback,
                                               fmi3UnlockPreemptionCallback) {
  return refuse(environment, log, "this unit is one for co-simulation: call fmi3InstantiateCoSimulation");
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resource_path, fmi3Boolean,
                                         fmi3Boolean logging_on, fmi3Boolean event_mode_used,
                                         fmi3Boolean early_return_allowed, const fmi3ValueReference[],
                                         size_t intermediate_count, fmi3InstanceEnvironment environment,
                                         fmi3LogMessageCallback log, fmi3IntermediateUpdateCallback) {
  if (name == nullptr || token == nullptr || resource_path == nullptr)
    return refuse(environment, log,
                  "fmi3InstantiateCoSimulation: name, token or resource path is NULL: give all three");
  if (event_mode_used) return refuse(environment, log, "fmi3InstantiateCoSimulation: this unit has no event mode");
  if (intermediate_count > 0)
    return refuse(environment, log, "fmi3InstantiateCoSimulation: this unit has no intermediate variables");
  try {
    const auto tell = [=](Status status, const char* category, const char* text) {
      if (log != nullptr) log(environment, to_fmi(status), category, text);
    };
    std::string folder = resource_path;
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    auto instance =
        std::make_unique<Instance3>(Instance3{Unit(folder, token, Unit::Standard::fmi3, tell), early_return_allowed});
    instance->unit.set_logging(logging_on);
    return instance.release();
  } catch (const std::exception& error) {
    return refuse(environment, log, error.what());
  }
}

void fmi3FreeInstance(fmi3Instance instance) { delete static_cast<Instance3*>(instance); }

/* --- modes */

fmi3Status fmi3EnterInitializationMode(fmi3Instance instance, fmi3Boolean, fmi3Float64, fmi3Float64 start_time,
                                       fmi3Boolean stop_time_defined, fmi3Float64 stop_time) {
  return call(instance, "fmi3EnterInitializationMode", kInstantiated,
              [=](Unit& unit) { return unit.enter_initialization(start_time, stop_time_defined, stop_time); });
}

fmi3Status fmi3ExitInitializationMode(fmi3Instance instance) {
  return call(instance, "fmi3ExitInitializationMode", kInitialization,
              [](Unit& unit) { return unit.exit_initialization(); });
}

fmi3Status fmi3Terminate(fmi3Instance instance) {
  return call(instance, "fmi3Terminate", kStepping, [](Unit& unit) { return unit.set_phase(kTerminated), Status::ok; });
}

fmi3Status fmi3Reset(fmi3Instance instance) {
  return call(instance, "fmi3Reset", kAnyPhase, [](Unit& unit) { return unit.reset(); });
}

fmi3Status fmi3EnterEventMode(fmi3Instance instance) { return none(instance, "fmi3EnterEventMode"); }
fmi3Status fmi3EnterConfigurationMode(fmi3Instance instance) { return none(instance, "fmi3EnterConfigurationMode"); }
fmi3Status fmi3ExitConfigurationMode(fmi3Instance instance) { return none(instance, "fmi3ExitConfigurationMode"); }

/* --- values */

fmi3Status fmi3GetFloat64(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                          fmi3Float64 values[], size_t count_values) {
  return call(instance, "fmi3GetFloat64", kRunning,
              [=](Unit& unit) { return unit.get_reals(references, count, values, count_values); });
}

fmi3Status fmi3SetFloat64(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                          const fmi3Float64 values[], size_t count_values) {
  return call(instance, "fmi3SetFloat64", kInstantiated | kInitialization | kStepping,
              [=](Unit& unit) { return unit.set_reals(references, count, values, count_values); });
}

fmi3Status fmi3GetInt32(fmi3Instance instance, const fmi3ValueReference references[], size_t count, fmi3Int32 values[],
                        size_t count_values) {
  return call(instance, "fmi3GetInt32", kRunning,
              [=](Unit& unit) { return unit.get_integers(references, count, values, count_values); });
}

fmi3Status fmi3GetString(fmi3Instance instance, const fmi3ValueReference references[], size_t count,
                         fmi3String values[], size_t count_values) {
  return call(instance, "fmi3GetString", kRunning,
              [=](Unit& unit) { return unit.get_texts(references, count, values, count_values); });
}

#define NO_VARIABLES(Function, Values)                                                                            \
  fmi3Status Function(fmi3Instance instance, const fmi3ValueReference[], size_t count, Values[], size_t) {        \
    return call(instance, #Function, kRunning, [=](Unit& unit) { return unit.refuse_values(#Function, count); }); \
  }
NO_VARIABLES(fmi3GetFloat32, fmi3Float32)
NO_VARIABLES(fmi3GetInt8, fmi3Int8)
NO_VARIABLES(fmi3GetUInt8, fmi3UInt8)
NO_VARIABLES(fmi3GetInt16, fmi3Int16)
NO_VARIABLES(fmi3GetUInt16, fmi3UInt16)
NO_VARIABLES(fmi3GetUInt32, fmi3UInt32)
NO_VARIABLES(fmi3GetInt64, fmi3Int64)
NO_VARIABLES(fmi3GetUInt64, fmi3UInt64)
NO_VARIABLES(fmi3GetBoolean, fmi3Boolean)
NO_VARIABLES(fmi3SetFloat32, const fmi3Float32)
NO_VARIABLES(fmi3SetInt8, const fmi3Int8)
NO_VARIABLES(fmi3SetUInt8, const fmi3UInt8)
NO_VARIABLES(fmi3SetInt16, const fmi3Int16)
NO_VARIABLES(fmi3SetUInt16, const fmi3UInt16)
NO_VARIABLES(fmi3SetInt32, const fmi3Int32)
NO_VARIABLES(fmi3SetUInt32, const fmi3UInt32)
NO_VARIABLES(fmi3SetInt64, const fmi3Int64)
NO_VARIABLES(fmi3SetUInt64, const fmi3UInt64)
NO_VARIABLES(fmi3SetBoolean, const fmi3Boolean)
NO_VARIABLES(fmi3SetString, const fmi3String)
#undef NO_VARIABLES

fmi3Status fmi3GetBinary(fmi3Instance instance, const fmi3ValueReference[], size_t count, size_t[], fmi3Binary[],
                         size_t) {
  return call(instance, "fmi3GetBinary", kRunning,
              [=](Unit& unit) { return unit.refuse_values("fmi3GetBinary", count); });
}
fmi3Status fmi3SetBinary(fmi3Instance instance, const fmi3ValueReference[], size_t count, const size_t[],
                         const fmi3Binary[], size_t) {
  return call(instance, "fmi3SetBinary", kRunning,
              [=](Unit& unit) { return unit.refuse_values("fmi3SetBinary", count); });
}
fmi3Status fmi3GetClock(fmi3Instance instance, const fmi3ValueReference[], size_t count, fmi3Clock[]) {
  return call(instance, "fmi3GetClock", kRunning,
              [=](Unit& unit) { return unit.refuse_values("fmi3GetClock", count); });
}
fmi3Status fmi3SetClock(fmi3Instance instance, const fmi3ValueReference[], size_t count, const fmi3Clock[]) {
  return call(instance, "fmi3SetClock", kRunning,
              [=](Unit& unit) { return unit.refuse_values("fmi3SetClock", count); });
}

/* --- steps */

fmi3Status fmi3DoStep(fmi3Instance instance, fmi3Float64 time, fmi3Float64 step_size, fmi3Boolean,
                      fmi3Boolean* event_handling_needed, fmi3Boolean* terminate, fmi3Boolean* early_return,
                      fmi3Float64* last_successful_time) {
  bool early = false;
  double last = time;
  if (instance != nullptr) {
    early = static_cast<Instance3*>(instance)->early_return_allowed;
    last = unit_of(instance)->time();
  }
  const fmi3Status status =
      call(instance, "fmi3DoStep", kStepping, [&](Unit& unit) { return unit.step(time, step_size, early, last); });
  if (event_handling_needed != nullptr) *event_handling_needed = false;
  if (terminate != nullptr) *terminate = false;
  if (early_return != nullptr) *early_return = early && status == fmi3OK;
  if (last_successful_time != nullptr) *last_successful_time = last;
  return status;
}

fmi3Status fmi3EnterStepMode(fmi3Instance instance) { return none(instance, "fmi3EnterStepMode"); }
fmi3Status fmi3GetOutputDerivatives(fmi3Instance instance, const fmi3ValueReference[], size_t, const fmi3Int32[],
                                    fmi3Float64[], size_t) {
  return none(instance, "fmi3GetOutputDerivatives");
}

/* --- state */

fmi3Status fmi3GetFMUState(fmi3Instance instance, fmi3FMUState* state) {
  return call(instance, "fmi3GetFMUState", kRunning,
              [=](Unit& unit) { return get_state(unit, "fmi3GetFMUState", state); });
}
fmi3Status fmi3SetFMUState(fmi3Instance instance, fmi3FMUState state) {
  return call(instance, "fmi3SetFMUState", kRunning,
              [=](Unit& unit) { return set_state(unit, "fmi3SetFMUState", state); });
}
fmi3Status fmi3FreeFMUState(fmi3Instance instance, fmi3FMUState* state) {
  return call(instance, "fmi3FreeFMUState", kRunning, [=](Unit&) { return free_state(state); });
}
fmi3Status fmi3SerializedFMUStateSize(fmi3Instance instance, fmi3FMUState state, size_t* size) {
  return call(instance, "fmi3SerializedFMUStateSize", kRunning,
              [=](Unit& unit) { return get_serialised_size(unit, "fmi3SerializedFMUStateSize", state, size); });
}
fmi3Status fmi3SerializeFMUState(fmi3Instance instance, fmi3FMUState state, fmi3Byte bytes[], size_t size) {
  return call(instance, "fmi3SerializeFMUState", kRunning,
              [=](Unit& unit) { return serialise_state(unit, "fmi3SerializeFMUState", state, bytes, size); });
}
fmi3Status fmi3DeserializeFMUState(fmi3Instance instance, const fmi3Byte bytes[], size_t size, fmi3FMUState* state) {
  return call(instance, "fmi3DeserializeFMUState", kRunning,
              [=](Unit& unit) { return deserialise_state(unit, "fmi3DeserializeFMUState", bytes, size, state); });
}

/* --- what this unit does not have */

fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance instance, fmi3ValueReference, size_t*) {
  return none(instance, "fmi3GetNumberOfVariableDependencies");
}
fmi3Status fmi3GetVariableDependencies(fmi3Instance instance, fmi3ValueReference, size_t[], fmi3ValueReference[],
                                       size_t[], fmi3DependencyKind[], size_t) {
  return none(instance, "fmi3GetVariableDependencies");
}
fmi3Status fmi3GetDirectionalDerivative(fmi3Instance instance, const fmi3ValueReference[], size_t,
                                        const fmi3ValueReference[], size_t, const fmi3Float64[], size_t, fmi3Float64[],
                                        size_t) {
  return none(instance, "fmi3GetDirectionalDerivative");
}
fmi3Status fmi3GetAdjointDerivative(fmi3Instance instance, const fmi3ValueReference[], size_t,
                                    const fmi3ValueReference[], size_t, const fmi3Float64[], size_t, fmi3Float64[],
                                    size_t) {
  return none(instance, "fmi3GetAdjointDerivative");
}
fmi3Status fmi3GetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference[], size_t, fmi3Float64[],
                                  fmi3IntervalQualifier[]) {
  return none(instance, "fmi3GetIntervalDecimal");
}
fmi3Status fmi3GetIntervalFraction(fmi3Instance instance, const fmi3ValueReference[], size_t, fmi3UInt64[],
                                   fmi3UInt64[], fmi3IntervalQualifier[]) {
  return none(instance, "fmi3GetIntervalFraction");
}
fmi3Status fmi3GetShiftDecimal(fmi3Instance instance, const fmi3ValueReference[], size_t, fmi3Float64[]) {
  return none(instance, "fmi3GetShiftDecimal");
}
fmi3Status fmi3GetShiftFraction(fmi3Instance instance, const fmi3ValueReference[], size_t, fmi3UInt64[], fmi3UInt64[]) {
  return none(instance, "fmi3GetShiftFraction");
}
fmi3Status fmi3SetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference[], size_t, const fmi3Float64[]) {
  return none(instance, "fmi3SetIntervalDecimal");
}
fmi3Status fmi3SetIntervalFraction(fmi3Instance instance, const fmi3ValueReference[], size_t, const fmi3UInt64[],
                                   const fmi3UInt64[]) {
  return none(instance, "fmi3SetIntervalFraction");
}
fmi3Status fmi3SetShiftDecimal(fmi3Instance instance, const fmi3ValueReference[], size_t, const fmi3Float64[]) {
  return none(instance, "fmi3SetShiftDecimal");
}
fmi3Status fmi3SetShiftFraction(fmi3Instance instance, const fmi3ValueReference[], size_t, const fmi3UInt64[],
                                const fmi3UInt64[]) {
  return none(instance, "fmi3SetShiftFraction");
}
fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance instance) { return none(instance, "fmi3EvaluateDiscreteStates"); }
fmi3Status fmi3UpdateDiscreteStates(fmi3Instance instance, fmi3Boolean*, fmi3Boolean*, fmi3Boolean*, fmi3Boolean*,
                                    fmi3Boolean*, fmi3Float64*) {
  return none(instance, "fmi3UpdateDiscreteStates");
}
fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance instance) { return none(instance, "fmi3EnterContinuousTimeMode"); }
fmi3Status fmi3CompletedIntegratorStep(fmi3Instance instance, fmi3Boolean, fmi3Boolean*, fmi3Boolean*) {
  return none(instance, "fmi3CompletedIntegratorStep");
}
fmi3Status fmi3SetTime(fmi3Instance instance, fmi3Float64) { return none(instance, "fmi3SetTime"); }
fmi3Status fmi3SetContinuousStates(fmi3Instance instance, const fmi3Float64[], size_t) {
  return none(instance, "fmi3SetContinuousStates");
}
fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance instance, fmi3Float64[], size_t) {
  return none(instance, "fmi3GetContinuousStateDerivatives");
}
fmi3Status fmi3GetEventIndicators(fmi3Instance instance, fmi3Float64[], size_t) {
  return none(instance, "fmi3GetEventIndicators");
}
fmi3Status fmi3GetContinuousStates(fmi3Instance instance, fmi3Float64[], size_t) {
  return none(instance, "fmi3GetContinuousStates");
}
fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance instance, fmi3Float64[], size_t) {
  return none(instance, "fmi3GetNominalsOfContinuousStates");
}
fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance instance, size_t*) {
  return none(instance, "fmi3GetNumberOfEventIndicators");
}
fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance instance, size_t*) {
  return none(instance, "fmi3GetNumberOfContinuousStates");
}
fmi3Status fmi3ActivateModelPartition(fmi3Instance instance, fmi3ValueReference, fmi3Float64) {
  return none(instance, "fmi3ActivateModelPartition");
}

}  // extern "C"
