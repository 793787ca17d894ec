#include "server/live/session.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/sensors.h"
#include "core/index3/start/initial_state.h"
#include "server/live/commission_verdict.h"

namespace rigstep::server {

const char* product_version() { return RIGSTEP_VERSION; }

std::string build_fingerprint() {
  return fmt::format("rigstep {}, {}, Eigen {}.{}.{}", product_version(), RIGSTEP_BUILD_FINGERPRINT,
                     EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
}

std::string cpu_fingerprint() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, model = "unknown processor";
  while (std::getline(file, line))
    if (line.rfind("model name", 0) == 0 || line.rfind("CPU part", 0) == 0) {
      model = line.substr(line.find(':') + 2);
      break;
    }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) model += ", AVX2";
  if (__builtin_cpu_supports("fma")) model += ", FMA";
  if (__builtin_cpu_supports("avx512f")) model += ", AVX-512";
#endif
  return model;
}

config::LoadedMechanism load_mechanism_file(const std::string& path) {
  try {
    return config::load_mechanism(path);
  } catch (const config::ConfigError& error) {
    throw MechanismFileError(error.what());
  }
}

namespace {

config::LoadedMechanism with_settings(config::LoadedMechanism loaded,
                                      const std::vector<config::ParameterSetting>& settings) {
  try {
    config::set_parameters(loaded, settings);
    return loaded;
  } catch (const MechanismError& error) {
    throw MechanismFileError(loaded.path + ": " + error.what());
  }
}

}  // namespace

config::LoadedMechanism load_mechanism_file(const std::string& path,
                                            const std::vector<config::ParameterSetting>& settings) {
  return with_settings(load_mechanism_file(path), settings);
}

config::LoadedMechanism mechanism_of(const wire::RecordingHeader& header) {
  std::vector<config::ParameterSetting> settings;
  for (const wire::RecordedParameter& each : header.parameter()) settings.push_back({each.name(), each.value()});
  return with_settings(parse_mechanism_text(header.mechanism_text(), header.mechanism_file()), settings);
}

config::LoadedMechanism load_mechanism_of(const config::RigConfig& rig) {
  if (std::error_code error; !std::filesystem::exists(rig.mechanism_path, error))
    throw MechanismFileError(config::place_in(rig, "mechanism", 0) + ": " + rig.mechanism_path +
                             " is not there: name the mechanism file by a path from this file's folder");
  config::LoadedMechanism loaded = load_mechanism_file(rig.mechanism_path);
  config::set_start_parameters(loaded, rig);
  return loaded;
}

config::LoadedMechanism parse_mechanism_text(const std::string& text, const std::string& path) {
  try {
    return config::parse_mechanism(text, path);
  } catch (const config::ConfigError& error) {
    throw MechanismFileError(error.what());
  }
}

namespace {

void require_finite_outputs(const config::LoadedMechanism& mechanism, const index3::Stepper& stepper) {
  Outputs outputs;
  stepper.read_outputs(StepReport{}, outputs);
  if (const int c = first_not_finite(outputs); c >= 0)
    throw MechanismFileError(mechanism.path + ": the output channel " + mechanism.mechanism.output_channels()[c].name +
                             " is not finite at the start: give masses and start velocities that it can be formed of");
}

}  // namespace

index3::Stepper make_stepper(const config::LoadedMechanism& mechanism, const index3::Settings& settings) {
  try {
    index3::Stepper stepper(mechanism.mechanism, settings);
    require_finite_outputs(mechanism, stepper);
    return stepper;
  } catch (const index3::StartError& error) {
    throw MechanismFileError(mechanism.at_joint(error.joint, error).what());
  }
}

std::string describe_fault(const Mechanism& mechanism, StepStatus status, int body, int joint, int output) {
  const auto in = [](int index, const auto& elements) {
    return index >= 0 && index < static_cast<int>(elements.size());
  };
  if (in(output, mechanism.output_channels()))
    return std::string(to_string(status)) + ": " + mechanism.output_channels()[output].name;
  if (in(joint, mechanism.joints()))
    return std::string(to_string(status)) + " at joint " + mechanism.joints()[joint].name;
  if (joint >= 0 && joint < mechanism.constraints())
    return std::string(to_string(status)) + " at " + mechanism.constraint_name(joint);
  if (in(body, mechanism.bodies())) return std::string(to_string(status)) + " at body " + mechanism.bodies()[body].name;
  return to_string(status);
}

const char* describe_stop(std::uint32_t flags) {
  if ((flags & kMissedTooOften) != 0) return "too many deadlines were missed (realtime.deadline_misses_until_fault)";
  if ((flags & kControlLost) != 0) return "the rig in control has left or fallen silent (lifecycle.control_lost)";
  return "no inputs for too long (stale rule)";
}

std::string why_stopped(const Mechanism& mechanism, const StepRecord& record) {
  if (!failed(record.status)) return describe_stop(record.flags);
  return describe_fault(mechanism, record.status, record.failed_body, record.failed_joint, record.failed_output);
}

index3::Settings settings_of(const config::RigConfig& rig) {
  index3::Settings settings;
  settings.dt_ns = rig.period_ns;
  settings.iterations = rig.iterations;
  settings.threads = rig.threads;
  settings.relative_compliance = rig.relative_compliance;
  settings.projection_passes = rig.projection_passes;
  settings.order_of_accuracy = rig.order;
  return settings;
}

wire::RecordingHeader recording_header(const config::LoadedMechanism& mechanism, const config::RigConfig* rig,
                                       const index3::Stepper& stepper, const RecordedOutputs& outputs,
                                       const std::vector<std::string>& realtime) {
  const index3::Settings& settings = stepper.settings();
  const index3::State& start = stepper.state();
  wire::RecordingHeader header;
  header.set_format_version(wire::kRecordingFormat);
  header.set_product_version(product_version());
  header.set_compiler(build_fingerprint());
  header.set_cpu(cpu_fingerprint());
  header.set_mechanism_file(mechanism.path);
  header.set_mechanism_text(mechanism.text);
  if (rig != nullptr) {
    header.set_rig_file(rig->path);
    header.set_rig_text(rig->text);
    header.set_commissioning(read_commission_verdict(*rig, mechanism.mechanism).json);
  }
  header.set_mechanism_id(mechanism.mechanism.id());
  header.set_dt_ns(static_cast<std::uint64_t>(settings.dt_ns));
  header.set_iterations(static_cast<std::uint32_t>(settings.iterations));
  header.set_relative_compliance(settings.relative_compliance);
  header.set_projection_passes(static_cast<std::uint32_t>(settings.projection_passes));
  header.set_order(static_cast<std::uint32_t>(settings.order_of_accuracy));
  header.set_start_hash(start.hash());
  header.set_start_step(start.step);
  header.mutable_start_state()->Resize(static_cast<int>(start.flat_size()), 0.0);
  start.flatten({header.mutable_start_state()->mutable_data(), start.flat_size()});
  for (const Channel& channel : mechanism.mechanism.input_channels())
    header.add_input_channel(channel.name + " [" + channel.unit + "]");
  header.set_outputs_every(outputs.every);
  for (const int k : outputs.channel) {
    const Channel& channel = mechanism.mechanism.output_channels()[k];
    header.add_output_channel(channel.name + " [" + channel.unit + "]");
  }
  for (const Body& body : mechanism.mechanism.bodies()) header.add_body(body.name);
  for (const Parameter& parameter : mechanism.mechanism.parameters()) {
    wire::RecordedParameter& recorded = *header.add_parameter();
    recorded.set_name(parameter.name);
    recorded.set_unit(parameter.unit);
    recorded.set_value(parameter.value);
  }
  const std::vector<Parameter>&started = mechanism.mechanism.parameters(), &acting = stepper.mechanism().parameters();
  const auto has_value = [](const Parameter& a, const Parameter& b) { return a.value == b.value; };
  if (!std::equal(started.begin(), started.end(), acting.begin(), acting.end(), has_value))
    for (const Parameter& parameter : acting) header.add_start_parameter(parameter.value);
  for (const std::string& line : realtime) header.add_realtime(line);
  return header;
}

void set_start(wire::RecordingHeader& header, const std::string& snapshot, std::uint64_t step) {
  header.set_from_snapshot(snapshot);
  if (step != header.start_step()) header.set_start_state_step(header.start_step());
  header.set_start_step(step);
}

index3::Settings settings_of(const wire::RecordingHeader& header) {
  index3::Settings settings;
  settings.dt_ns = static_cast<std::int64_t>(header.dt_ns());
  settings.iterations = static_cast<int>(header.iterations());
  settings.relative_compliance = header.relative_compliance();
  settings.projection_passes = static_cast<int>(header.projection_passes());
  settings.order_of_accuracy = header.order() == 4 ? 4 : 2;
  return settings;
}

// yesterday's run is not today's to overwrite
std::string fresh_recording_path(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path requested(path);
  if (!fs::is_regular_file(requested)) return path;
  const std::string stem =
      fmt::format("{}.{:%Y%m%dT%H%M%S}", requested.stem().string(), fmt::gmtime(std::time(nullptr)));
  fs::path fresh = requested.parent_path() / (stem + requested.extension().string());
  for (int n = 2; fs::exists(fresh); ++n)
    fresh = requested.parent_path() / fmt::format("{}-{}{}", stem, n, requested.extension().string());
  return fresh.string();
}

}  // namespace rigstep::server
