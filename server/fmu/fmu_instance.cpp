#include "server/fmu/fmu_instance.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "proto/printable.h"
#include "server/plugin/fmi2.h"
#include "server/plugin/fmi3.h"

namespace rigstep::server {

namespace {

constexpr const char* kFunctions2[] = {"GetTypesPlatform",
                                       "GetVersion",
                                       "SetDebugLogging",
                                       "Instantiate",
                                       "FreeInstance",
                                       "SetupExperiment",
                                       "EnterInitializationMode",
                                       "ExitInitializationMode",
                                       "Terminate",
                                       "Reset",
                                       "GetReal",
                                       "GetInteger",
                                       "GetBoolean",
                                       "GetString",
                                       "SetReal",
                                       "SetInteger",
                                       "SetBoolean",
                                       "SetString",
                                       "GetFMUstate",
                                       "SetFMUstate",
                                       "FreeFMUstate",
                                       "SerializedFMUstateSize",
                                       "SerializeFMUstate",
                                       "DeSerializeFMUstate",
                                       "GetDirectionalDerivative",
                                       "SetRealInputDerivatives",
                                       "GetRealOutputDerivatives",
                                       "DoStep",
                                       "CancelStep",
                                       "GetStatus",
                                       "GetRealStatus",
                                       "GetIntegerStatus",
                                       "GetBooleanStatus",
                                       "GetStringStatus"};

constexpr const char* kFunctions3[] = {"GetVersion",
                                       "SetDebugLogging",
                                       "InstantiateModelExchange",
                                       "InstantiateCoSimulation",
                                       "InstantiateScheduledExecution",
                                       "FreeInstance",
                                       "EnterInitializationMode",
                                       "ExitInitializationMode",
                                       "EnterEventMode",
                                       "Terminate",
                                       "Reset",
                                       "GetFloat32",
                                       "GetFloat64",
                                       "GetInt8",
                                       "GetUInt8",
                                       "GetInt16",
                                       "GetUInt16",
                                       "GetInt32",
                                       "GetUInt32",
                                       "GetInt64",
                                       "GetUInt64",
                                       "GetBoolean",
                                       "GetString",
                                       "GetBinary",
                                       "GetClock",
                                       "SetFloat32",
                                       "SetFloat64",
                                       "SetInt8",
                                       "SetUInt8",
                                       "SetInt16",
                                       "SetUInt16",
                                       "SetInt32",
                                       "SetUInt32",
                                       "SetInt64",
                                       "SetUInt64",
                                       "SetBoolean",
                                       "SetString",
                                       "SetBinary",
                                       "SetClock",
                                       "GetNumberOfVariableDependencies",
                                       "GetVariableDependencies",
                                       "GetFMUState",
                                       "SetFMUState",
                                       "FreeFMUState",
                                       "SerializedFMUStateSize",
                                       "SerializeFMUState",
                                       "DeserializeFMUState",
                                       "GetDirectionalDerivative",
                                       "GetAdjointDerivative",
                                       "EnterConfigurationMode",
                                       "ExitConfigurationMode",
                                       "GetIntervalDecimal",
                                       "GetIntervalFraction",
                                       "GetShiftDecimal",
                                       "GetShiftFraction",
                                       "SetIntervalDecimal",
                                       "SetIntervalFraction",
                                       "SetShiftDecimal",
                                       "SetShiftFraction",
                                       "EvaluateDiscreteStates",
                                       "UpdateDiscreteStates",
                                       "EnterContinuousTimeMode",
                                       "CompletedIntegratorStep",
                                       "SetTime",
                                       "SetContinuousStates",
                                       "GetContinuousStateDerivatives",
                                       "GetEventIndicators",
                                       "GetContinuousStates",
                                       "GetNominalsOfContinuousStates",
                                       "GetNumberOfEventIndicators",
                                       "GetNumberOfContinuousStates",
                                       "EnterStepMode",
                                       "GetOutputDerivatives",
                                       "DoStep",
                                       "ActivateModelPartition"};
static_assert(std::size(kFunctions2) == 34 && std::size(kFunctions3) == 75);

// A function of the binary with the type that the header gives it.
template <class Function>
Function* function_of(const FmuBinary& binary, const char* name) {
  void* const found = binary.find(name);
  if (found == nullptr)
    throw FmuError(std::string("the binary has no function ") + name + ": it is of another standard, or damaged");
  return reinterpret_cast<Function*>(found);
}
#define RIGSTEP_FUNCTION(name) decltype(::name)* const name = function_of<decltype(::name)>(binary_, #name)

// What both standards do alike under names of their own.
struct StateFunctions {
  const char *get, *size, *serialise, *free, *deserialise, *set;
};
constexpr StateFunctions kStates2{"fmi2GetFMUstate",  "fmi2SerializedFMUstateSize", "fmi2SerializeFMUstate",
                                  "fmi2FreeFMUstate", "fmi2DeSerializeFMUstate",    "fmi2SetFMUstate"};
constexpr StateFunctions kStates3{"fmi3GetFMUState",  "fmi3SerializedFMUStateSize", "fmi3SerializeFMUState",
                                  "fmi3FreeFMUState", "fmi3DeserializeFMUState",    "fmi3SetFMUState"};

// Status and Byte: the standard's own types.
template <class Status, class Byte>
class States {
 public:
  States(const FmuBinary& binary, const StateFunctions& names)
      : names_(names),
        get_(function_of<Status(void*, void**)>(binary, names.get)),
        size_(function_of<Status(void*, void*, std::size_t*)>(binary, names.size)),
        serialise_(function_of<Status(void*, void*, Byte*, std::size_t)>(binary, names.serialise)),
        free_(function_of<Status(void*, void**)>(binary, names.free)),
        deserialise_(function_of<Status(void*, const Byte*, std::size_t, void**)>(binary, names.deserialise)),
        set_(function_of<Status(void*, void*)>(binary, names.set)) {}

  // require(status, function): throws where that is no success
  template <class Require>
  std::vector<std::uint8_t> save(void* instance, const Require& require) const {
    void* state = nullptr;
    require(get_(instance, &state), names_.get);
    std::size_t size = 0;
    require(size_(instance, state, &size), names_.size);
    std::vector<std::uint8_t> bytes(size);
    require(serialise_(instance, state, reinterpret_cast<Byte*>(bytes.data()), size), names_.serialise);
    require(free_(instance, &state), names_.free);
    return bytes;
  }
  template <class Require>
  void restore(void* instance, const std::vector<std::uint8_t>& bytes, const Require& require) const {
    void* state = nullptr;
    require(deserialise_(instance, reinterpret_cast<const Byte*>(bytes.data()), bytes.size(), &state),
            names_.deserialise);
    const Status status = set_(instance, state);
    free_(instance, &state);
    require(status, names_.set);
  }

 private:
  const StateFunctions& names_;
  Status (*get_)(void*, void**);
  Status (*size_)(void*, void*, std::size_t*);
  Status (*serialise_)(void*, void*, Byte*, std::size_t);
  Status (*free_)(void*, void**);
  Status (*deserialise_)(void*, const Byte*, std::size_t, void**);
  Status (*set_)(void*, void*);
};

class Instance2 : public FmuInstance {
 public:
  Instance2(const Fmu& fmu, const FmuBinary& binary, const std::string& name) : binary_(binary) {
    const std::string location = "file://" + (fmu.folder / "resources").string();
    callbacks_ = {log, std::calloc, std::free, nullptr, this};
    if (const std::string version = fmi2GetVersion(); version != "2.0")
      throw FmuError("fmi2GetVersion says \"" + wire::printable(version) + "\", the description 2.0");
    component_ = fmi2Instantiate(name.c_str(), fmi2CoSimulation, fmu.token.c_str(), location.c_str(), &callbacks_,
                                 fmi2False, fmi2True);
    if (component_ == nullptr) require(fmi2Error, "fmi2Instantiate");
  }
  ~Instance2() override {
    if (component_ != nullptr) fmi2FreeInstance(component_);
  }

  void set_reals(const std::vector<std::uint32_t>& references, const std::vector<double>& values) override {
    if (!references.empty())
      require(fmi2SetReal(component_, references.data(), references.size(), values.data()), "fmi2SetReal");
  }
  void enter_initialization(double start_time, double stop_time) override {
    require(fmi2SetupExperiment(component_, fmi2False, 0.0, start_time, stop_time > start_time ? fmi2True : fmi2False,
                                stop_time),
            "fmi2SetupExperiment");
    require(fmi2EnterInitializationMode(component_), "fmi2EnterInitializationMode");
  }
  void exit_initialization() override { require(fmi2ExitInitializationMode(component_), "fmi2ExitInitializationMode"); }
  void get_reals(const std::vector<std::uint32_t>& references, std::vector<double>& values) override {
    if (!references.empty())
      require(fmi2GetReal(component_, references.data(), references.size(), values.data()), "fmi2GetReal");
  }
  std::string get_text(std::uint32_t reference) override {
    fmi2String text = nullptr;
    require(fmi2GetString(component_, &reference, 1, &text), "fmi2GetString");
    return text == nullptr ? "" : text;
  }
  FmuStep step(double time, double size) override {
    FmuStep step;
    step.status = static_cast<FmuStatus>(fmi2DoStep(component_, time, size, fmi2False));
    step.last_time = time + size;
    if (step.status != FmuStatus::discard) return step;
    fmi2GetRealStatus(component_, fmi2LastSuccessfulTime, &step.last_time);
    fmi2Boolean ends = fmi2False;
    fmi2GetBooleanStatus(component_, fmi2Terminated, &ends);
    step.ends = ends != fmi2False;
    return step;
  }
  std::vector<std::uint8_t> save() override {
    return states_.save(component_, [this](int status, const char* function) { require(status, function); });
  }
  void restore(const std::vector<std::uint8_t>& bytes) override {
    states_.restore(component_, bytes, [this](int status, const char* function) { require(status, function); });
  }
  void terminate() override { require(fmi2Terminate(component_), "fmi2Terminate"); }
  void reset() override { require(fmi2Reset(component_), "fmi2Reset"); }

 private:
  static void log(fmi2ComponentEnvironment environment, fmi2String, fmi2Status status, fmi2String category,
                  fmi2String message, ...) {
    std::array<char, 2048> text{};
    std::va_list arguments;
    va_start(arguments, message);
    if (message != nullptr) std::vsnprintf(text.data(), text.size(), message, arguments);
    va_end(arguments);
    static_cast<Instance2*>(environment)->add_message(status, category, text.data());
  }

  const FmuBinary& binary_;
  fmi2CallbackFunctions callbacks_{};
  fmi2Component component_ = nullptr;
  RIGSTEP_FUNCTION(fmi2GetVersion);
  RIGSTEP_FUNCTION(fmi2Instantiate);
  RIGSTEP_FUNCTION(fmi2FreeInstance);
  RIGSTEP_FUNCTION(fmi2SetupExperiment);
  RIGSTEP_FUNCTION(fmi2EnterInitializationMode);
  RIGSTEP_FUNCTION(fmi2ExitInitializationMode);
  RIGSTEP_FUNCTION(fmi2SetReal);
  RIGSTEP_FUNCTION(fmi2GetReal);
  RIGSTEP_FUNCTION(fmi2GetString);
  RIGSTEP_FUNCTION(fmi2DoStep);
  RIGSTEP_FUNCTION(fmi2GetRealStatus);
  RIGSTEP_FUNCTION(fmi2GetBooleanStatus);
  const States<fmi2Status, fmi2Byte> states_{binary_, kStates2};
  RIGSTEP_FUNCTION(fmi2Terminate);
  RIGSTEP_FUNCTION(fmi2Reset);
};

class Instance3 : public FmuInstance {
 public:
  Instance3(const Fmu& fmu, const FmuBinary& binary, const std::string& name) : binary_(binary) {
    if (const std::string version = fmi3GetVersion(); version.rfind("3.0", 0) != 0)
      throw FmuError("fmi3GetVersion says \"" + wire::printable(version) + "\", the description 3.0");
    const std::string path = (fmu.folder / "resources").string() + "/";
    instance_ = fmi3InstantiateCoSimulation(name.c_str(), fmu.token.c_str(), path.c_str(), false, true, false, false,
                                            nullptr, 0, this, log, nullptr);
    if (instance_ == nullptr) require(fmi3Error, "fmi3InstantiateCoSimulation");
  }
  ~Instance3() override {
    if (instance_ != nullptr) fmi3FreeInstance(instance_);
  }

  void set_reals(const std::vector<std::uint32_t>& references, const std::vector<double>& values) override {
    if (!references.empty())
      require(fmi3SetFloat64(instance_, references.data(), references.size(), values.data(), values.size()),
              "fmi3SetFloat64");
  }
  void enter_initialization(double start_time, double stop_time) override {
    require(fmi3EnterInitializationMode(instance_, false, 0.0, start_time, stop_time > start_time, stop_time),
            "fmi3EnterInitializationMode");
  }
  void exit_initialization() override { require(fmi3ExitInitializationMode(instance_), "fmi3ExitInitializationMode"); }
  void get_reals(const std::vector<std::uint32_t>& references, std::vector<double>& values) override {
    if (!references.empty())
      require(fmi3GetFloat64(instance_, references.data(), references.size(), values.data(), values.size()),
              "fmi3GetFloat64");
  }
  std::string get_text(std::uint32_t reference) override {
    fmi3String text = nullptr;
    require(fmi3GetString(instance_, &reference, 1, &text, 1), "fmi3GetString");
    return text == nullptr ? "" : text;
  }
  FmuStep step(double time, double size) override {
    FmuStep step;
    bool event = false, early = false;
    step.last_time = time;
    step.status =
        static_cast<FmuStatus>(fmi3DoStep(instance_, time, size, false, &event, &step.ends, &early, &step.last_time));
    return step;
  }
  std::vector<std::uint8_t> save() override {
    return states_.save(instance_, [this](int status, const char* function) { require(status, function); });
  }
  void restore(const std::vector<std::uint8_t>& bytes) override {
    states_.restore(instance_, bytes, [this](int status, const char* function) { require(status, function); });
  }
  void terminate() override { require(fmi3Terminate(instance_), "fmi3Terminate"); }
  void reset() override { require(fmi3Reset(instance_), "fmi3Reset"); }

 private:
  static void log(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category, fmi3String message) {
    static_cast<Instance3*>(environment)->add_message(status, category, message);
  }

  const FmuBinary& binary_;
  fmi3Instance instance_ = nullptr;
  RIGSTEP_FUNCTION(fmi3GetVersion);
  RIGSTEP_FUNCTION(fmi3InstantiateCoSimulation);
  RIGSTEP_FUNCTION(fmi3FreeInstance);
  RIGSTEP_FUNCTION(fmi3EnterInitializationMode);
  RIGSTEP_FUNCTION(fmi3ExitInitializationMode);
  RIGSTEP_FUNCTION(fmi3SetFloat64);
  RIGSTEP_FUNCTION(fmi3GetFloat64);
  RIGSTEP_FUNCTION(fmi3GetString);
  RIGSTEP_FUNCTION(fmi3DoStep);
  const States<fmi3Status, fmi3Byte> states_{binary_, kStates3};
  RIGSTEP_FUNCTION(fmi3Terminate);
  RIGSTEP_FUNCTION(fmi3Reset);
};

#undef RIGSTEP_FUNCTION

}  // namespace

FmuBinary::FmuBinary(const Fmu& fmu) {
  const std::string path = fmu.binary().string();
  handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr)
    throw FmuError("the binary cannot be loaded (" + wire::printable_line(::dlerror()) +
                   "): get the unit for this machine");
}

FmuBinary::~FmuBinary() { ::dlclose(handle_); }

void* FmuBinary::find(const char* function) const { return ::dlsym(handle_, function); }

std::vector<std::string> FmuBinary::missing(FmiVersion version) const {
  std::vector<std::string> missing;
  const bool is_2 = version == FmiVersion::fmi2;
  const auto all = is_2 ? std::span<const char* const>(kFunctions2) : std::span<const char* const>(kFunctions3);
  for (const char* name : all)
    if (const std::string function = (is_2 ? "fmi2" : "fmi3") + std::string(name); find(function.c_str()) == nullptr)
      missing.push_back(function);
  return missing;
}

const char* to_string(FmuStatus status) {
  constexpr const char* kNames[] = {"OK", "Warning", "Discard", "Error", "Fatal"};
  const auto index = static_cast<std::size_t>(status);
  return index < std::size(kNames) ? kNames[index] : "a status that there is not";
}

void FmuInstance::add_message(int status, const char* category, const char* text) {
  constexpr std::size_t kMostMessages = 1000;
  if (messages_.size() >= kMostMessages) return;
  messages_.push_back(fmt::format("{} [{}] {}", to_string(static_cast<FmuStatus>(status)),
                                  wire::printable(category == nullptr ? "" : category),
                                  wire::printable_line(text == nullptr ? "" : text)));
}

void FmuInstance::require(int status, const char* function) {
  if (status == static_cast<int>(FmuStatus::ok) || status == static_cast<int>(FmuStatus::warning)) return;
  std::string text = fmt::format("{} returned {}", function, to_string(static_cast<FmuStatus>(status)));
  for (const std::string& message : take_messages()) text += "; the unit says: " + message;
  throw FmuError(text);
}

std::unique_ptr<FmuInstance> instantiate(const Fmu& fmu, const FmuBinary& binary, const std::string& name) {
  if (fmu.version == FmiVersion::fmi2) return std::make_unique<Instance2>(fmu, binary, name);
  return std::make_unique<Instance3>(fmu, binary, name);
}

}  // namespace rigstep::server
