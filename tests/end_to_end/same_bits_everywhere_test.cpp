// The same state after each step, wherever a mechanism is stepped: stepper, C library, units of both standards, the
// service in lockstep and under a deadline, and replays, with the same inputs and the same changes of a parameter.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "core/index3/stepper.h"
#include "proto/recording_reader.h"
#include "rt/clock.h"
#include "rt/thread_setup.h"
#include "server/live/live_run.h"
#include "server/live/recorder.h"
#include "server/live/replay.h"
#include "server/plugin/rigstep.h"
#include "server/rig/rig_client.h"
#include "tests/support/units.h"

using namespace rigstep;
using namespace rigstep::server;
using namespace std::chrono_literals;

namespace {

using Hashes = std::vector<std::uint64_t>;

// A mechanism, a parameter of it that may change in the loop, and two values.
struct Case {
  const char *file, *parameter, *declaration;
  double first, second;
};
constexpr Case kCases[] = {{"mechanisms/four_bar.textproto", "g",
                            "parameter { name: \"g\" of: \"gravity.y\" minimum: -20 maximum: 0 }", -9.0, -5.0},
                           {"mechanisms/stewart.textproto", "g",
                            "parameter { name: \"g\" of: \"gravity.z\" minimum: -20 maximum: 0 }", -9.0, -5.0},
                           {"mechanisms/full_car.textproto", "front_springs", "", 60e3, 45e3},
                           {"templates/cart_pole/mechanism.textproto", "rail_friction", "", 8.0, 2.0}};

// What every one of them is given.
struct Script {
  std::string parameter;
  std::vector<std::vector<double>> inputs;  // of each step
  std::map<std::size_t, double> changes;    // of the parameter, before the step
  std::size_t steps() const { return inputs.size(); }
};

Script script_of(const Case& c, const Mechanism& mechanism, long steps) {
  Script script{c.parameter, {}, {}};
  for (long k = 0; k < steps; ++k) {
    std::vector<double>& row = script.inputs.emplace_back();
    for (std::size_t i = 0; i < mechanism.input_channels().size(); ++i)
      row.push_back(0.1 * std::sin(0.01 * static_cast<double>(k) + static_cast<double>(i)));
    if (k > 0 && k % 100 == 0) script.changes[static_cast<std::size_t>(k)] = k / 100 % 2 == 0 ? c.first : c.second;
  }
  return script;
}

// What a run was given, by its recording.
Script script_of(const std::string& recording, const std::string& parameter, int index, Hashes& hashes) {
  Script script{parameter, {}, {}};
  wire::RecordingReader reader(recording);
  for (wire::RecordedStep step; reader.next(step);) {
    const StepRecord record = from_message(step);
    if (record.transition == Transition::parameters)
      script.changes[script.steps()] = record.parameters.value[static_cast<std::size_t>(index)];
    if (!record.is_step()) continue;
    script.inputs.emplace_back(record.inputs.value.begin(), record.inputs.value.begin() + record.inputs.count);
    hashes.push_back(record.state_hash);
  }
  return script;
}

Hashes hashes_of_stepper(const config::LoadedMechanism& mechanism, const Script& script) {
  rt::set_floating_point_mode();
  index3::Stepper stepper(mechanism.mechanism, {.dt_ns = 1'000'000});
  const int parameter = mechanism.mechanism.parameter(script.parameter);
  Inputs inputs{.count = static_cast<int>(mechanism.mechanism.input_channels().size()), .value = {}};
  Outputs outputs;
  Hashes hashes;
  for (std::size_t k = 0; k < script.steps(); ++k) {
    std::copy(script.inputs[k].begin(), script.inputs[k].end(), inputs.value.begin());
    if (const auto change = script.changes.find(k); change != script.changes.end())
      REQUIRE(stepper.set_parameter(parameter, change->second));
    REQUIRE(!failed(stepper.step(inputs, outputs).status));
    hashes.push_back(stepper.state().hash());
  }
  return hashes;
}

Hashes hashes_of_library(const config::LoadedMechanism& mechanism, const Script& script) {
  char message[512];
  rigstep_stepper* stepper =
      rigstep_create_from_text(mechanism.text.data(), mechanism.text.size(), nullptr, message, sizeof message);
  REQUIRE_MESSAGE(stepper != nullptr, message);
  const auto parameter = static_cast<std::size_t>(rigstep_find(stepper, RIGSTEP_PARAMETER, script.parameter.c_str()));
  rigstep_report report{};
  report.size = sizeof report;
  Hashes hashes;
  for (std::size_t k = 0; k < script.steps(); ++k) {
    std::copy(script.inputs[k].begin(), script.inputs[k].end(), rigstep_inputs(stepper));
    if (const auto change = script.changes.find(k); change != script.changes.end())
      REQUIRE(rigstep_set_parameter(stepper, parameter, change->second) == RIGSTEP_OK);
    REQUIRE(!RIGSTEP_FAILED(rigstep_step(stepper, 1)));
    rigstep_get_report(stepper, &report);
    hashes.push_back(report.state_hash);
  }
  rigstep_destroy(stepper);
  return hashes;
}

Hashes hashes_of_unit(const config::LoadedMechanism& mechanism, const Script& script, FmiVersion version) {
  const test::LoadedUnit unit(mechanism, version);
  CHECK(unit.fmu.violations.empty());
  const auto instance = unit.started();
  std::vector<std::uint32_t> inputs;
  for (const Channel& channel : mechanism.mechanism.input_channels()) inputs.push_back(unit.reference(channel.name));
  const std::uint32_t hash = unit.reference("rigstep.state_hash"), parameter = unit.reference(script.parameter);
  Hashes hashes;
  for (std::size_t k = 0; k < script.steps(); ++k) {
    instance->set_reals(inputs, script.inputs[k]);
    if (const auto change = script.changes.find(k); change != script.changes.end())
      instance->set_reals({parameter}, {change->second});
    REQUIRE(instance->step(0.001 * static_cast<double>(k), 0.001).status <= FmuStatus::warning);
    hashes.push_back(std::stoull(instance->get_text(hash), nullptr, 16));
  }
  return hashes;
}

Hashes hashes_of_replay(const std::string& recording) {
  Hashes hashes;
  const ReplayReport report = replay(recording, {}, [&hashes](const ReplayedStep& step) {
    hashes.push_back(step.state == nullptr ? 0 : step.state->hash());
    return true;
  });
  CHECK(report.verdict == ReplayReport::Verdict::bit_exact);
  return hashes;
}

// A service of the mechanism, recorded.
struct Service {
  TemporaryFolder folder;
  std::string recording = (folder.path() / "run.mcap").string();
  LiveRun live;
  Service(const config::LoadedMechanism& mechanism, const std::string& rig_lines)
      : live((std::ofstream(folder.path() / "mechanism.textproto") << mechanism.text,
              parsed(rig_lines, (folder.path() / "rig.textproto").string(), recording))) {
    live.start();
  }
  static config::RigConfig parsed(const std::string& lines, const std::string& path, const std::string& recording) {
    config::RigConfig rig = config::parse_rig("mechanism: \"mechanism.textproto\"\n" + lines, path);
    rig.port = 0;
    rig.recording_path = recording;
    return rig;
  }
};

// One in lockstep, to the state with this number; lost datagrams are asked for again.
void step_in_lockstep(RigClient& rig, const std::vector<double>& inputs, std::uint64_t step) {
  bool answered = false;
  for (int tries = 0; tries < 50 && !answered; ++tries) {
    REQUIRE(rig.send(inputs));
    const std::int64_t until = rt::MonotonicClock::now_ns() + 100'000'000;
    while (!answered && rt::MonotonicClock::now_ns() < until) {
      rig.wait_until(until);
      for (auto arrival = rig.receive(); arrival != RigClient::Arrival::nothing; arrival = rig.receive())
        answered = answered || (arrival == RigClient::Arrival::state && rig.state().step == step);
    }
  }
  REQUIRE(answered);
}

// Changes the parameter between the steps.
void drive_in_lockstep(RigClient& rig, const Script& script) {
  for (std::size_t k = 0; k < script.steps(); ++k) {
    if (const auto change = script.changes.find(k); change != script.changes.end())
      REQUIRE(rig.set_parameters({{script.parameter, change->second}}, 0, 5.0) == k + 1);
    step_in_lockstep(rig, script.inputs[k], k + 1);
  }
}

}  // namespace

TEST_CASE("stepper, C library, FMI 2.0, FMI 3.0, lockstep and replay have the same state after each step") {
  const long steps = test::count_of(400, 100'000);
  for (const Case& c : kCases) {
    CAPTURE(c.file);
    const config::LoadedMechanism mechanism = test::unit_mechanism(c.file, c.declaration);
    const Script script = script_of(c, mechanism.mechanism, steps);
    const Hashes expected = hashes_of_stepper(mechanism, script);
    CHECK(hashes_of_library(mechanism, script) == expected);
    CHECK(hashes_of_unit(mechanism, script, FmiVersion::fmi2) == expected);
    CHECK(hashes_of_unit(mechanism, script, FmiVersion::fmi3) == expected);
    Service service(mechanism, "realtime { pace: RIG }");
    {
      RigClient rig({.port = service.live.port()});
      drive_in_lockstep(rig, script);
    }
    CHECK(service.live.stop("done").lost_records == 0);
    Hashes lockstep;
    script_of(service.recording, c.parameter, mechanism.mechanism.parameter(c.parameter), lockstep);
    CHECK(lockstep == expected);
    CHECK(hashes_of_replay(service.recording) == expected);
  }
}

TEST_CASE("a rig takes a snapshot, sets the run back to it, and gets the same states again") {
  const config::LoadedMechanism mechanism = test::unit_mechanism(kCases[0].file);
  const Script script = script_of(kCases[0], mechanism.mechanism, 40);
  Service service(mechanism, "realtime { pace: RIG }");
  RigClient rig({.port = service.live.port()});
  std::uint64_t step = 0;
  const auto outputs_after_script = [&] {
    for (const std::vector<double>& inputs : script.inputs) step_in_lockstep(rig, inputs, ++step);
    return std::vector<double>(rig.state().output.begin(), rig.state().output.end());
  };
  outputs_after_script();
  const std::string snapshot = rig.snapshot(5.0);
  const std::vector<double> first = outputs_after_script();
  CHECK(outputs_after_script() != first);
  REQUIRE(rig.command(RigCommand::hold, 0, 5.0));
  REQUIRE(rig.reset_to(snapshot, 5.0));
  REQUIRE(rig.command(RigCommand::run, 0, 5.0));
  CHECK(outputs_after_script() == first);
  CHECK_THROWS_AS(rig.reset_to("no snapshot", 5.0), std::runtime_error);
  CHECK(service.live.stop("done").lost_records == 0);
}

TEST_CASE("what a service under a deadline was given has the same states elsewhere") {
  const auto duration = std::chrono::milliseconds(test::count_of(300, 20'000));
  for (const Case& c : kCases) {
    CAPTURE(c.file);
    const config::LoadedMechanism mechanism = test::unit_mechanism(c.file, c.declaration);
    Service service(mechanism,
                    "stale_input { rule: HOLD fault_after_steps: 0 } lifecycle { start: AT_ONCE }\n"
                    "realtime { deadline_misses_until_fault { consecutive: 0 per_second: 0 } }");
    {
      RigClient rig({.port = service.live.port()});
      const auto end = std::chrono::steady_clock::now() + duration;
      std::vector<double> inputs(mechanism.mechanism.input_channels().size());
      for (int k = 0; std::chrono::steady_clock::now() < end; ++k) {
        for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = 0.1 * std::sin(0.05 * k + static_cast<double>(i));
        rig.send(inputs);
        if (k % 20 == 10) CHECK(rig.set_parameters({{c.parameter, k % 40 == 10 ? c.first : c.second}}, 5, 5.0) > 0);
        std::this_thread::sleep_for(5ms);
      }
    }
    CHECK(service.live.stop("done").lost_records == 0);
    Hashes live;
    const Script script = script_of(service.recording, c.parameter, mechanism.mechanism.parameter(c.parameter), live);
    CHECK(script.steps() > 100);
    CHECK(script.changes.size() > 5);
    CHECK(hashes_of_stepper(mechanism, script) == live);
    CHECK(hashes_of_library(mechanism, script) == live);
    CHECK(hashes_of_unit(mechanism, script, FmiVersion::fmi2) == live);
    CHECK(hashes_of_unit(mechanism, script, FmiVersion::fmi3) == live);
    CHECK(hashes_of_replay(service.recording) == live);
  }
}

TEST_CASE("plugin: eight steppers on two threads have the bits of one, whatever the host's floating-point mode") {
  const config::LoadedMechanism mechanism = test::unit_mechanism(kCases[0].file, kCases[0].declaration);
  const Script script = script_of(kCases[0], mechanism.mechanism, 300);
  const Hashes expected = hashes_of_stepper(mechanism, script);
  std::vector<Hashes> found(8);
  const auto run = [&](std::size_t first) {
    for (std::size_t i = first; i < found.size(); i += 2) found[i] = hashes_of_library(mechanism, script);
  };
  std::thread other(run, 1);  // with denormal numbers, as threads begin
  run(0);
  other.join();
  for (const auto& hashes : found) CHECK(hashes == expected);
}
