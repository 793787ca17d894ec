#include "core/index3/compile/planar_motion.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <optional>

#include "core/index3/start/make_plan.h"
#include "core/index3/stepper_access.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

using test::Description;
using Change = std::function<void(test::Description&)>;

// (bodies) of the four-bar after a change of its description
std::vector<int> normals(const Change& change, const std::function<void(MechanismBuilder&)>& add_more = nullptr) {
  test::Description d = test::four_bar(0.4);
  change(d);
  return make_plan(test::build(d, add_more), {}).planar.normal;
}

const std::vector<int> kPlanar(3, 2), kSpatial(3, -1);

Input body_input(Input::Kind kind, const Vec3& direction, const Vec3& point_b) {
  Input input;
  input.name = "load", input.kind = kind, input.direction = direction, input.point_b = point_b;
  return input;
}

}  // namespace

TEST_CASE("a mechanism whose bodies, joints and loads lie in a plane of the world has no rows for the axes of hinges") {
  const Plan plan = make_plan(test::build(test::four_bar(0.4)), {});
  CHECK(plan.planar.normal == kPlanar);
  CHECK(plan.rows() == 20);
  for (int j = 0; j < 4; ++j) {
    CHECK(plan.constraints[j].format.rows == 3);
    for (int row = 0; row < 5; ++row) CHECK(plan.planar.is_idle[5 * j + row] == (row >= 2));  // z of the point, cosines
  }
}

TEST_CASE("whatever could move a body out of its plane keeps all rows of what hangs together with it") {
  CHECK(normals([](auto&) {}) == kPlanar);
  CHECK(normals([](auto& d) { d.gravity.z() = 1e-300; }) == kSpatial);
  CHECK(normals([](auto& d) { d.bodies[1].position_0.z() = 1e-12; }) == kSpatial);
  CHECK(normals([](auto& d) { d.joints[0].axis = Vec3(1e-9, 0.0, 1.0); }) == kSpatial);
  CHECK(normals([](auto& d) { d.bodies[2].inertia_b(0, 2) = d.bodies[2].inertia_b(2, 0) = 0.01; }) == kSpatial);
  CHECK(normals([](auto& d) { d.bodies[2].inertia_b(0, 1) = d.bodies[2].inertia_b(1, 0) = 0.01; }) == kPlanar);
  CHECK(normals([](auto& d) {  // a body whose own axes are not those of the plane, exactly
          for (auto& body : d.bodies) body.orientation = {std::sqrt(0.5), std::sqrt(0.5), 0.0, 0.0};
        }) == kSpatial);
  CHECK(normals([](auto& d) { d = test::in_space(d); }) == kSpatial);
}

TEST_CASE("inputs and force elements keep bodies in their plane if they act there") {
  using Kind = Input::Kind;
  const auto with_input = [](Kind kind, const Vec3& direction, const Vec3& point_b = Vec3::Zero()) {
    return normals([&](auto& d) { d.body_inputs = {{body_input(kind, direction, point_b), "B"}}; });
  };
  CHECK(with_input(Kind::body_force, {0.6, 0.8, 0.0}, {0.1, 0.2, 0.0}) == kPlanar);
  CHECK(with_input(Kind::body_force, {0.6, 0.8, 0.0}, {0.1, 0.2, 0.3}) == kSpatial);
  CHECK(with_input(Kind::body_force, {0.0, 0.6, 0.8}) == kSpatial);
  CHECK(with_input(Kind::body_torque, Vec3::UnitZ()) == kPlanar);
  CHECK(with_input(Kind::body_torque, Vec3::UnitX()) == kSpatial);
  const auto with_spring = [](Spring::Kind kind, const Vec3& ground_point, const Vec3& direction = Vec3::UnitZ()) {
    return normals([&](auto& d) {
      Spring spring;
      spring.name = "spring", spring.kind = kind, spring.stiffness = 1.0;
      spring.first_point_b = ground_point, spring.direction_0 = direction;
      d.springs = {{spring, "ground", "B"}};
    });
  };
  CHECK(with_spring(Spring::Kind::between_points, {2.0, 0.0, 0.0}) == kPlanar);
  CHECK(with_spring(Spring::Kind::between_points, {2.0, 0.0, 0.5}) == kSpatial);
  CHECK(with_spring(Spring::Kind::along_direction, Vec3::Zero(), Vec3::UnitX()) == kPlanar);
  CHECK(with_spring(Spring::Kind::along_direction, Vec3::Zero(), Vec3::UnitZ()) == kSpatial);
  CHECK(normals([](auto&) {},
                [](MechanismBuilder& b) {
                  Drag drag;  // not looked at
                  drag.name = "air", drag.drag_area = 1.0;
                  b.add_drag(drag, "B");
                }) == kSpatial);
  CHECK(normals([](auto&) {},
                [](MechanismBuilder& b) {
                  AppliedLoad load;
                  load.name = "wind", load.force = {1.0, 0.0, 0.0}, load.point_b = {0.0, 0.0, 0.1};
                  b.add_load(load, "C");
                }) == kSpatial);
}

TEST_CASE("a tunable parameter that could tilt gravity keeps all rows, one along the plane does not") {
  const auto with_parameter = [](const std::string& of, double minimum, double maximum) {
    return normals([](auto&) {}, [&](MechanismBuilder& b) { b.add_parameter("tuned", {{of, 1.0}}, minimum, maximum); });
  };
  CHECK(with_parameter("gravity.y", -20.0, 0.0) == kPlanar);
  CHECK(with_parameter("gravity.z", 0.0, 1.0) == kSpatial);
  CHECK(with_parameter("gravity.z", -1.0, 0.0) == kSpatial);
}

TEST_CASE("each group of bodies that hang together has its own plane, or none") {
  test::Description d = test::four_bar(0.4);
  d.gravity = Vec3::Zero();
  for (const char* name : {"upright", "oblique"}) d.bodies.push_back(test::make_body(name, {3.0, 0.0, 0.0}));
  d.joints.push_back(test::make_joint("x", JointType::revolute, "ground", "upright", {3.0, 0.5, 0.0}, Vec3::UnitX()));
  d.joints.push_back(
      test::make_joint("y", JointType::revolute, "ground", "oblique", {3.0, 0.5, 0.0}, Vec3(0.6, 0.0, 0.8)));
  CHECK(make_plan(test::build(d), {}).planar.normal == std::vector<int>{2, 2, 2, 0, -1});
}

namespace {

// (bodies) of body A on a hinge about z, and B joined to it in this way
std::vector<int> normals_of_pair(const Description::JointAtStart& joint) {
  Description d;
  d.bodies = {test::make_body("A", {1.0, 0.0, 0.0}), test::make_body("B", {2.0, 0.0, 0.0})};
  d.joints = {test::make_joint("hinge", JointType::revolute, "ground", "A", Vec3::Zero()), joint};
  return make_plan(test::build(d), {}).planar.normal;
}

Description::JointAtStart between(JointType type, const Vec3& axis, const Vec3& other = Vec3::UnitX()) {
  Description::JointAtStart joint = test::make_joint("between", type, "A", "B", {1.5, 0.0, 0.0}, axis, other);
  joint.second_point = {1.5, 1.0, 0.0}, joint.lead = 0.1;
  return joint;
}

}  // namespace

TEST_CASE("joints keep bodies in a plane if they hold them there and their axes lie along its normal or across it") {
  const std::vector<int> planar(2, 2), spatial(2, -1);
  const Vec3 x = Vec3::UnitX(), y = Vec3::UnitY(), z = Vec3::UnitZ();
  for (const JointType type : {JointType::revolute, JointType::fixed, JointType::planar})
    CHECK(normals_of_pair(between(type, z)) == planar);
  CHECK(normals_of_pair(between(JointType::prismatic, Vec3(0.6, 0.8, 0.0), z)) == planar);
  for (const JointType type : {JointType::revolute, JointType::prismatic, JointType::planar})
    CHECK(normals_of_pair(between(type, Vec3(0.6, 0.0, 0.8), y)) == spatial);
  // these do not hold: a state may well lie out of the plane
  for (const JointType type : {JointType::spherical, JointType::point_on_point, JointType::distance, JointType::gimbal,
                               JointType::cylindrical, JointType::screw, JointType::parallel_axes})
    CHECK(normals_of_pair(between(type, z)) == spatial);
  CHECK(normals_of_pair(between(JointType::universal, z, x)) == spatial);
  CHECK(normals_of_pair(between(JointType::universal, Vec3(1.0, 0.0, 1.0), Vec3(1.0, 0.0, -1.0))) == spatial);
  CHECK(normals_of_pair(between(JointType::floating, z)) == std::vector<int>{2, -1});
}

TEST_CASE("a hinge whose sides are not parallel to the last bit keeps its rows") {
  for (const double tilt : {0.0, 1e-9}) {
    MechanismBuilder builder("pendulum");
    builder.add_body(test::make_body("A", {1.0, 0.0, 0.0}));
    builder.add_joint("hinge", JointType::revolute, "ground", "A",
                      {Vec3::Zero(), Vec3(tilt, 0.0, 1.0).normalized(), Vec3::UnitY()},
                      {-Vec3::UnitX(), Vec3::UnitZ(), Vec3::UnitY()});
    CHECK(make_plan(builder.build(), {}).planar.normal == std::vector<int>{tilt == 0.0 ? 2 : -1});
  }
}

TEST_CASE("what acts along an oblique angle is not planar, even if that turns about the normal at the start") {
  const auto with_spring = [](std::optional<Freedom> along) {
    MechanismBuilder builder("pair");
    for (const char* name : {"A", "B"}) {
      const Vec3 axle(name[0] == 'A' ? 0.0 : 3.0, 0.0, 0.0);
      builder.add_body(test::make_body(name, axle + Vec3::UnitX()));
      builder.add_joint(test::make_joint(std::string("hinge_") + name, JointType::revolute, "ground", name, axle));
    }
    builder.add_joint("measure", JointType::floating, "A", "B", {Vec3::Zero(), Vec3(0.6, 0.0, 0.8), Vec3::UnitY()},
                      {Vec3::Zero(), Vec3::UnitZ(), Vec3::UnitX()});
    Spring spring;
    spring.name = "spring", spring.stiffness = 1.0;
    if (along) builder.add_joint_spring(spring, "measure", *along);
    return make_plan(builder.build(), {}).planar.normal;
  };
  CHECK(with_spring({}) == std::vector<int>{2, 2});
  for (const Freedom along : {Freedom::first_angle, Freedom::second_angle, Freedom::third_angle})
    CHECK(with_spring(along) == std::vector<int>{-1, -1});
}

TEST_CASE("states out of the plane are restored as they are where no joint holds bodies in it") {
  Description hanging;  // straight down on a hinge about z: it lies in the plane of x, too
  hanging.gravity = {0.0, -9.81, 0.0};
  hanging.bodies = {test::make_body("A", {0.0, -1.0, 0.0})};
  hanging.joints = {test::make_joint("hinge", JointType::revolute, "ground", "A", Vec3::Zero())};
  for (const Description& d : {hanging, test::chain(4, JointType::spherical)}) {
    Stepper s(test::build(d), {});
    State x = s.state();
    const Vec3 spin = d.bodies.size() == 1 ? Vec3::UnitZ() : Vec3::UnitY();
    for (BodyState& body : x.body) body.w_b = spin, body.v = spin.cross(body.r);
    std::vector<double> flat(x.flat_size());
    x.flatten(flat);
    s.restore(flat, 0);
    CHECK(s.state().hash() == x.hash());
  }
}

TEST_CASE("a state from elsewhere goes back into its plane, one that is there keeps its bits") {
  Stepper s(test::build(test::four_bar(0.4)), {});
  for (int k = 0; k < 100; ++k) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
  State x = s.state();
  x.body[0].v.z() = -0.0, x.body[1].p[1] = -0.0;
  std::vector<double> flat(x.flat_size());
  x.flatten(flat);
  s.restore(flat, 100);
  CHECK(s.state().hash() == x.hash());

  const Mat3 tilt = rotation_matrix(EulerParameters{0.99, 0.1, 0.1, 0.0}.normalized());
  State tilted = x;
  for (BodyState& body : tilted.body) {
    body.r += Vec3(0.0, 0.0, 1e-3), body.v += Vec3(0.0, 0.0, 0.1), body.w_b = tilt * body.w_b;
    body.p = turned(body.p, Vec3(1e-3, -2e-3, 0.0));
  }
  tilted.lambda[4] = 7.0;
  tilted.flatten(flat);
  s.restore(flat, 100);
  for (int k = 0; k < 100; ++k) {
    for (const BodyState& body : s.state().body) {
      CHECK((body.r.z() == 0.0 && body.v.z() == 0.0 && body.w_b.head<2>().isZero(0.0)));
      CHECK((body.p[1] == 0.0 && body.p[2] == 0.0));
      CHECK(body.p.norm() == doctest::Approx(1.0).epsilon(1e-15));
    }
    CHECK(s.state().lambda[4] == 0.0);
    REQUIRE_FALSE(failed(s.step(Inputs{}).status));
  }

  x.body[2].p = {0.0, 1.0, 0.0, 0.0};  // upside down
  x.flatten(flat);
  s.restore(flat, 100);
  CHECK(s.state().body[2].p == EulerParameters(1.0, 0.0, 0.0, 0.0));
}

}  // namespace rigstep::index3
