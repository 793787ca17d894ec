#include "rt/cycle.h"

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "core/mechanism/builder.h"
#include "rt/deadline_loop.h"
#include "rt/thread_setup.h"
#include "tests/support/reference.h"

namespace rigstep::rt {
namespace {

// A free body of 1 kg on one force channel, without gravity.
MechanismBuilder pushed_body() {
  MechanismBuilder builder("free_body");
  builder.set_gravity(Vec3::Zero());
  Body body;
  body.name = "body";
  body.mass = 1.0;
  body.inertia_b = Mat3::Identity();
  builder.add_body(body);
  Input input;
  input.name = "force";
  input.kind = Input::Kind::body_force;
  builder.add_body_input(input, "body");
  return builder;
}

// The same with its pose as the only output.
Mechanism free_body() {
  MechanismBuilder builder = pushed_body();
  Output output;
  output.name = "pose";
  output.kind = Output::Kind::body_pose;
  builder.add_body_output(output, "body");
  return builder.build();
}

// A cycle with everything connected, and both sides of its mailboxes.
struct Bench {
  explicit Bench(const CycleSettings& settings = {}, std::size_t records = 10'000)
      : steps(sizeof(StepRecord), records),
        states(full_state_bytes(stepper.state(), stepper.mechanism().parameters().size()), 16),
        cycle(stepper, settings, {.in = &in, .out = &out, .steps = &steps, .states = &states}) {}

  void send(double force) {
    InputSample sample;
    sample.inputs.value[0] = force;
    sample.inputs.count = 1;
    sample.sequence = ++sequence;
    sample.rig_time_ns = 1000 * static_cast<std::int64_t>(sequence);
    in.publish(sample);
  }
  const Snapshot& tick(std::uint64_t missed = 0) { return cycle.tick({.missed_deadlines = missed}); }
  std::vector<StepRecord> drain() {
    std::vector<StepRecord> records;
    for (StepRecord record; try_pop(steps, record);) records.push_back(record);
    return records;
  }
  std::vector<std::uint64_t> drain_states() {
    std::vector<std::uint64_t> indices;
    for (; !states.front().empty(); states.pop()) indices.push_back(read_full_state(states.front()).step);
    return indices;
  }

  index3::Stepper stepper{free_body(), index3::Settings{}};
  Mailbox<InputSample> in;
  Mailbox<Snapshot> out;
  Ring steps;
  Ring states;
  Cycle cycle;
  std::uint64_t sequence = 0;
};

// The same with its energy as the only output.
Mechanism free_body_with_energy() {
  MechanismBuilder builder = pushed_body();
  Output output;
  output.name = "energy";
  output.kind = Output::Kind::energy;
  builder.add_output(output);
  return builder.build();
}

// Finite, of any size.
double any_finite(std::mt19937& random) {
  const double mantissa = std::uniform_real_distribution<double>(-1.0, 1.0)(random);
  switch (random() % 4) {
    case 0:
      return mantissa * std::numeric_limits<double>::max();
    case 1:
      return std::copysign(std::numeric_limits<double>::max(), mantissa);
    case 2:
      return 0.0;
    default:
      return mantissa;
  }
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("before the first sample inputs are zero, flagged, and never stale") {
  const auto bench = std::make_unique<Bench>(CycleSettings{.max_age_steps = 2, .stale_rule = StaleRule::fault});
  for (std::uint64_t step = 1; step <= 10; ++step) {
    const Snapshot& snapshot = bench->tick();
    CHECK(snapshot.flags == kNoInputYet);
    CHECK(snapshot.step == step);
    CHECK(snapshot.sequence == 0);
  }
  for (const StepRecord& record : bench->drain()) {
    CHECK(record.inputs.count == 1);
    CHECK(record.inputs.value[0] == 0.0);
  }
  CHECK(bench->cycle.input_age_steps().count() == 0);
}

TEST_CASE("the newest sample is applied, echoed and ages by one each step without a new one") {
  const auto bench = std::make_unique<Bench>();
  bench->send(1.0);
  bench->send(2.0);
  const Snapshot& snapshot = bench->tick();
  CHECK(snapshot.flags == 0);
  CHECK(snapshot.sequence == 2);
  CHECK(snapshot.rig_time_ns == 2000);
  CHECK(snapshot.input_age_steps == 0);
  CHECK(bench->cycle.record().inputs.value[0] == 2.0);
  CHECK(bench->tick().input_age_steps == 1);
  CHECK(bench->tick().input_age_steps == 2);
  bench->send(3.0);
  CHECK(bench->tick().input_age_steps == 0);
}

TEST_CASE("inputs of the allowed age are stale: hold keeps them, zero drops them, a new sample mends it") {
  for (const StaleRule rule : {StaleRule::hold, StaleRule::zero}) {
    const auto bench = std::make_unique<Bench>(CycleSettings{.max_age_steps = 3, .stale_rule = rule});
    bench->send(5.0);
    for (int tick = 0; tick < 3; ++tick) {
      CHECK(bench->tick().flags == 0);
      CHECK(bench->cycle.record().inputs.value[0] == 5.0);
    }
    CHECK(bench->tick().flags == kStaleInput);
    CHECK(bench->cycle.record().inputs.value[0] == (rule == StaleRule::hold ? 5.0 : 0.0));
    CHECK(bench->cycle.record().inputs.count == 1);
    bench->send(6.0);
    CHECK(bench->tick().flags == 0);
    CHECK(bench->cycle.record().inputs.value[0] == 6.0);
  }
}

TEST_CASE("the rule fault stops time, repeats the last good outputs and is recorded once") {
  const auto bench = std::make_unique<Bench>(CycleSettings{.max_age_steps = 2, .stale_rule = StaleRule::fault});
  bench->send(5.0);
  bench->tick();
  const Snapshot good = bench->tick();
  CHECK(bench->tick().flags == (kStaleInput | kFaulted));
  bench->send(7.0);  // too late: latched
  for (int tick = 0; tick < 5; ++tick) {
    const Snapshot& snapshot = bench->tick();
    CHECK((snapshot.flags & kFaulted) != 0);
    CHECK(snapshot.step == good.step);
    CHECK(snapshot.sim_time_ns == good.sim_time_ns);
    CHECK(snapshot.outputs.value == good.outputs.value);
    CHECK(snapshot.sequence == 2);
    CHECK(snapshot.status == StepStatus::ok);
  }
  const auto records = bench->drain();
  REQUIRE(records.size() == 3);
  CHECK(records[2].step == good.step);
  CHECK(records[2].flags == (kStaleInput | kFaulted));
  CHECK(records[2].state_hash == records[1].state_hash);
}

// Applied values of so many ticks after the sample: none newer comes.
std::vector<double> applied(Bench& bench, int ticks) {
  std::vector<double> values;
  for (int tick = 0; tick < ticks; ++tick) {
    bench.tick();
    values.push_back(bench.cycle.record().inputs.value[0]);
  }
  return values;
}

using Values = std::vector<double>;

TEST_CASE("a stale channel follows its own rule: hold, zero, ramp to safe, on at the last rate") {
  const auto run = [](const InputPolicy& policy) {
    const auto bench = std::make_unique<Bench>(CycleSettings{.inputs = {policy}});
    bench->send(2.0);
    bench->tick();
    bench->tick();
    bench->send(4.0);  // two steps after the first: 1 per step
    return applied(*bench, 8);
  };
  CHECK(run({.rule = StaleRule::hold, .max_age_steps = 3}) == Values{4, 4, 4, 4, 4, 4, 4, 4});
  CHECK(run({.rule = StaleRule::zero, .max_age_steps = 3}) == Values{4, 4, 4, 0, 0, 0, 0, 0});
  CHECK(run({.rule = StaleRule::ramp, .max_age_steps = 3, .safe = -4, .ramp_steps = 4}) ==
        Values{4, 4, 4, 2, 0, -2, -4, -4});
  CHECK(run({.rule = StaleRule::ramp, .max_age_steps = 3, .safe = -4}) == Values{4, 4, 4, -4, -4, -4, -4, -4});
  CHECK(run({.rule = StaleRule::rate, .max_age_steps = 3}) == Values{4, 4, 4, 5, 6, 7, 7, 7});
  CHECK(run({.rule = StaleRule::rate, .max_age_steps = 3, .maximum = 5.5}) == Values{4, 4, 4, 5, 5.5, 5.5, 5.5, 5.5});
}

TEST_CASE("the first sample has no rate to go on at") {
  const auto bench = std::make_unique<Bench>(CycleSettings{.inputs = {{.rule = StaleRule::rate, .max_age_steps = 1}}});
  bench->tick();
  bench->send(3.0);
  CHECK(applied(*bench, 3) == Values{3, 3, 3});
}

TEST_CASE("steps that had not converged are flagged and counted, and the first of them is known") {
  index3::Stepper stepper(free_body(), {.increment_tolerance = -1.0});  // no increment is that small
  Mailbox<InputSample> in;
  Cycle cycle(stepper, {}, {.in = &in});
  CHECK(cycle.not_converged().first == 0);
  InputSample push;
  push.inputs.value[0] = 1.0;
  push.inputs.count = 1;
  in.publish(push);
  for (int k = 0; k < 3; ++k) CHECK((cycle.tick({}).flags & kNotConverged) != 0);
  CHECK(cycle.not_converged().steps == 3);
  CHECK(cycle.not_converged().first == 1);
}

TEST_CASE(
    "steps whose estimated error is above the limit are flagged, counted and recorded with the body that errs most") {
  index3::Stepper stepper(test::mechanism("double_pendulum"), {.dt_ns = 10'000'000, .order_of_accuracy = 4});
  constexpr double kLimit = 5e-7;  // some steps are above it, others are not
  Cycle cycle(stepper, {.error_limit = {.position = kLimit}}, {});
  std::uint64_t above = 0, first = 0;
  int body = -1;
  for (std::uint64_t k = 1; k <= 200; ++k) {
    const bool flagged = (cycle.tick({}).flags & kInaccurate) != 0;
    const StepRecord& record = cycle.record();
    REQUIRE(record.position_error >= 0.0);
    REQUIRE(record.error_body >= 0);
    REQUIRE(flagged == (record.position_error > kLimit));
    if (flagged && above++ == 0) first = k, body = record.error_body;
  }
  CHECK(above > 0);
  CHECK(above < 200);
  CHECK(cycle.inaccurate().steps == above);
  CHECK(cycle.inaccurate().first == first);
  CHECK(cycle.inaccurate().body == body);
}

TEST_CASE("what a step said of its error is forgotten with a reset") {
  index3::Stepper stepper(test::mechanism("double_pendulum"), {.dt_ns = 10'000'000, .order_of_accuracy = 4});
  Cycle cycle(stepper, {.error_limit = {.position = 1e-12}}, {});
  for (int k = 0; k < 50; ++k) cycle.tick({});
  REQUIRE((cycle.tick({}).flags & kInaccurate) != 0);
  const std::uint64_t counted = cycle.inaccurate().steps;
  cycle.request({.transition = Transition::hold});
  CHECK((cycle.tick({}).flags & (kInaccurate | kHolding)) == (kInaccurate | kHolding));  // it is still that state
  cycle.request({.transition = Transition::reset_to_start, .after = cycle.lifecycle().transitions});
  CHECK((cycle.tick({}).flags & kInaccurate) == 0);
  CHECK(cycle.record().position_error == -1.0);
  CHECK(cycle.inaccurate().steps == counted);
}

TEST_CASE("a step of order 2 estimates no error, so no limit flags it") {
  index3::Stepper stepper(free_body(), {});
  Cycle cycle(stepper, {.error_limit = {.position = 1e-300, .orientation = 1e-300}}, {});
  CHECK((cycle.tick({}).flags & kInaccurate) == 0);
  CHECK(cycle.record().position_error == -1.0);
  CHECK(cycle.inaccurate().steps == 0);
}

TEST_CASE("values outside range or rate are limited to it, flagged and counted, and recorded as applied") {
  const auto bench = std::make_unique<Bench>(
      CycleSettings{.inputs = {{.max_age_steps = 100, .minimum = -1.0, .maximum = 2.0, .most_change_per_step = 0.75}}});
  bench->send(5.0);
  for (const double value : {0.75, 1.5, 2.0, 2.0}) {
    CHECK((bench->tick().flags & kInputLimited) != 0);
    CHECK(bench->cycle.record().inputs.value[0] == value);
  }
  bench->send(1.75);
  CHECK((bench->tick().flags & kInputLimited) == 0);
  CHECK(bench->cycle.limited_inputs() == 4);
  bench->send(-9.0);
  CHECK(applied(*bench, 5) == Values{1.0, 0.25, -0.5, -1.0, -1.0});
  const auto records = bench->drain();
  REQUIRE(records.size() == 10);
  CHECK(records[1].inputs.value[0] == 1.5);
  CHECK((records[1].flags & kInputLimited) != 0);

  // a replay knows nothing of ranges and rates
  index3::Stepper stepper(free_body(), index3::Settings{});
  const auto again = std::make_unique<Cycle>(stepper, CycleSettings{}, CyclePorts{});
  for (const StepRecord& record : records) {
    again->repeat(record);
    REQUIRE(again->record().state_hash == record.state_hash);
    REQUIRE(again->record().flags == record.flags);
  }
}

TEST_CASE("a channel rests at its safe value before the first sample, and comes back to it at its rate after a reset") {
  const InputPolicy policy{
      .rule = StaleRule::fault, .max_age_steps = 2, .safe = 3.0, .minimum = 1.0, .most_change_per_step = 1.0};
  const auto bench = std::make_unique<Bench>(CycleSettings{.inputs = {policy}});
  CHECK(applied(*bench, 2) == Values{3, 3});
  bench->send(5.0);
  CHECK(applied(*bench, 2) == Values{4, 5});
  CHECK((bench->tick().flags & kFaulted) != 0);
  bench->cycle.request_reset(1);
  CHECK(applied(*bench, 3) == Values{4, 3, 3});
}

TEST_CASE("each channel has its own age, and one that says stop stops all") {
  const std::vector<InputPolicy> policies{{.rule = StaleRule::zero, .max_age_steps = 2},
                                          {.rule = StaleRule::hold, .max_age_steps = 3},
                                          {.rule = StaleRule::fault, .max_age_steps = 4}};
  InputGuard guard(policies);
  Inputs newest = guard.at_rest(), values = newest;
  CHECK(newest.count == 3);
  newest.value = {7.0, 8.0, 9.0};
  for (std::uint32_t age = 0; age < 6; ++age) {
    const InputGuard::Verdict verdict = guard.apply(&newest, age, values);
    CHECK(verdict.stale == (age >= 2));
    CHECK(verdict.stop == (age >= 4));
    CHECK(values.value[0] == (age >= 2 ? 0.0 : 7.0));
    CHECK(values.value[1] == 8.0);
  }
}

TEST_CASE(
    "inputs beyond the last age are a fault whatever the rule, but not before the first and not without channels") {
  for (const StaleRule rule : {StaleRule::hold, StaleRule::zero, StaleRule::ramp, StaleRule::rate}) {
    const auto bench = std::make_unique<Bench>(
        CycleSettings{.fault_after_steps = 6, .inputs = {{.rule = rule, .max_age_steps = 2, .ramp_steps = 2}}});
    for (int tick = 0; tick < 20; ++tick) REQUIRE(bench->tick().flags == kNoInputYet);
    bench->send(4.0);
    for (int age = 0; age < 6; ++age) CHECK((bench->tick().flags & kFaulted) == 0);
    CHECK(bench->tick().flags == (kStaleInput | kFaulted));
    CHECK(bench->cycle.fault().status == StepStatus::ok);
    CHECK_FALSE(bench->cycle.fault().by_misses);
    bench->cycle.request_reset(1);
    for (int tick = 0; tick < 20; ++tick) REQUIRE(bench->tick().flags == kNoInputYet);
  }
  InputGuard nothing_to_apply({}, 6);
  Inputs none;
  CHECK_FALSE(nothing_to_apply.apply(&none, 100, none).stop);
}

TEST_CASE("deadlines missed one after the other, or too many within a second, are a fault, and it replays") {
  const auto run = [](const MissLimits& limits, const std::vector<std::uint64_t>& missed) {
    const auto bench = std::make_unique<Bench>(CycleSettings{.miss_limits = limits});
    std::size_t tick = 0;
    while (tick < missed.size() && (bench->tick(missed[tick]).flags & kFaulted) == 0) ++tick;
    return tick;  // the first that is faulted
  };
  constexpr std::size_t kNever = 3;
  CHECK(run({.consecutive = 5}, {4, 4, 5}) == 2);
  CHECK(run({.consecutive = 5}, {4, 4, 4}) == kNever);
  CHECK(run({.per_second = 10}, {4, 4, 2}) == 2);
  CHECK(run({.per_second = 10}, {9, 990, 9}) == 1);
  CHECK(run({.per_second = 1000}, {700, 300, 0}) == 1);
  CHECK(run({.per_second = 1000}, {700, 299, 700}) == kNever);  // the second is over with the second tick
  CHECK(run({}, {1'000'000, 1'000'000, 1'000'000}) == kNever);

  const auto bench = std::make_unique<Bench>(CycleSettings{.miss_limits = {.consecutive = 5}});
  bench->send(1.0);
  bench->tick();
  for (int tick = 0; tick < 3; ++tick) {
    const Snapshot& snapshot = bench->tick(tick == 0 ? 7 : 0);
    CHECK((snapshot.flags & ~kOverrun) == (kFaulted | kMissedTooOften));
    CHECK(snapshot.step == 1);
  }
  CHECK(bench->cycle.fault().by_misses);
  CHECK(bench->cycle.fault().status == StepStatus::ok);
  bench->cycle.request_reset(1);
  CHECK(bench->tick().flags == kNoInputYet);
  CHECK_FALSE(bench->cycle.fault().latched);

  index3::Stepper stepper(free_body(), index3::Settings{});
  const auto again = std::make_unique<Cycle>(stepper, CycleSettings{}, CyclePorts{});
  for (const StepRecord& record : bench->drain()) {
    again->repeat(record);
    CHECK(again->record().flags == record.flags);
    CHECK(again->record().state_hash == record.state_hash);
  }
  CHECK(again->fault().number == 1);
}

TEST_CASE("a record in the ring has room for the channels that there are") {
  const auto stepper = std::make_unique<index3::Stepper>(free_body_with_energy(), index3::Settings{});
  const int inputs = static_cast<int>(stepper->mechanism().input_channels().size());
  const int outputs = static_cast<int>(stepper->mechanism().output_channels().size());
  REQUIRE(inputs == 1);
  REQUIRE(outputs > 0);
  Ring ring(step_record_bytes(inputs, outputs, 0), 2);
  Cycle cycle(*stepper, {}, {.steps = &ring});
  StepRecord applied, out;
  applied.inputs.count = inputs;
  applied.inputs.value[0] = 3.0;
  const Snapshot snapshot = cycle.repeat(applied);
  REQUIRE(try_pop_step(ring, out));
  CHECK(out.step == 1);
  CHECK(out.state_hash == stepper->state().hash());
  CHECK(out.inputs.count == inputs);
  CHECK(out.inputs.value[0] == 3.0);
  REQUIRE(out.outputs.count == outputs);
  for (int k = 0; k < outputs; ++k) CHECK(out.outputs.value[k] == snapshot.outputs.value[k]);
  CHECK(out.outputs.value[0] != 0.0);
  CHECK_FALSE(try_pop_step(ring, out));
  CHECK(step_record_bytes(1, 1, 0) < 256);
  CHECK(step_record_bytes(kMaxChannels, kMaxChannels, kMaxParameters) <= sizeof(StepRecord));
}

TEST_CASE("once faulted, outputs with a safe value go there in their time, and the others stand") {
  const auto bench = std::make_unique<Bench>(
      CycleSettings{.max_age_steps = 2,
                    .stale_rule = StaleRule::fault,
                    .safe_outputs = {{.channel = 1, .value = 8.0, .ramp_steps = 4}, {.channel = 2, .value = -1.0}}});
  bench->send(5.0);
  bench->tick();
  const Snapshot good = bench->tick();
  REQUIRE(good.outputs.value[0] != 0.0);
  for (const double share : {0.25, 0.5, 0.75, 1.0, 1.0}) {
    const Snapshot& snapshot = bench->tick();
    CHECK(snapshot.outputs.value[0] == good.outputs.value[0]);
    CHECK(snapshot.outputs.value[1] == doctest::Approx(good.outputs.value[1] + share * (8.0 - good.outputs.value[1])));
    CHECK(snapshot.outputs.value[2] == -1.0);
  }
  bench->cycle.request_reset(1);
  bench->cycle.take_requests(0);
  CHECK(bench->cycle.answer().outputs.value == good.outputs.value);  // of the last good state, and so says its flag
  CHECK(bench->tick().outputs.value[1] == good.outputs.value[1]);    // it moves along the first axis only
}

TEST_CASE("the first and the newest miss are kept with their steps") {
  const auto bench = std::make_unique<Bench>();
  bench->tick();
  CHECK(bench->cycle.first_miss_step() == 0);
  bench->tick(3);
  bench->tick();
  bench->tick(1);
  bench->tick();
  CHECK(bench->cycle.first_miss_step() == 2);
  CHECK(bench->cycle.newest_miss_step() == 4);
  CHECK(bench->cycle.wake_up_ns().count() == 5 + 4);
}

TEST_CASE("a reset that is carried out at once takes the fault off the answer") {
  const auto bench = std::make_unique<Bench>();
  bench->send(kNan);
  bench->tick();
  bench->cycle.request_reset(1);
  bench->cycle.take_requests(0);
  CHECK_FALSE(bench->cycle.fault().latched);
  CHECK((bench->cycle.answer().flags & kFaulted) == 0);
  CHECK(bench->cycle.answer().step == 0);
}

TEST_CASE("a failed step latches the fault at the last good state with the status that says why") {
  const auto bench = std::make_unique<Bench>();
  bench->send(1.0);
  const Snapshot good = bench->tick();
  bench->send(kNan);
  const StepStatus why = bench->tick().status;
  CHECK(failed(why));
  bench->send(1.0);
  const Snapshot& snapshot = bench->tick();
  CHECK(snapshot.flags == kFaulted);
  CHECK(snapshot.status == why);
  CHECK(snapshot.step == good.step);
  CHECK(snapshot.outputs.value == good.outputs.value);
  const auto records = bench->drain();
  REQUIRE(records.size() == 2);
  CHECK(records[1].status == why);
  CHECK(std::isnan(records[1].inputs.value[0]));
}

TEST_CASE("an output that is not finite latches a fault that names it, and is neither sent nor recorded") {
  index3::Stepper stepper(free_body_with_energy(), index3::Settings{});
  Mailbox<InputSample> in;
  Mailbox<Snapshot> out;
  Ring steps(sizeof(StepRecord), 100);
  Cycle cycle(stepper, {}, {.in = &in, .out = &out, .steps = &steps});
  const auto send = [&in](double force) {
    InputSample sample;
    sample.inputs.value[0] = force;
    sample.inputs.count = 1;
    in.publish(sample);
  };
  send(1.0);
  const Snapshot good = cycle.tick({});
  const std::uint64_t hash = stepper.state().hash();
  send(1e160);  // the motion stays finite, its square does not
  for (int tick = 0; tick < 3; ++tick) {
    cycle.tick({});
    Snapshot sent;
    REQUIRE(out.take(sent));
    CHECK(sent.status == StepStatus::output_not_finite);
    CHECK((sent.flags & kFaulted) != 0);
    CHECK(sent.step == good.step);
    CHECK(sent.outputs.value == good.outputs.value);
    send(1.0);  // too late: latched
  }
  CHECK(stepper.state().hash() == hash);
  CHECK(cycle.fault().status == StepStatus::output_not_finite);
  CHECK(cycle.fault().output == 0);
  CHECK(cycle.fault().body == -1);
  cycle.request_reset(1);
  send(2.0);
  CHECK(cycle.tick({}).flags == 0);
  CHECK(cycle.fault().output == 0);

  // a replay fails in the same step, and goes on with the same bits
  index3::Stepper other(free_body_with_energy(), index3::Settings{});
  Cycle again(other, {}, {});
  std::vector<StepRecord> records;
  for (StepRecord record; try_pop(steps, record);) records.push_back(record);
  REQUIRE(records.size() == 3);
  CHECK(records[1].failed_output == 0);
  for (const StepRecord& record : records) {
    again.repeat(record);
    CHECK(again.record().state_hash == record.state_hash);
    CHECK(again.record().status == record.status);
    CHECK(again.record().failed_output == record.failed_output);
  }
}

TEST_CASE("whatever finite values come, and whatever the rules, what is applied and what outputs ramp to is finite") {
  std::mt19937 random(7);
  for (int run = 0; run < 3000; ++run) {
    std::vector<InputPolicy> policies;
    for (const StaleRule rule : {StaleRule::hold, StaleRule::zero, StaleRule::ramp, StaleRule::rate}) {
      policies.push_back({.rule = rule,
                          .max_age_steps = 1 + static_cast<std::uint32_t>(random() % 5),
                          .safe = any_finite(random),
                          .ramp_steps = static_cast<std::uint32_t>(random() % 8)});
      if (random() % 2 == 0) policies.back().most_change_per_step = std::abs(any_finite(random)) + 1e-3;
    }
    InputGuard guard(policies);
    Inputs newest = guard.at_rest(), applied = newest;
    std::uint32_t age = 0;
    for (int step = 0; step < 40; ++step, ++age) {
      if (random() % 8 == 0 || step == 0) {
        const Inputs older = newest;
        for (int c = 0; c < newest.count; ++c) newest.value[c] = any_finite(random);
        guard.note_rate(older, newest, step == 0 ? 0 : age);
        age = 0;
      }
      guard.apply(&newest, age, applied);
      for (int c = 0; c < applied.count; ++c) {
        CAPTURE(run);
        CAPTURE(c);
        REQUIRE(std::isfinite(applied.value[c]));
      }
    }
  }

  const double largest = std::numeric_limits<double>::max();
  const auto bench =
      std::make_unique<Bench>(CycleSettings{.safe_outputs = {{.channel = 0, .value = -largest, .ramp_steps = 10}}});
  bench->send(1.0);
  bench->tick();
  bench->send(kNan);
  for (int tick = 0; tick < 12; ++tick) CHECK(std::isfinite(bench->tick().outputs.value[0]));
  CHECK(bench->tick().outputs.value[0] == -largest);
}

TEST_CASE("a reset clears the fault that it names, and steps go on from the last good state without the old inputs") {
  const auto bench = std::make_unique<Bench>(CycleSettings{.max_age_steps = 2, .stale_rule = StaleRule::fault});
  CHECK(bench->cycle.fault().number == 0);
  bench->cycle.request_reset(0);
  bench->send(5.0);
  for (int tick = 0; tick < 3; ++tick) bench->tick();
  CHECK(bench->cycle.fault().latched);
  CHECK(bench->cycle.fault().number == 1);
  CHECK(bench->cycle.fault().status == StepStatus::ok);

  bench->cycle.request_reset(2);  // one that has not come yet
  CHECK((bench->tick().flags & kFaulted) != 0);
  bench->cycle.request_reset(1);
  for (std::uint64_t step = 3; step < 10; ++step) {
    const Snapshot& snapshot = bench->tick();
    CHECK(snapshot.flags == kNoInputYet);
    CHECK(snapshot.step == step);
    CHECK(bench->cycle.record().inputs.value[0] == 0.0);
  }
  CHECK_FALSE(bench->cycle.fault().latched);
  CHECK(bench->cycle.fault().number == 1);
  bench->cycle.request_reset(2);  // in advance
  bench->tick();

  bench->send(6.0);
  CHECK(bench->tick().flags == 0);
  bench->send(kNan);
  CHECK((bench->tick().flags & kFaulted) != 0);  // the old request does not clear the new fault
  CHECK((bench->tick().flags & kFaulted) != 0);
  CHECK(bench->cycle.fault().number == 2);
  CHECK(failed(bench->cycle.fault().status));
  CHECK(bench->cycle.fault().body == bench->cycle.record().failed_body);
  CHECK(bench->cycle.fault().joint == -1);
}

TEST_CASE("repeating the records of a run with resets gives every state again") {
  const auto live = std::make_unique<Bench>(CycleSettings{.max_age_steps = 3, .stale_rule = StaleRule::fault});
  for (int tick = 0; tick < 60; ++tick) {
    if (tick % 20 < 5) live->send(0.5 * tick);
    if (tick == 45) live->send(kNan);
    if (tick % 20 == 15) live->cycle.request_reset(live->cycle.fault().number);
    live->tick();
  }
  CHECK(live->cycle.fault().number == 3);
  index3::Stepper stepper(free_body(), index3::Settings{});
  const auto again = std::make_unique<Cycle>(stepper, CycleSettings{}, CyclePorts{});
  for (const StepRecord& record : live->drain()) {
    again->repeat(record);
    REQUIRE(again->record().state_hash == record.state_hash);
    REQUIRE(again->record().step == record.step);
  }
  CHECK(stepper.state().hash() == live->stepper.state().hash());
}

TEST_CASE("a fault in the very first step repeats the start") {
  const auto bench = std::make_unique<Bench>();
  bench->send(kNan);
  const Snapshot& snapshot = bench->tick();
  CHECK(snapshot.flags == kFaulted);
  CHECK(snapshot.step == 0);
  CHECK(snapshot.outputs.count == 7);
}

TEST_CASE("missed deadlines are flagged and counted, and simulated time does not skip them") {
  const auto bench = std::make_unique<Bench>();
  bench->tick();
  const Snapshot& snapshot = bench->tick(4);
  CHECK((snapshot.flags & kOverrun) != 0);
  CHECK(snapshot.step == 2);
  CHECK(snapshot.sim_time_ns == 2'000'000);
  CHECK(bench->cycle.record().missed_deadlines == 4);
  CHECK((bench->tick().flags & kOverrun) == 0);
  CHECK(bench->cycle.missed_deadlines() == 4);
}

TEST_CASE("a full ring costs records, never steps; the loss is counted, told, and followed by a full state") {
  const auto bench = std::make_unique<Bench>(CycleSettings{.full_state_every = 0}, 2);
  bench->tick();
  bench->tick();
  CHECK((bench->tick().flags & kRecordLost) == 0);  // answered before it was lost
  CHECK((bench->tick().flags & kRecordLost) != 0);
  CHECK(bench->cycle.lost_records() == 2);
  CHECK(bench->drain().size() == 2);
  CHECK(bench->drain_states() == std::vector<std::uint64_t>{1});
  CHECK((bench->tick().flags & kRecordLost) != 0);  // the first to get through carries it
  CHECK((bench->tick().flags & kRecordLost) == 0);
  const auto records = bench->drain();
  REQUIRE(records.size() == 2);
  CHECK(records[0].step == 5);
  CHECK((records[0].flags & kRecordLost) != 0);
  CHECK(records[1].flags == kNoInputYet);
  CHECK(bench->drain_states() == std::vector<std::uint64_t>{5});
  CHECK(bench->cycle.lost_records() == 2);
}

TEST_CASE("the record of a fault is not given up to a full ring") {
  const auto bench = std::make_unique<Bench>(CycleSettings{}, 1);
  bench->tick();
  bench->send(kNan);
  bench->tick();
  bench->tick();
  CHECK(bench->cycle.lost_records() == 1);
  CHECK(bench->drain().size() == 1);
  bench->tick();
  const auto records = bench->drain();
  REQUIRE(records.size() == 1);
  CHECK(failed(records[0].status));
  CHECK(bench->cycle.lost_records() == 0);
  bench->tick();
  CHECK(bench->drain().empty());
  bench->drain_states();
  bench->cycle.request_reset(1);
  bench->tick();
  CHECK(bench->drain_states() == std::vector<std::uint64_t>{2});  // the gap is closed, what was in it is not known
}

TEST_CASE("full states stand at the first step and every so many steps, and are the state of that step") {
  const auto bench = std::make_unique<Bench>(CycleSettings{.full_state_every = 4});
  bench->send(1.0);
  for (int tick = 0; tick < 5; ++tick) bench->tick();
  const FullState first = read_full_state(bench->states.front());
  CHECK(first.step == 1);
  CHECK(first.sim_time_ns == 1'000'000);
  bench->states.pop();
  const FullState second = read_full_state(bench->states.front());
  CHECK(second.step == 4);
  index3::Stepper other(free_body(), index3::Settings{});
  other.restore(second.state, second.step);
  CHECK(other.state().hash() == bench->drain()[3].state_hash);
}

TEST_CASE("repeating the records gives every state and every answer again, faults included") {
  for (const bool by_rule : {true, false}) {
    const CycleSettings settings{.max_age_steps = 3, .stale_rule = by_rule ? StaleRule::fault : StaleRule::zero};
    const auto live = std::make_unique<Bench>(settings);
    std::vector<Snapshot> answers;
    for (int tick = 0; tick < 40; ++tick) {
      if (tick > 2 && tick < 30 && tick % 2 == 0) live->send(0.5 * tick);
      if (!by_rule && tick == 36) live->send(kNan);
      answers.push_back(live->tick(tick == 7 ? 2 : 0));
    }
    const auto records = live->drain();
    CHECK((records.back().flags & kFaulted) != 0);

    // another stale rule and no mailboxes: neither may matter
    index3::Stepper stepper(free_body(), index3::Settings{});
    const auto again = std::make_unique<Cycle>(stepper, CycleSettings{.max_age_steps = 1}, CyclePorts{});
    for (std::size_t n = 0; n < records.size(); ++n) {
      const Snapshot& snapshot = again->repeat(records[n]);
      REQUIRE(again->record().state_hash == records[n].state_hash);
      REQUIRE(again->record().flags == records[n].flags);
      REQUIRE(again->record().step == records[n].step);
      REQUIRE(snapshot.status == answers[n].status);
      REQUIRE(snapshot.outputs.value == answers[n].outputs.value);
    }
  }
}

TEST_CASE("a rig, the loop and a recorder in three threads: what was recorded repeats bit for bit") {
  constexpr int kTicks = 300;
  const auto bench = std::make_unique<Bench>(CycleSettings{}, 64);
  std::atomic<bool> stop{false};
  std::jthread loop([&] {
    set_floating_point_mode();
    MonotonicClock clock;
    int ticks = 0;
    run_deadline_loop(clock, 200'000, stop, [&](const TickTiming& timing) noexcept {
      bench->cycle.tick(timing);
      stop = stop || ++ticks == kTicks;
    });
  });
  std::vector<StepRecord> records;
  std::uint64_t replies = 0;
  while (!stop) {
    bench->send(std::sin(static_cast<double>(replies)));
    Snapshot snapshot;
    replies += bench->out.take(snapshot) ? 1 : 0;
    for (const StepRecord& record : bench->drain()) records.push_back(record);
    (void)bench->cycle.wake_up_ns().percentile(99.0);
    std::this_thread::yield();
  }
  loop.join();
  for (const StepRecord& record : bench->drain()) records.push_back(record);
  CHECK(replies > 0);
  REQUIRE(records.size() + bench->cycle.lost_records() == kTicks);

  index3::Stepper stepper(free_body(), index3::Settings{});
  const auto again = std::make_unique<Cycle>(stepper, CycleSettings{}, CyclePorts{});
  std::jthread([&] {
    set_floating_point_mode();
    for (const StepRecord& record : records) again->repeat(record);
  }).join();
  if (bench->cycle.lost_records() == 0) CHECK(again->record().state_hash == records.back().state_hash);
}

TEST_CASE("every snapshot is published and followed by one wake-up") {
  const auto bench = std::make_unique<Bench>();
  const int fd = ::eventfd(0, EFD_NONBLOCK);
  Cycle cycle(bench->stepper, {}, {.in = &bench->in, .out = &bench->out, .wake_fd = fd});
  for (int tick = 0; tick < 3; ++tick) cycle.tick({});
  std::uint64_t wake_ups = 0;
  CHECK(::read(fd, &wake_ups, sizeof(wake_ups)) == sizeof(wake_ups));
  CHECK(wake_ups == 3);
  Snapshot snapshot;
  CHECK(bench->out.take(snapshot));
  CHECK(snapshot.step == 3);
  ::close(fd);
}

}  // namespace rigstep::rt
