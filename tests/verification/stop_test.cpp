// End stops: what they return of an impact, that they never add energy, and the reference solvers' agreement.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/agreement.h"
#include "tests/support/force_cases.h"

namespace rigstep::index3 {
namespace {

using test::run;
using test::slide;
using test::step_of;
using test::total_energy;

Stop between(double lower, double upper, double stiffness, double damping = 0.0) {
  Stop stop;
  stop.name = "stop";
  stop.lower = lower;
  stop.upper = upper;
  stop.stiffness = stiffness;
  stop.damping = damping;
  return stop;
}

// The output makes the stepper keep what the stop does.
Mechanism rattling(double mass, double speed, const Stop& stop) {
  MechanismBuilder b = slide(mass, speed);
  b.add_element(stop, std::string("rail"), Freedom::displacement);
  test::show_element(b, "stop");
  return b.build();
}

// A four-bar of 1 m links, loaded by gravity, whose crank hits stops on both sides.
Mechanism limited_four_bar(double stiffness, double damping) {
  MechanismBuilder b("limited_four_bar");
  b.set_gravity({0.0, 0.0, -9.81});
  b.add_body(test::make_body("crank", {0.0, 0.0, 0.5}, 1.0, Vec3(0.1, 0.1, 0.01).asDiagonal()));
  b.add_body(test::make_body("coupler", {0.5, 0.0, 1.0}, 1.0, Vec3(0.01, 0.1, 0.1).asDiagonal()));
  b.add_body(test::make_body("rocker", {1.0, 0.0, 0.5}, 1.0, Vec3(0.1, 0.1, 0.01).asDiagonal()));
  const Vec3 y = Vec3::UnitY();
  b.add_joint(test::make_joint("a", JointType::revolute, "ground", "crank", {0.0, 0.0, 0.0}, y));
  b.add_joint(test::make_joint("b", JointType::revolute, "crank", "coupler", {0.0, 0.0, 1.0}, y));
  b.add_joint(test::make_joint("c", JointType::revolute, "coupler", "rocker", {1.0, 0.0, 1.0}, y));
  b.add_joint(test::make_joint("d", JointType::revolute, "rocker", "ground", {1.0, 0.0, 0.0}, y));
  b.add_element(between(-0.2, 0.3, stiffness, damping), std::string("a"), Freedom::angle);
  AppliedLoad push{.name = "push"};
  push.force = {5.0, 0.0, 0.0};
  push.amplitude = 1.0;
  push.constant = 0.0;
  push.angular_frequency = 7.0;
  b.add_load(push, "crank");
  return b.build();
}

}  // namespace

TEST_CASE("a stop without damping returns what hits it with all of its energy, for any stiffness and step") {
  for (const double stiffness : {1e3, 1e5, 1e7, 1e9})
    for (const double dt : {1e-4, 1e-3, 1e-2}) {
      CAPTURE(stiffness);
      CAPTURE(dt);
      Stepper s(rattling(1.0, 1.0, between(-0.1003, 0.0507, stiffness)), step_of(dt));
      double least = 1e9, most = 0.0;
      for (int k = 0; k < 4000; ++k) {
        REQUIRE_FALSE(failed(s.step({}).status));
        least = std::min(least, total_energy(s));
        most = std::max(most, total_energy(s));
      }
      CHECK(most < 0.5 * (1.0 + 1e-6));
      CHECK(least > 0.5 * (1.0 - 1e-6));
    }
}

TEST_CASE("what hits a damped stop loses energy in every step, at 1e7 N/m and 1 ms, and comes to rest on it") {
  for (const double mass : {0.1, 1.0, 100.0})
    for (const double damping : {0.1, 1.0, 10.0}) {
      CAPTURE(mass);
      CAPTURE(damping);
      Stepper s(rattling(mass, 1.0, between(-0.1003, 0.0507, 1e7, damping)), step_of(1e-3));
      double last = 0.5 * mass;
      for (int k = 0; k < 5000; ++k) {
        REQUIRE_FALSE(failed(s.step({}).status));
        CHECK(total_energy(s) <= last * (1.0 + 1e-9));
        last = total_energy(s);
      }
      CHECK(last < 0.4 * mass);
    }
}

TEST_CASE("the damping made of a restitution gives it back at its speed, and more at lower speeds") {
  for (const double restitution : {0.2, 0.5, 0.8}) {
    CAPTURE(restitution);
    const Stop stop = between(-1.0, 0.01, 1e4, hunt_crossley_damping(restitution, 2.0));
    const auto returned = [&](double speed, double dt) {
      Stepper s(rattling(3.0, speed, stop), step_of(dt));
      REQUIRE(run(s, 0.01 / speed + 0.2));
      return -s.state().body[0].v[0] / speed;
    };
    CHECK(returned(2.0, 1e-5) == doctest::Approx(restitution).epsilon(1e-4));
    CHECK(returned(0.2, 1e-4) > restitution + 0.1);
    CHECK(std::abs(returned(2.0, 1e-3) - restitution) < 0.02);  // the contact lasts some twenty steps
  }
  CHECK(hunt_crossley_damping(1.0, 1.0) == 0.0);
}

TEST_CASE("a body under gravity rests on a stop where the stop carries its weight") {
  MechanismBuilder b = slide(2.0, 0.0, {-9.81, 0.0, 0.0});
  b.add_element(between(-0.02, 0.02, 1e7, 5.0), std::string("rail"), Freedom::displacement);
  test::show_element(b, "stop");
  Stepper s(b.build(), step_of(1e-3));
  REQUIRE(run(s, 20.0));
  Outputs outputs;
  s.read_outputs(s.step({}), outputs);
  CHECK(outputs.value[0] == doctest::Approx(-2.0 * 9.81 / 1e7).epsilon(1e-3));  // below the lower limit: negative
  CHECK(outputs.value[2] == doctest::Approx(2.0 * 9.81).epsilon(1e-3));
  CHECK(std::abs(s.state().body[0].a[0]) < 0.02);
}

TEST_CASE("a closed loop that is shaken against its stops stays within its energy, and its loop stays closed") {
  const Mechanism m = limited_four_bar(1e7, 2.0);
  Stepper s(m, step_of(1e-3));
  double most = 0.0, deepest = 0.0;
  for (int k = 0; k < 20'000; ++k) {
    const StepReport report = s.step({});
    REQUIRE_FALSE(failed(report.status));
    CHECK(report.position_residual < 1e-9);
    CHECK(report.velocity_residual < 1e-8);
    most = std::max(most, std::abs(total_energy(s)));
    deepest = std::max({deepest, s.state().coordinate[0] - 0.3, -0.2 - s.state().coordinate[0]});
  }
  CHECK(deepest > 0.0);  // it hits them
  CHECK(deepest < 5e-3);
  CHECK(most < 60.0);  // 2 g + 2 g * 0.5 of weight at most, and what the push adds
}

TEST_CASE("stops agree with the reference solvers, of second order") {
  const Mechanism m = limited_four_bar(2e4, 0.5);
  offline::Scenario scenario;
  scenario.mechanism = &m;
  scenario.instants = {0.0, 0.3, 0.6, 0.9};
  const std::vector<Vec3> by_ida = test::positions_by("ida", scenario);
  CHECK(test::largest_distance(by_ida, test::positions_by("qr", scenario)) < 1e-6);
  const auto distance_at = [&](double dt) {
    return test::largest_distance(by_ida, test::positions_by_stepper(scenario, dt));
  };
  const double coarse = distance_at(1e-3), fine = distance_at(2.5e-4);
  CHECK(coarse < 1e-4);
  CHECK(std::log2(coarse / fine) / 2.0 > 1.7);
}

}  // namespace rigstep::index3
