// Any bytes as a mechanism file and as a rig file: an error with words, or settings within their limits and a mechanism
// that survives being written, stepped and read again. libFuzzer entry.
#include <cstdlib>
#include <string>

#include "core/index3/stepper.h"
#include "proto/load_mechanism.h"
#include "proto/load_rig.h"
#include "proto/write_mechanism.h"

namespace {

using namespace rigstep;

constexpr std::size_t kLargestStepped = 12;  // bodies and joints; larger ones only take longer

void require(bool condition) {
  if (!condition) std::abort();
}

void try_steps(const Mechanism& mechanism) {
  if (mechanism.bodies().size() > kLargestStepped || mechanism.joints().size() > kLargestStepped) return;
  try {
    index3::Stepper stepper(mechanism, {});
    Inputs inputs;
    inputs.count = static_cast<int>(mechanism.input_channels().size());
    for (int k = 0; k < 3; ++k) {
      const std::uint64_t before = stepper.state().step;
      const StepReport report = stepper.step(inputs);
      require(stepper.state().step == before + (failed(report.status) ? 0 : 1));
    }
  } catch (const MechanismError&) {
  }
}

void as_mechanism(const std::string& text) {
  try {
    const config::LoadedMechanism loaded = config::parse_mechanism(text, "fuzz.textproto");
    require(loaded.joint_line.size() == loaded.mechanism.joints().size());
    require(loaded.coupling_line.size() == loaded.mechanism.couplings().size());
    require(loaded.driver_line.size() == loaded.mechanism.drivers().size());
    require(loaded.mechanism.input_channels().size() <= static_cast<std::size_t>(kMaxChannels));
    require(loaded.mechanism.output_channels().size() <= static_cast<std::size_t>(kMaxChannels));
    require(config::parse_mechanism(text, "elsewhere").mechanism.id() == loaded.mechanism.id());
    config::parse_mechanism(config::with_start(loaded, loaded.mechanism.bodies()).text, "fuzz.textproto");
    try_steps(loaded.mechanism);
  } catch (const config::ConfigError&) {
  }
}

void as_rig(const std::string& text) {
  try {
    const config::RigConfig rig = config::parse_rig(text, "rigs/fuzz.textproto");
    require(rig.period_ns >= 100'000 && rig.period_ns <= 1'000'000'000);
    require(rig.iterations >= 1 && rig.iterations <= 50 && rig.projection_passes >= 0 && rig.projection_passes <= 50);
    require(rig.priority >= 1 && rig.priority <= 99 && rig.max_input_age_steps >= 1);
    require(rig.relative_compliance < 1e-2);
    require(rig.ramp_steps >= 1 && (rig.fault_after_steps == 0 || rig.fault_after_steps >= rig.max_input_age_steps));
    require(rig.black_box_least_interval_s >= 0.0 && rig.most_black_boxes >= 1);
  } catch (const config::ConfigError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  as_mechanism(text);
  as_rig(text);
  return 0;
}
