// Ropes against closed forms, what they hold of energy, and the reference solvers' agreement.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/agreement.h"
#include "tests/support/force_cases.h"

namespace rigstep::index3 {
namespace {

using test::inputs_of;
using test::run;
using test::step_of;
using test::total_energy;

constexpr double kGravity = 9.81;

Rope rope_of(double length, double stiffness, double damping, std::vector<Vec3> points) {
  Rope rope;
  rope.name = "rope";
  rope.length = length;
  rope.stiffness = stiffness;
  rope.damping = damping;
  for (const Vec3& point : points) rope.points.push_back({kGround, point});
  return rope;
}

// Weights that hang free below z = 0.
MechanismBuilder weights(std::initializer_list<Body> bodies) {
  MechanismBuilder b("weights");
  b.set_gravity({0.0, 0.0, -kGravity});
  for (const Body& body : bodies) b.add_body(body);
  Input winch;
  winch.name = "winch";
  b.add_signal_input(winch);
  return b;
}

Outputs outputs_of(Stepper& s, const Inputs& inputs = {}) {
  Outputs outputs;
  s.read_outputs(s.step(inputs), outputs);
  return outputs;
}

using Names = std::vector<std::string>;

// A load on a rope that leads over a guide to a counterweight.
Mechanism two_weights(double first, double second, double stiffness, double damping) {
  MechanismBuilder b =
      weights({test::make_body("first", {0.0, 0.0, -1.0}, first), test::make_body("second", {1.0, 0.0, -1.0}, second)});
  b.add_element(rope_of(3.0, stiffness, damping, {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}, {1.0, 0.0, 0.0}, {0.0, 0.0, 0.0}}),
                Names{"first", "ground", "ground", "second"}, std::string());
  test::show_element(b, "rope");
  return b.build();
}

}  // namespace

TEST_CASE("a load hangs on a rope where its stretch carries the weight, and follows the winch") {
  MechanismBuilder b = weights({test::make_body("load", {0.0, 0.0, -2.0}, 5.0)});
  b.add_element(rope_of(2.0, 1e5, 2e4, {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}}), Names{"ground", "load"},
                std::string("winch"));
  test::show_element(b, "rope");
  Stepper s(b.build(), step_of(1e-3));
  REQUIRE(run(s, 20.0));
  CHECK(s.state().body[0].r[2] == doctest::Approx(-2.0 - 5.0 * kGravity * 2.0 / 1e5).epsilon(1e-7));
  Outputs outputs = outputs_of(s);
  CHECK(outputs.value[0] == doctest::Approx(5.0 * kGravity * 2.0 / 1e5).epsilon(1e-4));
  CHECK(outputs.value[2] == doctest::Approx(-5.0 * kGravity).epsilon(1e-4));
  for (int k = 1; k <= 1000; ++k) s.step(inputs_of({-1e-3 * k}));  // winds up 1 m in 1 s
  REQUIRE(run(s, 20.0, inputs_of({-1.0})));
  CHECK(s.state().body[0].r[2] == doctest::Approx(-1.0 - 5.0 * kGravity * 1.0 / 1e5).epsilon(1e-6));
}

TEST_CASE("two weights on a rope over guides accelerate as in Atwood's machine") {
  Stepper s(two_weights(3.0, 2.0, 1e7, 0.0), step_of(1e-3));
  REQUIRE(run(s, 0.5));
  const double fallen = 0.5 * kGravity * (3.0 - 2.0) / (3.0 + 2.0) * 0.25;
  CHECK(s.state().body[0].r[2] == doctest::Approx(-1.0 - fallen).epsilon(1e-4));
  CHECK(s.state().body[1].r[2] == doctest::Approx(-1.0 + fallen).epsilon(1e-4));
}

TEST_CASE("a pulley on two parts of a rope carries twice its tension") {
  // ground - pulley - ground - counterweight: in balance where the counterweight is half as heavy
  MechanismBuilder b = weights(
      {test::make_body("pulley", {0.0, 0.0, -1.0}, 4.0), test::make_body("counterweight", {1.0, 0.0, -1.0}, 2.0)});
  const Vec3 o = Vec3::Zero();
  b.add_element(rope_of(3.0, 1e6, 1e4, {o, o, o, {1.0, 0.0, 0.0}, o}),
                Names{"ground", "pulley", "ground", "ground", "counterweight"}, std::string());
  // the weight stretches the rope first: both sink by as much as it takes, and stay
  Stepper s(b.build(), step_of(1e-3));
  REQUIRE(run(s, 5.0));
  for (const BodyState& body : s.state().body) CHECK(body.v.norm() < 1e-3);
}

TEST_CASE("a rope that falls slack and taut never pushes, and without damping keeps its energy, for any stiffness") {
  for (const double stiffness : {1e4, 1e6, 1e8}) {
    CAPTURE(stiffness);
    MechanismBuilder b = weights({test::make_body("load", {0.0, 0.0, -0.5}, 5.0)});
    b.add_element(rope_of(1.0, stiffness, 0.0, {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}}), Names{"ground", "load"},
                  std::string());
    test::show_element(b, "rope");
    Stepper s(b.build(), step_of(1e-3));
    const double start = total_energy(s);
    double most_push = -1e9, least_pull = 0.0;
    for (int k = 0; k < 5000; ++k) {
      const double effort = outputs_of(s).value[2];
      most_push = std::max(most_push, effort), least_pull = std::min(least_pull, effort);
      CHECK(std::abs(total_energy(s) - start) < 1e-6 * 5.0 * kGravity);
    }
    CHECK(most_push == 0.0);
    CHECK(least_pull < -100.0);
  }
}

TEST_CASE("a damped rope only takes energy") {
  Stepper s(two_weights(3.0, 2.0, 1e6, 1e3), step_of(1e-3));
  double last = total_energy(s);
  for (int k = 0; k < 600; ++k) {
    REQUIRE_FALSE(failed(s.step({}).status));
    CHECK(total_energy(s) < last + 1e-6);
    last = total_energy(s);
  }
}

TEST_CASE("ropes agree with the reference solvers, of second order") {
  // a beam on a hinge, held by a rope from the ground through its tip to a free weight
  MechanismBuilder b = weights({test::make_body("beam", {0.5, 0.0, 0.0}, 2.0, Vec3(0.01, 0.2, 0.2).asDiagonal()),
                                test::make_body("weight", {1.4, 0.1, -0.8}, 1.0)});
  b.add_joint(test::make_joint("hinge", JointType::revolute, "ground", "beam", {0.0, 0.0, 0.0}, Vec3::UnitY()));
  b.add_element(rope_of(1.9, 2e4, 50.0, {{0.3, 0.0, 1.0}, {0.5, 0.0, 0.0}, {0.05, 0.0, 0.1}}),
                Names{"ground", "beam", "weight"}, std::string());
  const Mechanism m = b.build();
  offline::Scenario scenario;
  scenario.mechanism = &m;
  scenario.instants = {0.0, 0.2, 0.4, 0.6};
  const std::vector<Vec3> by_ida = test::positions_by("ida", scenario);
  CHECK(test::largest_distance(by_ida, test::positions_by("qr", scenario)) < 1e-6);
  const auto distance_at = [&](double dt) {
    return test::largest_distance(by_ida, test::positions_by_stepper(scenario, dt));
  };
  const double coarse = distance_at(1e-3), fine = distance_at(2.5e-4);
  CHECK(coarse < 1e-2);  // the weight jerks and swings
  CHECK(std::log2(coarse / fine) / 2.0 > 1.7);
}

}  // namespace rigstep::index3
