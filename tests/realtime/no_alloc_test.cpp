// The loop allocates nothing, in good steps and in bad ones.
#include "tests/support/no_alloc.h"
#include "proto/load_mechanism.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <thread>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/sensors.h"
#include "core/index3/stepper_access.h"
#include "core/offline/index3_literal.h"
#include "rt/cycle.h"
#include "tests/support/force_cases.h"
#include "tests/support/mechanisms.h"
#include "tests/support/primal_body_cases.h"
#include "tests/support/reference.h"
#include "tests/support/tuned_mechanisms.h"

namespace rigstep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Skips a case where a sanitizer has taken the allocation functions: its allocator cannot be counted.
const doctest::skip kWhereCounted(!test::kCountsAllocations);

// keeps the compiler from dropping an allocation that nobody reads
template <class T>
T* kept(T* block) {
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

Inputs inputs(const Mechanism& m, int step, double size) {
  Inputs u;
  u.count = static_cast<int>(m.input_channels().size());
  for (int k = 0; k < u.count; ++k) u.value[k] = size * (((step / 100 + k) & 1) != 0 ? 1.0 : -1.0);
  return u;
}

Inputs first_input(const Mechanism& m, double value) {
  Inputs u = inputs(m, 0, 0.0);
  u.value[0] = value;
  return u;
}

}  // namespace

TEST_CASE("the counter sees every way to allocate, in its own thread and scope only" * kWhereCounted) {
  CHECK(test::allocations([] { delete kept(new int(1)); }) == 1);
  CHECK(test::allocations([] { delete[] kept(new double[100]); }) == 1);
  struct alignas(64) Line {
    char bytes[64];
  };
  CHECK(test::allocations([] { delete kept(new Line); }) == 1);
  CHECK(test::allocations([] { std::free(kept(std::malloc(10))); }) == 1);
  CHECK(test::allocations([] { std::free(kept(std::calloc(10, 10))); }) == 1);
  CHECK(test::allocations([] { std::free(kept(std::aligned_alloc(64, 64))); }) == 1);
  CHECK(test::allocations([] { std::free(kept(std::realloc(kept(std::malloc(10)), 10'000))); }) == 2);
  CHECK(test::allocations([] {
          void* block = nullptr;
          if (::posix_memalign(&block, 64, 64) == 0) std::free(kept(block));
        }) == 1);
  CHECK(test::allocations([] {
          Eigen::MatrixXd m(10, 10);
          kept(m.data());
        }) == 1);
  CHECK(test::allocations([] {}) == 0);
  std::free(kept(std::malloc(10)));
  CHECK(test::allocation_counter.armed == false);
  std::thread other([] { std::free(kept(std::malloc(10))); });
  CHECK(test::allocations([&] { other.join(); }) == 0);
}

TEST_CASE("a step that threads share allocates nothing, nor does one that is made anew because a worker was late" *
          kWhereCounted) {
  test::Description coupled = test::random_bare_tree(1, 250);
  test::add_random_couplings(1, coupled, 5);
  for (const Mechanism& m : {test::build(test::chain(256, JointType::revolute)), test::build(test::carousel(20, 40)),
                             test::build(test::made_consistent(coupled))})
    for (const int threads : {2, 4}) {
      CAPTURE(m.name());
      index3::Settings settings;
      settings.dt_ns = 1'000'000;
      settings.threads = threads;
      index3::Stepper stepper(m, settings);
      REQUIRE(stepper.threads() > 1);
      CHECK(test::allocations([&] {
              for (int k = 0; k < 50; ++k) stepper.step(inputs(m, k, 1.0));
            }) == 0);
    }
}

TEST_CASE("ten thousand steps and their outputs allocate nothing" * kWhereCounted) {
  for (const std::string name : {"four_bar", "mcpherson_redundant", "pipelayer"}) {
    const Mechanism m = test::mechanism(name);
    index3::Stepper stepper(m, {});
    const auto outputs = std::make_unique<Outputs>();
    StepStatus worst = StepStatus::ok;
    std::uint64_t hash = 0;
    const long count = test::allocations([&] {
      for (int k = 0; k < 10'000; ++k) {
        const StepReport report = stepper.step(inputs(m, k, 0.5));
        stepper.read_outputs(report, *outputs);
        hash ^= stepper.state().hash();
        worst = std::max(worst, report.status);
      }
    });
    CAPTURE(name);
    CHECK(count == 0);
    CHECK(worst == StepStatus::ok);
    CHECK(stepper.state().step == 10'000);
  }
}

TEST_CASE("steps of order 4, good ones and failed ones, allocate nothing" * kWhereCounted) {
  for (const std::string name : {"four_bar", "mcpherson_redundant", "pipelayer", "full_car"}) {
    const Mechanism m = test::mechanism(name);
    index3::Stepper stepper(m, {.order_of_accuracy = 4});
    const auto outputs = std::make_unique<Outputs>();
    CAPTURE(name);
    CHECK(test::allocations([&] {
            for (int k = 0; k < 300; ++k) stepper.step(inputs(m, k, 0.5), *outputs);
            stepper.step(inputs(m, 0, kNan), *outputs);
          }) == 0);
    CHECK(stepper.state().step >= 300);
  }
}

TEST_CASE("steps with a primal body that stays primal allocate nothing" * kWhereCounted) {
  const Mechanism m = test::build(test::star(20, 3));
  index3::Stepper stepper(m, {});
  REQUIRE_FALSE(index3::plan_of(stepper).elimination.primal_bodies.empty());
  const long count = test::allocations([&] {
    for (int k = 0; k < 1000; ++k) stepper.step(Inputs{});
  });
  CHECK(count == 0);
  CHECK(stepper.state().step == 1000);
}

TEST_CASE("reactions of redundant joints and the singularity margin allocate nothing" * kWhereCounted) {
  const auto outputs = std::make_unique<Outputs>();
  for (const test::Description& d : {test::four_bar(0.5), test::ladder(8)}) {
    const auto add_outputs = [&d](MechanismBuilder& builder) {
      Output output;
      output.name = "margin";
      output.kind = Output::Kind::singularity_margin;
      builder.add_output(output);
      output.name = "reaction";
      output.kind = Output::Kind::joint_reaction;
      builder.add_joint_output(output, d.joints.back().name, Freedom::angle);
    };
    index3::Stepper stepper(test::build(d, add_outputs), {});
    const long count = test::allocations([&] {
      for (int k = 0; k < 500; ++k) stepper.read_outputs(stepper.step(Inputs{}), *outputs);
    });
    CHECK(count == 0);
    CHECK(stepper.state().step == 500);
    CHECK(outputs->value[0] > 0.0);
    CHECK(outputs->count == 7);
  }
}

TEST_CASE("steps with every force element and their outputs allocate nothing" * kWhereCounted) {
  const Mechanism m = test::every_force_element();
  index3::Stepper stepper(m, {});
  const auto outputs = std::make_unique<Outputs>();
  const long count = test::allocations([&] {
    for (std::uint64_t k = 0; k < 1500; ++k) stepper.read_outputs(stepper.step(test::every_input(k)), *outputs);
  });
  CHECK(count == 0);
  CHECK(stepper.state().step == 1500);
}

TEST_CASE("impacts on stops and jerks of ropes allocate nothing" * kWhereCounted) {
  const auto outputs = std::make_unique<Outputs>();
  for (const char* name : {"cart_with_stops", "hoist"}) {
    const Mechanism m = test::mechanism(name);
    index3::Stepper stepper(m, {});
    const Inputs u = inputs(m, 0, 0.05);
    const long count = test::allocations([&] {
      for (int k = 0; k < 1000; ++k) stepper.read_outputs(stepper.step(u), *outputs);
    });
    CHECK(count == 0);
    CHECK(stepper.state().step == 1000);
  }
}

TEST_CASE("steps that fail, flattening and restoring allocate nothing" * kWhereCounted) {
  for (const std::string name : {"four_bar", "pipelayer"}) {
    const Mechanism m = test::mechanism(name);
    index3::Stepper stepper(m, {});
    const Inputs good = inputs(m, 0, 0.5), nan = first_input(m, kNan), huge = first_input(m, 1e300);
    std::vector<double> flat(stepper.state().flat_size());
    int refused = 0, named = 0;
    const long count = test::allocations([&] {
      for (int k = 0; k < 300; ++k) {
        const StepReport report = stepper.step(k % 3 == 0 ? good : k % 3 == 1 ? nan : huge);
        refused += failed(report.status) ? 1 : 0;
        named += report.body >= 0 || report.joint >= 0 ? 1 : 0;
        stepper.state().flatten(flat);
        stepper.restore(flat, stepper.state().step);
      }
    });
    CAPTURE(name);
    CHECK(count == 0);
    CHECK(refused == 200);
    CHECK(named == 200);
    CHECK(stepper.state().step == 100);
  }
}

namespace {

// A cycle with mailboxes on both sides and rings that hold only a few slots.
struct Rig {
  Rig(const std::string& name, const rt::CycleSettings& settings)
      : mechanism(test::mechanism(name)),
        stepper(mechanism, {}),
        steps(sizeof(StepRecord), 8),
        states(rt::full_state_bytes(stepper.state(), mechanism.parameters().size()), 2),
        cycle(stepper, settings, {.in = &in, .out = &out, .steps = &steps, .states = &states}) {}

  void send(double value) {
    InputSample sample;
    sample.inputs = first_input(mechanism, value);
    sample.sequence = ++sequence;
    in.publish(sample);
  }

  Mechanism mechanism;
  index3::Stepper stepper;
  rt::Mailbox<InputSample> in;
  rt::Mailbox<Snapshot> out;
  rt::Ring steps;
  rt::Ring states;
  rt::Cycle cycle;
  std::uint64_t sequence = 0;
};

}  // namespace

TEST_CASE("ten thousand ticks into full rings and mailboxes allocate nothing" * kWhereCounted) {
  for (const std::string name : {"four_bar", "mcpherson_redundant", "pipelayer"}) {
    const auto rig = std::make_unique<Rig>(
        name, rt::CycleSettings{.max_age_steps = 3, .stale_rule = StaleRule::zero, .full_state_every = 10});
    std::uint32_t flags = 0;
    const long count = test::allocations([&] {
      for (int k = 0; k < 10'000; ++k) {
        if (k % 8 == 0) rig->send(0.1);  // stale before the next one comes
        flags |= rig->cycle.tick({.missed_deadlines = k % 100 == 0 ? 2u : 0u, .wake_up_ns = 50}).flags;
      }
    });
    CAPTURE(name);
    CHECK(count == 0);
    CHECK(rig->stepper.state().step == 10'000);
    CHECK(rig->cycle.lost_records() == 10'000 - 8);
    CHECK((flags & kStaleInput) != 0);
    CHECK((flags & kRecordLost) != 0);
    CHECK((flags & kOverrun) != 0);
    CHECK((flags & kFaulted) == 0);
  }
}

TEST_CASE("ticks that fault, and all that follow, allocate nothing" * kWhereCounted) {
  for (const double bad : {kNan, 1e300}) {
    const auto rig = std::make_unique<Rig>("four_bar", rt::CycleSettings{});
    std::uint32_t flags = 0;
    const long count = test::allocations([&] {
      for (int k = 0; k < 200; ++k) {
        rig->send(k == 20 ? bad : 0.1);
        flags = rig->cycle.tick({}).flags;
        if (k == 100) rig->steps.pop();  // room for the record of the fault
      }
    });
    CHECK(count == 0);
    CHECK((flags & kFaulted) != 0);
    CHECK(rig->stepper.state().step == 20);
  }
}

TEST_CASE("inputs that are limited, ramped and extrapolated, and outputs that are ramped, allocate nothing" *
          kWhereCounted) {
  for (const StaleRule rule : {StaleRule::ramp, StaleRule::rate, StaleRule::fault}) {
    const InputPolicy policy{
        .rule = rule, .max_age_steps = 3, .ramp_steps = 2, .minimum = -1, .maximum = 1, .most_change_per_step = 0.1};
    const auto rig = std::make_unique<Rig>(
        "four_bar", rt::CycleSettings{.inputs = {policy}, .safe_outputs = {{.channel = 0, .ramp_steps = 10}}});
    std::uint32_t flags = 0;
    const long count = test::allocations([&] {
      for (int k = 0; k < 1000; ++k) {
        if (k % 8 == 0) rig->send(1.0 + 0.01 * k);
        flags |= rig->cycle.tick({}).flags;
      }
    });
    CHECK(count == 0);
    CHECK((flags & kStaleInput) != 0);
    CHECK((flags & kInputLimited) != 0);
    CHECK(((flags & kFaulted) != 0) == (rule == StaleRule::fault));
  }
}

TEST_CASE("parameters that change at once and in ramps, masses among them, allocate nothing" * kWhereCounted) {
  for (const std::string& text : {test::tuned_loop_text(), test::tuned_chain_text()}) {
    const Mechanism m = config::parse_mechanism(text, "tuned").mechanism;
    index3::Stepper stepper(m, {});
    rt::Ring steps(sizeof(StepRecord), 8), states(rt::full_state_bytes(stepper.state(), m.parameters().size()), 2);
    const auto cycle = std::make_unique<rt::Cycle>(stepper, rt::CycleSettings{.full_state_every = 10},
                                                   rt::CyclePorts{.steps = &steps, .states = &states});
    bool all_set = true;
    std::uint32_t flags = 0;
    rt::ParameterRequest request;
    const long count = test::allocations([&] {
      for (int k = 0; k < 200; ++k) {
        request.number = static_cast<std::uint64_t>(k) + 1;
        request.ramp_steps = k % 2 == 0 ? 0 : 5;
        request.count = 0;
        for (int p = 0; p < static_cast<int>(m.parameters().size()); ++p) {
          const Parameter& each = m.parameters()[static_cast<std::size_t>(p)];
          if (!each.tunable) continue;
          const double value = k % 3 == 0 ? each.minimum : 0.5 * (each.minimum + each.maximum);
          all_set = stepper.set_parameter(p, value) && all_set;
          request.value[static_cast<std::size_t>(request.count++)] = {p, each.value};
        }
        cycle->parameters().request(request);
        flags |= cycle->tick({}).flags;
      }
    });
    CHECK(count == 0);
    CHECK(all_set);
    CHECK((flags & kFaulted) == 0);
    CHECK(stepper.state().step == 200);
  }
}

TEST_CASE("snapshots that are handed out, and resets to what is handed in, allocate nothing" * kWhereCounted) {
  const Mechanism m = config::parse_mechanism(test::tuned_loop_text(), "tuned").mechanism;
  index3::Stepper stepper(m, {});
  rt::SavedRun run{.numbers = {}, .state = std::vector<double>(stepper.state().flat_size())};
  rt::Ring saved(rt::saved_run_bytes(run), 2), given(rt::saved_run_bytes(run), 2);
  const auto cycle = std::make_unique<rt::Cycle>(stepper, rt::CycleSettings{.start = StartMode::at_once},
                                                 rt::CyclePorts{.saved = &saved, .given = &given});
  const auto ask = [&](Transition transition) {
    cycle->request({.transition = transition, .after = cycle->lifecycle().transitions});
    cycle->tick({});
  };
  int handed = 0;
  const long count = test::allocations([&] {
    for (int k = 0; k < 50; ++k) {
      ask(Transition::snapshot);
      rt::take_saved_run(saved.front(), run);
      saved.pop();
      ask(Transition::hold);
      rt::put_saved_run(run, given.try_claim());
      given.publish();
      ask(Transition::reset_to_file);
      handed += stepper.state().step == run.numbers.state_step;
      ask(Transition::run);
    }
  });
  CHECK(count == 0);
  CHECK(handed == 50);
}

TEST_CASE("steps of the printed form, the speed baseline, allocate nothing" * kWhereCounted) {
  for (const bool tuned : {false, true}) {
    offline::LiteralSettings settings;
    settings.tuned = tuned;
    offline::LiteralStepper stepper(test::mechanism("four_bar"), settings);
    const offline::LiteralState start = stepper.state();
    CHECK(test::allocations([&] {
            for (int k = 0; k < 100; ++k) stepper.step();
            stepper.restore(start);
          }) == 0);
  }
}

}  // namespace rigstep
