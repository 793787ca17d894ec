#include "core/mechanism/assembly.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <functional>

#include "core/index3/start/initial_state.h"
#include "core/index3/stepper.h"
#include "core/mechanism/builder.h"
#include "core/mechanism/joint_geometry.h"
#include "core/mechanism/orientation.h"
#include "core/mechanism/portable_math.h"
#include "tests/support/mechanisms.h"

namespace rigstep {
namespace {

using Start = MechanismBuilder::Start;

Pose random_pose(test::Random& random) {
  return {random.uniform(0.2, 1.0) * random.direction(),
          axes_of(turned_about(random.direction(), random.uniform(-1.0, 1.0)))};
}

Pose moved(const Pose& pose, const Vec6& by) {
  const Vec3 turn = by.tail<3>();
  const double angle = turn.norm();
  const Mat3 A = angle > 0.0 ? Mat3(axes_of(turned_about(turn / angle, angle)) * pose.A) : pose.A;
  return {pose.r_0 + by.head<3>(), A};
}

Joint random_joint(JointType type, test::Random& random) {
  Joint joint{.name = "j", .type = type, .first = 0, .second = 1, .in_first = {}, .in_second = {}};
  for (JointFrame* frame : {&joint.in_first, &joint.in_second})
    *frame = {random.direction(), axes_of(turned_about(random.direction(), random.uniform(-1.0, 1.0)))};
  joint.lead = 0.3;
  joint.length = 0.7;
  return joint;
}

Body body(const std::string& name, const Vec3& at, double mass = 1.0) {
  Body b;
  b.name = name;
  b.mass = mass;
  b.inertia_b = 0.01 * mass * Mat3::Identity();
  b.position_0 = at;
  return b;
}

void hinge(MechanismBuilder& builder, const std::string& name, const std::string& first, const std::string& second,
           const Vec3& point, double coordinate = 0.0) {
  builder.add_joint({name, JointType::revolute, first, second, point, Vec3::UnitY(), {}, coordinate, 0.0, {}, {}, 0.0});
}

// Crank 0.1 m, coupler 0.5 m, rocker 0.3 m, frame 0.5 m; the crank level, the rocker upright.
MechanismBuilder four_bar() {
  MechanismBuilder builder("four_bar");
  builder.add_body(body("crank", {0.05, 0.0, 0.0}));
  builder.add_body(body("coupler", {0.3, 0.0, 0.15}, 2.0));
  builder.add_body(body("rocker", {0.5, 0.0, 0.15}, 3.0));
  hinge(builder, "A", "ground", "crank", Vec3::Zero());
  hinge(builder, "B", "crank", "coupler", {0.1, 0.0, 0.0});
  hinge(builder, "C", "coupler", "rocker", {0.5, 0.0, 0.3});
  hinge(builder, "D", "ground", "rocker", {0.5, 0.0, 0.0});
  for (const char* joint : {"A", "D"}) {
    Output output;
    output.name = joint;
    output.kind = Output::Kind::joint_coordinate;
    builder.add_joint_output(output, joint, Freedom::angle);
  }
  return builder;
}

Start angle(const std::string& joint, double value, std::optional<double> rate = {}) {
  return {joint, Freedom::angle, value, rate, "start[0]"};
}

std::string complaint(MechanismBuilder& builder) {
  try {
    builder.build();
  } catch (const MechanismError& error) {
    return error.what();
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

double output_at_start(const Mechanism& m, const char* channel) {
  index3::Stepper stepper(m, {});
  Outputs outputs;
  stepper.read_outputs({}, outputs);
  return outputs.value[static_cast<std::size_t>(m.output_channel(channel))];
}

}  // namespace

TEST_CASE("gradients of constraints and freedoms are those of their values, for every joint type") {
  for (const JointType type : test::kAllJointTypes) {
    CAPTURE(to_string(type));
    test::Random random(static_cast<unsigned>(type) + 1);
    const Joint joint = random_joint(type, random);
    const Pose first = random_pose(random);
    // near a pose where the joint is closed, so that angles about axes are what their names say
    const JointAt open = joint_at(joint, first, random_pose(random));
    std::vector<double> values(freedoms(type).size(), 0.4);
    if (type == JointType::screw) values = {0.3 * 0.4 / (2.0 * kPi), 0.4};
    const RelativePose closed = closed_joint(joint, values, open);
    Pose second;
    second.A = open.a * closed.turn * joint.in_second.axes_b.transpose();
    second.r_0 = first.r_0 + open.first_arm + open.a * closed.shift - second.A * joint.in_second.point_b;
    const JointAt at = joint_at(joint, first, second);
    for (const JointScalar& row : joint_constraints(joint, at)) CHECK(std::abs(row.value) < 1e-14);
    std::vector<std::function<JointScalar(const JointAt&)>> scalars;
    for (std::size_t k = 0; k < joint_constraints(joint, at).size(); ++k)
      scalars.push_back([&joint, k](const JointAt& now) { return joint_constraints(joint, now)[k]; });
    for (std::size_t k = 0; k < values.size(); ++k) {
      const Freedom freedom = freedoms(type)[k];
      CHECK(joint_freedom(joint, freedom, at).value == doctest::Approx(values[k]).epsilon(1e-13));
      scalars.push_back([&joint, freedom](const JointAt& now) { return joint_freedom(joint, freedom, now); });
    }
    for (const auto& scalar : scalars)
      for (int k = 0; k < 12; ++k) {
        constexpr double kStep = 1e-6;
        const auto difference = [&](double step) {
          Vec6 by = Vec6::Zero();
          by[k % 6] = step;
          return scalar(joint_at(joint, k < 6 ? moved(first, by) : first, k < 6 ? second : moved(second, by))).value;
        };
        const Vec6 gradient = k < 6 ? scalar(at).first : scalar(at).second;
        CHECK(gradient[k % 6] ==
              doctest::Approx((difference(kStep) - difference(-kStep)) / (2.0 * kStep)).epsilon(1e-7));
      }
  }
}

TEST_CASE("bodies of a tree are placed by their joint coordinates, and what nothing moves keeps its bits") {
  MechanismBuilder builder("double_pendulum");
  builder.add_body(body("beside", {3.0, 0.1, 0.2}));
  builder.add_body(body("upper", {0.0, 0.0, -0.5}));
  builder.add_body(body("lower", {0.0, 0.0, -1.5}));
  hinge(builder, "beside", "ground", "beside", {3.0, 0.0, 0.0});
  hinge(builder, "shoulder", "ground", "upper", Vec3::Zero());
  hinge(builder, "elbow", "upper", "lower", {0.0, 0.0, -1.0}, 0.25);
  const Mechanism before = builder.build();
  builder.hold_joint(angle("shoulder", 0.5 * kPi, 2.0));
  const Mechanism m = builder.build();
  CHECK(m.bodies()[0].position_0 == before.bodies()[0].position_0);
  CHECK(m.bodies()[0].orientation == before.bodies()[0].orientation);
  CHECK((m.bodies()[1].position_0 - Vec3(-0.5, 0.0, 0.0)).norm() < 1e-15);
  CHECK((m.bodies()[2].position_0 - Vec3(-1.5, 0.0, 0.0)).norm() < 1e-15);  // the elbow keeps its angle
  CHECK((m.bodies()[1].angular_velocity_0 - Vec3(0.0, 2.0, 0.0)).norm() < 1e-12);
  CHECK((m.bodies()[2].angular_velocity_0 - Vec3(0.0, 2.0, 0.0)).norm() < 1e-12);  // and its rate
  CHECK((m.bodies()[2].velocity_0 - Vec3(0.0, 0.0, 3.0)).norm() < 1e-12);
  CHECK(m.id() != before.id());
  CHECK_NOTHROW(index3::require_consistent_start(m));
  const Mechanism as_added = builder.build_as_added();
  CHECK(as_added.id() == before.id());
}

TEST_CASE("rates of a tree stay what they are when its bodies are placed elsewhere") {
  MechanismBuilder builder("pendulum");
  Body swinging = body("pendulum", {0.0, 0.0, -0.5});
  swinging.angular_velocity_0 = {0.0, 1.5, 0.0};
  swinging.velocity_0 = {-0.75, 0.0, 0.0};
  builder.add_body(swinging);
  hinge(builder, "shoulder", "ground", "pendulum", Vec3::Zero());
  builder.hold_joint(angle("shoulder", 0.5 * kPi));
  const Body b = builder.build().bodies()[0];
  CHECK((b.angular_velocity_0 - Vec3(0.0, 1.5, 0.0)).norm() < 1e-12);
  CHECK((b.velocity_0 - Vec3(0.0, 0.0, 0.75)).norm() < 1e-12);
}

TEST_CASE("a loop closes around a held crank and stays on its branch, all the way round") {
  for (const double wanted : {0.3, 1.5, 3.0, 4.5, 2.0 * kPi, -9.0}) {
    CAPTURE(wanted);
    MechanismBuilder builder = four_bar();
    builder.hold_joint(angle("A", wanted, 3.0));
    const Mechanism m = builder.build();
    CHECK_NOTHROW(index3::require_consistent_start(m));
    CHECK(output_at_start(m, "A") == doctest::Approx(wanted).epsilon(1e-13));
    // the rocker's pin from two circles about B and D, on the left of B - D where it is as drawn
    const Vec3 B(0.1 * std::cos(wanted), 0.0, -0.1 * std::sin(wanted)), D(0.5, 0.0, 0.0);
    const double d = (D - B).norm(), x = (d * d + 0.25 - 0.09) / (2.0 * d), y = std::sqrt(0.25 - x * x);
    const Vec3 along = (D - B) / d, C = B + x * along + y * Vec3(-along.z(), 0.0, along.x());
    const Body& rocker = m.bodies()[2];
    CHECK((rocker.position_0 - 0.5 * (C + D)).norm() < 1e-12);
    CHECK(m.bodies()[0].angular_velocity_0.y() == doctest::Approx(3.0).epsilon(1e-9));
  }
}

TEST_CASE("full turns of a held angle count, and half a turn is not minus half a turn") {
  for (const double wanted : {kPi, -kPi, 7.0, 100.0}) {
    CAPTURE(wanted);
    MechanismBuilder builder("wheel");
    builder.add_body(body("wheel", Vec3::Zero()));
    hinge(builder, "axle", "ground", "wheel", Vec3::Zero(), 0.5);
    Output output;
    output.name = "angle";
    output.kind = Output::Kind::joint_coordinate;
    builder.add_joint_output(output, "axle", Freedom::angle);
    builder.hold_joint(angle("axle", wanted));
    CHECK(output_at_start(builder.build(), "angle") == doctest::Approx(wanted).epsilon(1e-14));
  }
}

TEST_CASE("what cannot be reached is refused with the value, how much stays open, and how far it comes") {
  MechanismBuilder builder = four_bar();
  builder.hold_joint(angle("D", 1.5));  // the rocker would need a longer coupler
  const std::string text = complaint(builder);
  CAPTURE(text);
  CHECK(contains(text, "start[0].angle: of joint \"D\" cannot be 1.5 rad"));
  CHECK(contains(text, "stay open by "));
  // the longest reach of crank and coupler, 0.6 m from A, is a triangle with the frame and the rocker
  const double reach = kPi - std::acos((0.25 + 0.09 - 0.36) / (2.0 * 0.5 * 0.3)) - 0.5 * kPi;
  const std::size_t at = text.find("or write ");
  REQUIRE(at != text.npos);
  CHECK(std::strtod(text.c_str() + at + std::string("or write ").size(), nullptr) ==
        doctest::Approx(-reach).epsilon(1e-3));
}

TEST_CASE("held values that contradict each other are refused, and one of them is named") {
  MechanismBuilder builder = four_bar();
  builder.hold_joint(angle("A", 0.5));
  Start second = angle("D", 0.02);
  second.place = "start[1]";
  builder.hold_joint(second);
  const std::string text = complaint(builder);
  CAPTURE(text);
  CHECK(contains(text, "start[1].angle: of joint \"D\" cannot be 0.02 rad beside"));
  CHECK_THROWS_WITH_AS(builder.hold_joint(angle("A", 0.4)), doctest::Contains("held by another"), MechanismError);
  CHECK_THROWS_WITH_AS(builder.hold_joint({"A", Freedom::displacement, 0.4, {}, ""}),
                       doctest::Contains("has no freedom displacement"), MechanismError);

  MechanismBuilder rates = four_bar();
  rates.hold_joint({"A", Freedom::angle, {}, 1.0, "start[0]"});
  rates.hold_joint({"D", Freedom::angle, {}, 5.0, "start[1]"});
  CHECK(contains(complaint(rates), "start[1].rate: of joint \"D\" cannot be 5 rad/s"));
}

// The number behind `words`.
double number_behind(const std::string& text, const std::string& words) {
  const std::size_t at = text.find(words);
  REQUIRE(at != text.npos);
  return std::strtod(text.c_str() + at + words.size(), nullptr);
}

TEST_CASE("held rates that contradict the loops are told with those that do not, and these are taken") {
  const auto with_rates = [](double D, double B) {
    MechanismBuilder builder = four_bar();
    builder.hold_joint({"A", Freedom::angle, {}, 1.0, "start[0]"});
    builder.hold_joint({"D", Freedom::angle, {}, D, "start[1]"});
    builder.hold_joint({"B", Freedom::angle, {}, B, "start[2]"});
    return builder;
  };
  MechanismBuilder wrong = with_rates(5.0, 7.0);
  const std::string text = complaint(wrong);
  CAPTURE(text);
  CHECK(contains(text, "start[1].rate: of joint \"D\" cannot be 5 rad/s"));
  const double D = number_behind(text, "which make it "), B = number_behind(text, "start[2].rate ");
  CHECK(number_behind(text, "or write ") == D);
  CHECK(std::abs(D - 5.0) > 0.1);
  CHECK(std::abs(B - 7.0) > 0.1);
  MechanismBuilder half = with_rates(D, 7.0);
  CHECK(contains(complaint(half), "start[2].rate: of joint \"B\" cannot be 7 rad/s"));
  MechanismBuilder right = with_rates(D, B);
  CHECK_NOTHROW(right.build());
}

TEST_CASE("a driver's value at time 0 is held like any other, and contradicting it is refused") {
  const auto driven = [] {
    MechanismBuilder builder = four_bar();
    Driver driver;
    driver.name = "motor";
    driver.function = harmonic(0.2, 0.1, 3.0, 0.5 * kPi) + table({-1.0, 1.0, 2.0}, {0.0, 0.3, 0.1});
    builder.add_driver(driver, "A", Freedom::angle);
    return builder;
  };
  MechanismBuilder agreeing = driven();
  agreeing.hold_body("coupler");
  CHECK(
      contains(complaint(agreeing), "start: the held values contradict each other"));  // 0.5 rad from where it is drawn
  MechanismBuilder rated = driven();
  rated.hold_joint({"B", Freedom::angle, {}, {}, "start[0]"});
  CHECK(contains(complaint(rated), "start"));
  MechanismBuilder other = driven();
  other.hold_joint(angle("A", 0.1));
  CHECK(contains(complaint(other), "start[0].angle: is 0.1 rad, and driver \"motor\" prescribes 0.4"));
}

TEST_CASE("what a driver prescribes at time 0 is what the stepper demands there") {
  MechanismBuilder builder = four_bar();
  Driver driver;
  driver.name = "motor";
  driver.function =
      harmonic(0.1, 0.1, 3.0, 0.3) + table({-1.0, 1.0, 2.0, 4.0}, {0.0, 0.3, 0.1, 0.2}) + polynomial({0.1, 2.0});
  builder.add_driver(driver, "A", Freedom::angle);
  builder.hold_joint({"D", Freedom::angle, {}, {}, "start[0]"});
  CHECK(contains(complaint(builder), "contradict"));  // the rocker cannot stay
  MechanismBuilder free = four_bar();
  free.add_driver(driver, "A", Freedom::angle);
  free.hold_joint({"A", Freedom::angle, at_time_zero(driver.function).value, {}, "start[0]"});
  CHECK_NOTHROW(index3::require_consistent_start(free.build()));
}

TEST_CASE("couplings mesh as the bodies are drawn: held coordinates take the others along") {
  MechanismBuilder builder("gears");
  builder.add_body(body("one", Vec3::Zero()));
  builder.add_body(body("two", {1.0, 0.0, 0.0}));
  hinge(builder, "one", "ground", "one", Vec3::Zero());
  hinge(builder, "two", "ground", "two", {1.0, 0.0, 0.0});
  Coupling mesh;
  mesh.name = "mesh";
  mesh.ratio = 2.0;
  builder.add_coupling(mesh, "one", Freedom::angle, "two", Freedom::angle);
  Output output;
  output.name = "two";
  output.kind = Output::Kind::joint_coordinate;
  builder.add_joint_output(output, "two", Freedom::angle);
  builder.hold_joint(angle("one", 5.0, 4.0));
  const Mechanism m = builder.build();
  CHECK_NOTHROW(index3::require_consistent_start(m));
  CHECK(output_at_start(m, "two") == doctest::Approx(-2.5).epsilon(1e-12));
  CHECK(m.bodies()[1].angular_velocity_0.y() == doctest::Approx(-2.0).epsilon(1e-9));
}

TEST_CASE("a held body stays to the bit, and the others close around it") {
  MechanismBuilder builder = four_bar();
  builder.hold_body("crank");
  Mechanism m = builder.build();
  const Mechanism open = [] {
    MechanismBuilder made = four_bar();
    return made.build();
  }();
  CHECK(m.bodies()[0].position_0 == open.bodies()[0].position_0);
  CHECK((m.bodies()[2].position_0 - open.bodies()[2].position_0).norm() < 1e-12);
  CHECK_THROWS_WITH_AS(builder.hold_body("ground"), doctest::Contains("is the ground"), MechanismError);
  CHECK_THROWS_WITH_AS(builder.hold_body("crank"), doctest::Contains("held twice"), MechanismError);
  CHECK_THROWS_WITH_AS(builder.hold_body("crnk"), doctest::Contains("no body is named"), MechanismError);
}

TEST_CASE("freedoms of random trees are met, whatever joints they hang on") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    const test::Description d = test::random_bare_tree(seed, 8);
    const Mechanism drawn = test::build(d);
    Held held;
    test::Random random(seed);
    for (int j = 0; j < static_cast<int>(drawn.joints().size()); ++j)
      for (const Freedom freedom : freedoms(drawn.joints()[static_cast<std::size_t>(j)].type))
        if ((drawn.joints()[static_cast<std::size_t>(j)].type != JointType::screw || freedom == Freedom::angle) &&
            random.below(2) == 0)
          held.coordinates.push_back({j, freedom, 0.0, random.uniform(-1.0, 1.0), random.uniform(-1.0, 1.0)});
    const Assembled assembled = assemble(drawn, held);
    CAPTURE(assembled.gap);
    CAPTURE(assembled.rate_gap);
    CHECK(assembled.closed);
    for (std::size_t k = 0; k < held.coordinates.size(); ++k)
      CHECK(assembled.coordinate[k] == doctest::Approx(*held.coordinates[k].value).epsilon(1e-12));
  }
}

}  // namespace rigstep
