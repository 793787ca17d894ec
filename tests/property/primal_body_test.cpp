// Bodies with many joints stay primal where that is sound and saves operations; the step is the same.
#include "core/index3/start/make_plan.h"
#include "core/index3/start/primal_bodies.h"
#include "core/index3/stepper_access.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/momentum.h"
#include "tests/support/primal_body_cases.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

using Reason = PrimalChoice::Reason;

Settings with(PrimalBodies primal_bodies) {
  Settings settings;
  settings.primal_bodies = primal_bodies;
  return settings;
}

// largest difference of poses and velocities of the two forms over `steps`, relative to the largest coordinate
double difference_of_forms(const Mechanism& m, int steps) {
  Stepper dual(m, with(PrimalBodies::dual)), hybrid(m, with(PrimalBodies::primal));
  REQUIRE(plan_of(dual).elimination.primal_bodies.empty());
  REQUIRE(plan_of(hybrid).primal_choice.reason == Reason::primal);
  REQUIRE(plan_of(hybrid).elimination.primal_bodies == plan_of(hybrid).primal_choice.primal_bodies);
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

// A star whose joints bounce between stops, and the first ends of whose legs between others.
Mechanism star_with_stops() {
  const test::Description d = test::star(20, 3);
  return test::build(d, [&d](MechanismBuilder& b) {
    Stop stop;
    stop.stiffness = 1e4;
    for (const auto& joint : d.joints) {
      stop.name = "stop_" + joint.name;
      stop.lower = 0.0001, stop.upper = 0.001;  // it starts beyond the lower one
      b.add_element(stop, joint.name, Freedom::angle);
    }
    for (std::size_t k = 1; k < d.bodies.size(); k += 9) {
      stop.name = "distance_" + d.bodies[k].name;
      const double distance = (d.bodies[k].position_0 - d.bodies[0].position_0).norm();
      stop.lower = distance - 0.001, stop.upper = distance + 0.001;
      b.add_element(stop, d.bodies[0].name, d.bodies[k].name);
    }
  });
}

PrimalChoice choice(const Mechanism& m, PrimalBodies primal_bodies = PrimalBodies::by_cost) {
  return make_plan(m, with(primal_bodies)).primal_choice;
}

}  // namespace

TEST_CASE("a primal body that stays primal takes the same steps as in the dual form") {
  CHECK(difference_of_forms(test::build(test::star(20, 3)), 200) < 1e-9);
  CHECK(difference_of_forms(test::build(test::star(64, 1)), 10) < 1e-9);
  CHECK(difference_of_forms(test::build(test::star(6, 9)), 200) < 1e-9);
  CHECK(difference_of_forms(test::build(test::carousel(12, 2)), 200) < 1e-9);
  CHECK(difference_of_forms(test::mechanism("full_car"), 200) < 1e-9);
  CHECK(difference_of_forms(test::mechanism("stewart"), 200) < 1e-9);
  CHECK(difference_of_forms(star_with_stops(), 200) < 1e-9);
}

TEST_CASE("a free star with a primal body keeps its momentum") {
  Stepper s(test::build(test::star(20, 3)), with(PrimalBodies::primal));
  REQUIRE(plan_of(s).primal_choice.reason == Reason::primal);
  const test::Momentum start = test::momentum(s);
  for (int k = 0; k < 500; ++k) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
  const test::Momentum end = test::momentum(s);
  CHECK((end.linear - start.linear).norm() < 1e-10 * start.angular.norm());  // it turns about its centre
  CHECK((end.angular - start.angular).norm() < 1e-5 * start.angular.norm());
}

TEST_CASE("a primal body gives the same bits on every instruction set and for any number of threads") {
  for (const Mechanism& m : {test::build(test::star(20, 3)), test::build(test::star(67, 1)),
                             test::build(test::carousel(40, 3)), test::mechanism("full_car")}) {
    CAPTURE(m.name());
    Stepper reference(m, with(PrimalBodies::primal));
    REQUIRE(plan_of(reference).primal_choice.reason == Reason::primal);
    for (std::uint64_t k = 0; k < 20; ++k) reference.step(test::test_inputs(m, k));
    std::vector<Settings> all;
    for (const char* set : test::instruction_sets()) {
      all.push_back(with(PrimalBodies::primal));
      all.back().instruction_set = set;
    }
    for (const int threads : {2, 3}) {
      all.push_back(with(PrimalBodies::primal));
      all.back().threads = threads;
    }
    for (const Settings& settings : all) {
      Stepper s(m, settings);
      for (std::uint64_t k = 0; k < 20; ++k) s.step(test::test_inputs(m, k));
      CAPTURE(settings.threads);
      CHECK(s.state().hash() == reference.state().hash());
    }
  }
}

TEST_CASE("legs of a primal body are shared among threads, with the bits of one") {
  const Mechanism m = test::build(test::carousel(64, 4));
  Settings settings = with(PrimalBodies::primal);
  Stepper alone(m, settings);
  settings.threads = 2;
  Stepper shared(m, settings);
  CHECK(shared.threads() == 2);
  for (int k = 0; k < 100; ++k) {
    CHECK(alone.step(Inputs{}).status == StepStatus::ok);
    CHECK(shared.step(Inputs{}).status == StepStatus::ok);
    REQUIRE(shared.state().hash() == alone.state().hash());
  }
  MESSAGE(shared.late_workers() << " of 100 steps made anew alone");
}

TEST_CASE(
    "what a fixed primal body would make redundant is eliminated last: joints with the ground, drivers of closed "
    "legs") {
  CHECK(choice(test::build(test::star(20, 3))).eliminated_last == 0);
  CHECK(choice(test::build(test::carousel(20, 3))).eliminated_last == 1);
  CHECK(choice(test::mechanism("full_car")).eliminated_last == 0);
  CHECK(choice(test::mechanism("stewart"), PrimalBodies::primal).eliminated_last == 6);
}

TEST_CASE("drivers are rows of their joints unless a primal body of their loop would make them wait") {
  const auto driven_rows = [](PrimalBodies primal_bodies) {
    const Plan plan = make_plan(test::mechanism("stewart"), with(primal_bodies));
    return std::count_if(plan.coordinate_rows.begin(), plan.coordinate_rows.end(),
                         [](const CoordinateRow& row) { return row.driver >= 0; });
  };
  CHECK(driven_rows(PrimalBodies::by_cost) == 6);
  CHECK(driven_rows(PrimalBodies::dual) == 6);
  CHECK(driven_rows(PrimalBodies::primal) == 0);
}

TEST_CASE("a constraint that is eliminated too early is found out") {
  const Mechanism m = test::build(test::carousel(12, 2));
  Plan plan = make_plan(m, with(PrimalBodies::primal));
  REQUIRE(plan.primal_choice.eliminated_last == 1);
  CHECK(projection_error(plan) < 1e-12);
  std::vector<Constraint> constraints =
      make_plan(m, with(PrimalBodies::dual)).elimination.constraints;  // none marked as late
  plan.lay_out(compile(constraints, plan.has_own_tangent, plan.settings.order, plan.kernels->lanes,
                       plan.primal_choice.primal_bodies));
  CHECK(projection_error(plan) > 1e-8);
}

TEST_CASE("primal bodies stay primal where that clearly saves operations") {
  for (const Mechanism& m :
       {test::build(test::star(20, 3)), test::build(test::star(64, 1)), test::mechanism("full_car")}) {
    CAPTURE(m.name());
    const Plan plan = make_plan(m, {}), dual = make_plan(m, with(PrimalBodies::dual));
    CHECK(plan.primal_choice.reason == Reason::primal);
    CHECK(plan.elimination.multiply_adds == plan.primal_choice.hybrid);
    CHECK(dual.elimination.multiply_adds == plan.primal_choice.dual);
    CHECK(plan.elimination.largest_front < dual.elimination.largest_front);
  }
  CHECK(choice(test::build(test::star(20, 3))).hybrid * 5 < choice(test::build(test::star(20, 3))).dual);
  CHECK(choice(test::build(test::star(64, 1))).hybrid * 50 < choice(test::build(test::star(64, 1))).dual);
}

TEST_CASE("everything else stays dual") {
  CHECK(choice(test::build(test::chain(40, JointType::revolute))).reason == Reason::no_candidate);
  CHECK(choice(test::build(test::four_bar(0.5))).reason == Reason::no_candidate);
  CHECK(choice(test::build(test::net(8, JointType::spherical)), PrimalBodies::primal).reason == Reason::no_candidate);
  CHECK(choice(test::build(test::in_space(test::net(8, JointType::revolute)))).reason == Reason::not_cheaper);
  CHECK(choice(test::build(test::star(20, 3)), PrimalBodies::dual).reason == Reason::requested);
  Settings settings;
  Stepper s(test::build(test::net(8, JointType::revolute)), settings);
  CHECK(s.step(Inputs{}).status == StepStatus::ok);
}

TEST_CASE("the choice is told with its reason") {
  const auto told = [](const Mechanism& m, PrimalBodies primal_bodies) {
    return describe_elimination(make_plan(m, with(primal_bodies)));
  };
  const Mechanism star = test::build(test::star(20, 3));
  CHECK(told(star, PrimalBodies::by_cost).rfind("hybrid: with \"hub\" primal", 0) == 0);
  CHECK(told(star, PrimalBodies::dual) == "dual, as asked for");
  CHECK(told(test::build(test::four_bar(0.5)), PrimalBodies::by_cost) == "dual: no body carries 18 constraint rows");
}

}  // namespace rigstep::index3
