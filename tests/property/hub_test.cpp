// Bodies with many joints stay primal where that is sound and saves operations; the step is the same.
#include "core/index3/hubs.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/hub_cases.h"
#include "tests/support/momentum.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

using Reason = HubChoice::Reason;

Settings with(Hubs hubs) {
  Settings settings;
  settings.hubs = hubs;
  return settings;
}

// largest difference of poses and velocities of the two forms over `steps`, relative to the largest coordinate
double difference_of_forms(const Mechanism& m, int steps) {
  Stepper dual(m, with(Hubs::dual)), hybrid(m, with(Hubs::primal));
  REQUIRE(dual.plan().elimination.hubs.empty());
  REQUIRE(hybrid.plan().hub_choice.reason == Reason::primal);
  REQUIRE(hybrid.plan().elimination.hubs == hybrid.plan().hub_choice.hubs);
  double most = 0.0, scale = 1.0;
  for (int k = 0; k < steps; ++k) {
    Inputs u = test::test_inputs(m, static_cast<std::uint64_t>(k));
    for (double& value : u.value) value *= 0.005;
    REQUIRE(dual.step(u).status == StepStatus::ok);
    REQUIRE(hybrid.step(u).status == StepStatus::ok);
    for (std::size_t i = 0; i < m.bodies().size(); ++i) {
      const BodyState &x = dual.state().body[i], &y = hybrid.state().body[i];
      scale = std::max({scale, x.r.norm(), x.v.norm(), x.w_b.norm()});
      most = std::max({most, (x.r - y.r).norm(), (x.p - y.p).norm(), (x.v - y.v).norm(), (x.w_b - y.w_b).norm()});
    }
  }
  return most / scale;
}

HubChoice choice(const Mechanism& m, Hubs hubs = Hubs::by_cost) { return Plan(m, with(hubs)).hub_choice; }

}  // namespace

TEST_CASE("a hub that stays primal takes the same steps as in the dual form") {
  CHECK(difference_of_forms(test::build(test::star(20, 3)), 200) < 1e-9);
  CHECK(difference_of_forms(test::build(test::star(64, 1)), 10) < 1e-9);
  CHECK(difference_of_forms(test::build(test::star(6, 9)), 200) < 1e-9);
  CHECK(difference_of_forms(test::build(test::carousel(12, 2)), 200) < 1e-9);
  CHECK(difference_of_forms(test::mechanism("full_car"), 200) < 1e-9);
  CHECK(difference_of_forms(test::mechanism("stewart"), 200) < 1e-9);
}

TEST_CASE("a free star with a primal hub keeps its momentum") {
  Stepper s(test::build(test::star(20, 3)), with(Hubs::primal));
  REQUIRE(s.plan().hub_choice.reason == Reason::primal);
  const test::Momentum start = test::momentum(s);
  for (int k = 0; k < 500; ++k) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
  const test::Momentum end = test::momentum(s);
  CHECK((end.linear - start.linear).norm() < 1e-10 * start.angular.norm());  // it turns about its centre
  CHECK((end.angular - start.angular).norm() < 1e-5 * start.angular.norm());
}

TEST_CASE("a primal hub gives the same bits on every instruction set and for any number of threads") {
  for (const Mechanism& m : {test::build(test::star(20, 3)), test::build(test::star(67, 1)),
                             test::build(test::carousel(40, 3)), test::mechanism("full_car")}) {
    CAPTURE(m.name());
    Stepper reference(m, with(Hubs::primal));
    REQUIRE(reference.plan().hub_choice.reason == Reason::primal);
    for (std::uint64_t k = 0; k < 50; ++k) reference.step(test::test_inputs(m, k));
    std::vector<Settings> all;
    for (const char* set : test::instruction_sets()) {
      all.push_back(with(Hubs::primal));
      all.back().instruction_set = set;
    }
    for (const int threads : {2, 3}) {
      all.push_back(with(Hubs::primal));
      all.back().threads = threads;
    }
    for (const Settings& settings : all) {
      Stepper s(m, settings);
      for (std::uint64_t k = 0; k < 50; ++k) s.step(test::test_inputs(m, k));
      CAPTURE(settings.threads);
      CHECK(s.state().hash() == reference.state().hash());
    }
  }
}

TEST_CASE("legs of a primal hub are shared among threads, with the bits of one") {
  const Mechanism m = test::build(test::carousel(64, 4));
  Settings settings = with(Hubs::primal);
  Stepper alone(m, settings);
  settings.threads = 2;
  Stepper shared(m, settings);
  CHECK(shared.threads() == 2);
  for (int k = 0; k < 100; ++k) {
    CHECK(alone.step(Inputs{}).status == StepStatus::ok);
    CHECK(shared.step(Inputs{}).status == StepStatus::ok);
    REQUIRE(shared.state().hash() == alone.state().hash());
  }
  MESSAGE(shared.late_partners() << " of 100 steps made anew alone");
}

TEST_CASE("what a fixed hub would make redundant comes late: joints with the ground, drivers of closed legs") {
  CHECK(choice(test::build(test::star(20, 3))).late == 0);
  CHECK(choice(test::build(test::carousel(20, 3))).late == 1);
  CHECK(choice(test::mechanism("full_car")).late == 0);
  CHECK(choice(test::mechanism("stewart"), Hubs::primal).late == 6);
}

TEST_CASE("a constraint that is eliminated too early is found out") {
  const Mechanism m = test::build(test::carousel(12, 2));
  Plan plan(m, with(Hubs::primal));
  REQUIRE(plan.hub_choice.late == 1);
  CHECK(projection_error(plan) < 1e-12);
  std::vector<Constraint> constraints = Plan(m, with(Hubs::dual)).elimination.constraints;  // none marked as late
  plan.lay_out(
      compile(constraints, plan.carries_spring, plan.settings.order, plan.kernels->lanes, plan.hub_choice.hubs));
  CHECK(projection_error(plan) > 1e-8);
}

TEST_CASE("hubs stay primal where that clearly saves operations") {
  for (const Mechanism& m :
       {test::build(test::star(20, 3)), test::build(test::star(64, 1)), test::mechanism("full_car")}) {
    CAPTURE(m.name());
    const Plan plan(m, {}), dual(m, with(Hubs::dual));
    CHECK(plan.hub_choice.reason == Reason::primal);
    CHECK(plan.elimination.multiply_adds == plan.hub_choice.hybrid);
    CHECK(dual.elimination.multiply_adds == plan.hub_choice.dual);
    CHECK(plan.elimination.largest_front < dual.elimination.largest_front);
  }
  CHECK(choice(test::build(test::star(20, 3))).hybrid * 5 < choice(test::build(test::star(20, 3))).dual);
  CHECK(choice(test::build(test::star(64, 1))).hybrid * 50 < choice(test::build(test::star(64, 1))).dual);
}

TEST_CASE("everything else stays dual") {
  CHECK(choice(test::build(test::chain(40, JointType::revolute))).reason == Reason::no_hub);
  CHECK(choice(test::build(test::four_bar(0.5))).reason == Reason::no_hub);
  CHECK(choice(test::build(test::net(8, JointType::spherical)), Hubs::primal).reason == Reason::no_hub);
  CHECK(choice(test::build(test::net(8, JointType::revolute))).reason == Reason::not_cheaper);
  CHECK(choice(test::build(test::star(20, 3)), Hubs::dual).reason == Reason::asked);
  Settings settings;
  Stepper s(test::build(test::net(8, JointType::revolute)), settings);
  CHECK(s.step(Inputs{}).status == StepStatus::ok);
}

TEST_CASE("the choice is told with its reason") {
  const auto told = [](const Mechanism& m, Hubs hubs) { return describe_elimination(Plan(m, with(hubs))); };
  const Mechanism star = test::build(test::star(20, 3));
  CHECK(told(star, Hubs::by_cost).rfind("hybrid: with \"hub\" primal", 0) == 0);
  CHECK(told(star, Hubs::dual) == "dual, as asked for");
  CHECK(told(test::build(test::four_bar(0.5)), Hubs::by_cost) == "dual: no body carries 18 constraint rows");
}

}  // namespace rigstep::index3
