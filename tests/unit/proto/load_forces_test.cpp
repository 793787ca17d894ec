// Force elements in mechanism files: what is read, and what a mistake is told as.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "core/index3/outputs/sensors.h"
#include "core/index3/stepper.h"
#include "proto/load_mechanism.h"
#include "proto/write_mechanism.h"
#include "tests/support/complaint.h"

namespace rigstep::config {
namespace {

// A good file; line numbers below count from here, name at 1.
constexpr const char* kGoodForces = R"(name: "good"
body {
  name: "A"
  mass: 2
  inertia { xx: 1 yy: 1 zz: 1 }
  position { z: 0.29 }
}
joint {
  name: "axle"
  type: CYLINDRICAL
  first: "ground"
  second: "A"
  at_start { point { z: 0.29 } axis { y: 1 } }
}
spring {
  name: "strut"
  in_joint { joint: "axle" freedom: DISPLACEMENT }
  preload: 5
  stiffness_table { deflection: [-1, 0, 2] effort: [-3, 0, 8] }
  damping_table { rate: [-1, 1] effort: [-2, 3] }
}
input { name: "torque" signal { unit: "N m" } }
input { name: "push" body_force { body: "A" direction { x: 1 } } }
bushing {
  name: "mount"
  first: "ground"
  second: "A"
  at_start { point { x: 1 } axis { x: 1 } normal { z: 1 } }
  stiffness { diagonal: [1, 2, 3, 4, 5, 6] }
}
joint_friction { name: "seal" joint: "axle" freedom: ANGLE coulomb: 0.4 viscous: 0.1 }
motor {
  name: "drive"
  joint: "axle"
  freedom: ANGLE
  effort_input: "torque"
  effort_limit: 7
  no_load_speed: 30
}
drag { name: "air" body: "A" drag_area: 0.7 wind { x: 2 } }
tyre {
  name: "tyre"
  body: "A"
  radius: 0.3
  stiffness: 1e5
  lateral { b: 8 friction: 0.9 }
}
output { name: "strut" force_element { element: "strut" } }
output { name: "drive" force_element { element: "drive" } }
output { name: "tyre" tyre { element: "tyre" } }
output { name: "mount" bushing { element: "mount" } }
output { name: "air" drag { element: "air" } }
)";

std::string with_forces(const std::string& from, const std::string& to) {
  return test::replaced(kGoodForces, from, to);
}
std::string forces_complaint(const std::string& from, const std::string& to) {
  return test::complaint(with_forces(from, to));
}
void check_forces_complaint(const std::string& from, const std::string& to, int line, const std::string& field,
                            const std::string& problem) {
  test::check_complaint(with_forces(from, to), line, field, problem);
}

}  // namespace

TEST_CASE("a good file gives the force elements that it describes, with their defaults") {
  const Mechanism m = parse_mechanism(kGoodForces, "m").mechanism;
  REQUIRE(m.springs().size() == 1);
  CHECK(m.springs()[0].preload == 5.0);
  CHECK(m.springs()[0].stiffness_table.value(-2.0) == -6.0);
  CHECK(m.springs()[0].stiffness_table.value(1.0) == 4.0);
  CHECK(m.springs()[0].stiffness_table.value(3.0) == 12.0);
  CHECK(m.springs()[0].damping_table.slope(0.0) == 2.5);
  REQUIRE(m.bushings().size() == 1);
  CHECK(m.bushings()[0].stiffness.diagonal() == (Vec6() << 1, 2, 3, 4, 5, 6).finished());
  CHECK(m.bushings()[0].damping.isZero(0.0));
  CHECK((m.bushings()[0].in_second.point_b - Vec3(1.0, 0.0, -0.29)).norm() < 1e-15);
  CHECK(m.bushings()[0].in_first.axes_b.col(1) == Vec3(0.0, -1.0, 0.0));
  REQUIRE(m.frictions().size() == 1);
  CHECK(m.frictions()[0].regularisation_speed == 1e-3);
  REQUIRE(m.motors().size() == 1);
  CHECK(m.motors()[0].effort_input == 0);
  CHECK(m.motors()[0].rate_input == -1);
  REQUIRE(m.drags().size() == 1);
  CHECK(m.drags()[0].density == 1.225);
  REQUIRE(m.tyres().size() == 1);
  CHECK(m.tyres()[0].lateral.B == 8.0);
  CHECK(m.tyres()[0].lateral.C == 1.65);
  CHECK(m.tyres()[0].longitudinal.friction == 1.0);
  CHECK(m.tyres()[0].axis_b == Vec3::UnitY());
  CHECK(m.input_channels()[0].unit == "N m");
}

TEST_CASE("outputs of force elements carry names and units of what they measure") {
  const Mechanism m = parse_mechanism(kGoodForces, "m").mechanism;
  const auto channel = [&](const std::string& name) {
    for (const Channel& c : m.output_channels())
      if (c.name == name) return c.unit;
    return std::string("none");
  };
  CHECK(channel("strut.deflection") == "m");
  CHECK(channel("strut.rate") == "m/s");
  CHECK(channel("strut.effort") == "N");
  CHECK(channel("drive.rate") == "rad/s");
  CHECK(channel("drive.effort") == "N m");
  CHECK(channel("tyre.slip_angle") == "rad");
  CHECK(channel("mount.tz") == "N m");
  CHECK(channel("air.fx") == "N");
  CHECK(channel("air.speed") == "m/s");
  CHECK(m.output_channels().size() == 3 + 3 + 6 + 12 + 4);
  index3::Stepper stepper(m, {});
  Inputs u;
  u.count = 2;
  u.value[0] = 20.0;
  const StepReport report = stepper.step(u);
  Outputs y;
  stepper.read_outputs(report, y);
  REQUIRE(y.count == 28);
  CHECK(y.value[2] == doctest::Approx(4.5).epsilon(1e-2));  // the preload less the damper at rest
  CHECK(y.value[5] == doctest::Approx(7.0).epsilon(1e-2));  // the limit
  CHECK(y.value[8] == doctest::Approx(1e5 * 0.01).epsilon(1e-2));
  CHECK(y.value[24] == doctest::Approx(0.5 * 1.225 * 0.7 * 4.0).epsilon(1e-2));  // a wind of 2 m/s along x
  CHECK(y.value[27] == doctest::Approx(2.0).epsilon(1e-2));
}

TEST_CASE("every number and name of a force element is part of the mechanism's id") {
  const auto id = [](const std::string& from, const std::string& to) {
    return parse_mechanism(with_forces(from, to), "m").mechanism.id();
  };
  const std::uint64_t good = parse_mechanism(kGoodForces, "m").mechanism.id();
  CHECK(id("preload: 5", "preload: 6") != good);
  CHECK(id("effort: [-3, 0, 8]", "effort: [-3, 0, 9]") != good);
  CHECK(id("[1, 2, 3, 4, 5, 6]", "[1, 2, 3, 4, 5, 7]") != good);
  CHECK(id("coulomb: 0.4", "coulomb: 0.5") != good);
  CHECK(id("no_load_speed: 30", "no_load_speed: 31") != good);
  CHECK(id("drag_area: 0.7", "drag_area: 0.8") != good);
  CHECK(id("friction: 0.9", "friction: 0.8") != good);
  CHECK(id("unit: \"N m\"", "unit: \"V\"") != good);
}

TEST_CASE("mistakes in force elements are told at their lines") {
  check_forces_complaint("deflection: [-1, 0, 2]", "\n deflection: [-1, 0, 0]", 20,
                         "spring \"strut\".stiffness_table.deflection", "0 follows 0");
  check_forces_complaint("deflection: [-1, 0, 2]", "deflection: [-1, 2, 0]", 19,
                         "spring \"strut\".stiffness_table.deflection", "0 follows 2");
  check_forces_complaint("rate: [-1, 1]", "\n\n rate: [1, 1]", 22, "spring \"strut\".damping_table.rate",
                         "1 follows 1");
  check_forces_complaint("rate: [-1, 1]", "rate: [1, -1]", 20, "spring \"strut\".damping_table.rate", "-1 follows 1");
  check_forces_complaint("effort: [-2, 3]", "effort: [-2]", 20, "spring \"strut\".damping_table",
                         "2 values of rate and 1");
  check_forces_complaint("rate: [-1, 1] effort: [-2, 3]", "rate: [1] effort: [2]", 20, "spring \"strut\".damping_table",
                         "one point");
  check_forces_complaint("rate: [-1, 1] effort: [-2, 3]", "", 20, "spring \"strut\".damping_table", "is empty");
  check_forces_complaint("second: \"A\"\n  at_start { point { x: 1 }",
                         "second: \"ground\"\n  at_start { point { x: 1 }", 27, "bushing \"mount\".second",
                         "two different");
  check_forces_complaint("diagonal: [1, 2,", "diagonal: [1, -2,", 29, "bushing \"mount\".stiffness", "-2");
  check_forces_complaint("diagonal: [1, 2, 3, 4, 5, 6]", "diagonal: [1, 2]", 29, "bushing \"mount\".stiffness",
                         "2 values");
  const auto full = [](const char* coupling, const char* mirror) {
    std::string rows = "rows: [";
    for (int i = 0; i < 36; ++i)
      rows += std::string(i ? ", " : "") + (i == 1 ? coupling : i == 6 ? mirror : i % 7 == 0 ? "2" : "0");
    return rows + "]";
  };
  CHECK(forces_complaint("diagonal: [1, 2, 3, 4, 5, 6]", full("1", "1")).empty());
  check_forces_complaint("diagonal: [1, 2, 3, 4, 5, 6]", full("1", "0"), 29, "bushing \"mount\".stiffness",
                         "not symmetric");
  check_forces_complaint("diagonal: [1, 2, 3, 4, 5, 6]", full("3", "3"), 29, "bushing \"mount\".stiffness",
                         "release energy");
  check_forces_complaint("normal { z: 1 }", "normal { x: 1 }", 28, "bushing \"mount\".at_start.normal",
                         "perpendicular");
  check_forces_complaint("  at_start { point { x: 1 } axis { x: 1 } normal { z: 1 } }\n", "", 24,
                         "bushing \"mount\".at_start", "is missing");
  check_forces_complaint("coulomb: 0.4", "coulomb: -0.4", 31, "joint_friction \"seal\".coulomb", "-0.4");
  check_forces_complaint("freedom: ANGLE coulomb", "coulomb", 31, "joint_friction \"seal\".freedom", "has two");
  check_forces_complaint("effort_input: \"torque\"", "effort_input: \"tork\"", 36, "motor \"drive\".effort_input",
                         "\"tork\"");
  check_forces_complaint("effort_input: \"torque\"", "effort_input: \"push\"", 36, "motor \"drive\".effort_input",
                         "load of its own");
  check_forces_complaint("effort_input: \"torque\"", "position_input: \"torque\"", 36, "motor \"drive\".position_input",
                         "without position_gain");
  check_forces_complaint("  effort_limit: 7\n", "", 37, "motor \"drive\".no_load_speed", "without effort_limit");
  check_forces_complaint("body: \"A\" drag_area", "body: \"ground\" drag_area", 40, "drag \"air\".body", "ground");
  check_forces_complaint("radius: 0.3", "radius: 0", 44, "tyre \"tyre\".radius", "is 0");
  check_forces_complaint("b: 8", "c: 2.5", 46, "tyre \"tyre\".lateral.c", "2.5");
  check_forces_complaint("name: \"tyre\"\n", "name: \"air\"\n", 42, "tyre \"air\".name", "drag is named");
  check_forces_complaint("tyre { element: \"tyre\" }", "tyre { element: \"strut\" }", 50, "output \"tyre\".element",
                         "\"strut\"");
  check_forces_complaint("drag { element: \"air\" }", "drag { element: \"tyre\" }", 52, "output \"air\".element",
                         "\"tyre\": use one of: air");
}

TEST_CASE("a bushing placed at the start keeps its frames when the file is written with another start") {
  const LoadedMechanism loaded = parse_mechanism(kGoodForces, "m");
  std::vector<rigstep::Body> moved = loaded.mechanism.bodies();
  moved[0].position_0 = {0.5, 0.1, 0.3};
  const Mechanism again = parse_mechanism(with_start(loaded, moved).text, "again").mechanism;
  CHECK(again.bushings()[0].in_second.point_b == loaded.mechanism.bushings()[0].in_second.point_b);
  CHECK((again.bushings()[0].in_first.axes_b - loaded.mechanism.bushings()[0].in_first.axes_b).norm() < 1e-15);
  CHECK(again.bushings()[0].in_first.point_b == loaded.mechanism.bushings()[0].in_first.point_b);
}

}  // namespace rigstep::config
