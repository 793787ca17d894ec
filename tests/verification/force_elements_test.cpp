// Force elements against closed-form solutions, and stiff ones at a coarse step.
#include <doctest/doctest.h>

#include <cmath>

#include "core/index3/outputs/diagnostics.h"
#include "core/index3/outputs/sensors.h"
#include "core/index3/physics/elements/bushing.h"
#include "core/index3/stepper_access.h"
#include "core/mechanism/portable_math.h"
#include "tests/support/force_cases.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

using test::inputs_of;
using test::run;
using test::slide;
using test::step_of;

constexpr double kMass = 2.0, kStiffness = 800.0, kDamping = 8.0;

// x(t) of m x'' + c x' + k x = 0, x(0) = 0, x'(0) = v
double damped_oscillation(double t, double v, double mass, double stiffness, double damping) {
  const double decay = 0.5 * damping / mass, omega = std::sqrt(stiffness / mass - decay * decay);
  return v / omega * std::exp(-decay * t) * std::sin(omega * t);
}

double order(double coarse, double fine) { return std::log2(coarse / fine); }

Bushing diagonal_bushing(double stiffness, double damping, double ratio = 1.0) {
  Bushing b;
  b.name = "mount";
  for (int i = 0; i < 6; ++i) {
    b.stiffness(i, i) = i < 3 ? stiffness : ratio * stiffness;
    b.damping(i, i) = i < 3 ? damping : ratio * damping;
  }
  return b;
}

double x_of(const Stepper& s, std::size_t body = 0) { return s.state().body[body].r[0]; }

}  // namespace

TEST_CASE("a spring with preload, a table and a linear part rests where their sum carries the weight") {
  MechanismBuilder b = slide(kMass, 0.0, {9.81, 0.0, 0.0});
  Spring s;
  s.name = "s";
  s.stiffness = 10.0;
  s.damping = 40.0;
  s.preload = 3.0;
  s.rest = 0.01;
  s.stiffness_table = {{-0.1, 0.0, 0.05, 0.1}, {-20.0, 0.0, 5.0, 15.0}};
  b.add_joint_spring(s, "rail", Freedom::displacement);
  test::show_element(b, "s");
  Stepper stepper(b.build(), step_of(1e-3));
  REQUIRE(run(stepper, 10.0));
  const double deflection = x_of(stepper) - s.rest;
  CHECK(3.0 + 9.81 * kMass == doctest::Approx(10.0 * deflection + s.stiffness_table.value(deflection)).epsilon(1e-9));
  CHECK(deflection > 0.1);  // beyond the table, on its last slope
  CHECK(workspace_of(stepper).reading<Spring>()[0].effort == doctest::Approx(-9.81 * kMass).epsilon(1e-9));
}

TEST_CASE("a damped oscillation follows its exact solution with order 2, by spring, table and bushing alike") {
  const double t = 0.7, exact = damped_oscillation(t, 1.0, kMass, kStiffness, kDamping);
  const auto error = [&](int kind, double dt) {
    MechanismBuilder b = slide(kMass, 1.0);
    Spring s;
    s.name = "s";
    if (kind == 0) {
      s.stiffness = kStiffness;
      s.damping = kDamping;
    } else {
      s.stiffness_table = {{-1.0, 0.0, 2.0}, {-kStiffness, 0.0, 2.0 * kStiffness}};
      s.damping_table = {{-0.5, 0.5}, {-0.5 * kDamping, 0.5 * kDamping}};
    }
    if (kind == 2)
      b.add_bushing(diagonal_bushing(kStiffness, kDamping), "ground", "block", MechanismBuilder::SideInBody{});
    else
      b.add_joint_spring(s, "rail", Freedom::displacement);
    Stepper stepper(b.build(), step_of(dt));
    REQUIRE(run(stepper, t));
    return std::abs(x_of(stepper) - exact);
  };
  for (const int kind : {0, 1, 2}) {
    const double coarse = error(kind, 2e-3), fine = error(kind, 1e-3);
    CAPTURE(kind);
    CAPTURE(coarse);
    CHECK(fine < 1e-4);
    CHECK(order(coarse, fine) > 1.9);
    CHECK(order(coarse, fine) < 2.1);
  }
}

TEST_CASE("a bushing between two moving bodies oscillates with their reduced mass, at order 2") {
  const double m1 = 1.0, m2 = 3.0, t = 0.3, reduced = m1 * m2 / (m1 + m2);
  const double exact = damped_oscillation(t, 1.0, reduced, 2000.0, 3.0);
  const auto error = [&](double dt) {
    MechanismBuilder b("pair");
    Body first = test::make_body("first", Vec3::Zero(), m1), second = test::make_body("second", {0.3, 0.0, 0.0}, m2);
    second.velocity_0 = {1.0, 0.0, 0.0};
    b.add_body(first);
    b.add_body(second);
    MechanismBuilder::SideInBody at;
    at.point = {0.1, 0.0, 0.0};
    b.add_bushing(diagonal_bushing(2000.0, 3.0), "first", "second", at);
    Stepper s(b.build(), step_of(dt));
    REQUIRE(run(s, t));
    CHECK(m1 * s.state().body[0].v[0] + m2 * s.state().body[1].v[0] == doctest::Approx(m2).epsilon(1e-10));
    return std::abs(x_of(s, 1) - x_of(s, 0) - 0.3 - exact);
  };
  const double coarse = error(2e-3), fine = error(1e-3);
  CHECK(order(coarse, fine) > 1.9);
  CHECK(order(coarse, fine) < 2.1);
}

TEST_CASE("a pendulum on a stiff bushing that is free about one axis swings with order 2") {
  const auto height = [](double dt) {
    MechanismBuilder b("pendulum");
    b.set_gravity({0.0, -9.81, 0.0});
    b.add_body(test::make_body("bob", {0.6, -0.8, 0.0}, 1.0, 0.01 * Mat3::Identity()));
    Bushing hinge = diagonal_bushing(1e7, 1e4, 1e-2);
    hinge.stiffness(5, 5) = hinge.damping(5, 5) = 0.0;
    b.add_bushing(hinge, "ground", "bob", MechanismBuilder::SideInBody{});
    Stepper s(b.build(), step_of(dt));
    CHECK(plan_of(s).elements[0].rows == 5);
    REQUIRE(run(s, 0.6));
    return s.state().body[0].r[1];
  };
  const double reference = height(1e-4);
  const double coarse = std::abs(height(4e-3) - reference), fine = std::abs(height(2e-3) - reference);
  CAPTURE(coarse);
  CHECK(order(coarse, fine) > 1.9);
  CHECK(order(coarse, fine) < 2.1);
  CHECK(fine < 1e-4);
}

TEST_CASE("the quarter car stands still, and follows a wavy road with order two") {
  const Mechanism m = test::mechanism("quarter_car");
  Stepper still(m, step_of(1e-3));
  REQUIRE(run(still, 3.0));
  for (std::size_t i = 0; i < m.bodies().size(); ++i)
    CHECK((still.state().body[i].r - m.bodies()[i].position_0).norm() < 1e-8);
  const auto chassis = [&m](double dt) {
    Stepper s(m, step_of(dt));
    for (int k = 1; k <= std::lround(1.0 / dt); ++k) {
      const double phase = 4.0 * kPi * k * dt;
      REQUIRE(s.step(inputs_of({0.01 * (1.0 - std::cos(phase)), 0.04 * kPi * std::sin(phase)})).status ==
              StepStatus::ok);
    }
    return s.state().body[0].r[2];
  };
  const double reference = chassis(1.25e-4);
  const double coarse = std::abs(chassis(2e-3) - reference), fine = std::abs(chassis(1e-3) - reference);
  CAPTURE(coarse);
  CAPTURE(fine);
  CHECK(order(coarse, fine) > 1.7);  // the damper's characteristic has kinks
  CHECK(fine < 1e-5);
}

TEST_CASE("stiff mounts of light bodies stay bounded at 1 ms, whatever they connect") {
  for (const double damping : {0.0, 1e4}) {
    MechanismBuilder b("stiff");
    b.set_gravity({0.0, 0.0, -9.81});
    const char* const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; ++i) {
      Body body = test::make_body(names[i], {0.1 * i, 0.0, 0.0}, 0.1, 1e-4 * Mat3::Identity());
      body.velocity_0 = {0.0, 0.02 * i, 0.0};
      b.add_body(body);
    }
    const char* before = "ground";
    for (int i = 0; i < 3; ++i) {
      Bushing mount = diagonal_bushing(1e7, damping, 1e-2);
      mount.name = std::string("mount_") + names[i];
      MechanismBuilder::SideInBody at;
      at.point = {0.1 * i - 0.05, 0.0, 0.0};
      b.add_bushing(mount, before, names[i], at);
      before = names[i];
    }
    Stepper s(b.build(), step_of(1e-3));
    const double start = energy(plan_of(s), s.state(), workspace_of(s)).kinetic;
    CAPTURE(damping);
    double most = 0.0;
    for (int k = 0; k < 10000; ++k) {
      REQUIRE(s.step({}).status == StepStatus::ok);
      for (int i = 0; i < 3; ++i) most = std::max(most, (s.state().body[i].r - Vec3(0.1 * i, 0.0, 0.0)).norm());
    }
    CHECK(most < 2e-4);
    CHECK(energy(plan_of(s), s.state(), workspace_of(s)).kinetic < start + 1e-3);
  }
}

TEST_CASE("a stiff spring between two light bodies stays bounded at 1 ms") {
  for (const double damping : {0.0, 1e4}) {
    MechanismBuilder b("stiff_pair");
    Body first = test::make_body("a", Vec3::Zero(), 0.1), second = test::make_body("b", {0.2, 0.0, 0.0}, 0.1);
    second.velocity_0 = {0.1, 0.0, 0.0};
    first.velocity_0 = {-0.1, 0.0, 0.0};
    b.add_body(first);
    b.add_body(second);
    Spring s;
    s.name = "s";
    s.stiffness = 1e7;
    s.damping = damping;
    s.rest = 0.2;
    b.add_spring(s, "a", "b");
    Stepper stepper(b.build(), step_of(1e-3));
    CAPTURE(damping);
    REQUIRE(run(stepper, 10.0));
    CHECK(std::abs(x_of(stepper, 1) - x_of(stepper, 0) - 0.2) < 1e-3);
  }
}

TEST_CASE("friction and a servo between two light bodies hold them together") {
  MechanismBuilder b("arm");
  b.add_body(test::make_body("a", Vec3::Zero(), 0.1, 1e-4 * Mat3::Identity()));
  Body second = test::make_body("b", {0.0, 0.0, 0.1}, 0.1, 1e-4 * Mat3::Identity());
  second.angular_velocity_0 = {0.0, 0.0, 5.0};
  b.add_body(second);
  b.add_joint(test::make_joint("hinge", JointType::revolute, "a", "b", Vec3::Zero()));
  b.add_friction({.name = "f", .coulomb = 1.0, .regularisation_speed = 1e-3}, "hinge", Freedom::angle);
  Motor servo;
  servo.name = "servo";
  servo.position_gain = 1e3;
  servo.rate_gain = 10.0;
  b.add_motor(servo, "hinge", Freedom::angle, {});
  test::show_element(b, "servo");
  Stepper s(b.build(), step_of(1e-3));
  REQUIRE(run(s, 10.0));
  CHECK(std::abs(workspace_of(s).reading<Motor>()[0].deflection) < 1e-2);
  CHECK(std::abs(workspace_of(s).reading<Motor>()[0].rate) < 1e-4);
  // the angular momentum about the axis, which the trapezoidal rule keeps up to dt^2
  CHECK(s.state().body[0].w_b[2] + s.state().body[1].w_b[2] == doctest::Approx(5.0).epsilon(1e-4));
}

TEST_CASE("without damping, springs, tables and bushings give back the energy they take") {
  MechanismBuilder b("conservative");
  b.set_gravity({0.0, 0.0, -9.81});
  b.add_body(test::make_body("a", Vec3::Zero(), 1.0, 0.1 * Mat3::Identity()));
  Body second = test::make_body("b", {0.5, 0.0, 0.0}, 1.5, Vec3(0.1, 0.2, 0.25).asDiagonal());
  second.angular_velocity_0 = {1.0, 2.0, 0.5};
  b.add_body(second);
  Spring hang;
  hang.name = "hang";
  hang.first_point_b = {0.0, 0.1, 1.0};
  hang.preload = -5.0;
  hang.rest = 1.0;
  hang.stiffness_table = {{-0.2, 0.0, 0.2}, {-20.0, 0.0, 60.0}};
  b.add_spring(hang, "ground", "a");
  Bushing mount = diagonal_bushing(400.0, 0.0, 0.1);
  mount.stiffness(0, 4) = mount.stiffness(4, 0) = 30.0;
  MechanismBuilder::SideInBody at;
  at.point = {0.2, 0.1, 0.0};
  b.add_bushing(mount, "a", "b", at);
  const auto loss = [&](double dt) {
    MechanismBuilder copy = b;
    Stepper s(copy.build(), step_of(dt));
    const auto total = [&s] {
      const Energy e = energy(plan_of(s), s.state(), workspace_of(s));
      return e.kinetic + e.potential;
    };
    const double start = total();
    double most = 0.0;
    for (int k = 0; k < static_cast<int>(2.0 / dt); ++k) {
      REQUIRE(s.step({}).status == StepStatus::ok);
      most = std::max(most, std::abs(total() - start));
    }
    return most;
  };
  const double coarse = loss(1e-3), fine = loss(5e-4);
  CHECK(coarse < 2e-2);
  CHECK(fine < 0.5 * coarse);
}

TEST_CASE("Coulomb friction stops a block where v^2 / 2 mu g says, and then holds it") {
  for (const double dt : {1e-3, 2.5e-4}) {
    MechanismBuilder b = slide(kMass, 1.0);
    b.add_friction({.name = "f", .coulomb = 0.3 * 9.81 * kMass, .regularisation_speed = 1e-3}, "rail",
                   Freedom::displacement);
    Stepper s(b.build(), step_of(dt));
    REQUIRE(run(s, 1.0));
    const double stop = 0.5 / (0.3 * 9.81);
    CHECK(x_of(s) == doctest::Approx(stop).epsilon(3e-3));
    CHECK(std::abs(s.state().body[0].v[0]) < 1e-6);
    REQUIRE(run(s, 1.0));
    CHECK(std::abs(s.state().body[0].v[0]) < 1e-9);
  }
}

TEST_CASE("friction far stiffer than the step resolves does not chatter") {
  for (const double regularisation : {1e-3, 1e-4, 1e-6}) {
    MechanismBuilder b = slide(0.1, 1.0);
    b.add_friction({.name = "f", .coulomb = 10.0, .regularisation_speed = regularisation}, "rail",
                   Freedom::displacement);
    Stepper s(b.build(), step_of(1e-3));
    REQUIRE(run(s, 1.0));
    CAPTURE(regularisation);
    CHECK(std::abs(s.state().body[0].v[0]) < 10.0 * regularisation);
  }
}

TEST_CASE("below its Coulomb effort a joint creeps at the speed that the regularisation states") {
  const double coulomb = 10.0, pull = 6.0, v_r = 1e-3;
  MechanismBuilder b = slide(kMass);
  b.add_friction({.name = "f", .coulomb = coulomb, .regularisation_speed = v_r}, "rail", Freedom::displacement);
  Motor motor;
  motor.name = "m";
  motor.constant = pull;
  b.add_motor(motor, "rail", Freedom::displacement, {});
  Stepper s(b.build(), step_of(1e-3));
  REQUIRE(run(s, 1.0));
  CHECK(s.state().body[0].v[0] ==
        doctest::Approx(v_r * pull / std::sqrt(coulomb * coulomb - pull * pull)).epsilon(1e-6));
}

TEST_CASE("a motor keeps its limit, its speed-torque line and its servo target") {
  const auto driven = [](const Motor& motor, double time, const Inputs& u, bool with_target) {
    MechanismBuilder b = slide(kMass);
    Input in;
    in.name = "command";
    b.add_signal_input(in);
    b.add_motor(motor, "rail", Freedom::displacement,
                with_target ? MechanismBuilder::MotorInputs{"", "command", ""}
                            : MechanismBuilder::MotorInputs{"command", "", ""});
    Stepper s(b.build(), step_of(1e-3));
    REQUIRE(run(s, time, u));
    return s.state().body[0];
  };
  Motor motor;
  motor.name = "m";
  motor.effort_limit = 4.0;
  CHECK(driven(motor, 1.0, inputs_of({3.0}), false).v[0] == doctest::Approx(1.5).epsilon(2e-3));
  CHECK(driven(motor, 1.0, inputs_of({30.0}), false).v[0] == doctest::Approx(2.0).epsilon(2e-3));
  motor.no_load_speed = 2.0;  // m v' = limit (1 - v / v0)
  CHECK(driven(motor, 1.0, inputs_of({30.0}), false).v[0] ==
        doctest::Approx(2.0 * (1.0 - std::exp(-1.0))).epsilon(2e-3));
  CHECK(driven(motor, 1.0, inputs_of({-30.0}), false).v[0] ==
        doctest::Approx(-2.0 * (1.0 - std::exp(-1.0))).epsilon(2e-3));
  motor.no_load_speed = 0.0;
  motor.position_gain = 1e5;
  motor.rate_gain = 2e3;
  motor.effort_limit = 1e3;
  const BodyState held = driven(motor, 3.0, inputs_of({0.25}), true);
  CHECK(held.r[0] == doctest::Approx(0.25).epsilon(1e-9));
  CHECK(std::abs(held.v[0]) < 1e-9);
}

TEST_CASE("a falling body approaches its terminal velocity as the tanh of time, and wind carries one along") {
  const double g = 9.81, drag_area = 0.5, factor = 0.5 * 1.225 * drag_area;
  MechanismBuilder b("fall");
  b.set_gravity({0.0, 0.0, -g});
  b.add_body(test::make_body("ball", Vec3::Zero(), kMass));
  b.add_drag({.name = "air", .drag_area = drag_area}, "ball");
  const double terminal = std::sqrt(kMass * g / factor);
  const auto error = [&](double dt) {
    MechanismBuilder copy = b;
    Stepper s(copy.build(), step_of(dt));
    REQUIRE(run(s, 1.0));
    return std::abs(s.state().body[0].v[2] + terminal * std::tanh(g / terminal));
  };
  const double coarse = error(2e-2), fine = error(1e-2);
  CHECK(order(coarse, fine) > 1.9);
  CHECK(order(coarse, fine) < 2.1);
  MechanismBuilder calm("wind");
  calm.add_body(test::make_body("leaf", Vec3::Zero(), 0.01));
  calm.add_drag({.name = "air", .drag_area = 1.0, .wind_0 = {3.0, -4.0, 0.0}}, "leaf");
  Stepper s(calm.build(), step_of(1e-3));
  REQUIRE(run(s, 100.0));
  CHECK((s.state().body[0].v - Vec3(3.0, -4.0, 0.0)).norm() < 1e-3);
}

namespace {

constexpr double kRadius = 0.3, kTyreStiffness = 2e5, kWheelMass = 20.0, kLoad = 280.0;

Tyre test_tyre() {
  Tyre t;
  t.name = "tyre";
  t.radius = kRadius;
  t.stiffness = kTyreStiffness;
  t.damping = 500.0;
  return t;
}

// A wheel in a carriage that moves freely along x and z, does not turn, and weighs kLoad [kg] beside the wheel.
MechanismBuilder carriage(double speed, const Vec3& gravity, bool rolls = true) {
  MechanismBuilder b("carriage");
  b.set_gravity(gravity);
  const double height = kRadius - (kLoad + kWheelMass) * 9.81 / kTyreStiffness;
  Body primal_body = test::make_body("hub", {0.0, 0.0, height}, kLoad),
       slider = test::make_body("slider", {0.0, 0.0, height});
  Body wheel = test::make_body("wheel", {0.0, 0.0, height}, kWheelMass, Vec3(0.5, 1.0, 0.5).asDiagonal());
  primal_body.velocity_0 = slider.velocity_0 = wheel.velocity_0 = {speed, 0.0, 0.0};
  if (rolls) wheel.angular_velocity_0 = {0.0, speed / height, 0.0};
  b.add_body(slider);
  b.add_body(primal_body);
  b.add_body(wheel);
  const Vec3 at{0.0, 0.0, height};
  b.add_joint(test::make_joint("along", JointType::prismatic, "ground", "slider", at, Vec3::UnitX()));
  b.add_joint(test::make_joint("up", JointType::prismatic, "slider", "hub", at, Vec3::UnitZ()));
  b.add_joint(test::make_joint("axle", JointType::revolute, "hub", "wheel", at, Vec3::UnitY()));
  b.add_tyre(test_tyre(), "wheel", "", "");
  return b;
}

const Vec3 kDown{0.0, 0.0, -9.81};

}  // namespace

TEST_CASE("a wheel rests on its tyre at the static deflection and stays where it stands") {
  MechanismBuilder b = carriage(0.0, kDown);
  Stepper s(b.build(), step_of(1e-3));
  REQUIRE(run(s, 10.0));
  const TyreReading& tyre = workspace_of(s).reading<Tyre>()[0];
  CHECK(tyre.fz == doctest::Approx((kLoad + kWheelMass) * 9.81).epsilon(1e-9));
  CHECK(tyre.deflection == doctest::Approx((kLoad + kWheelMass) * 9.81 / kTyreStiffness).epsilon(1e-9));
  CHECK(std::abs(x_of(s)) < 1e-9);
}

TEST_CASE("on a slope with the wheel locked the tyre creeps no faster than stated") {
  MechanismBuilder b = carriage(0.0, {0.98, 0.0, -9.76});  // 10 percent
  b.add_friction({.name = "brake", .coulomb = 1e4, .regularisation_speed = 1e-5}, "axle", Freedom::angle);
  Stepper s(b.build(), step_of(1e-3));
  REQUIRE(run(s, 2.0));
  CHECK(std::abs(s.state().body[1].v[0]) < 1.2 * 0.1 * 0.1 / (10.0 * 1.65));
  CHECK(workspace_of(s).reading<Tyre>()[0].fx == doctest::Approx(-0.98 * (kLoad + kWheelMass + 1.0)).epsilon(1e-3));
}

TEST_CASE("a free wheel rolls on without slip, and one that is set down without spin is spun up") {
  MechanismBuilder b = carriage(10.0, kDown);
  Stepper s(b.build(), step_of(1e-3));
  REQUIRE(run(s, 5.0));
  CHECK(s.state().body[1].v[0] == doctest::Approx(10.0).epsilon(1e-3));
  CHECK(std::abs(workspace_of(s).reading<Tyre>()[0].slip) < 1e-5);
  MechanismBuilder skid = carriage(10.0, kDown, false);
  Stepper t(skid.build(), step_of(1e-3));
  REQUIRE(run(t, 3.0));
  const double height = t.state().body[2].r[2];
  CHECK(t.state().body[2].w_b[1] == doctest::Approx(t.state().body[1].v[0] / height).epsilon(1e-4));
}

TEST_CASE("a locked wheel decelerates as the formula says for full slip") {
  MechanismBuilder b = carriage(20.0, kDown, false);
  Motor lock;  // holds the angle
  lock.name = "lock";
  lock.position_gain = 1e7;
  lock.rate_gain = 1e5;
  b.add_motor(lock, "axle", Freedom::angle, {});
  Stepper s(b.build(), step_of(1e-3));
  REQUIRE(run(s, 1.0));
  const double v = s.state().body[1].v[0];
  const double share = std::sin(1.65 * std::atan(10.0));  // friction 1, B = 10, E = 0, kappa = -1
  CHECK(v == doctest::Approx(20.0 - share * 9.81).epsilon(2e-3));
  CHECK(workspace_of(s).reading<Tyre>()[0].slip == doctest::Approx(-1.0).epsilon(1e-3));
}

TEST_CASE("a braked wheel slips so much that the formula gives the braking force") {
  const double torque = 600.0;
  MechanismBuilder b = carriage(30.0, kDown);
  Motor brake;
  brake.name = "brake";
  brake.constant = -torque;  // the axle's angle grows as it rolls along +x
  b.add_motor(brake, "axle", Freedom::angle, {});
  Stepper s(b.build(), step_of(1e-3));
  REQUIRE(run(s, 2.0));
  const TyreReading& tyre = workspace_of(s).reading<Tyre>()[0];
  CHECK(tyre.slip < 0.0);
  CHECK(tyre.fx == doctest::Approx(tyre.fz * std::sin(1.65 * std::atan(10.0 * tyre.slip))).epsilon(1e-9));
  // M v' = fx, J w' = -torque - fx R, v = w R up to slip
  const double height = s.state().body[2].r[2], total = kLoad + kWheelMass + 1.0;
  const double deceleration = torque / height / (total + 1.0 / (height * height));
  CHECK(s.state().body[1].v[0] == doctest::Approx(30.0 - 2.0 * deceleration).epsilon(5e-3));
}

TEST_CASE("a wheel that rolls at a slip angle is pushed sideways by the formula's force") {
  const double angle = 0.05;
  MechanismBuilder b("sideways");
  b.set_gravity(kDown);
  const double height = kRadius - kWheelMass * 9.81 / kTyreStiffness;
  Body wheel = test::make_body("wheel", {0.0, 0.0, height}, kWheelMass, Vec3(0.5, 1.0, 0.5).asDiagonal());
  const double v = 20.0;
  wheel.velocity_0 = {v, v * std::tan(angle), 0.0};
  wheel.angular_velocity_0 = {0.0, v / height, 0.0};
  b.add_body(wheel);
  b.add_tyre(test_tyre(), "wheel", "", "");
  Stepper s(b.build(), step_of(1e-4));
  REQUIRE_FALSE(failed(s.step({}).status));
  const TyreReading& tyre = workspace_of(s).reading<Tyre>()[0];
  CHECK(tyre.tan_alpha == doctest::Approx(std::tan(-angle)).epsilon(0.02));
  CHECK(tyre.fy == doctest::Approx(tyre.fz * std::sin(1.65 * std::atan(10.0 * tyre.tan_alpha))).epsilon(1e-6));
  CHECK(tyre.fy < 0.0);
}

TEST_CASE("a dropped wheel is never pulled by the road, and bounces with the energy it had") {
  MechanismBuilder b("drop");
  b.set_gravity(kDown);
  Body wheel = test::make_body("wheel", {0.0, 0.0, kRadius + 0.1}, kWheelMass, Vec3(0.5, 1.0, 0.5).asDiagonal());
  b.add_body(wheel);
  Tyre tyre = test_tyre();
  tyre.damping = 0.0;
  tyre.stiffness = 2e4;
  b.add_tyre(tyre, "wheel", "", "");
  Stepper s(b.build(), step_of(2e-4));
  const Energy start = energy(plan_of(s), s.state(), workspace_of(s));
  double highest = 0.0;
  for (int k = 0; k < 5000; ++k) {
    REQUIRE_FALSE(failed(s.step({}).status));
    CHECK(workspace_of(s).reading<Tyre>()[0].fz >= 0.0);
    if (k > 1500) highest = std::max(highest, s.state().body[0].r[2]);
  }
  const Energy end = energy(plan_of(s), s.state(), workspace_of(s));
  CHECK(highest == doctest::Approx(kRadius + 0.1).epsilon(2e-3));
  CHECK(end.kinetic + end.potential == doctest::Approx(start.kinetic + start.potential).epsilon(2e-3));
}

TEST_CASE("the road height input lifts a wheel") {
  MechanismBuilder b("lift");
  b.set_gravity(kDown);
  const double height = kRadius - kWheelMass * 9.81 / kTyreStiffness;
  b.add_body(test::make_body("wheel", {0.0, 0.0, height}, kWheelMass, Vec3(0.5, 1.0, 0.5).asDiagonal()));
  Input in;
  in.name = "road";
  in.unit = "m";
  b.add_signal_input(in);
  b.add_tyre(test_tyre(), "wheel", "road", "");
  Stepper s(b.build(), step_of(1e-3));
  REQUIRE(run(s, 3.0, inputs_of({0.02})));
  CHECK(s.state().body[0].r[2] == doctest::Approx(height + 0.02).epsilon(1e-6));
}

}  // namespace rigstep::index3
