// Parameters in the cycle: when they act, ramps, what is recorded, replayed and taken back by a reset.
#include <doctest/doctest.h>

#include <vector>

#include "proto/load_mechanism.h"
#include "rt/cycle.h"
#include "tests/support/tuned_mechanisms.h"

namespace rigstep::rt {
namespace {

struct TunedRun {
  explicit TunedRun(const CycleSettings& settings = {.start = StartMode::at_once})
      : mechanism(config::parse_mechanism(test::tuned_chain_text(), "tuned").mechanism),
        stepper(mechanism, index3::Settings{}),
        steps(sizeof(StepRecord), 1000),
        states(full_state_bytes(stepper.state(), mechanism.parameters().size()), 16),
        cycle(stepper, settings, {.steps = &steps, .states = &states}) {}

  void ask(const std::vector<std::pair<const char*, double>>& values, std::uint32_t ramp_steps = 0) {
    ParameterRequest request{.number = ++number, .ramp_steps = ramp_steps, .count = 0, .value = {}};
    for (const auto& [name, value] : values)
      request.value[static_cast<std::size_t>(request.count++)] = {mechanism.parameter(name), value};
    cycle.parameters().request(request);
  }
  void ticks(int count) {
    for (int k = 0; k < count; ++k) REQUIRE((cycle.tick({.log_time_ns = ++time_ns}).flags & kFaulted) == 0);
  }
  void command(Transition transition) {
    cycle.request({.transition = transition, .after = cycle.lifecycle().transitions});
  }
  double value(const char* name) const { return stepper.parameter(mechanism.parameter(name)); }
  std::vector<StepRecord> drain() {
    std::vector<StepRecord> records;
    for (StepRecord record; try_pop_step(steps, record);) records.push_back(record);
    return records;
  }

  Mechanism mechanism;
  index3::Stepper stepper;
  Ring steps, states;
  Cycle cycle;
  std::uint64_t number = 0;
  std::int64_t time_ns = 0;
};

std::vector<StepRecord> changes_in(const std::vector<StepRecord>& records) {
  std::vector<StepRecord> changes;
  for (const StepRecord& record : records)
    if (record.transition == Transition::parameters) changes.push_back(record);
  return changes;
}

}  // namespace

TEST_CASE("all parameters of a request act from the same step on, which is told and recorded") {
  TunedRun run;
  run.ticks(5);
  run.ask({{"tip", 0.3}, {"stiffness", 100.0}});
  CHECK(run.value("tip") == 0.2);
  run.ticks(1);
  CHECK(run.value("tip") == 0.3);
  CHECK(run.value("stiffness") == 100.0);
  CHECK(run.cycle.parameters().applied().number == 1);
  CHECK(run.cycle.parameters().applied().acts_from == 6);
  CHECK(run.cycle.parameters().value(run.mechanism.parameter("tip")) == 0.3);
  const auto changes = changes_in(run.drain());
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].step == 5);
  CHECK(changes[0].parameters.count == static_cast<int>(run.mechanism.parameters().size()));
  CHECK(changes[0].parameters.value[static_cast<std::size_t>(run.mechanism.parameter("tip"))] == 0.3);
  CHECK(changes[0].parameters.value[static_cast<std::size_t>(run.mechanism.parameter("torque"))] == 0.1);
}

TEST_CASE("a ramp goes in equal parts, waits while time stands, ends on the value, and a new request replaces it") {
  TunedRun run;
  run.ask({{"stiffness", 140.0}}, 10);
  run.ticks(4);
  CHECK(run.value("stiffness") == 80.0);
  run.command(Transition::hold);
  run.ticks(20);
  CHECK(run.value("stiffness") == 80.0);
  run.command(Transition::run);
  run.ticks(6);
  CHECK(run.value("stiffness") == 140.0);
  run.ticks(10);
  CHECK(changes_in(run.drain()).size() == 10);
  run.ask({{"stiffness", 0.0}}, 1000);
  run.ticks(3);
  run.ask({{"stiffness", 7.0}});
  run.ticks(3);
  CHECK(run.value("stiffness") == 7.0);
}

TEST_CASE("while time stands parameters change at once, and the next step acts with them") {
  TunedRun run({.start = StartMode::held});
  run.ask({{"gravity", 3.0}});
  run.ticks(1);
  CHECK(run.value("gravity") == 3.0);
  CHECK(run.cycle.parameters().applied().acts_from == 1);
}

TEST_CASE("a reset takes back the values that go with its state, and ends ramps") {
  TunedRun run;
  run.ticks(3);
  run.ask({{"torque", 0.5}});
  run.ticks(3);
  run.command(Transition::snapshot);
  run.ask({{"torque", -0.5}, {"tip", 0.16}});
  run.ticks(3);
  run.ask({{"stiffness", 300.0}}, 100);
  run.ticks(3);
  run.command(Transition::hold);
  run.ticks(1);
  run.command(Transition::reset_to_snapshot);
  run.ticks(1);
  CHECK(run.value("torque") == 0.5);
  CHECK(run.value("tip") == 0.2);
  CHECK(run.value("stiffness") == 40.0);
  run.command(Transition::reset_to_start);
  run.ticks(1);
  CHECK(run.value("torque") == 0.1);
}

TEST_CASE("changes wait while a fault is latched") {
  TunedRun run({.stale_rule = StaleRule::fault, .fault_after_steps = 0});
  ParameterRequest request{.number = 1, .ramp_steps = 0, .count = 1, .value = {}};
  request.value[0] = {run.mechanism.parameter("torque"), 0.9};
  Mailbox<InputSample> in;
  Cycle cycle(run.stepper, {.max_age_steps = 1, .stale_rule = StaleRule::fault, .start = StartMode::at_once},
              {.in = &in});
  InputSample sample;
  sample.inputs.count = 1;
  in.publish(sample);
  for (int k = 0; k < 5; ++k) cycle.tick({});
  REQUIRE(cycle.fault().latched);
  cycle.parameters().request(request);
  cycle.tick({});
  CHECK(cycle.parameters().applied().number == 0);
  cycle.request_reset(cycle.fault().number);
  cycle.tick({});
  CHECK(cycle.parameters().applied().number == 1);
  CHECK(run.value("torque") == 0.9);
}

TEST_CASE("records of a run with changes, ramps and resets replay bit for bit") {
  TunedRun run({.full_state_every = 10, .start = StartMode::at_once});
  run.ticks(5);
  run.ask({{"tip", 0.35}, {"gravity", 5.0}});
  run.ticks(10);
  run.ask({{"stiffness", 400.0}, {"rubbing", 0.4}}, 20);
  run.ticks(12);
  run.command(Transition::snapshot);
  run.ticks(12);
  run.command(Transition::hold);
  run.ticks(1);
  run.command(Transition::reset_to_snapshot);
  run.ticks(1);
  run.command(Transition::run);
  run.ticks(10);
  const auto records = run.drain();
  REQUIRE(changes_in(records).size() > 20);
  index3::Stepper again(run.mechanism, index3::Settings{});
  Cycle replay(again, {}, {});
  for (const StepRecord& record : records) {
    replay.repeat(record);
    REQUIRE(again.state().hash() == record.state_hash);
  }
  // from a full state on, with the values that stand in it
  const FullState full = read_full_state(run.states.front());
  REQUIRE(full.step > 0);
  index3::Stepper later(run.mechanism, index3::Settings{});
  Cycle from_there(later, {}, {});
  from_there.resume_at(full.state, full.step, full.state_step, full.parameters);
  for (const StepRecord& record : records) {
    if (record.transition == Transition::reset_to_snapshot) break;
    if (std::pair(record.step, record.transitions) <= std::pair(full.step, full.transitions)) continue;
    from_there.repeat(record);
    REQUIRE(later.state().hash() == record.state_hash);
  }
}

}  // namespace rigstep::rt
