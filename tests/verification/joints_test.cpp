// Joints, couplings and drivers against closed-form solutions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/sensors.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/step/workspace.h"
#include "core/index3/stepper.h"
#include "core/mechanism/assembly.h"
#include "core/mechanism/portable_math.h"
#include "tests/support/mechanisms.h"

namespace rigstep::index3 {
namespace {

Driver polynomial(const std::string& name, std::vector<double> coefficient) {
  Driver d;
  d.name = name;
  d.function = rigstep::polynomial(std::move(coefficient));
  return d;
}

Driver harmonic(const std::string& name, double constant, double amplitude, double angular_frequency, double phase) {
  Driver d;
  d.name = name;
  d.function = rigstep::harmonic(constant, amplitude, angular_frequency, phase);
  return d;
}

// a spring without stiffness, so that the coordinate is followed
test::Description::JointSpring follower(const std::string& name, const std::string& joint, Freedom freedom) {
  Spring spring;
  spring.name = name;
  return {spring, joint, freedom};
}

Mat3 cardan(double first, double second, double third) {
  return (Eigen::AngleAxisd(first, Vec3::UnitZ()) * Eigen::AngleAxisd(second, Vec3::UnitY()) *
          Eigen::AngleAxisd(third, Vec3::UnitX()))
      .toRotationMatrix();
}

}  // namespace

TEST_CASE("a nut on a screw falls as if it had the mass m + J (2 pi / lead)^2") {
  for (const double lead : {0.5, -0.05}) {
    test::Description d;
    d.gravity = {0.0, 0.0, -9.81};
    d.bodies = {test::make_body("nut", {0.0, 0.0, 1.0}, 2.0, Vec3(0.01, 0.01, 0.015).asDiagonal())};
    auto thread = test::make_joint("thread", JointType::screw, "ground", "nut", {0.0, 0.0, 1.0});
    thread.lead = lead;
    thread.coordinate_at_start = 0.3;
    d.joints = {thread};
    d.joint_springs = {follower("z", "thread", Freedom::displacement), follower("turn", "thread", Freedom::angle)};
    const double pitch = lead / (2.0 * kPi), a = -9.81 * 2.0 / (2.0 + 0.015 / (pitch * pitch));
    Stepper s(test::build(d), {});
    CHECK(s.state().body[0].a[2] == doctest::Approx(a).epsilon(1e-10));
    CHECK(s.state().body[0].alpha_b[2] == doctest::Approx(a / pitch).epsilon(1e-10));
    CHECK(s.state().coordinate[1] == doctest::Approx(0.3 / pitch).epsilon(1e-12));
    for (int k = 0; k < 2000; ++k) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
    // the trapezoidal rule turns too slowly by (w dt)^2 / 48 and more, with w dt up to 0.11
    CHECK(s.state().coordinate[0] == doctest::Approx(0.3 + 2.0 * a).epsilon(1e-3));
    CHECK(s.state().coordinate[0] == doctest::Approx(pitch * s.state().coordinate[1]).epsilon(1e-10));
    CHECK(std::abs(s.state().coordinate[1] - 0.3 / pitch) > 2.0 * kPi);  // over full turns
  }
}

TEST_CASE("a rack drives its pinion with the mass m + J / r^2, over many turns") {
  const double r = 0.05;
  test::Description d;
  d.gravity = {3.0, 0.0, 0.0};
  d.bodies = {test::make_body("pinion", Vec3::Zero(), 1.0, Vec3(0.01, 0.01, 0.02).asDiagonal()),
              test::make_body("rack", {0.0, -r, 0.0}, 4.0)};
  d.joints = {test::make_joint("axle", JointType::revolute, "ground", "pinion", Vec3::Zero()),
              test::make_joint("rail", JointType::prismatic, "ground", "rack", {0.0, -r, 0.0}, Vec3::UnitX())};
  d.couplings = {{"mesh", {"rail", Freedom::displacement}, {"axle", Freedom::angle}, -r}};
  const double a = 3.0 * 4.0 / (4.0 + 0.02 / (r * r));
  Stepper s(test::build(d), {});
  CHECK(s.state().body[1].a[0] == doctest::Approx(a).epsilon(1e-8));
  CHECK(s.state().body[0].alpha_b[2] == doctest::Approx(a / r).epsilon(1e-8));
  for (int k = 0; k < 2000; ++k) {
    const StepReport report = s.step(Inputs{});
    REQUIRE(report.status == StepStatus::ok);
    CHECK(report.position_residual < 1e-12);
    CHECK(report.velocity_residual < 1e-9);
    CHECK(report.acceleration_residual < 1e-6);
  }
  CHECK(s.state().body[1].r[0] == doctest::Approx(0.5 * a * 4.0).epsilon(1e-4));
  CHECK(s.state().coordinate[1] == doctest::Approx(s.state().coordinate[0] / r).epsilon(1e-10));
  CHECK(s.state().coordinate[1] > 2.0 * kPi);
}

TEST_CASE("gears on a turning arm share the torque by their ratio, and the coupling is internal") {
  // two gears on one free arm: momentum and angular momentum about the centre of mass stay, the gears turn by ratio
  test::Description d;
  d.bodies = {test::make_body("arm", Vec3::Zero(), 2.0, Vec3(0.2, 0.2, 0.3).asDiagonal()),
              test::make_body("left", {-0.3, 0.0, 0.1}, 1.0, Vec3(0.02, 0.02, 0.03).asDiagonal()),
              test::make_body("right", {0.2, 0.0, 0.1}, 0.5, Vec3(0.01, 0.01, 0.012).asDiagonal())};
  d.bodies[1].angular_velocity_0 = {0.0, 0.0, 4.0};
  d.joints = {test::make_joint("a", JointType::revolute, "arm", "left", {-0.3, 0.0, 0.0}),
              test::make_joint("b", JointType::revolute, "arm", "right", {0.2, 0.0, 0.0})};
  d.couplings = {{"mesh", {"a", Freedom::angle}, {"b", Freedom::angle}, 1.5}};
  d.joint_inputs = {{"motor", "a", Freedom::angle}};
  const Mechanism m = test::build(test::made_consistent(d));
  Stepper s(m, {});
  const auto spin = [&] {
    Vec3 L = Vec3::Zero();
    for (std::size_t i = 0; i < 3; ++i) {
      const BodyState& b = s.state().body[i];
      L += m.bodies()[i].mass * b.r.cross(b.v) + rotation_matrix(b.p) * (m.bodies()[i].inertia_b * b.w_b);
    }
    return L;
  };
  const Vec3 before = spin();
  Inputs u;
  u.count = 1;
  u.value[0] = 0.7;
  for (int k = 0; k < 500; ++k) {
    const StepReport report = s.step(u);
    REQUIRE(report.status == StepStatus::ok);
    REQUIRE(report.position_residual < 1e-12);
  }
  CHECK((spin() - before).norm() < 1e-4 * before.norm());
  CHECK(s.state().coordinate[0] + 1.5 * s.state().coordinate[1] == doctest::Approx(0.0).epsilon(1e-11));
  CHECK(std::abs(s.state().coordinate[0]) > 0.5);
}

TEST_CASE("a coupling of four bodies of their own turns them against each other") {
  test::Description d;
  for (int i = 0; i < 4; ++i) {
    const double mass = 1.0 + 0.3 * i, inertia = 0.1 * (1.0 + i);
    d.bodies.push_back(test::make_body(test::body_name(i), {1.0 * i, 0.0, 0.0}, mass, inertia * Mat3::Identity()));
  }
  d.joints = {test::make_joint("a", JointType::revolute, "body0", "body1", {0.5, 0.0, 0.0}),
              test::make_joint("b", JointType::revolute, "body2", "body3", {2.5, 0.0, 0.0})};
  d.couplings = {{"belt", {"a", Freedom::angle}, {"b", Freedom::angle}, -2.0}};
  Driver driver = polynomial("drive", {0.0, 0.0, 0.5});
  d.drivers = {{driver, {"a", Freedom::angle}}};
  Stepper s(test::build(d), {});
  for (int k = 0; k < 1000; ++k) {
    const StepReport report = s.step(Inputs{});
    REQUIRE(report.status == StepStatus::ok);
    REQUIRE(report.position_residual < 1e-12);
    REQUIRE(report.velocity_residual < 1e-10);
    REQUIRE(report.acceleration_residual < 1e-7);
  }
  CHECK(s.state().coordinate[0] == doctest::Approx(0.5).epsilon(1e-11));
  CHECK(s.state().coordinate[1] == doctest::Approx(0.25).epsilon(1e-11));
}

TEST_CASE("a ball on a rod without mass is a conical pendulum: w^2 = g / (L cos)") {
  const double L = 2.0, tilt = 0.6;
  const double height = L * std::cos(tilt), radius = L * std::sin(tilt), w = std::sqrt(9.81 / height);
  test::Description d;
  d.gravity = {0.0, 0.0, -9.81};
  d.bodies = {test::make_body("ball", {radius, 0.0, -height}, 3.0)};
  d.bodies[0].velocity_0 = {0.0, w * radius, 0.0};
  auto rod = test::make_joint("rod", JointType::distance, "ground", "ball", Vec3::Zero());
  rod.second_point = d.bodies[0].position_0;
  d.joints = {rod};
  const Mechanism m = test::build(d);
  CHECK(m.joints()[0].length == doctest::Approx(L).epsilon(1e-15));
  const auto error = [&](std::int64_t dt_ns) {
    Stepper s(m, {.dt_ns = dt_ns});
    const Vec3 pull = s.joint_reaction(0).head<3>();
    CHECK(pull.norm() == doctest::Approx(3.0 * 9.81 / std::cos(tilt)).epsilon(1e-9));
    const auto steps = static_cast<int>(2'000'000'000 / dt_ns);
    for (int k = 0; k < steps; ++k) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
    CHECK(s.state().body[0].r.norm() == doctest::Approx(L).epsilon(1e-13));
    return (s.state().body[0].r - Vec3(radius * std::cos(2.0 * w), radius * std::sin(2.0 * w), -height)).norm();
  };
  const double coarse = error(4'000'000), fine = error(2'000'000);
  CHECK(fine < 1e-4);
  CHECK(std::log2(coarse / fine) == doctest::Approx(2.0).epsilon(0.05));
}

TEST_CASE("a block slides down an inclined plane with g sin, spinning on as it was") {
  const double slope = 0.4;
  const Vec3 normal{std::sin(slope), 0.0, std::cos(slope)}, down{std::cos(slope), 0.0, -std::sin(slope)};
  test::Description d;
  d.gravity = {0.0, 0.0, -9.81};
  d.bodies = {test::make_body("block", 0.2 * normal, 2.0)};
  d.bodies[0].velocity_0 = 0.3 * normal.cross(down);
  d.bodies[0].angular_velocity_0 = 2.0 * normal;
  auto joint = test::make_joint("plane", JointType::planar, "ground", "block", 0.2 * normal, normal);
  joint.normal = down;
  d.joints = {joint};
  d.joint_springs = {follower("x", "plane", Freedom::displacement_x), follower("y", "plane", Freedom::displacement_y),
                     follower("turn", "plane", Freedom::angle)};
  Stepper s(test::build(d), {});
  for (int k = 0; k < 1000; ++k) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
  CHECK(s.state().coordinate[0] == doctest::Approx(0.5 * 9.81 * std::sin(slope)).epsilon(1e-10));
  CHECK(s.state().coordinate[1] == doctest::Approx(0.3).epsilon(1e-10));
  CHECK(s.state().coordinate[2] == doctest::Approx(2.0).epsilon(1e-6));
  const Vec6 load = s.joint_reaction(0);
  CHECK((load.head<3>() - 2.0 * 9.81 * std::cos(slope) * normal).norm() < 1e-6);
}

TEST_CASE("a point on a plane may turn about all axes: a top on ice moves as the plane and gravity say") {
  test::Description d;
  d.gravity = {0.0, 0.0, -9.81};
  d.bodies = {test::make_body("ball", {0.0, 0.0, 0.1}, 2.0)};
  d.bodies[0].velocity_0 = {0.5, -0.2, 0.0};
  d.bodies[0].angular_velocity_0 = {1.0, 2.0, 3.0};
  d.joints = {test::make_joint("ice", JointType::point_on_plane, "ground", "ball", {0.0, 0.0, 0.1})};
  d.joints[0].normal = Vec3::UnitX();
  d.joint_springs = {follower("x", "ice", Freedom::displacement_x), follower("y", "ice", Freedom::displacement_y)};
  Stepper s(test::build(d), {});
  for (int k = 0; k < 1000; ++k) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
  CHECK((s.state().body[0].r - Vec3(0.5, -0.2, 0.1)).norm() < 1e-10);
  CHECK(s.state().coordinate[0] == doctest::Approx(0.5).epsilon(1e-10));
  CHECK(s.state().coordinate[1] == doctest::Approx(-0.2).epsilon(1e-10));
  CHECK((s.state().body[0].w_b - Vec3(1.0, 2.0, 3.0)).norm() < 1e-4);
}

TEST_CASE("a gimbal moves as a ball, and its Cardan angles make up the rotation") {
  test::Description ball = test::double_pendulum();
  ball.bodies[1].angular_velocity_0 = {0.0, 2.0, 0.0};
  ball.bodies[1].velocity_0 = {1.0, 0.0, 0.0};
  ball = test::made_consistent(ball);
  test::Description gimbal = ball;
  for (auto& joint : gimbal.joints) {
    joint.type = JointType::gimbal;
    joint.normal = Vec3::UnitX();
  }
  gimbal.joint_springs = {follower("a", "joint1", Freedom::first_angle), follower("b", "joint1", Freedom::second_angle),
                          follower("c", "joint1", Freedom::third_angle)};
  Stepper a(test::build(ball), {}), b(test::build(gimbal), {});
  for (int k = 0; k < 400; ++k) {
    REQUIRE(a.step(Inputs{}).status == StepStatus::ok);
    REQUIRE(b.step(Inputs{}).status == StepStatus::ok);
  }
  for (std::size_t i = 0; i < 2; ++i) CHECK((a.state().body[i].r - b.state().body[i].r).norm() < 1e-12);
  CHECK((cardan(b.state().coordinate[0], b.state().coordinate[1], b.state().coordinate[2]) -
         rotation_matrix(b.state().body[0].p))
            .norm() < 1e-12);
}

TEST_CASE("a floating joint leaves a body free and measures its pose") {
  test::Description d;
  d.gravity = {0.0, 0.0, -9.81};
  d.bodies = {test::make_body("stone", {1.0, 2.0, 3.0}, 2.0, Vec3(0.1, 0.2, 0.25).asDiagonal())};
  d.bodies[0].velocity_0 = {1.0, 0.0, 5.0};
  d.bodies[0].angular_velocity_0 = {0.3, 0.4, 1.5};
  test::Description watched = d;
  watched.joints = {test::make_joint("pose", JointType::floating, "ground", "stone", {1.0, 2.0, 3.0})};
  watched.joints[0].normal = Vec3::UnitX();
  for (const Freedom freedom : freedoms(JointType::floating))
    watched.joint_springs.push_back(follower(std::string(to_string(freedom)), "pose", freedom));
  Stepper a(test::build(d), {}), b(test::build(watched), {});
  for (int k = 0; k < 500; ++k) {
    REQUIRE(a.step(Inputs{}).status == StepStatus::ok);
    REQUIRE(b.step(Inputs{}).status == StepStatus::ok);
  }
  const BodyState &x = a.state().body[0], &y = b.state().body[0];
  CHECK((x.r - y.r).norm() < 1e-12);
  CHECK((x.p - y.p).norm() < 1e-12);
  const std::vector<double>& q = b.state().coordinate;
  CHECK((Vec3(q[0], q[1], q[2]) - (y.r - Vec3(1.0, 2.0, 3.0))).norm() < 1e-13);
  CHECK((cardan(q[3], q[4], q[5]) - rotation_matrix(y.p)).norm() < 1e-12);
}

TEST_CASE("the torque of a driven pendulum is (J + m l^2) angle'' + m g l cos(angle)") {
  const double mass = 2.0, l = 0.5, J = 0.1;
  test::Description d;
  d.gravity = {0.0, -9.81, 0.0};
  d.bodies = {test::make_body("rod", {l, 0.0, 0.0}, mass, J * Mat3::Identity())};
  d.joints = {test::make_joint("hinge", JointType::revolute, "ground", "rod", Vec3::Zero())};
  const double w = 3.0, amplitude = 0.8;
  d.drivers = {{harmonic("motor", amplitude, amplitude, w, -0.5 * kPi), {"hinge", Freedom::angle}}};
  const Mechanism m = test::build(d);
  Stepper s(m, {});
  double worst = 0.0;
  for (int k = 0; k <= 2000; ++k) {
    const double t = 1e-3 * k, angle = amplitude * (1.0 - std::cos(w * t)),
                 acceleration = amplitude * w * w * std::cos(w * t);
    const double want = (J + mass * l * l) * acceleration + mass * 9.81 * l * std::cos(angle);
    worst = std::max(worst, std::abs(s.driver_effort(0) - want));
    CHECK(s.state().coordinate[0] == doctest::Approx(angle).epsilon(1e-11));
    CHECK(s.state().body[0].alpha_b[2] == doctest::Approx(acceleration).epsilon(1e-9));
    REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
  }
  MESSAGE("driven pendulum: largest error of the torque " << worst << " N m");
  CHECK(worst < 1e-6);
}

TEST_CASE("force elements along a driven coordinate load its driver, and nothing else") {
  const double mass = 2.0, J = 0.1, stiffness = 50.0, damping = 2.0, viscous = 0.5, gain = 7.0;
  for (const JointType type : {JointType::revolute, JointType::prismatic})
    for (const bool on_ground : {true, false}) {
      CAPTURE(to_string(type));
      CAPTURE(on_ground);
      test::Description d;
      d.bodies = {test::make_body("base", Vec3::Zero()),
                  test::make_body("moved", Vec3::Zero(), mass, J * Mat3::Identity())};
      d.joints = {test::make_joint("mount", JointType::fixed, "ground", "base", Vec3::Zero()),
                  test::make_joint("joint", type, on_ground ? "ground" : "base", "moved", Vec3::Zero())};
      const Freedom freedom = freedoms(type)[0];
      d.drivers = {{polynomial("driver", {0.0, 0.0, 0.5}), {"joint", freedom}}};
      Spring spring;
      spring.name = "spring";
      spring.stiffness = stiffness, spring.damping = damping;
      d.joint_springs = {{spring, "joint", freedom}};
      Stepper s(test::build(d,
                            [&](MechanismBuilder& b) {
                              JointFriction friction;
                              friction.name = "friction";
                              friction.viscous = viscous;
                              b.add_friction(friction, "joint", freedom);
                              Motor motor;
                              motor.name = "motor";
                              motor.position_gain = gain;
                              b.add_motor(motor, "joint", freedom, {});
                            }),
                {});
      for (int k = 1; k <= 1000; ++k) {
        REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
        const double t = 1e-3 * k, x = 0.5 * t * t;
        const double want = (type == JointType::revolute ? J : mass) + (stiffness + gain) * x + (damping + viscous) * t;
        REQUIRE(s.state().coordinate[0] == doctest::Approx(x).epsilon(1e-10));
        REQUIRE(s.driver_effort(0) == doctest::Approx(want).epsilon(1e-5));
      }
    }
}

TEST_CASE("a prescribed motion is kept at all three levels, in chains and on every freedom") {
  for (const JointType type : test::kAllJointTypes)
    for (const Freedom freedom : freedoms(type)) {
      test::Description d = test::chain(3, JointType::spherical);
      d.joints[1].type = type;
      d.joints[1].axis = Vec3(0.2, 0.3, 1.0).normalized();
      d.joints[1].second_axis = d.joints[1].axis.cross(Vec3::UnitX()).normalized();
      d.joints[1].second_point = d.joints[1].point + Vec3(0.0, 0.5, 0.0);
      d.joints[1].lead = 0.5;
      d.drivers = {{harmonic("drive", 0.1, -0.1, 6.0, 0.5 * kPi), {"joint1", freedom}}};
      const Mechanism m = test::build(d);
      Stepper s(m, {});
      StepReport worst;
      for (int k = 0; k < 300; ++k) {
        const StepReport report = s.step(Inputs{});
        REQUIRE(report.status == StepStatus::ok);
        worst.position_residual = std::max(worst.position_residual, report.position_residual);
        worst.velocity_residual = std::max(worst.velocity_residual, report.velocity_residual);
        worst.acceleration_residual = std::max(worst.acceleration_residual, report.acceleration_residual);
      }
      CAPTURE(to_string(type));
      CAPTURE(to_string(freedom));
      CHECK(s.state().coordinate[0] == doctest::Approx(0.1 - 0.1 * std::cos(6.0 * 0.3)).epsilon(1e-10));
      CHECK(worst.position_residual < 1e-11);
      CHECK(worst.velocity_residual < 1e-10);
      CHECK(worst.acceleration_residual < 1e-7);
    }
}

TEST_CASE("six drivers on a floating joint prescribe a body's pose") {
  test::Description d;
  d.gravity = {0.0, 0.0, -9.81};
  d.bodies = {test::make_body("platform", Vec3::Zero(), 5.0, Vec3(1.0, 2.0, 2.5).asDiagonal())};
  d.joints = {test::make_joint("pose", JointType::floating, "ground", "platform", Vec3::Zero())};
  d.joints[0].normal = Vec3::UnitX();
  int k = 0;
  const auto amplitude = [](int i) { return 0.1 + 0.05 * i; };
  for (const Freedom freedom : freedoms(JointType::floating)) {
    d.drivers.push_back(
        {harmonic("d" + std::to_string(k), amplitude(k), -amplitude(k), 2.0 + k, 0.5 * kPi), {"pose", freedom}});
    ++k;
  }
  Stepper s(test::build(d), {});
  for (int step = 1; step <= 1000; ++step) {
    const StepReport report = s.step(Inputs{});
    REQUIRE(report.status == StepStatus::ok);
    REQUIRE(report.position_residual < 1e-12);
    REQUIRE(report.velocity_residual < 1e-10);
    REQUIRE(report.acceleration_residual < 1e-7);
  }
  const auto value = [&](int i) { return amplitude(i) * (1.0 - std::cos(2.0 + i)); };
  const BodyState& x = s.state().body[0];
  CHECK((x.r - Vec3(value(0), value(1), value(2))).norm() < 1e-11);
  CHECK((rotation_matrix(x.p) - cardan(value(3), value(4), value(5))).norm() < 1e-11);
  // the effort along z carries the weight and the acceleration
  const double az = amplitude(2) * 16.0 * std::cos(4.0);
  CHECK(s.driver_effort(2) == doctest::Approx(5.0 * (9.81 + az)).epsilon(1e-6));
}

TEST_CASE("a position input drives its joint with the filter's response") {
  constexpr double T = 0.02;
  test::Description d = test::chain(2, JointType::revolute);
  Driver driver;
  driver.name = "servo";
  driver.from_input = Driver::FromInput::filtered;
  driver.time_constant = T;
  d.drivers = {{driver, {"joint0", Freedom::angle}}};
  Stepper s(test::build(d), {});
  Inputs u;
  u.count = 1;
  u.value[0] = 0.4;
  for (int k = 1; k <= 400; ++k) {
    REQUIRE(s.step(u).status == StepStatus::ok);
    const double x = 1e-3 * k / T;
    REQUIRE(s.state().coordinate[0] ==
            doctest::Approx(0.4 * (1.0 - std::exp(-x) * (1.0 + x + 0.5 * x * x))).epsilon(1e-10));
  }
}

TEST_CASE("an input of position, velocity and acceleration is followed at all three levels") {
  test::Description d = test::chain(2, JointType::revolute);
  Driver driver;
  driver.name = "shaker";
  driver.from_input = Driver::FromInput::motion;
  d.drivers = {{driver, {"joint1", Freedom::angle}}};
  const Mechanism m = test::build(d);
  REQUIRE(m.input_channels().size() == 3);
  CHECK(m.input_channels()[2].name == "shaker.acceleration");
  CHECK(m.input_channels()[2].unit == "rad/s^2");
  Stepper s(m, {});
  for (int k = 1; k <= 500; ++k) {
    const double t = 1e-3 * k;
    Inputs u;
    u.count = 3;
    u.value[0] = 0.2 * (1.0 - std::cos(10.0 * t));
    u.value[1] = 2.0 * std::sin(10.0 * t);
    u.value[2] = 20.0 * std::cos(10.0 * t);
    const StepReport report = s.step(u);
    REQUIRE(report.status == StepStatus::ok);
    REQUIRE(report.velocity_residual < 1e-10);
    REQUIRE(report.acceleration_residual < 1e-7);
    REQUIRE(s.state().coordinate[0] == doctest::Approx(u.value[0]).epsilon(1e-11));
  }
}

TEST_CASE("a crank driven at constant speed turns on over many turns") {
  test::Description d = test::chain(1, JointType::revolute);
  d.drivers = {{polynomial("motor", {0.0, 20.0}), {"joint0", Freedom::angle}}};
  CHECK_THROWS_AS(Stepper(test::build(d), {}), StartError);
  d = test::made_consistent(d);
  CHECK(d.bodies[0].angular_velocity_0[2] == doctest::Approx(20.0).epsilon(1e-12));
  Stepper s(test::build(d), {});
  for (int k = 0; k < 2000; ++k) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
  CHECK(s.state().coordinate[0] == doctest::Approx(40.0).epsilon(1e-12));
}

TEST_CASE("a driver that contradicts the start is refused with how much, and assembling moves the start to it") {
  test::Description d = test::chain(2, JointType::revolute);
  d.gravity.setZero();
  d.drivers = {{polynomial("motor", {0.25}), {"joint1", Freedom::angle}}};
  const Mechanism m = test::build(d);
  try {
    Stepper s(m, {});
    FAIL("accepted");
  } catch (const StartError& error) {
    CHECK(error.joint == 2);
    CHECK(std::string(error.what()).find("driver \"motor\"") != std::string::npos);
    CHECK(std::string(error.what()).find("0.25 rad from the start pose") != std::string::npos);
  }
  const Assembled assembly = assemble(m, {});
  CHECK(assembly.closed);
  d.bodies = assembly.bodies;
  // placed at the start again, the joint would measure zero there: the angle between the bodies is what was asked for
  const Mat3 turn =
      Mat3(rotation_matrix(d.bodies[0].orientation)).transpose() * rotation_matrix(d.bodies[1].orientation);
  CHECK(std::atan2(turn(1, 0), turn(0, 0)) == doctest::Approx(0.25).epsilon(1e-12));
}

}  // namespace rigstep::index3
