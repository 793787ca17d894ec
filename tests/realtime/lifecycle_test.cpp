// When a run steps and when its time stands.
#include "rt/lifecycle.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "rt/cycle.h"
#include "tests/support/no_alloc.h"
#include "tests/support/reference.h"

namespace rigstep::rt {
namespace {

// A mechanism whose driver takes the time from the state, and a pushed one beside it.
struct Run {
  explicit Run(const CycleSettings& settings = {}, const std::string& mechanism = "driven_crank")
      : stepper(test::mechanism(mechanism), index3::Settings{}),
        steps(sizeof(StepRecord), 10'000),
        states(full_state_bytes(stepper.state(), stepper.mechanism().parameters().size()), 16),
        cycle(stepper, settings, {.in = &in, .steps = &steps, .states = &states}) {}

  const Snapshot& tick() { return cycle.tick({.log_time_ns = ++log_time_ns}); }
  const Snapshot& ticks(int count) {
    for (int k = 1; k < count; ++k) tick();
    return tick();
  }
  void ask(Transition transition, std::uint32_t count = 0) {
    cycle.request({.transition = transition, .steps = count, .after = cycle.lifecycle().transitions});
  }
  void send(double value) {
    InputSample sample;
    sample.inputs.count = static_cast<int>(stepper.mechanism().input_channels().size());
    sample.inputs.value.fill(value);
    sample.sequence = ++sequence;
    in.publish(sample);
  }
  LifecycleState state() const { return cycle.lifecycle().state; }
  std::uint64_t hash() const { return stepper.state().hash(); }
  std::vector<StepRecord> drain() {
    std::vector<StepRecord> records;
    for (StepRecord record; try_pop_step(steps, record);) records.push_back(record);
    return records;
  }

  index3::Stepper stepper;
  Mailbox<InputSample> in;
  Ring steps, states;
  Cycle cycle;
  std::uint64_t sequence = 0;
  std::int64_t log_time_ns = 0;
};

constexpr LifecycleState kStates[] = {LifecycleState::ready, LifecycleState::running, LifecycleState::holding,
                                      LifecycleState::faulted};
constexpr Transition kRequests[] = {Transition::run,          Transition::hold,           Transition::step,
                                    Transition::snapshot,     Transition::reset_to_start, Transition::reset_to_snapshot,
                                    Transition::reset_to_file};

// A run that has come to this state.
std::unique_ptr<Run> run_in(LifecycleState state) {
  auto run = std::make_unique<Run>(CycleSettings{.start = StartMode::held, .control_lost = ControlLost::fault});
  if (state != LifecycleState::ready) {
    run->ask(Transition::run);
    run->ticks(20);
  }
  if (state == LifecycleState::holding) run->ask(Transition::hold);
  if (state == LifecycleState::faulted) run->cycle.set_controlled(true);
  run->tick();
  run->cycle.set_controlled(false);
  run->tick();
  REQUIRE(run->state() == state);
  return run;
}

}  // namespace

TEST_CASE("what the table does not have does not happen, what it has does") {
  for (const LifecycleState from : kStates)
    for (const Transition request : kRequests) {
      CAPTURE(to_string(from));
      CAPTURE(to_string(request));
      const auto run = run_in(from);
      const std::uint32_t before = run->cycle.lifecycle().transitions;
      run->ask(request, 3);
      run->tick();
      CHECK(run->state() == next_state(from, request).value_or(from));
      CHECK(run->cycle.lifecycle().transitions == before + (next_state(from, request) ? 1 : 0));
    }
}

TEST_CASE("the README shows the table") {
  std::ifstream file(RIGSTEP_SOURCE_DIR "/server/live/README.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::string table = "| in state | by | follows |\n|---|---|---|\n";
  for (const LifecycleRule& rule : kLifecycle)
    table +=
        std::string("| ") + to_string(rule.from) + " | " + to_string(rule.by) + " | " + to_string(rule.to) + " |\n";
  CHECK(text.find(table + "\n") != std::string::npos);
}

TEST_CASE("before a rig has control time stands at the start, and its first input makes the first step") {
  Run run({.start = StartMode::when_controlled});
  const std::uint64_t start = run.hash();
  for (int k = 0; k < 100; ++k) {
    const Snapshot& answer = run.tick();
    CHECK(answer.step == 0);
    CHECK((answer.flags & kReady) != 0);
  }
  run.cycle.set_controlled(true);
  CHECK(run.tick().step == 0);  // it has sent nothing yet
  CHECK(run.hash() == start);
  run.send(0.0);
  const Snapshot& first = run.tick();
  CHECK(first.step == 1);
  CHECK((first.flags & (kReady | kNoInputYet)) == 0);
  const std::vector<StepRecord> records = run.drain();
  REQUIRE(records.size() == 2);
  CHECK(records[0].transition == Transition::control_gained);
  CHECK_FALSE(records[0].is_step());
  CHECK(records[1].is_step());
}

TEST_CASE("held, it waits for `run` whoever has control; at once, it waits for nobody") {
  Run held({.start = StartMode::held});
  held.cycle.set_controlled(true);
  held.send(0.0);
  CHECK(held.ticks(5).step == 0);
  held.ask(Transition::run);
  CHECK(held.ticks(5).step == 5);
  Run at_once({.start = StartMode::at_once});
  CHECK(at_once.ticks(5).step == 5);
}

TEST_CASE("a hold changes no bit of what comes after it, and neither deadlines nor ages are faults in it") {
  Run straight({.fault_after_steps = 30}), held({.fault_after_steps = 30});
  straight.ticks(200);
  held.send(0.0);
  held.ticks(10);
  held.ask(Transition::hold);
  const Snapshot& standing = held.tick();
  CHECK(standing.step == 10);
  CHECK((standing.flags & kHolding) != 0);
  for (int k = 0; k < 50; ++k) held.cycle.tick({.missed_deadlines = 1000});
  CHECK(held.cycle.answer().step == 10);
  held.ask(Transition::run);
  CHECK(held.ticks(190).step == 200);
  CHECK(held.state() == LifecycleState::running);
  CHECK(held.hash() == straight.hash());
}

TEST_CASE("so many steps are made, then it holds") {
  Run run({.start = StartMode::held});
  run.ask(Transition::step, 7);
  CHECK(run.ticks(20).step == 7);
  CHECK(run.state() == LifecycleState::holding);
  run.ask(Transition::step, 1);
  CHECK(run.ticks(3).step == 8);
  run.ask(Transition::step, 1'000'000);
  run.ticks(5);
  run.ask(Transition::snapshot);
  run.ticks(5);
  CHECK(run.state() == LifecycleState::running);
  run.ask(Transition::hold);
  CHECK(run.ticks(5).step == 18);
  run.ask(Transition::run);
  CHECK(run.ticks(5).step == 23);
}

TEST_CASE("a request after another transition is void") {
  Run run;
  const std::uint32_t before = run.cycle.lifecycle().transitions;
  run.ask(Transition::hold);
  run.tick();
  run.ask(Transition::run);
  run.tick();
  run.cycle.request({.transition = Transition::hold, .after = before});
  run.tick();
  CHECK(run.state() == LifecycleState::running);
}

TEST_CASE("a reset sets the state and its time back, and the run's steps go on") {
  Run run;
  const std::uint64_t start = run.hash();
  run.ticks(50);
  const std::uint64_t fifty = run.hash();
  run.ask(Transition::snapshot);
  run.ticks(100);
  run.ask(Transition::hold);
  run.tick();
  run.ask(Transition::reset_to_start);
  const Snapshot& at_start = run.tick();
  CHECK(at_start.step == 150);
  CHECK(at_start.sim_time_ns == 150 * run.stepper.settings().dt_ns);
  CHECK((at_start.flags & kReady) != 0);
  CHECK(run.hash() == start);
  run.ask(Transition::run);
  CHECK(run.ticks(50).step == 200);
  CHECK(run.hash() == fifty);  // the driver began anew
  run.ticks(10);
  run.ask(Transition::hold);
  run.tick();
  run.ask(Transition::reset_to_snapshot);
  CHECK(run.tick().step == 210);
  CHECK(run.hash() == fifty);
  CHECK(run.state() == LifecycleState::holding);
}

TEST_CASE("without a snapshot a reset to it goes to the start") {
  Run run;
  const std::uint64_t start = run.hash();
  run.ticks(5);
  run.ask(Transition::hold);
  run.tick();
  run.ask(Transition::reset_to_snapshot);
  run.tick();
  CHECK(run.hash() == start);
}

TEST_CASE("a reset takes a fault off, and inputs that came before it are not applied again") {
  Run run({.start = StartMode::when_controlled, .control_lost = ControlLost::fault}, "four_bar");
  run.cycle.set_controlled(true);
  run.send(3.0);
  run.ticks(10);
  run.cycle.set_controlled(false);
  const Snapshot& faulted = run.tick();
  CHECK((faulted.flags & (kFaulted | kControlLost)) == (kFaulted | kControlLost));
  CHECK(run.cycle.fault().by_control_lost);
  run.cycle.set_controlled(true);
  run.tick();
  run.ask(Transition::reset_to_start);
  const Snapshot& ready = run.tick();
  CHECK_FALSE(run.cycle.fault().latched);
  CHECK((ready.flags & (kFaulted | kReady | kNoInputYet)) == (kReady | kNoInputYet));
  // the rig that was in control goes on sending: nothing moves until somebody says so
  run.send(3.0);
  CHECK(run.ticks(5).step == ready.step);
  run.ask(Transition::run);
  CHECK(run.tick().step == ready.step + 1);
}

TEST_CASE("after a reset a rig that takes control anew starts it") {
  Run run({.start = StartMode::when_controlled});
  run.cycle.set_controlled(true);
  run.send(0.0);
  run.ticks(10);
  run.ask(Transition::hold);
  run.tick();
  run.ask(Transition::reset_to_start);
  run.tick();
  run.cycle.set_controlled(false);
  CHECK(run.ticks(3).step == 10);
  run.cycle.set_controlled(true);
  run.send(0.0);
  CHECK(run.tick().step == 11);
  // also where nobody is in control at the reset
  run.ask(Transition::hold);
  run.tick();
  run.cycle.set_controlled(false);
  run.tick();
  run.ask(Transition::reset_to_start);
  CHECK(run.ticks(3).step == 11);
  run.cycle.set_controlled(true);
  run.send(0.0);
  CHECK(run.tick().step == 12);
}

TEST_CASE("when control is lost it goes on, holds or faults, as it was told") {
  for (const auto& [rule, state] :
       {std::pair{ControlLost::go_on, LifecycleState::running}, std::pair{ControlLost::hold, LifecycleState::holding},
        std::pair{ControlLost::fault, LifecycleState::faulted}}) {
    Run run({.control_lost = rule});
    run.cycle.set_controlled(true);
    run.ticks(5);
    run.cycle.set_controlled(false);
    run.ticks(2);
    CHECK(run.state() == state);
  }
}

TEST_CASE("a soft start fades inputs in, after each start and after no hold") {
  Run run({.inputs = {{.safe = 1.0}}, .start = StartMode::held, .soft_start_steps = 4}, "four_bar");
  run.send(5.0);
  run.ask(Transition::run);
  const auto applied = [&run] {
    run.tick();
    return run.cycle.record().inputs.value[0];
  };
  for (const double expected : {2.0, 3.0, 4.0, 5.0, 5.0}) CHECK(applied() == doctest::Approx(expected));
  run.ask(Transition::hold);
  run.tick();
  run.ask(Transition::run);
  CHECK(applied() == 5.0);
  run.ask(Transition::hold);
  run.tick();
  run.ask(Transition::reset_to_start);
  run.tick();
  run.ask(Transition::run);
  run.send(5.0);
  CHECK(applied() == doctest::Approx(2.0));
}

TEST_CASE("repeating the records of a run with resets gives every state again, and full states stand behind them") {
  Run live({.full_state_every = 25});
  live.ticks(60);
  live.ask(Transition::snapshot);
  live.ticks(40);
  live.ask(Transition::hold);
  live.tick();
  live.ask(Transition::reset_to_snapshot);
  live.tick();
  live.ask(Transition::run);
  live.ticks(30);
  live.ask(Transition::hold);
  live.tick();
  live.ask(Transition::reset_to_start);
  live.tick();
  live.ask(Transition::run);
  live.ticks(30);
  Run again;
  int resets = 0;
  for (const StepRecord& record : live.drain()) {
    again.cycle.repeat(record);
    CHECK(again.hash() == record.state_hash);
    CHECK(again.cycle.answer().step == record.step);
    resets += record.transition == Transition::reset_to_start || record.transition == Transition::reset_to_snapshot;
  }
  CHECK(resets == 2);
  std::vector<FullState> states;
  int set_back = 0;
  for (; !live.states.front().empty(); live.states.pop()) {
    const FullState full = read_full_state(live.states.front());
    set_back += full.step == 100 && full.state_step == 60;
    set_back += full.step == 130 && full.state_step == 0;
  }
  CHECK(set_back == 2);
}

TEST_CASE("records and full states of a step count the same transitions, faults and their end included") {
  Run run({.full_state_every = 1, .control_lost = ControlLost::fault});
  run.cycle.set_controlled(true);
  run.ticks(3);
  run.cycle.set_controlled(false);
  run.tick();
  run.cycle.request_reset(run.cycle.fault().number);
  run.ticks(3);
  const std::vector<StepRecord> records = run.drain();
  REQUIRE(records.back().is_step());
  std::uint32_t of_state = 0;
  for (; !run.states.front().empty(); run.states.pop()) of_state = read_full_state(run.states.front()).transitions;
  CHECK(of_state == 2);
  CHECK(records.back().transitions == of_state);
}

TEST_CASE("no transition allocates" * doctest::skip(!test::kCountsAllocations)) {
  Run run({.full_state_every = 1, .start = StartMode::when_controlled, .soft_start_steps = 10}, "four_bar");
  run.cycle.set_controlled(true);
  run.send(1.0);
  const auto all = [&run] {
    run.ticks(5);
    for (const Transition transition :
         {Transition::snapshot, Transition::hold, Transition::step, Transition::hold, Transition::reset_to_snapshot,
          Transition::run, Transition::hold, Transition::reset_to_start, Transition::run}) {
      run.ask(transition, 2);
      run.ticks(4);
    }
  };
  CHECK(test::allocations(all) == 0);
  CHECK(run.cycle.lifecycle().transitions > 8);
}

}  // namespace rigstep::rt
