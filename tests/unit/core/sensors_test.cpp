#include "core/index3/outputs/sensors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "core/index3/compile/plan.h"
#include "core/index3/stepper.h"
#include "core/mechanism/portable_math.h"
#include "tests/support/mechanisms.h"

namespace rigstep::index3 {
namespace {

const Vec3 kGravity{0.0, 0.0, -9.81};
const EulerParameters kTilted = EulerParameters{0.8, 0.2, -0.4, 0.4}.normalized();

// One body of 2 kg in gravity, with one output.
MechanismBuilder one_body(const std::function<void(Body&)>& change = [](Body&) {}) {
  MechanismBuilder builder("one_body");
  builder.set_gravity(kGravity);
  Body b = test::make_body("body", {1.0, 2.0, 3.0}, 2.0, Vec3(1.0, 2.0, 2.5).asDiagonal());
  b.orientation = kTilted;
  change(b);
  builder.add_body(b);
  return builder;
}

Output output(Output::Kind kind, const Vec3& point = Vec3::Zero()) {
  Output o;
  o.name = "out";
  o.kind = kind;
  o.point_b = point;
  return o;
}

// Channels at the start and after some steps.
Outputs read(Stepper& s, int steps) {
  StepReport report;
  for (int k = 0; k < steps; ++k) {
    report = s.step(Inputs{});
    REQUIRE(report.status == StepStatus::ok);
  }
  Outputs out;
  s.read_outputs(report, out);
  return out;
}

Vec3 vector(const Outputs& out, int first) { return {out.value[first], out.value[first + 1], out.value[first + 2]}; }

Mat3 tilt() { return Eigen::Quaterniond(kTilted[0], kTilted[1], kTilted[2], kTilted[3]).toRotationMatrix(); }

}  // namespace

TEST_CASE("an accelerometer on a body at rest shows gravity upwards, in the body's axes") {
  MechanismBuilder builder = one_body();
  builder.add_joint(test::make_joint("glue", JointType::fixed, "ground", "body", Vec3::Zero()));
  builder.add_body_output(output(Output::Kind::specific_force, {0.3, -0.2, 0.1}), "body");
  Stepper s(builder.build(), {});
  for (const int steps : {0, 10})
    CHECK((vector(read(s, steps), 0) - tilt().transpose() * Vec3(0.0, 0.0, 9.81)).norm() < 1e-7);
}

TEST_CASE("an accelerometer in free fall shows nothing") {
  MechanismBuilder builder = one_body();
  builder.add_body_output(output(Output::Kind::specific_force, {0.3, -0.2, 0.1}), "body");
  Stepper s(builder.build(), {});
  CHECK(vector(read(s, 0), 0).norm() < 1e-14);
  CHECK(vector(read(s, 50), 0).norm() < 1e-7);  // rounding of r times 4 / dt^2
}

TEST_CASE("an accelerometer beside the axis of a spinning body shows the centripetal acceleration") {
  const double spin = 3.0;
  MechanismBuilder builder = one_body([&](Body& b) { b.angular_velocity_0 = tilt() * Vec3(0.0, 0.0, spin); });
  builder.add_body_output(output(Output::Kind::specific_force, {0.5, 0.0, 0.7}), "body");
  Stepper s(builder.build(), {});
  const Vec3 want{-spin * spin * 0.5, 0.0, 0.0};
  CHECK((vector(read(s, 0), 0) - want).norm() < 1e-13);
  // after steps the trapezoidal rule's own error, (w dt)^2 / 4 of it
  CHECK((vector(read(s, 50), 0) - want).norm() < want.norm() * spin * spin * 1e-6);
}

TEST_CASE("an accelerometer beside the axis of a body that is spun up shows the tangential acceleration too") {
  MechanismBuilder builder = one_body([](Body& b) { b.inertia_b = 2.0 * Mat3::Identity(); });
  AppliedLoad load;
  load.name = "motor";
  load.frame = Frame::body;
  load.torque = {0.0, 0.0, 6.0};
  builder.add_load(load, "body");
  builder.add_body_output(output(Output::Kind::specific_force, {0.5, 0.0, 0.0}), "body");
  Stepper s(builder.build(), {});
  CHECK((vector(read(s, 0), 0) - Vec3(0.0, 1.5, 0.0)).norm() < 1e-13);
}

TEST_CASE("the reaction of a body at rest carries its weight and the weight's moment about the joint point") {
  const Vec3 point{0.2, 0.4, 0.1};
  for (const bool body_is_second : {true, false}) {
    MechanismBuilder builder = one_body();
    builder.add_joint(test::make_joint("glue", JointType::fixed, body_is_second ? "ground" : "body",
                                       body_is_second ? "body" : "ground", point));
    builder.add_joint_output(output(Output::Kind::joint_reaction), "glue", Freedom::angle);
    Stepper s(builder.build(), {});
    const double sign = body_is_second ? 1.0 : -1.0;  // always on the second part
    const Vec3 weight = 2.0 * kGravity;
    const Vec3 moment = (Vec3(1.0, 2.0, 3.0) - point).cross(weight);
    for (const int steps : {0, 20}) {
      const Outputs out = read(s, steps);
      CHECK((vector(out, 0) + sign * weight).norm() < 1e-6);
      CHECK((vector(out, 3) + sign * moment).norm() < 1e-6);
      CHECK(out.count == 6);
    }
  }
}

TEST_CASE("the reaction of a turning wheel on its axle holds it on its circle") {
  MechanismBuilder builder("wheel");
  Body b = test::make_body("body", {0.5, 0.0, 0.0}, 2.0);
  b.velocity_0 = {0.0, 2.0, 0.0};
  b.angular_velocity_0 = {0.0, 0.0, 4.0};
  builder.add_body(b);
  builder.add_joint(test::make_joint("axle", JointType::revolute, "ground", "body", Vec3::Zero()));
  builder.add_joint_output(output(Output::Kind::joint_reaction), "axle", Freedom::angle);
  Stepper s(builder.build(), {});
  CHECK((vector(read(s, 0), 0) - Vec3(-2.0 * 16.0 * 0.5, 0.0, 0.0)).norm() < 1e-8);
  CHECK(vector(read(s, 100), 0).norm() == doctest::Approx(16.0).epsilon(1e-4));
}

TEST_CASE("pose, velocity and acceleration are in the world frame") {
  MechanismBuilder builder = one_body([](Body& b) {
    b.velocity_0 = {0.1, 0.2, 0.3};
    b.angular_velocity_0 = {0.4, 0.5, 0.6};
  });
  for (const auto& [name, kind] :
       {std::pair{"pose", Output::Kind::body_pose}, std::pair{"velocity", Output::Kind::body_velocity},
        std::pair{"acceleration", Output::Kind::body_acceleration}}) {
    Output o = output(kind);
    o.name = name;
    builder.add_body_output(o, "body");
  }
  Stepper s(builder.build(), {});
  const Outputs out = read(s, 0);
  CHECK(out.count == 7 + 6 + 6);
  CHECK(vector(out, 0) == Vec3(1.0, 2.0, 3.0));
  CHECK(out.value[3] == doctest::Approx(kTilted[0]));
  CHECK(vector(out, 7) == Vec3(0.1, 0.2, 0.3));
  CHECK((vector(out, 10) - Vec3(0.4, 0.5, 0.6)).norm() < 1e-15);
  CHECK((vector(out, 13) - kGravity).norm() < 1e-14);
  const Vec3 w_b = tilt().transpose() * Vec3(0.4, 0.5, 0.6);
  const Mat3 J = Vec3(1.0, 2.0, 2.5).asDiagonal();
  const Vec3 alpha = tilt() * (J.inverse() * -w_b.cross(J * w_b));  // torque-free
  CHECK((vector(out, 16) - alpha).norm() < 1e-14);
}

TEST_CASE("joint coordinate and rate of a slide follow the body, from the coordinate at the start") {
  MechanismBuilder builder = one_body([](Body& b) { b.velocity_0 = {0.0, 0.0, 0.5}; });
  auto slide = test::make_joint("slide", JointType::prismatic, "ground", "body", {1.0, 2.0, 3.0});
  slide.coordinate_at_start = 10.0;
  builder.add_joint(slide);
  Output o = output(Output::Kind::joint_coordinate);
  builder.add_joint_output(o, "slide", Freedom::displacement);
  o = output(Output::Kind::joint_rate);
  o.name = "rate";
  builder.add_joint_output(o, "slide", Freedom::displacement);
  Stepper s(builder.build(), {});
  CHECK(read(s, 0).value[0] == doctest::Approx(10.0).epsilon(1e-14));
  CHECK(read(s, 0).value[1] == doctest::Approx(0.5).epsilon(1e-14));
  const Outputs later = read(s, 100);  // the trapezoidal rule is exact for a constant acceleration
  CHECK(later.value[0] == doctest::Approx(10.0 + 0.5 * 0.1 - 0.5 * 9.81 * 0.01).epsilon(1e-11));
  CHECK(later.value[1] == doctest::Approx(0.5 - 9.81 * 0.1).epsilon(1e-10));
}

TEST_CASE("energy is kinetic plus that of gravity and springs, and a fall turns one into the other") {
  MechanismBuilder builder = one_body([](Body& b) { b.angular_velocity_0 = tilt() * Vec3(0.0, 2.0, 0.0); });
  Spring spring;
  spring.name = "spring";
  spring.stiffness = 8.0;
  spring.rest = 1.0;
  spring.first_point_b = {1.0, 2.0, 0.5};
  builder.add_spring(spring, "ground", "body");
  builder.add_output(output(Output::Kind::energy));
  Stepper s(builder.build(), {});
  const Outputs start = read(s, 0);
  CHECK(start.value[0] == doctest::Approx(0.5 * 2.0 * 4.0).epsilon(1e-14));
  CHECK(start.value[1] == doctest::Approx(2.0 * 9.81 * 3.0 + 0.5 * 8.0 * 1.5 * 1.5).epsilon(1e-14));
  CHECK(start.value[2] == doctest::Approx(start.value[0] + start.value[1]).epsilon(1e-15));
  const Outputs later = read(s, 200);
  CHECK(later.value[0] > start.value[0] + 1.0);
  CHECK(later.value[2] == doctest::Approx(start.value[2]).epsilon(1e-6));
}

TEST_CASE("a bar that swings through its singular pose shows it, and reactions of least norm all the way") {
  const test::Description d = test::four_bar(-0.5 * kPi + 0.3);
  const Mechanism m = test::build(d, [&d](MechanismBuilder& builder) {
    builder.add_output(output(Output::Kind::singularity_margin));
    for (const auto& joint : d.joints) {
      Output o = output(Output::Kind::joint_reaction);
      o.name = joint.name;
      builder.add_joint_output(o, joint.name, Freedom::angle);
    }
  });
  CHECK(m.output_channels()[0].name == "out");
  CHECK(m.output_channels()[0].unit == "-");
  Stepper s(m, {});
  double least = 1.0, largest = 0.0, out_of_plane = 0.0, in_plane = 0.0;
  for (int k = 0; k < 1000; ++k) {
    const Outputs out = read(s, 1);
    least = std::min(least, out.value[0]);
    largest = std::max(largest, out.value[0]);
    for (int j = 0; j < 4; ++j) {
      const Vec3 force = vector(out, 1 + 6 * j), torque = vector(out, 4 + 6 * j);
      out_of_plane = std::max({out_of_plane, std::abs(force[2]), torque.norm()});
      in_plane = std::max(in_plane, force.norm());
    }
  }
  MESSAGE("swing through the singular pose: margin " << least << " .. " << largest << ", out-of-plane loads up to "
                                                     << out_of_plane);
  CHECK(least < 1e-3);
  CHECK(largest > 0.1);
  CHECK(out_of_plane < 1e-9 * in_plane);  // none is the least
}

TEST_CASE("the margin of a ladder of 32 loops, which 160 rows close, is an output that follows the pose") {
  const auto with_margin = [](MechanismBuilder& ladder) {
    ladder.add_output(output(Output::Kind::singularity_margin));
  };
  Stepper s(test::build(test::ladder(32), with_margin), {});
  const double start = read(s, 0).value[0], later = read(s, 200).value[0];
  CHECK(start > 0.01);
  CHECK(later > 0.01);
  CHECK(std::abs(later - start) > 1e-6);
}

TEST_CASE("a mechanism without loops has the margin one") {
  MechanismBuilder builder = one_body();
  builder.add_output(output(Output::Kind::singularity_margin));
  Stepper s(builder.build(), {});
  CHECK(read(s, 0).value[0] == 1.0);
}

TEST_CASE("residuals and solver status are those of the step's report") {
  MechanismBuilder builder = one_body();
  builder.add_joint(test::make_joint("ball", JointType::spherical, "ground", "body", Vec3::Zero()));
  Output o = output(Output::Kind::constraint_residual);
  builder.add_output(o);
  o = output(Output::Kind::solver_status);
  o.name = "solver";
  builder.add_output(o);
  Stepper s(builder.build(), {});
  StepReport report = s.step(Inputs{});
  report.status = StepStatus::not_converged;
  Outputs out;
  s.read_outputs(report, out);
  CHECK(out.value[0] == report.position_residual);
  CHECK(out.value[1] == report.velocity_residual);
  CHECK(out.value[2] == report.acceleration_residual);
  CHECK(out.value[3] == 1.0);
  CHECK(out.value[4] == report.last_increment);
  CHECK(report.position_residual < 1e-14);
  CHECK(report.velocity_residual < 1e-9);
}

}  // namespace rigstep::index3
