#include "core/mechanism/builder.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "tests/support/mechanisms.h"

namespace rigstep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// The field that a refusal names; empty if nothing was refused.
std::string refused(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const MechanismError& error) {
    CHECK(std::string(error.what()) == error.field + ": " + error.problem + ": " + error.remedy);
    CHECK_FALSE(error.problem.empty());
    CHECK_FALSE(error.remedy.empty());
    return error.field;
  }
  return {};
}

Body body(const std::string& name) { return test::make_body(name, Vec3::Zero()); }

std::string refused_body(const std::function<void(Body&)>& change) {
  return refused([&] {
    MechanismBuilder builder("m");
    Body b = body("A");
    change(b);
    builder.add_body(b);
  });
}

MechanismBuilder two_bodies() {
  MechanismBuilder builder("m");
  builder.add_body(body("A"));
  builder.add_body(body("B"));
  return builder;
}

std::string refused_joint(const std::function<void(MechanismBuilder::JointAtStart&)>& change) {
  return refused([&] {
    MechanismBuilder builder = two_bodies();
    MechanismBuilder::JointAtStart joint = test::make_joint("j", JointType::universal, "A", "B", Vec3::Zero());
    change(joint);
    builder.add_joint(joint);
  });
}

}  // namespace

TEST_CASE("a body needs a plain name of its own") {
  for (const std::string name : {"", "a b", "ground", "x.y", "gr\303\266\303\237e"})
    CHECK(refused_body([&](Body& b) { b.name = name; }) == "name");
  MechanismBuilder builder = two_bodies();
  CHECK(refused([&] { builder.add_body(body("A")); }) == "name");
  CHECK(refused_body([](Body& b) { b.name = "Left-arm_2"; }).empty());
}

TEST_CASE("a body needs a mass above zero and an inertia that some body can have") {
  for (const double mass : {0.0, -1.0, kNan, kInf}) CHECK(refused_body([=](Body& b) { b.mass = mass; }) == "mass");
  const auto inertia = [](double x, double y, double z) {
    return refused_body([=](Body& b) { b.inertia_b = Vec3(x, y, z).asDiagonal(); });
  };
  CHECK(inertia(0.0, 1.0, 1.0) == "inertia");
  CHECK(inertia(-1.0, 1.0, 1.0) == "inertia");
  CHECK(inertia(1.0, 1.0, 2.01) == "inertia");  // triangle inequality
  CHECK(inertia(1.0, 1.0, kNan) == "inertia");
  CHECK(inertia(1.0, 1.0, 2.0).empty());
  CHECK(inertia(1e-12, 1.0, 1.0).empty());
  test::Random random(1);
  for (int k = 0; k < 50; ++k) {
    const Mat3 J = random.inertia(1.0, 1.0);
    CHECK(refused_body([&](Body& b) { b.inertia_b = J; }).empty());
  }
  // principal moments decide, not the diagonal: a wrong sign of xy shows
  CHECK(refused_body([](Body& b) { b.inertia_b << 1.0, 1.2, 0.0, 1.2, 1.0, 0.0, 0.0, 0.0, 1.0; }) == "inertia");
}

TEST_CASE("a body's pose and velocities are finite and its Euler parameters have norm one") {
  CHECK(refused_body([](Body& b) { b.position_0[1] = kInf; }) == "position");
  CHECK(refused_body([](Body& b) { b.velocity_0[2] = kNan; }) == "velocity");
  CHECK(refused_body([](Body& b) { b.angular_velocity_0[0] = kNan; }) == "angular_velocity");
  CHECK(refused_body([](Body& b) { b.orientation[0] = kNan; }) == "orientation");
  CHECK(refused_body([](Body& b) { b.orientation = EulerParameters{1.0, 0.01, 0.0, 0.0}; }) == "orientation");
  CHECK(refused_body([](Body& b) { b.orientation.setZero(); }) == "orientation");
  MechanismBuilder builder("m");
  Body b = body("A");
  b.orientation = EulerParameters{0.7071068, 0.7071068, 0.0, 0.0};  // seven digits are enough
  builder.add_body(b);
  CHECK(builder.build().bodies()[0].orientation.norm() == doctest::Approx(1.0).epsilon(1e-15));
}

TEST_CASE("a joint stands between two different known parts") {
  CHECK(refused_joint([](auto& j) { j.name = ""; }) == "name");
  CHECK(refused_joint([](auto& j) { j.first = "C"; }) == "first");
  CHECK(refused_joint([](auto& j) { j.first = ""; }) == "first");
  CHECK(refused_joint([](auto& j) { j.second = "C"; }) == "second");
  CHECK(refused_joint([](auto& j) { j.second = "A"; }) == "second");
  CHECK(refused_joint([](auto& j) { j.first = j.second = "ground"; }) == "second");
  MechanismBuilder builder = two_bodies();
  builder.add_joint(test::make_joint("j", JointType::spherical, "A", "B", Vec3::Zero()));
  CHECK(refused([&] { builder.add_joint(test::make_joint("j", JointType::spherical, "ground", "B", Vec3::Zero())); }) ==
        "name");
}

TEST_CASE("a joint's axes have a direction and are perpendicular where the type says so") {
  CHECK(refused_joint([](auto&) {}).empty());
  CHECK(refused_joint([](auto& j) { j.axis.setZero(); }) == "at_start.axis");
  CHECK(refused_joint([](auto& j) { j.axis[0] = kNan; }) == "at_start.axis");
  CHECK(refused_joint([](auto& j) { j.second_axis.setZero(); }) == "at_start.second_axis");
  CHECK(refused_joint([](auto& j) { j.second_axis = Vec3(1.0, 0.0, 0.1); }) == "at_start.second_axis");
  CHECK(refused_joint([](auto& j) { j.point[0] = kInf; }) == "at_start.point");
  CHECK(refused_joint([](auto& j) { j.coordinate_at_start = kNan; }) == "at_start.coordinate");
  CHECK(refused_joint([](auto& j) { j.second_coordinate_at_start = kNan; }) == "at_start.second_coordinate");
  CHECK(refused_joint([](auto& j) { j.type = JointType::spherical, j.axis.setZero(); }).empty());
  CHECK(refused_joint([](auto& j) { j.type = JointType::fixed, j.axis.setZero(); }).empty());
}

TEST_CASE("a joint built into its bodies needs normals where an angle is measured or held") {
  const auto attempt = [](JointType type, MechanismBuilder::SideInBody first, MechanismBuilder::SideInBody second) {
    return refused([&] {
      MechanismBuilder builder = two_bodies();
      builder.add_joint("j", type, "A", "B", first, second);
    });
  };
  const Vec3 o = Vec3::Zero(), x = Vec3::UnitX(), z = Vec3::UnitZ();
  for (const JointType type : {JointType::revolute, JointType::prismatic, JointType::cylindrical, JointType::universal,
                               JointType::fixed, JointType::parallel_axes}) {
    CAPTURE(to_string(type));
    CHECK(attempt(type, {o, z, o}, {o, z, x}) == "in_first.normal");
    CHECK(attempt(type, {o, z, x}, {o, z, o}) == "in_second.normal");
    CHECK(attempt(type, {o, z, x}, {o, z, x}).empty());
  }
  CHECK(attempt(JointType::point_on_line, {o, z, o}, {o, z, o}).empty());
  CHECK(attempt(JointType::spherical, {o, o, o}, {o, o, o}).empty());
  CHECK(attempt(JointType::revolute, {o, o, x}, {o, z, x}) == "in_first.axis");
  CHECK(attempt(JointType::revolute, {o, z, z}, {o, z, x}) == "in_first.normal");
  CHECK(attempt(JointType::revolute, {o, z, x}, {o, z, Vec3(1.0, 0.0, 0.1)}) == "in_second.normal");
  CHECK(attempt(JointType::revolute, {o, z, x}, {Vec3(kNan, 0.0, 0.0), z, x}) == "in_second.point");
}

TEST_CASE("loads, springs, inputs and outputs refuse what they cannot act on") {
  MechanismBuilder b = two_bodies();
  b.add_joint(test::make_joint("ball", JointType::spherical, "A", "B", Vec3::Zero()));
  b.add_joint(test::make_joint("slide", JointType::prismatic, "ground", "A", Vec3::Zero()));
  const auto spring = [](double stiffness, double damping, double rest) {
    Spring s;
    s.name = "s";
    s.stiffness = stiffness;
    s.damping = damping;
    s.rest = rest;
    return s;
  };
  CHECK(refused([&] { b.add_spring(spring(-1.0, 0.0, 0.0), "A", "B"); }) == "stiffness");
  CHECK(refused([&] { b.add_spring(spring(kNan, 0.0, 0.0), "A", "B"); }) == "stiffness");
  CHECK(refused([&] { b.add_spring(spring(1.0, -1.0, 0.0), "A", "B"); }) == "damping");
  CHECK(refused([&] { b.add_spring(spring(1.0, 0.0, kInf), "A", "B"); }) == "rest");
  CHECK(refused([&] { b.add_spring(spring(1.0, 0.0, 0.0), "A", "A"); }) == "second");
  CHECK(refused([&] { b.add_spring(spring(1.0, 0.0, 0.0), "C", "A"); }) == "first");
  CHECK(refused([&] { b.add_joint_spring(spring(1.0, 0.0, 0.0), "none", Freedom::angle); }) == "joint");
  CHECK(refused([&] { b.add_joint_spring(spring(1.0, 0.0, 0.0), "ball", Freedom::angle); }) == "freedom");
  CHECK(refused([&] { b.add_joint_spring(spring(1.0, 0.0, 0.0), "slide", Freedom::angle); }) == "freedom");
  Spring along = spring(1.0, 0.0, 0.0);
  along.kind = Spring::Kind::along_direction;
  along.direction_0.setZero();
  CHECK(refused([&] { b.add_spring(along, "A", "B"); }) == "direction");
  AppliedLoad load;
  load.name = "load";
  CHECK(refused([&] { b.add_load(load, "ground"); }) == "body");
  load.phase = kNan;
  CHECK(refused([&] { b.add_load(load, "A"); }) == "phase");
  Input input;
  input.name = "in";
  CHECK(refused([&] { b.add_body_input(input, "ground"); }) == "body");
  CHECK(refused([&] { b.add_joint_input(input, "slide", Freedom::first_angle); }) == "freedom");
  input.direction.setZero();
  CHECK(refused([&] { b.add_body_input(input, "A"); }) == "direction");
  Output output;
  output.name = "out";
  output.kind = Output::Kind::body_pose;
  CHECK(refused([&] { b.add_body_output(output, "ground"); }) == "body");
  CHECK(refused([&] { b.add_body_output(output, ""); }) == "body");
  output.kind = Output::Kind::joint_coordinate;
  CHECK(refused([&] { b.add_joint_output(output, "ball", Freedom::angle); }) == "freedom");
  output.kind = Output::Kind::joint_reaction;
  CHECK(refused([&] { b.add_joint_output(output, "ball", Freedom::angle); }).empty());
  CHECK(refused([&] { b.set_gravity(Vec3(0.0, kNan, 0.0)); }) == "gravity");
}

TEST_CASE("a refused element leaves the builder as it was") {
  MechanismBuilder builder = two_bodies();
  builder.add_joint(test::make_joint("ball", JointType::spherical, "A", "B", Vec3::Zero()));
  const std::uint64_t before = builder.build().id();
  Spring s;
  s.name = "s";
  CHECK(!refused([&] { builder.add_joint_spring(s, "ball", Freedom::angle); }).empty());
  CHECK(!refused([&] { builder.add_body(body("A")); }).empty());
  CHECK(!refused([&] {
           builder.add_joint(test::make_joint("k", JointType::spherical, "A", "A", Vec3::Zero()));
         }).empty());
  CHECK(builder.build().id() == before);
}

TEST_CASE("a mechanism has a body, a name and no more channels than fit a message") {
  CHECK(refused([] { MechanismBuilder("m").build(); }) == "body");
  CHECK(refused([] {
          MechanismBuilder builder("");
          builder.add_body(body("A"));
          builder.build();
        }) == "name");
  MechanismBuilder builder = two_bodies();
  for (int k = 0; k < kMaxChannels; ++k) {
    Input input;
    input.name = "in" + std::to_string(k);
    builder.add_body_input(input, "A");
  }
  CHECK(builder.build().input_channels().size() == kMaxChannels);
  Input input;
  input.name = "one_more";
  builder.add_body_input(input, "A");
  CHECK(refused([&] { builder.build(); }) == "input");
  MechanismBuilder outputs = two_bodies();
  for (int k = 0; k < 19; ++k) {
    Output output;
    output.name = "out" + std::to_string(k);
    output.kind = Output::Kind::body_pose;
    outputs.add_body_output(output, "A");
  }
  CHECK(refused([&] { outputs.build(); }) == "output");  // 19 poses of 7
}

TEST_CASE("output channels are numbered one after the other and named by their component") {
  MechanismBuilder builder = two_bodies();
  builder.add_joint(test::make_joint("slide", JointType::prismatic, "ground", "A", Vec3::Zero()));
  Output output;
  output.name = "pose";
  output.kind = Output::Kind::body_pose;
  builder.add_body_output(output, "A");
  output.name = "x";
  output.kind = Output::Kind::joint_rate;
  builder.add_joint_output(output, "slide", Freedom::displacement);
  output.name = "e";
  output.kind = Output::Kind::energy;
  builder.add_output(output);
  const Mechanism m = builder.build();
  CHECK(m.outputs()[1].first_channel == 7);
  CHECK(m.outputs()[2].first_channel == 8);
  REQUIRE(m.output_channels().size() == 11);
  CHECK(m.output_channels()[3].name == "pose.e0");
  CHECK(m.output_channels()[7].name == "x");
  CHECK(m.output_channels()[7].unit == "m/s");
  CHECK(m.output_channels()[10].name == "e.total");
}

TEST_CASE("the id is equal for equal descriptions and changes with any number, name or order") {
  const test::Description base = test::random_loops(3, 4);
  std::set<std::uint64_t> ids{test::build(base).id()};
  CHECK(ids.count(test::build(base).id()) == 1);
  int changes = 0;
  const auto changed = [&](const std::function<void(test::Description&)>& change) {
    test::Description d = base;
    change(d);
    ids.insert(test::build(d).id());
    CHECK(ids.size() == static_cast<std::size_t>(++changes) + 1);
  };
  const auto nudge = [](double& x) { x = std::nextafter(x, 10.0); };
  changed([](auto& d) { d.name += "x"; });
  changed([&](auto& d) { nudge(d.gravity[1]); });
  changed([](auto& d) {
    d.bodies[1].name = "other", d.joints.clear(), d.springs.clear(), d.joint_springs.clear(), d.body_inputs.clear(),
    d.joint_inputs.clear();
  });
  changed([&](auto& d) { nudge(d.bodies[2].mass); });
  changed([&](auto& d) { nudge(d.bodies[2].inertia_b(0, 0)); });
  changed([&](auto& d) { nudge(d.bodies[2].position_0[0]); });
  changed([&](auto& d) { nudge(d.bodies[2].velocity_0[0]); });
  changed([&](auto& d) { nudge(d.bodies[2].angular_velocity_0[1]); });
  changed([](auto& d) { d.bodies[2].orientation = -d.bodies[2].orientation; });
  changed([](auto& d) { d.joints[0].point[2] += 1e-9; });
  changed([](auto& d) { std::swap(d.joints[0], d.joints[1]); });
  changed([](auto& d) { std::swap(d.joints[0].first, d.joints[0].second); });
  changed([&](auto& d) { nudge(d.springs[0].spring.stiffness); });
  changed([&](auto& d) { nudge(d.springs[0].spring.damping); });
  changed([&](auto& d) { nudge(d.springs[0].spring.rest); });
  changed([&](auto& d) { nudge(d.springs[0].spring.second_point_b[0]); });
  changed([](auto& d) { d.springs[1].spring.direction_0 = -d.springs[1].spring.direction_0; });
  changed([](auto& d) { d.body_inputs[0].input.direction = -d.body_inputs[0].input.direction; });
  changed([](auto& d) { d.body_inputs[0].input.name += "x"; });
  changed([](auto& d) { d.body_inputs.pop_back(); });
}

TEST_CASE("channels are found by name, and a name that is none is answered with the nearest ones") {
  MechanismBuilder builder("pendulum");
  builder.add_body({.name = "rod", .mass = 1.0, .inertia_b = Mat3::Identity()});
  builder.add_joint(
      {.name = "hinge", .type = JointType::revolute, .first = "ground", .second = "rod", .axis = Vec3::UnitY()});
  builder.add_joint_input({.name = "torque"}, "hinge", Freedom::angle);
  builder.add_joint_output({.name = "angle", .kind = Output::Kind::joint_coordinate}, "hinge", Freedom::angle);
  builder.add_body_output({.name = "pose", .kind = Output::Kind::body_pose}, "rod");
  const Mechanism pendulum = builder.build();

  CHECK(pendulum.input_channel("torque") == 0);
  CHECK(pendulum.output_channel("angle") == 0);
  CHECK(pendulum.output_channel("pose.y") == 2);
  CHECK_THROWS_WITH_AS(
      pendulum.output_channel("agnle"),
      R"(output: no output channel is named "agnle": the nearest names are "angle", "pose.x", "pose.y")",
      MechanismError);
  CHECK_THROWS_WITH_AS(pendulum.input_channel(""),
                       R"(input: no input channel is named "": the nearest names are "torque")", MechanismError);
}

}  // namespace rigstep
