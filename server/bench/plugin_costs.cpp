#include "server/bench/plugin_costs.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "server/fmu/export_fmu.h"
#include "server/fmu/fmu_instance.h"
#include "server/live/session.h"
#include "server/output/temporary_folder.h"
#include "server/plugin/rigstep.h"

namespace rigstep::server {

namespace {

constexpr double kPeriod = 1e-3;  // [s]

// One step of a way, again and again from where the last one ended.
using Step = std::function<void()>;

// [us] of a step, of so many
double time_of(const Step& step, int steps) {
  const auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k < steps; ++k) step();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / steps;
}

Step step_of_stepper(const config::LoadedMechanism& mechanism) {
  auto stepper = std::make_shared<index3::Stepper>(make_stepper(mechanism, {}));
  return [stepper, inputs = Inputs{.count = static_cast<int>(mechanism.mechanism.input_channels().size()), .value = {}},
          outputs = Outputs{}]() mutable { stepper->step(inputs, outputs); };
}

// librigstep.so.1, loaded as a host would.
class Library {
 public:
  Library() : handle_(::dlopen(plugin_file("librigstep.so.1").c_str(), RTLD_NOW | RTLD_LOCAL), ::dlclose) {
    if (!handle_) throw FmuError(std::string("librigstep.so.1 cannot be loaded: ") + ::dlerror());
  }

  Step step_of(const config::LoadedMechanism& mechanism) const {
    const auto create = find<decltype(rigstep_create_from_text)>("rigstep_create_from_text");
    const auto inputs = find<decltype(rigstep_set_inputs)>("rigstep_set_inputs");
    const auto outputs = find<decltype(rigstep_get_outputs)>("rigstep_get_outputs");
    const auto step = find<decltype(rigstep_step)>("rigstep_step");
    char message[512] = "";
    const std::shared_ptr<rigstep_stepper> stepper(
        create(mechanism.text.data(), mechanism.text.size(), nullptr, message, sizeof message),
        find<decltype(rigstep_destroy)>("rigstep_destroy"));
    if (!stepper) throw FmuError(message);
    return [=, in = std::vector<double>(mechanism.mechanism.input_channels().size()),
            out = std::vector<double>(mechanism.mechanism.output_channels().size())]() mutable {
      inputs(stepper.get(), in.data(), in.size());
      step(stepper.get(), 1);
      outputs(stepper.get(), out.data(), out.size());
    };
  }

 private:
  template <class Function>
  Function* find(const char* name) const {
    void* const found = ::dlsym(handle_.get(), name);
    if (found == nullptr) throw FmuError(std::string("librigstep.so.1 has no ") + name);
    return reinterpret_cast<Function*>(found);
  }

  std::unique_ptr<void, int (*)(void*)> handle_;
};

// An exported unit with an instance; it goes with its folder.
struct UnitInProcess {
  TemporaryFolder folder;
  Fmu fmu;
  std::unique_ptr<FmuBinary> binary;
  std::unique_ptr<FmuInstance> instance;
  std::vector<std::uint32_t> input_references, output_references;
  std::vector<double> inputs, outputs;
  long step = 0;

  UnitInProcess(const config::LoadedMechanism& mechanism, FmiVersion version) {
    export_fmu(mechanism, {version, {}}, folder.path() / "unit.fmu");
    fmu = read_fmu(folder.path() / "unit", extract_archive(folder.path() / "unit.fmu", folder.path() / "unit"));
    binary = std::make_unique<FmuBinary>(fmu);
    instance = instantiate(fmu, *binary, "unit");
    for (const FmuVariable& v : fmu.variables) {
      if (v.causality == "input") input_references.push_back(v.reference);
      if (v.causality == "output") output_references.push_back(v.reference);
    }
    inputs.resize(input_references.size());
    outputs.resize(output_references.size());
    instance->enter_initialization(0.0, 0.0);
    instance->exit_initialization();
  }

  void make_step() {
    instance->set_reals(input_references, inputs);
    instance->step(kPeriod * static_cast<double>(step++), kPeriod);
    instance->get_reals(output_references, outputs);
  }
};

Step step_of_unit(const config::LoadedMechanism& mechanism, FmiVersion version) {
  return [unit = std::make_shared<UnitInProcess>(mechanism, version)] { unit->make_step(); };
}

}  // namespace

std::vector<PluginCost> measure_plugin_costs(const std::vector<std::string>& files, bool quick,
                                             const std::atomic<bool>& stop,
                                             const std::function<void(double)>& progress) {
  const Library library;
  // where the memory of an instance lies changes its step by some per cent, so each way has several
  const int placements = quick ? 1 : 5, rounds = quick ? 3 : 6, steps = quick ? 100 : 1000;
  std::vector<PluginCost> costs;
  for (const std::string& file : files) {
    const config::LoadedMechanism mechanism = load_mechanism_file(file);
    PluginCost cost{mechanism.mechanism.name(), 1e300, 1e300, 1e300, 1e300};
    double* const lowest[] = {&cost.stepper, &cost.library, &cost.fmi2, &cost.fmi3};
    for (int placement = 0; placement < placements && !stop; ++placement) {
      const Step ways[] = {step_of_stepper(mechanism), library.step_of(mechanism),
                           step_of_unit(mechanism, FmiVersion::fmi2), step_of_unit(mechanism, FmiVersion::fmi3)};
      for (int round = 0; round < rounds && !stop; ++round)
        for (std::size_t way = 0; way < std::size(ways); ++way)
          *lowest[way] = std::min(*lowest[way], time_of(ways[way], steps));
    }
    if (stop) break;
    costs.push_back(cost);
    progress(static_cast<double>(costs.size()));
  }
  return costs;
}

std::string plugin_costs_text(const std::vector<PluginCost>& costs) {
  std::string text =
      fmt::format("{:<16} {:>10} {:>18} {:>18} {:>18}\n", "us a step", "stepper", "C library", "FMI 2.0", "FMI 3.0");
  for (const PluginCost& c : costs) {
    text += fmt::format("{:<16} {:>10.2f}", c.mechanism, c.stepper);
    for (const double way : {c.library, c.fmi2, c.fmi3})
      text += fmt::format(" {:>9.2f} ({:+.1f} %)", way, 100.0 * (way / c.stepper - 1.0));
    text += '\n';
  }
  return text;
}

nlohmann::json to_json(const std::vector<PluginCost>& costs) {
  nlohmann::json rows = nlohmann::json::array();
  for (const PluginCost& c : costs)
    rows.push_back({{"mechanism", c.mechanism},
                    {"stepper_us", c.stepper},
                    {"library_us", c.library},
                    {"fmi2_us", c.fmi2},
                    {"fmi3_us", c.fmi3}});
  return {{"schema", 1}, {"costs", rows}};
}

}  // namespace rigstep::server
