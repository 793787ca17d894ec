// Steps of order 4 (core/index3/step/extrapolated_step.h): how fast their error falls, that stiff elements and singular
// poses do them no harm, and what their estimate of the error is worth.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/mechanism/portable_math.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::test;

namespace {

index3::Settings of_order_4(std::int64_t dt_ns) {
  index3::Settings settings;
  settings.dt_ns = dt_ns;
  settings.order_of_accuracy = 4;
  return settings;
}

// the state after `time`, with inputs that jump every 40 ms; a step that does not converge fails the test
index3::State after(const Mechanism& m, const index3::Settings& settings, double time, double size = 0.0) {
  index3::Stepper stepper(m, settings);
  const std::int64_t steps = std::llround(time * 1e9) / settings.dt_ns, held = 40 * kMs / settings.dt_ns;
  for (std::int64_t k = 0; k < steps; ++k) {
    Inputs u;
    u.count = static_cast<int>(m.input_channels().size());
    for (int c = 0; c < u.count; ++c) u.value[c] = size * static_cast<double>((k / held + c) % 3 - 1);
    REQUIRE(stepper.step(u).status == StepStatus::ok);
  }
  return stepper.state();
}

double distance(const index3::State& a, const index3::State& b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.body.size(); ++i)
    most = std::max({most, (a.body[i].r - b.body[i].r).norm(), (a.body[i].v - b.body[i].v).norm()});
  return most;
}

// log2 of how the difference between a step and half of it falls from dt to dt/2
double observed_order(const Mechanism& m, std::int64_t dt_ns, double time, double size = 0.0, int iterations = 3) {
  index3::State x[3];
  for (int k = 0; k < 3; ++k) {
    index3::Settings settings = of_order_4(dt_ns >> k);
    settings.iterations = iterations;
    x[k] = after(m, settings, time, size);
  }
  return std::log2(distance(x[0], x[1]) / distance(x[1], x[2]));
}

Mechanism spinning_top() {
  Description d;
  d.gravity = Vec3(0.0, 0.0, -9.81);
  Body top = make_body("top", Vec3(0.1, 0.0, 0.4), 2.0);
  top.inertia_b = Vec3(0.02, 0.02, 0.03).asDiagonal();
  top.angular_velocity_0 = Vec3(0.3, -0.2, 40.0);
  top.velocity_0 = top.angular_velocity_0.cross(top.position_0);
  d.bodies = {top};
  d.joints = {make_joint("tip", JointType::spherical, "ground", "top", Vec3::Zero(), Vec3::UnitZ())};
  return build(d);
}

// a mass on a spring to the ground, along x
Mechanism oscillator(double stiffness, double damping) {
  Description d;
  d.bodies = {make_body("mass", Vec3(1.00001, 0.0, 0.0), 1.0)};
  d.joints = {make_joint("rail", JointType::prismatic, "ground", "mass", Vec3(1.00001, 0.0, 0.0), Vec3::UnitX())};
  Spring spring;
  spring.name = "spring";
  spring.kind = Spring::Kind::between_points;
  spring.stiffness = stiffness;
  spring.damping = damping;
  spring.rest = 1.0;
  d.springs = {{spring, "ground", "mass"}};
  return build(d);
}

// As in config/mechanisms, but with the rows that hold the links in their plane.
Mechanism four_bar_in_space() {
  Description d = four_bar(0.25 * kPi);
  d.joint_inputs = {{"drive", d.joints[0].name, Freedom::angle}};
  return build(in_space(d));
}

// The passes of the singular pose under torques that jump at random between -20 and 20 N m, in runs of 20 s.
int passes_on_the_branch(const Mechanism& m, std::int64_t dt_ns, int runs) {
  const double dt = 1e-9 * static_cast<double>(dt_ns);
  int passes = 0;
  for (int run = 0; run < runs; ++run) {
    CAPTURE(run);
    index3::Stepper stepper(m, of_order_4(dt_ns));
    std::mt19937 random(static_cast<unsigned>(7 * run + 1));
    Inputs u;
    u.count = static_cast<int>(m.input_channels().size());
    const int drive = m.input_channel("drive");
    double next = 0.0, last_x = 0.0;
    for (int k = 0; dt * k < 20.0; ++k) {
      if (dt * k >= next) {
        u.value[drive] = 40.0 * static_cast<double>(random()) / 4294967295.0 - 20.0;
        next += 0.05 + 0.4 * static_cast<double>(random() % 1000) / 1000.0;
      }
      REQUIRE_FALSE(failed(stepper.step(u).status));
      const index3::State& x = stepper.state();
      REQUIRE((x.body[0].r + Vec3(0.0, 1.0, 0.0) - x.body[2].r).norm() < 1e-3);  // A and C stay parallel
      passes += x.body[0].r[0] * last_x < 0.0;
      last_x = x.body[0].r[0];
    }
  }
  return passes;
}

}  // namespace

TEST_CASE("order 4: the error falls at least fourteenfold with half the step, in chains, trees and closed loops") {
  CHECK(observed_order(mechanism("chain_8"), 16 * kMs, 0.8) > 3.8);
  CHECK(observed_order(mechanism("four_bar"), 20 * kMs, 0.8) > 3.8);
  CHECK(observed_order(four_bar_in_space(), 20 * kMs, 0.8) > 3.8);
  CHECK(observed_order(mechanism("hdca_case3"), 8 * kMs, 0.8) > 3.8);
  CHECK(observed_order(mechanism("slider_crank"), 4 * kMs, 0.48) > 3.8);
  CHECK(observed_order(mechanism("screw_jack"), 4 * kMs, 0.48) > 3.8);
  CHECK(observed_order(build(tree(15, 2, JointType::revolute)), 8 * kMs, 0.48) > 3.8);
}

TEST_CASE("order 4: what three iterations with one tangent leave is small, but of order 3; the fourth removes it") {
  const Mechanism m = mechanism("double_pendulum");
  CHECK(observed_order(m, 20 * kMs, 0.8) > 3.2);
  CHECK(observed_order(m, 20 * kMs, 0.8, 0.0, 4) > 3.8);
}

TEST_CASE("order 4: a spinning top, whose error is that of its turn alone") {
  CHECK(observed_order(spinning_top(), 4 * kMs, 0.8) > 3.8);
}

TEST_CASE("order 4: inputs that jump from one step to the next cost no order") {
  CHECK(observed_order(mechanism("four_bar"), 20 * kMs, 0.8, 8.0) > 3.8);
}

TEST_CASE("order 4: an overconstrained loop in space keeps its energy a dozen times better than order 2, at least") {
  const Mechanism bricard = mechanism("bricard");
  double error[2];
  for (const int order : {2, 4}) {
    index3::Settings settings = of_order_4(5 * kMs);
    settings.order_of_accuracy = order;
    index3::Stepper stepper(bricard, settings);
    const index3::Energy start = stepper.energy();
    double& worst = error[order / 2 - 1] = 0.0;
    for (int k = 0; k < 2000; ++k) {
      REQUIRE(stepper.step(Inputs{}).status == StepStatus::ok);
      const index3::Energy now = stepper.energy();
      worst = std::max(worst, std::abs(now.kinetic + now.potential - start.kinetic - start.potential));
    }
  }
  CHECK(12.0 * error[1] < error[0]);
}

TEST_CASE("order 4: joints close to rounding and accelerations satisfy the equations of motion's constraints") {
  for (const char* name : {"four_bar", "hdca_case3", "mcpherson_redundant", "chain_8"}) {
    CAPTURE(name);
    index3::Stepper stepper(mechanism(name), of_order_4(5 * kMs));
    for (int k = 0; k < 200; ++k) {
      const StepReport report = stepper.step(Inputs{});
      REQUIRE(report.status == StepStatus::ok);
      CHECK(report.position_residual < 1e-10);
      CHECK(report.velocity_residual < 1e-10);
      CHECK(report.acceleration_residual < 1e-6);
    }
  }
}

TEST_CASE("order 4: no oscillator grows, from soft to infinitely stiff, damped or not") {
  for (const double stiffness : {1e4, 1e6, 1e7, 1e9})
    for (const double damping : {0.0, 10.0, 1e4}) {
      CAPTURE(stiffness);
      CAPTURE(damping);
      index3::Stepper stepper(oscillator(stiffness, damping), of_order_4(1 * kMs));
      const double start = stepper.energy().potential;
      for (int k = 0; k < 10'000; ++k) {
        REQUIRE_FALSE(failed(stepper.step(Inputs{}).status));
        const index3::Energy now = stepper.energy();
        CHECK(now.kinetic + now.potential < 1.0001 * start);
      }
    }
}

TEST_CASE("order 4: a car on stiff tyres stands still") {
  const Mechanism car = mechanism("full_car");
  index3::Stepper stepper(car, of_order_4(1 * kMs));
  for (int k = 0; k < 500; ++k) REQUIRE(stepper.step(Inputs{}).status == StepStatus::ok);
  for (const index3::BodyState& body : stepper.state().body) CHECK(body.a.norm() < 1e-4);
}

TEST_CASE("order 4: random torques drive the four-bar through its singular pose a thousand times on its branch") {
  for (const Mechanism& m : {mechanism("four_bar"), four_bar_in_space()}) {
    for (const std::int64_t dt : {5 * kMs, 10 * kMs, 20 * kMs}) {
      CAPTURE(dt);
      CHECK(passes_on_the_branch(m, dt, 31) > 1000);
    }
    for (const std::int64_t dt : {1 * kMs, 2 * kMs}) {
      CAPTURE(dt);
      CHECK(passes_on_the_branch(m, dt, 10) > 300);
    }
  }
}

// What is reached is the half steps' state, moved on by the estimate. Where that is nearer to the true state by a
// factor of ten, the estimate is the half steps' error within a tenth.
TEST_CASE("order 4: the estimate of a step's error is the error of its half steps, within a tenth") {
  for (const char* name : {"chain_8", "four_bar", "hdca_case3"}) {
    CAPTURE(name);
    const Mechanism m = mechanism(name);
    index3::Stepper stepper(m, of_order_4(10 * kMs));
    for (int k = 0; k < 50; ++k) {
      std::vector<double> flat(stepper.state().flat_size());
      stepper.state().flatten(flat);
      const StepReport report = stepper.step(Inputs{});
      if (k % 10 != 9) continue;
      index3::Stepper fine(m, of_order_4(10 * kMs / 16));
      fine.restore(flat, static_cast<std::uint64_t>(16 * k));
      for (int i = 0; i < 16; ++i) fine.step(Inputs{});
      double true_error = 0.0;
      for (std::size_t i = 0; i < m.bodies().size(); ++i)
        true_error = std::max(true_error, (fine.state().body[i].r - stepper.state().body[i].r).norm());
      CHECK(report.position_error > 10.0 * true_error);
      CHECK(report.position_error < 1e-3);
    }
  }
}

TEST_CASE("order 4: accelerations satisfy the joints to rounding, in trees and beside couplings, too") {
  for (const char* name : {"chain_8", "geared_arm", "four_bar", "rack_and_pinion"}) {
    CAPTURE(name);
    const Mechanism m = mechanism(name);
    index3::Stepper stepper(m, of_order_4(1 * kMs));
    Inputs u;
    u.count = static_cast<int>(m.input_channels().size());
    u.value[0] = 1.0;
    for (int k = 0; k < 200; ++k) {
      const StepReport report = stepper.step(u);
      double largest = 1.0;
      for (const index3::BodyState& body : stepper.state().body)
        largest = std::max({largest, body.a.norm(), body.alpha_b.norm()});
      REQUIRE(report.acceleration_residual < 1e-9 * largest);
    }
  }
}

TEST_CASE("order 4: the body that a step names is the one that errs most") {
  Description d;
  for (const bool is_fast : {false, true}) {
    const std::string name = is_fast ? "fast" : "slow";
    Body rod = make_body(name, Vec3(0.5, is_fast ? 1.0 : 0.0, 0.0), 1.0);
    rod.angular_velocity_0 = Vec3(0.0, 0.0, is_fast ? 8.0 : 0.5);
    rod.velocity_0 = Vec3(0.0, is_fast ? 4.0 : 0.25, 0.0);
    d.bodies.push_back(rod);
    d.joints.push_back({name, JointType::revolute, "ground", name, Vec3(0.0, is_fast ? 1.0 : 0.0, 0.0), Vec3::UnitZ()});
  }
  index3::Stepper stepper(build(d), of_order_4(10 * kMs));
  for (int k = 0; k < 20; ++k) CHECK(stepper.step(Inputs{}).error_body == 1);
}

TEST_CASE("order 4 is refused for stops and ropes, and for steps that cannot be divided in two") {
  CHECK_THROWS_AS(index3::Stepper(mechanism("cart_with_stops"), of_order_4(1 * kMs)), MechanismError);
  CHECK_THROWS_AS(index3::Stepper(mechanism("hoist"), of_order_4(1 * kMs)), MechanismError);
  CHECK_THROWS_AS(index3::Stepper(mechanism("four_bar"), of_order_4(999'999)), MechanismError);
  index3::Settings third;
  third.order_of_accuracy = 3;
  CHECK_THROWS_AS(index3::Stepper(mechanism("four_bar"), third), MechanismError);
}
