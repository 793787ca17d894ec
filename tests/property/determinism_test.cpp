// State and inputs determine the next state, to the last bit.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/index3/stepper_access.h"
#include "tests/support/force_cases.h"
#include "tests/support/mechanisms.h"
#include "tests/support/primal_body_cases.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

std::vector<Mechanism> mechanisms() {
  std::vector<Mechanism> all;
  for (unsigned seed = 1; seed <= 4; ++seed) all.push_back(test::build(test::random_tree(seed, 8)));
  for (unsigned seed = 5; seed <= 8; ++seed) all.push_back(test::build(test::random_loops(seed, 6)));
  all.push_back(test::build(test::four_bar(0.8)));
  all.push_back(test::build(test::ladder(4)));
  all.push_back(test::build(test::in_space(test::ladder(4))));
  return all;
}

Mechanism with_drivers_and_couplings() {
  test::Description d = test::chain(9, JointType::revolute);
  Driver swing, servo;
  swing.name = "swing";
  swing.function = harmonic(0.0, 0.2, 3.0);
  servo.name = "servo";
  servo.from_input = Driver::FromInput::filtered;
  servo.time_constant = 0.05;
  d.drivers = {{swing, {"joint0", Freedom::angle}}, {servo, {"joint3", Freedom::angle}}};
  d.couplings = {{"mesh", {"joint5", Freedom::angle}, {"joint7", Freedom::angle}, -1.5}};
  return test::build(test::made_consistent(d));
}

}  // namespace

TEST_CASE("two steppers of one mechanism pass through the same bits") {
  for (const Mechanism& m : mechanisms()) {
    Stepper a(m, {}), b(m, {});
    REQUIRE(a.state().hash() == b.state().hash());
    for (std::uint64_t k = 0; k < 500; ++k) {
      const Inputs u = test::test_inputs(m, k);
      const StepReport from_a = a.step(u), from_b = b.step(u);
      REQUIRE_FALSE(failed(from_a.status));
      REQUIRE(from_a.last_increment == from_b.last_increment);
      REQUIRE(a.state().hash() == b.state().hash());
    }
  }
}

namespace {

// steps of a, then of both from the same flat state on
void goes_on_after_restore(const Mechanism& m, const Settings& settings, std::uint64_t steps) {
  Stepper a(m, settings), b(m, settings);
  for (std::uint64_t k = 0; k < steps; ++k) a.step(test::test_inputs(m, k));
  for (std::uint64_t k = 0; k < 17; ++k) b.step(test::test_inputs(m, 3 * k));
  std::vector<double> flat(a.state().flat_size());
  a.state().flatten(flat);
  b.restore(flat, a.state().step);
  REQUIRE(a.state().hash() == b.state().hash());
  for (std::uint64_t k = steps; k < 2 * steps; ++k) {
    const Inputs u = test::test_inputs(m, k);
    a.step(u);
    b.step(u);
    REQUIRE(a.state().hash() == b.state().hash());
  }
}

const Settings kOrder4{.order_of_accuracy = 4};

}  // namespace

TEST_CASE("a stepper restored from a flat state goes on with the same bits, whatever it did before") {
  for (const Mechanism& m : mechanisms()) {
    goes_on_after_restore(m, {}, 250);
    goes_on_after_restore(m, kOrder4, 50);
  }
}

TEST_CASE("order 4 goes on with the same bits after a failed step and after one whose outputs are refused") {
  const Mechanism m = test::mechanism("pipelayer");
  Stepper a(m, kOrder4), b(m, kOrder4);
  Inputs bad = test::test_inputs(m, 0);
  bad.value[0] = std::numeric_limits<double>::quiet_NaN();
  for (std::uint64_t k = 0; k < 200; ++k) {
    if (k % 50 == 25) REQUIRE(failed(b.step(bad).status));
    const Inputs u = test::test_inputs(m, k);
    REQUIRE_FALSE(failed(a.step(u).status));
    b.step(u);
    REQUIRE(a.state().hash() == b.state().hash());
  }
}

TEST_CASE("a stepper with force elements goes on with the same bits after a restore and after a failed step") {
  const Mechanism m = test::every_force_element();
  Stepper a(m, {}), b(m, {}), c(m, {});
  Inputs bad = test::every_input(0);
  bad.value[0] = bad.value[2] = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> flat(a.state().flat_size());
  for (std::uint64_t k = 0; k < 1500; ++k) {
    const Inputs u = test::every_input(k);
    if (k % 100 == 50) {
      a.state().flatten(flat);
      b.restore(flat, a.state().step);
      REQUIRE(failed(c.step(bad).status));
    }
    const StepReport report = a.step(u);
    REQUIRE(report.status == StepStatus::ok);
    b.step(u);
    c.step(u);
    REQUIRE(a.state().hash() == b.state().hash());
    REQUIRE(a.state().hash() == c.state().hash());
  }
  CHECK(std::abs(workspace_of(a).reading<Tyre>()[0].fz) > 100.0);  // still on its wheel
}

// Where a processor or build has one set only, there is nothing to compare it with.
TEST_CASE("every instruction set passes through the same bits" * doctest::skip(test::instruction_sets().size() < 2)) {
  std::vector<Mechanism> all = mechanisms();
  for (const int n : {3, 8, 9, 16, 23, 47, 130}) all.push_back(test::build(test::chain(n, JointType::revolute)));
  all.push_back(test::build(test::chain(37, JointType::universal)));
  for (int seed = 1; seed <= 12; ++seed) all.push_back(test::build(test::random_chain(seed, 8 + 5 * seed)));
  for (const JointType type : {JointType::spherical, JointType::revolute})
    for (const bool outer_first : {false, true})
      for (const int chains : {2, 4, 8})
        all.push_back(test::build(test::chains_side_by_side(chains, 8, type, outer_first)));
  all.push_back(test::build(test::tree(31, 2, JointType::spherical)));
  for (int legs = 2; legs <= 9; ++legs) all.push_back(test::build(test::star(legs, 3)));
  for (const char* file : {"full_car", "pipelayer"}) all.push_back(test::mechanism(file));
  all.push_back(with_drivers_and_couplings());
  all.push_back(test::every_force_element());
  const std::vector<const char*> sets = test::instruction_sets();
  MESSAGE("compared: ", sets.size());
  for (const Mechanism& m : all) {
    CAPTURE(m.name());
    std::vector<Stepper> steppers;
    steppers.reserve(sets.size());
    for (const char* set : sets) steppers.emplace_back(m, Settings{.instruction_set = set});
    for (std::uint64_t k = 0; k < 200; ++k) {
      const Inputs u = m.name() == "every_force_element" ? test::every_input(k) : test::test_inputs(m, k);
      for (Stepper& stepper : steppers) {
        REQUIRE_FALSE(failed(stepper.step(u).status));
        REQUIRE(stepper.state().hash() == steppers[0].state().hash());
      }
    }
  }
}

TEST_CASE("order 4 passes through the same bits with every instruction set" *
          doctest::skip(test::instruction_sets().size() < 2)) {
  std::vector<Mechanism> all = mechanisms();
  for (const int n : {8, 23}) all.push_back(test::build(test::chain(n, JointType::revolute)));
  all.push_back(test::build(test::chains_side_by_side(4, 8, JointType::spherical, false)));
  all.push_back(test::build(test::star(5, 3)));
  for (const char* file : {"full_car", "pipelayer", "bricard", "slider_crank"}) all.push_back(test::mechanism(file));
  all.push_back(with_drivers_and_couplings());
  for (const Mechanism& m : all) {
    CAPTURE(m.name());
    std::vector<Stepper> steppers;
    for (const char* set : test::instruction_sets())
      steppers.emplace_back(m, Settings{.order_of_accuracy = 4, .instruction_set = set});
    for (std::uint64_t k = 0; k < 50; ++k)
      for (Stepper& stepper : steppers) {
        REQUIRE_FALSE(failed(stepper.step(test::test_inputs(m, k)).status));
        REQUIRE(stepper.state().hash() == steppers[0].state().hash());
      }
  }
}

TEST_CASE("the hash sees every number of the state and the step index") {
  const Mechanism m = test::build(test::random_tree(2, 5));
  Stepper s(m, {});
  std::vector<double> flat(s.state().flat_size());
  s.state().flatten(flat);
  const std::uint64_t hash = s.state().hash();
  for (double& x : flat) {
    const double kept = x;
    x = std::nextafter(x, 10.0);
    s.restore(flat, 0);
    CHECK(s.state().hash() != hash);
    x = kept;
  }
  s.restore(flat, 1);
  CHECK(s.state().hash() != hash);
  s.restore(flat, 0);
  CHECK(s.state().hash() == hash);
}

}  // namespace rigstep::index3
