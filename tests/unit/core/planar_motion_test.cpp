#include "core/index3/compile/planar_motion.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/index3/start/make_plan.h"
#include "core/index3/stepper_access.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

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
  d.joints.back().second_axis = Vec3::UnitY();
  CHECK(make_plan(test::build(d), {}).planar.normal == std::vector<int>{2, 2, 2, 0, -1});
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
}

}  // namespace rigstep::index3
