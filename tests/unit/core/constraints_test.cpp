#include "core/index3/physics/constraints.h"
#include "core/index3/compile/schedule.h"

#include <doctest/doctest.h>

#include <map>

#include "core/index3/compile/plan.h"
#include "core/index3/stepper.h"
#include "core/mechanism/portable_math.h"
#include "core/offline/dense.h"
#include "tests/support/mechanisms.h"

namespace rigstep::index3 {
namespace {

// Two bodies in space, joined by one joint of the type, in a pose that satisfies it.
test::Description two_bodies(JointType type, unsigned seed) {
  test::Description d = test::random_bare_tree(seed, 2);
  test::Random random(seed + 30);
  d.joints = {test::random_joint(random, "joint", type, "body0", "body1", random.vector())};
  return d;
}

JointPlacement placement_of_joint(const Mechanism& m) {
  const State x(m, 0);
  return place_joint(m.joints()[0], placement_of(x.body[0]), placement_of(x.body[1]));
}

}  // namespace

TEST_CASE("each joint type takes its number of freedoms and leaves its measurable ones") {
  const std::map<JointType, std::pair<int, std::vector<Freedom>>> want{
      {JointType::spherical, {3, {}}},
      {JointType::revolute, {5, {Freedom::angle}}},
      {JointType::prismatic, {5, {Freedom::displacement}}},
      {JointType::cylindrical, {4, {Freedom::displacement, Freedom::angle}}},
      {JointType::universal, {4, {Freedom::first_angle, Freedom::second_angle}}},
      {JointType::fixed, {6, {}}},
      {JointType::point_on_point, {3, {}}},
      {JointType::point_on_line, {2, {Freedom::displacement}}},
      {JointType::perpendicular_axes, {1, {}}},
      {JointType::parallel_axes, {2, {Freedom::angle}}},
      {JointType::planar, {3, {Freedom::displacement_x, Freedom::displacement_y, Freedom::angle}}},
      {JointType::gimbal, {3, {Freedom::first_angle, Freedom::second_angle, Freedom::third_angle}}},
      {JointType::screw, {5, {Freedom::displacement, Freedom::angle}}},
      {JointType::point_on_plane, {1, {Freedom::displacement_x, Freedom::displacement_y}}},
      {JointType::distance, {1, {}}},
      {JointType::floating,
       {0,
        {Freedom::displacement_x, Freedom::displacement_y, Freedom::displacement_z, Freedom::first_angle,
         Freedom::second_angle, Freedom::third_angle}}}};
  for (const JointType type : test::kAllJointTypes) {
    CAPTURE(to_string(type));
    CHECK(test::rows(type) == want.at(type).first);
    CHECK(freedoms(type) == want.at(type).second);
    CHECK(test::rows(type) <= kMaxRows);
  }
}

TEST_CASE("a joint placed at the start is closed there, and its rows are independent") {
  for (const JointType type : test::kAllJointTypes)
    for (unsigned seed = 1; seed <= 5; ++seed) {
      const JointPlacement at = placement_of_joint(test::build(two_bodies(type, seed)));
      const auto rows = rows_of(type);
      Eigen::MatrixXd J(static_cast<Eigen::Index>(rows.size()), 12);
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const RowValue value = evaluate(rows[k], at);
        CHECK(std::abs(value.Phi) < 1e-14);
        J.row(static_cast<Eigen::Index>(k)) << value.J_first.transpose(), value.J_second.transpose();
      }
      CAPTURE(to_string(type));
      CHECK(offline::least_squares(J, J).rank == static_cast<int>(rows.size()));
    }
}

TEST_CASE("a joint's loads on its two bodies are opposite and do no work in a common motion") {
  test::Random random(5);
  for (const JointType type : test::kAllJointTypes) {
    const Mechanism m = test::build(two_bodies(type, 3));
    const JointPlacement at = placement_of_joint(m);
    const Vec3 r1 = m.bodies()[0].position_0, r2 = m.bodies()[1].position_0;
    for (const Row& row : rows_of(type)) {
      const RowValue value = evaluate(row, at);
      const Vec3 f1 = value.J_first.head<3>(), f2 = value.J_second.head<3>();
      CHECK((f1 + f2).norm() < 1e-15);
      CHECK((value.J_first.tail<3>() + r1.cross(f1) + value.J_second.tail<3>() + r2.cross(f2)).norm() < 1e-14);
    }
  }
}

namespace {

// value of the freedom with the second body moved from the closed pose by `amount` along it
double measured(const Mechanism& m, Freedom freedom, double amount) {
  const State x(m, 0);
  const Joint& joint = m.joints()[0];
  const Placement first = placement_of(x.body[0]);
  Placement second = placement_of(x.body[1]);
  const JointPlacement at = place_joint(joint, first, second);
  Vec6 on_first, on_second;
  coordinate_gradient(freedom, at, on_first, on_second);
  const Vec3 axis = is_length(freedom) ? on_second.head<3>() : on_second.tail<3>();
  if (is_length(freedom)) {
    second.r += amount * axis;
  } else {
    const Mat3 turn = Eigen::AngleAxisd(amount, axis).toRotationMatrix();
    const Vec3 point = second.r + at.s_second;
    second.A = turn * second.A;
    second.r = point - turn * at.s_second;
  }
  return coordinate(freedom, place_joint(joint, first, second), first, second).value;
}

}  // namespace

TEST_CASE("moving the second body along a freedom changes the coordinate by as much, with the same sign") {
  for (const JointType type : test::kAllJointTypes)
    for (const Freedom freedom : freedoms(type))
      for (const double amount : {-3.0, -0.7, 0.0, 0.2, 3.1}) {
        CAPTURE(to_string(type));
        CAPTURE(to_string(freedom));
        const bool cardan = type == JointType::gimbal || type == JointType::floating;
        if (cardan && freedom == Freedom::second_angle && std::abs(amount) > 1.0) continue;  // beyond the singular pose
        CHECK(measured(test::build(two_bodies(type, 2)), freedom, amount) == doctest::Approx(amount).epsilon(1e-13));
      }
}

TEST_CASE("the freedoms of universal and cylindrical joints are measured independently of each other") {
  for (const JointType type : {JointType::universal, JointType::cylindrical}) {
    const Mechanism m = test::build(two_bodies(type, 4));
    const Joint& joint = m.joints()[0];
    const auto open = freedoms(type);
    const State x(m, 0);
    const Placement first = placement_of(x.body[0]);
    Placement second = placement_of(x.body[1]);
    const JointPlacement at = place_joint(joint, first, second);
    // first about the second body's own axis, then about (or along) the first body's
    const Vec3 own = type == JointType::universal ? Vec3(at.axes_second.col(2)) : Vec3(at.axes_first.col(2));
    const Mat3 turn_own = Eigen::AngleAxisd(0.4, own).toRotationMatrix();
    const Vec3 axis = at.axes_first.col(2);
    const Mat3 turn = type == JointType::universal ? Mat3(Eigen::AngleAxisd(-1.1, axis) * turn_own) : turn_own;
    const Vec3 point = second.r + at.s_second + (type == JointType::universal ? Vec3(Vec3::Zero()) : Vec3(-1.1 * axis));
    second.A = turn * second.A;
    second.r = point - turn * at.s_second;
    const JointPlacement moved = place_joint(joint, first, second);
    CAPTURE(to_string(type));
    CHECK(coordinate(open[0], moved, first, second).value == doctest::Approx(-1.1).epsilon(1e-13));
    CHECK(coordinate(open[1], moved, first, second).value == doctest::Approx(0.4).epsilon(1e-13));
    for (const Row& row : rows_of(type)) CHECK(std::abs(evaluate(row, moved).Phi) < 1e-14);
  }
}

TEST_CASE("a positive effort increases its coordinate from rest, and only pushes along its freedom") {
  for (const JointType type : test::kAllJointTypes)
    for (const Freedom freedom : freedoms(type))
      for (const bool to_ground : {false, true}) {
        test::Description d = two_bodies(type, 6);
        for (Body& b : d.bodies) b.velocity_0 = b.angular_velocity_0 = Vec3::Zero();
        if (to_ground) d.joints[0].first = "ground";
        d.joint_inputs = {{"effort", "joint", freedom}};
        Spring soft;  // so that the coordinate is followed
        soft.name = "follower";
        d.joint_springs = {{soft, "joint", freedom}};
        const Mechanism m = test::build(d);
        Stepper s(m, {});
        const double start = s.state().coordinate[0];
        Inputs u;
        u.count = 1;
        u.value[0] = 1.0;
        for (int k = 0; k < 10; ++k) REQUIRE(s.step(u).status == StepStatus::ok);
        CAPTURE(to_string(type));
        CAPTURE(to_string(freedom));
        CHECK(s.state().coordinate[0] > start + 1e-7);
        Vec3 momentum = Vec3::Zero();
        for (std::size_t i = 0; i < 2; ++i) momentum += m.bodies()[i].mass * s.state().body[i].v;
        if (!to_ground) CHECK(momentum.norm() < 1e-11);  // an effort is internal; rounding of r times 2 / dt
      }
}

TEST_CASE("a spinning revolute is followed over many turns in both directions, from the coordinate at the start") {
  for (const double spin : {30.0, -30.0}) {
    test::Description d;
    d.bodies = {test::make_body("wheel", Vec3::Zero())};
    d.bodies[0].angular_velocity_0 = {0.0, 0.0, spin};
    d.joints = {test::make_joint("axle", JointType::revolute, "ground", "wheel", Vec3::Zero())};
    d.joints[0].coordinate_at_start = 100.0;
    Spring follower;
    follower.name = "follower";
    d.joint_springs = {{follower, "axle", Freedom::angle}};
    Stepper s(test::build(d), {});
    CHECK(s.state().coordinate[0] == doctest::Approx(100.0).epsilon(1e-14));
    for (int k = 0; k < 1000; ++k) s.step(Inputs{});
    // the trapezoidal rule turns p by 2 atan(w dt / 4) a step: 7.5e-5 of the angle too slow at w dt = 0.03
    const double turned = s.state().coordinate[0] - 100.0;
    CHECK(turned == doctest::Approx(spin).epsilon(1e-4));
    CHECK(std::abs(turned) > 4.0 * 2.0 * kPi);
  }
}

TEST_CASE("unwrapping picks the turn nearest to the reference") {
  CHECK(unwrapped(0.1, 0.0) == 0.1);
  CHECK(unwrapped(-3.1, 3.1) == doctest::Approx(2.0 * kPi - 3.1));
  CHECK(unwrapped(3.1, -3.1) == doctest::Approx(3.1 - 2.0 * kPi));
  CHECK(unwrapped(0.5, 200.0 * kPi + 0.4) == doctest::Approx(200.0 * kPi + 0.5).epsilon(1e-14));
}

}  // namespace rigstep::index3
