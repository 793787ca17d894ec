#include "core/index3/start/initial_state.h"

#include <doctest/doctest.h>

#include <functional>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/outputs/sensors.h"
#include "core/index3/stepper_access.h"
#include "core/mechanism/assembly.h"
#include "core/mechanism/portable_math.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

using Side = MechanismBuilder::SideInBody;

// The four-bar at 45 degrees with its joints as built into the links, and its poses changed afterwards.
Mechanism four_bar_in_bodies(const std::function<void(std::vector<Body>&)>& change,
                             const Vec3& last_axis = Vec3::UnitZ()) {
  test::Description d = test::four_bar(0.25 * kPi);
  const Mechanism closed = test::build(d);
  change(d.bodies);
  MechanismBuilder builder("open_four_bar");
  builder.set_gravity(d.gravity);
  for (const Body& b : d.bodies) builder.add_body(b);
  for (const Joint& j : closed.joints()) {
    const bool last = j.name == "joint4";
    const Side first{j.in_first.point_b, j.in_first.axes_b.col(2), j.in_first.axes_b.col(0)};
    const Side second{j.in_second.point_b, last ? last_axis : Vec3(j.in_second.axes_b.col(2)),
                      j.in_second.axes_b.col(0)};
    builder.add_joint(j.name, j.type, std::string(closed.body_name(j.first)), std::string(closed.body_name(j.second)),
                      first, second);
  }
  return builder.build();
}

std::string start_error(const Mechanism& m, int joint) {
  try {
    Stepper stepper(m, {});
  } catch (const StartError& error) {
    CHECK(error.joint == joint);
    return error.what();
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a start pose that contradicts a joint is refused with the worst joint and its gap") {
  // gaps count against the joint's arm: joints 1 to 4 are open by 4, 2, 4 and 10 mm at arms of 0.5, 0.5, 0.5 and 1 m
  const std::string text = start_error(four_bar_in_bodies([](auto& bodies) {
                                         bodies[0].position_0[0] += 0.004;
                                         bodies[1].position_0[0] += 0.006;
                                         bodies[2].position_0[0] += 0.01;
                                       }),
                                       3);
  CAPTURE(text);
  CHECK(contains(text, "joint \"joint4\""));
  CHECK(contains(text, "open by 0.01 m and 0 rad"));
  CHECK(contains(text, "check FILE --assemble"));
}

TEST_CASE("an axis that points the wrong way round is refused, though its constraints are satisfied") {
  const std::string text = start_error(four_bar_in_bodies([](auto&) {}, -Vec3::UnitZ()), 3);
  CHECK(contains(text, "joint \"joint4\""));
  CHECK(contains(text, "opposite directions"));
}

TEST_CASE("start velocities that contradict a joint are refused with the joint and by how much") {
  const std::string text = start_error(four_bar_in_bodies([](auto& bodies) {
                                         bodies[0].velocity_0 = {0.5, 0.0, 0.0};
                                       }),
                                       0);
  CHECK(contains(text, "joint \"joint"));
  CHECK(contains(text, "velocities differ by 0.5 m/s"));
}

TEST_CASE("rounding in a written file is not an error") {
  CHECK_NOTHROW(Stepper(four_bar_in_bodies([](auto& bodies) { bodies[1].position_0[0] += 4e-7; }), {}));
  CHECK(!start_error(four_bar_in_bodies([](auto& bodies) { bodies[2].position_0[0] += 4e-6; }), 2).empty());
}

TEST_CASE("gaps are measured joint by joint at the start pose") {
  const Mechanism m = four_bar_in_bodies([](auto& bodies) { bodies[2].position_0[2] += 0.02; });
  const std::vector<JointGap> gaps = start_gaps(m);
  REQUIRE(gaps.size() == 4);
  CHECK(gaps[0].distance < 1e-15);
  CHECK(gaps[2].distance == doctest::Approx(0.02));
  CHECK(gaps[3].distance == doctest::Approx(0.02));
  CHECK(gaps[3].length == doctest::Approx(0.5));  // the ground's point is 1 m from the origin
  CHECK(gaps[3].angle < 1e-15);
  CHECK_FALSE(gaps[3].upside_down);
}

TEST_CASE("assembling closes a four-bar that is a centimetre open and says how far it moved") {
  const auto change = [](std::vector<Body>& bodies) {
    bodies[0].position_0 = {0.35, 0.36, 0.0};  // few digits
    bodies[1].position_0 = {0.71, 1.21, 0.005};
    bodies[2].position_0 = {0.35, 1.345, 0.0};
    bodies[2].orientation = EulerParameters{0.3827, 0.0, 0.0, -0.9239}.normalized();
  };
  const Mechanism open = four_bar_in_bodies(change);
  CHECK_THROWS_AS(Stepper(open, {}), StartError);
  const Assembled result = assemble(open, {});
  CHECK(result.closed);
  CHECK(result.gap < 1e-14);
  double most = 0.0;
  for (std::size_t i = 0; i < 3; ++i)
    most = std::max(most, (result.bodies[i].position_0 - open.bodies()[i].position_0).norm());
  CHECK(most > 0.001);
  CHECK(most < 0.02);
  const Mechanism mended = four_bar_in_bodies([&](auto& bodies) { bodies = result.bodies; });
  CHECK_NOTHROW(Stepper(mended, {}));
  for (const JointGap& gap : start_gaps(mended)) CHECK(gap.distance < 1e-14);
}

TEST_CASE("assembling a closed mechanism leaves it where it is") {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Mechanism m = test::build(test::random_tree(seed, 8));
    const Assembled result = assemble(m, {});
    CHECK(result.closed);
    for (std::size_t i = 0; i < m.bodies().size(); ++i) {
      CHECK((result.bodies[i].position_0 - m.bodies()[i].position_0).norm() < 1e-14);
      CHECK((result.bodies[i].orientation - m.bodies()[i].orientation).norm() < 1e-14);
      CHECK((result.bodies[i].velocity_0 - m.bodies()[i].velocity_0).norm() < 1e-8);
    }
  }
}

TEST_CASE("assembling gives velocities that the joints allow") {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    test::Description d = test::random_bare_tree(seed, 8);
    const Mechanism before = test::build(d);
    CHECK_THROWS_AS(require_consistent_start(before), StartError);
    d.bodies = assemble(before, {}).bodies;
    CHECK_NOTHROW(require_consistent_start(test::build(d)));
  }
}

// What is left of the velocities is so small that the joints' rounding is as large.
TEST_CASE("assembling brings a mechanism without freedoms to rest, and its start is accepted") {
  test::Description triangle;
  triangle.bodies = {test::make_rod("A", {0, 0, 0}, {1, 1, 0}), test::make_rod("B", {1, 1, 0}, {2, 0, 0})};
  triangle.joints = {test::make_joint("left", JointType::revolute, "ground", "A", {0, 0, 0}),
                     test::make_joint("top", JointType::revolute, "A", "B", {1, 1, 0}),
                     test::make_joint("right", JointType::revolute, "B", "ground", {2, 0, 0})};
  for (Body& body : triangle.bodies) body.velocity_0 = {0.3, -0.7, 0.2}, body.angular_velocity_0 = {0.1, 0.5, -1.1};
  const Assembled closed = assemble(test::build(triangle), {});
  CHECK(closed.closed);
  for (const Body& body : closed.bodies) CHECK(body.velocity_0.norm() + body.angular_velocity_0.norm() < 1e-12);
  triangle.bodies = closed.bodies;
  CHECK_NOTHROW(require_consistent_start(test::build(triangle)));
}

TEST_CASE("what cannot be closed is not called closed") {
  test::Description d = test::double_pendulum();
  MechanismBuilder builder("too_far");
  for (const Body& b : d.bodies) builder.add_body(b);
  builder.add_joint("a", JointType::spherical, "ground", "A", {Vec3::Zero(), {}, {}}, {Vec3(-0.5, 0.0, 0.0), {}, {}});
  builder.add_joint("b", JointType::spherical, "A", "ground", {Vec3(0.5, 0.0, 0.0), {}, {}},
                    {Vec3(3.0, 0.0, 0.0), {}, {}});
  const Assembled result = assemble(builder.build(), {});
  CHECK_FALSE(result.closed);
  CHECK(result.gap > 0.5);  // 2 m between the points of a 1 m link and its two pins
}

TEST_CASE("the start state satisfies M a + J' lambda = Q and the constraints at all three levels") {
  for (unsigned seed = 1; seed <= 10; ++seed)
    for (const test::Description& d : {test::random_tree(seed, 8), test::random_loops(seed, 6)}) {
      const Mechanism m = test::build(d);
      const Stepper s(m, {});
      StepReport report;
      residuals(plan_of(s), s.state(), report);
      CAPTURE(d.name);
      CAPTURE(seed);
      CHECK(report.position_residual < 1e-14);
      CHECK(report.velocity_residual < 1e-12);
      CHECK(report.acceleration_residual < 1e-9);
      std::vector<Vec6> loads = workspace_of(s).Q;
      for (int row = 0; row < plan_of(s).rows(); ++row)
        for_each_block(plan_of(s), workspace_of(s), row,
                       [&](int body, const Vec6& J) { loads[body] -= s.state().lambda[row] * J; });
      for (std::size_t i = 0; i < m.bodies().size(); ++i) {
        const Body& b = m.bodies()[i];
        const BodyState& x = s.state().body[i];
        const Vec3 torque_b = b.inertia_b * x.alpha_b + x.w_b.cross(b.inertia_b * x.w_b);
        CHECK((b.mass * x.a - loads[i].head<3>()).norm() < 1e-9 * (1.0 + loads[i].norm()));
        CHECK((rotation_matrix(x.p) * torque_b - loads[i].tail<3>()).norm() < 1e-9 * (1.0 + loads[i].norm()));
      }
    }
}

namespace {

// Largest error of the accelerations and reactions at t = 0 against a reference, relative to the largest of their kind.
struct StartErrors {
  double acceleration = 0.0, reaction = 0.0;
  int bodies = 0, joints = 0;
};

void add_body_errors(const Stepper& s, const nlohmann::json& bodies, StartErrors& errors) {
  const Mechanism& m = s.mechanism();
  double scale = 0.0, most = 0.0;
  for (std::size_t i = 0; i < m.bodies().size(); ++i) {
    if (!bodies.contains(m.bodies()[i].name) || !bodies[m.bodies()[i].name].contains("a")) continue;
    const auto& want = bodies[m.bodies()[i].name];
    const BodyState& x = s.state().body[i];
    const Vec3 a = test::vec3(want["a"]), alpha = test::vec3(want["alpha"]);
    scale = std::max({scale, a.norm(), alpha.norm()});
    most = std::max({most, (x.a - a).norm(), (rotation_matrix(x.p) * x.alpha_b - alpha).norm()});
    ++errors.bodies;
  }
  if (scale > 0.0) errors.acceleration = most / scale;
}

void add_joint_errors(const Stepper& s, const nlohmann::json& joints, StartErrors& errors) {
  const Mechanism& m = s.mechanism();
  double scale = 0.0, most = 0.0;
  for (std::size_t j = 0; j < m.joints().size(); ++j) {
    if (!joints.contains(m.joints()[j].name)) continue;
    const auto& want = joints[m.joints()[j].name];
    const Vec6 load = s.joint_reaction(static_cast<int>(j));
    const Vec3 force = test::vec3(want["force"]);
    scale = std::max(scale, force.norm());
    most = std::max(most, (load.head<3>() - force).norm());
    if (want.contains("torque")) most = std::max(most, (load.tail<3>() - test::vec3(want["torque"])).norm());
    ++errors.joints;
  }
  if (scale > 0.0) errors.reaction = most / scale;
}

StartErrors start_errors(const std::string& mechanism, const std::string& reference) {
  const Stepper s(test::mechanism(mechanism), {});
  const nlohmann::json start = test::reference(reference)["reference"][0];
  StartErrors errors;
  if (start.contains("bodies")) add_body_errors(s, start["bodies"], errors);
  if (start.contains("joints")) add_joint_errors(s, start["joints"], errors);
  return errors;
}

}  // namespace

TEST_CASE("the accelerations and reactions at the start are those of the references") {
  const std::pair<std::string, std::string> cases[] = {
      {"double_pendulum", "double_pendulum"}, {"hdca_case1", "hdca_case1"}, {"hdca_case3", "hdca_case3"},
      {"mcpherson", "mcpherson_simplified"},  {"pipelayer", "pipelayer"},   {"andrews", "a03_andrews"}};
  for (const auto& each : cases) {
    const StartErrors errors = start_errors(each.first, each.second);
    CAPTURE(each.first);
    CHECK(errors.bodies + errors.joints >= 4);
    CHECK(errors.acceleration < 1e-12);
    CHECK(errors.reaction < 1e-12);
  }
}

TEST_CASE("with redundant joints the accelerations at the start are those of the references") {
  for (const std::string name : {"four_bar", "four_bar_hanging", "mcpherson_redundant"}) {
    const StartErrors errors = start_errors(name, name);
    CAPTURE(name);
    CHECK(errors.bodies >= 3);
    CHECK(errors.acceleration < 1e-12);
  }
}

TEST_CASE("the force in a chain's first joint at the start is that of the reference") {
  for (const auto& [mechanism, reference] : {std::pair{"chain_8", "chain_n8"}, std::pair{"chain_128", "chain_n128"}}) {
    const Stepper s(test::mechanism(mechanism), {});
    const auto want = test::reference(reference)["reference"][0]["joint1_force"];
    const Vec3 force = s.joint_reaction(0).head<3>();
    CHECK(std::abs(force[0] - want[0].get<double>()) < 1e-12 * force.norm());
    CHECK(std::abs(force[1] - want[1].get<double>()) < 1e-12 * force.norm());
  }
}

}  // namespace rigstep::index3
