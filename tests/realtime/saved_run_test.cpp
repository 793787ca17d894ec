// Snapshots of a cycle: what goes on from one has the bits of the run that was saved, rules for inputs and ramps of
// parameters included.
#include <doctest/doctest.h>

#include "proto/load_mechanism.h"
#include "rt/cycle.h"
#include "tests/support/tuned_mechanisms.h"

namespace rigstep::rt {
namespace {

constexpr std::size_t kRoom = 64 << 10;  // for a saved run of these small mechanisms

// A cycle with a rig that sends every few ticks, and can be silent.
struct SavedCase {
  explicit SavedCase(const CycleSettings& settings)
      : mechanism(config::parse_mechanism(test::tuned_chain_text(), "tuned").mechanism),
        stepper(mechanism, index3::Settings{}),
        saved(kRoom, 2),
        given(kRoom, 2),
        cycle(stepper, settings, {.in = &in, .saved = &saved, .given = &given}) {}

  void send(double value) {
    InputSample sample;
    sample.sequence = ++sequence;
    sample.inputs.count = static_cast<int>(mechanism.input_channels().size());
    sample.inputs.value.fill(value);
    in.publish(sample);
  }
  void ramp(const char* name, double value, std::uint32_t steps) {
    ParameterRequest request{.number = ++sequence, .ramp_steps = steps, .count = 1, .value = {}};
    request.value[0] = {mechanism.parameter(name), value};
    cycle.parameters().request(request);
  }
  void ask(Transition transition) {
    cycle.request({.transition = transition, .after = cycle.lifecycle().transitions});
    cycle.take_requests(0);
  }
  std::uint64_t tick() {
    cycle.tick({});
    return stepper.state().hash();
  }
  SavedRun room() const { return {.numbers = {}, .state = std::vector<double>(stepper.state().flat_size())}; }
  SavedRun take() {
    SavedRun run = room();
    REQUIRE(!saved.front().empty());
    take_saved_run(saved.front(), run);
    saved.pop();
    return run;
  }

  Mechanism mechanism;
  index3::Stepper stepper;
  Mailbox<InputSample> in;
  Ring saved, given;
  Cycle cycle;
  std::uint64_t sequence = 0;
};

CycleSettings with_rules(const Mechanism& mechanism, StaleRule rule) {
  const InputPolicy policy{.rule = rule,
                           .max_age_steps = 4,
                           .safe = 0.1,
                           .ramp_steps = 9,
                           .minimum = -0.8,
                           .maximum = 0.8,
                           .most_change_per_step = 0.11};
  return {.inputs = std::vector<InputPolicy>(mechanism.input_channels().size(), policy),
          .start = StartMode::at_once,
          .soft_start_steps = 30};
}

}  // namespace

TEST_CASE(
    "a run that resumes from a snapshot has the bits of the one that was saved, at any step of its inputs' rules") {
  const Mechanism mechanism = config::parse_mechanism(test::tuned_chain_text(), "tuned").mechanism;
  for (const StaleRule rule : {StaleRule::hold, StaleRule::zero, StaleRule::ramp, StaleRule::rate}) {
    for (const int at : {1, 3, 8, 14, 21, 33, 47}) {
      CAPTURE(at);
      const CycleSettings settings = with_rules(mechanism, rule);
      SavedCase whole(settings), later(settings);
      const auto rig = [](SavedCase& run, int k) {  // silent from the 12th to the 30th step
        if (k % 3 == 0 && (k < 12 || k > 30)) run.send(0.9 * ((k * 37) % 11 - 5) / 5.0);
      };
      whole.ramp("stiffness", 300.0, 40);
      for (int k = 0; k < at; ++k) rig(whole, k), whole.tick();
      whole.ask(Transition::snapshot);
      const SavedRun run = whole.take();
      CHECK(run.numbers.step == static_cast<std::uint64_t>(at));
      later.cycle.resume(run);
      CHECK(later.stepper.state().hash() == whole.stepper.state().hash());
      for (int k = at; k < 60; ++k) {
        rig(whole, k), rig(later, k);
        REQUIRE(later.tick() == whole.tick());
        REQUIRE(later.cycle.answer().step == whole.cycle.answer().step);
        for (int c = 0; c < run.numbers.applied.count; ++c)
          REQUIRE(later.cycle.record().inputs.value[c] == whole.cycle.record().inputs.value[c]);
      }
      CHECK(later.stepper.parameter(mechanism.parameter("stiffness")) == 300.0);
    }
  }
}

TEST_CASE("a reset to a file leads to its state, parameters and ramps; steps and time of the run go on") {
  SavedCase source({.start = StartMode::at_once}), run({.start = StartMode::at_once});
  source.ramp("stiffness", 300.0, 100);
  for (int k = 0; k < 40; ++k) source.tick();
  source.ask(Transition::snapshot);
  const SavedRun from = source.take();
  for (int k = 0; k < 7; ++k) run.tick();
  run.ask(Transition::hold);
  put_saved_run(from, run.given.try_claim());
  run.given.publish();
  run.ask(Transition::reset_to_file);
  CHECK(run.cycle.lifecycle().state == LifecycleState::holding);
  CHECK(run.stepper.state().hash() == source.stepper.state().hash());
  run.ask(Transition::run);
  for (int k = 0; k < 80; ++k) REQUIRE(run.tick() == source.tick());
  CHECK(run.cycle.answer().step == 87);
  CHECK(run.stepper.parameter(run.mechanism.parameter("stiffness")) == 300.0);
}

TEST_CASE("what a run that resumed calls its start is the snapshot") {
  SavedCase source({.start = StartMode::at_once}), run({.start = StartMode::at_once});
  for (int k = 0; k < 20; ++k) source.tick();
  source.ask(Transition::snapshot);
  run.cycle.resume(source.take());
  const std::uint64_t hash = run.stepper.state().hash();
  for (int k = 0; k < 5; ++k) run.tick();
  run.ask(Transition::hold);
  run.ask(Transition::reset_to_start);
  CHECK(run.stepper.state().hash() == hash);
}

TEST_CASE("snapshots that nobody takes cost nothing but themselves") {
  SavedCase run({.start = StartMode::at_once});
  for (int k = 0; k < 10; ++k) {
    run.tick();
    run.ask(Transition::snapshot);
  }
  CHECK(run.take().numbers.step == 1);
  CHECK(run.take().numbers.step == 2);
  CHECK(run.saved.front().empty());
  run.ask(Transition::snapshot);
  CHECK(run.take().numbers.step == 10);
}

}  // namespace rigstep::rt
