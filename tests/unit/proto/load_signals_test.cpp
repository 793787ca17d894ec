// Functions of time in mechanism files (drivers, efforts), and points of loads given in the world at the start.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "proto/load_mechanism.h"
#include "proto/write_mechanism.h"
#include "tests/support/complaint.h"

namespace rigstep::config {
namespace {

// Every kind of driver alone; the id is part of recordings, so it must not change for files that were good before.
constexpr const char* kDrivers = R"(name: "drivers"
gravity { z: -9.81 }
body { name: "A" mass: 1 inertia { xx: 0.1 yy: 0.1 zz: 0.1 } }
body { name: "B" mass: 2 inertia { xx: 0.1 yy: 0.2 zz: 0.2 } position { x: 1 } }
joint { name: "a" type: FLOATING first: "ground" second: "A" at_start { point {} axis { z: 1 } } }
joint { name: "b" type: CYLINDRICAL first: "A" second: "B" at_start { point { x: 1 } axis { x: 1 } } }
spring { name: "s" stiffness: 10 between_points { first: "ground" first_point { z: 2 } second: "B" second_point { y: 0.1 } } }
load { name: "l" body: "B" frame: BODY force { y: 1 } point { x: 0.2 } amplitude: 2 angular_frequency: 3 }
driver { name: "wave" joint: "a" freedom: DISPLACEMENT_X harmonic { constant: -0.1 amplitude: 0.1 angular_frequency: 3 phase: 1.5707963267948966 } }
driver { name: "cubic" joint: "a" freedom: DISPLACEMENT_Y polynomial { coefficient: [0, 0, 2, -1] } }
driver { name: "points" joint: "a" freedom: DISPLACEMENT_Z table { time: [0, 1, 2] value: [0, 0.1, 0] } }
driver { name: "followed" joint: "b" freedom: DISPLACEMENT input {} }
driver { name: "servo" joint: "b" freedom: ANGLE input { position_only { time_constant: 0.02 } } }
)";

// A leaning body with one element of each kind that has points of bodies, all in body coordinates.
constexpr const char* kBuiltIn = R"(name: "built_in"
body {
  name: "A" mass: 2 inertia { xx: 1 yy: 1 zz: 1 } position { x: 1 y: 2 z: 3 }
  orientation { e0: 0.8 e2: 0.6 }
}
body { name: "B" mass: 2 inertia { xx: 1 yy: 1 zz: 1 } position { z: -1 } }
load { name: "l" body: "A" frame: BODY POINT }
spring { name: "s" stiffness: 1 between_points { first: "A" second: "B" SPRING } }
spring { name: "d" stiffness: 1 along_direction { first: "ground" second: "A" direction { z: 1 } ALONG } }
input { name: "f" body_force { body: "A" frame: BODY FORCE } }
input { name: "t" body_torque { body: "A" frame: BODY TORQUE } }
input { name: "h" signal {} }
drag { name: "air" body: "A" drag_area: 1 DRAG }
tyre { name: "tyre" body: "A" radius: 0.3 stiffness: 1e5 TYRE }
output { name: "a" specific_force { body: "A" SENSOR } }
)";

// The world's (x, y, z) - (1, 2, 3), and directions, in A: turned back about y by the angle of cosine 0.28.
std::string in_a(double x, double y, double z) {
  char text[100];
  std::snprintf(text, sizeof text, "{ x: %.17g y: %.17g z: %.17g }", 0.28 * x - 0.96 * z, y, 0.96 * x + 0.28 * z);
  return text;
}

std::string filled(std::initializer_list<std::pair<const char*, std::string>> parts) {
  std::string text = kBuiltIn;
  for (const auto& [mark, part] : parts) text = test::replaced(text, mark, part);
  return text;
}

std::string at_start() {
  return filled({{"POINT", "at_start { point { x: 2 y: 2 z: 3 } force { x: 5 } torque { z: 4 } }"},
                 {"SPRING", "at_start { first_point { x: 1 y: 2 z: 4 } second_point { x: 1 } }"},
                 {"ALONG", "at_start { first_point { x: 7 } second_point { x: 1 y: 2 z: 4 } }"},
                 {"FORCE", "at_start { point { x: 1 y: 2 z: 4 } direction { x: 1 } }"},
                 {"TORQUE", "at_start { direction { z: 1 } }"},
                 {"DRAG", "at_start { point { x: 2 y: 2 z: 3 } }"},
                 {"TYRE", "at_start { centre { x: 1 y: 2 z: 4 } axis { x: 1 } }"},
                 {"SENSOR", "at_start { point { x: 2 y: 2 z: 3 } }"}});
}

std::string built_in() {
  const std::string x = in_a(1, 0, 0), z = in_a(0, 0, 1);
  return filled({{"POINT", "point " + x + " force " + in_a(5, 0, 0) + " torque " + in_a(0, 0, 4)},
                 {"SPRING", "first_point " + z + " second_point { x: 1 z: 1 }"},
                 {"ALONG", "first_point { x: 7 } second_point " + z},
                 {"FORCE", "point " + z + " direction " + x},
                 {"TORQUE", "direction " + z},
                 {"DRAG", "point " + x},
                 {"TYRE", "centre " + z + " axis " + x},
                 {"SENSOR", "point " + x}});
}

void check_same(const Mechanism& a, const Mechanism& b) {
  const auto same = [](const Vec3& one, const Vec3& other) { CHECK((one - other).norm() < 1e-14); };
  same(a.loads()[0].point_b, b.loads()[0].point_b);
  same(a.loads()[0].force, b.loads()[0].force);
  same(a.loads()[0].torque, b.loads()[0].torque);
  for (int k = 0; k < 2; ++k) {
    same(a.springs()[k].first_point_b, b.springs()[k].first_point_b);
    same(a.springs()[k].second_point_b, b.springs()[k].second_point_b);
    same(a.inputs()[k].direction, b.inputs()[k].direction);
    same(a.inputs()[k].point_b, b.inputs()[k].point_b);
  }
  same(a.drags()[0].point_b, b.drags()[0].point_b);
  same(a.tyres()[0].centre_b, b.tyres()[0].centre_b);
  same(a.tyres()[0].axis_b, b.tyres()[0].axis_b);
  same(a.outputs()[0].point_b, b.outputs()[0].point_b);
}

Mechanism parsed(const std::string& text) { return parse_mechanism(text, "m").mechanism; }

std::string with_driver(const std::string& motion) {
  return test::replaced(kDrivers, "polynomial { coefficient: [0, 0, 2, -1] }", motion);
}

std::string with_effort(const std::string& signal) {
  return std::string(kDrivers) + "effort { name: \"e\" joint: \"b\" freedom: ANGLE " + signal + " }\n";
}

}  // namespace

TEST_CASE("the id of a mechanism whose drivers have one kind each is the one that recordings hold") {
  CHECK(parsed(kDrivers).id() == 0x66021fc9ccafc1a6u);
}

TEST_CASE("a driver may be the sum of all kinds, which its id tells from each of them") {
  const Mechanism m = parsed(
      with_driver("sum { harmonic { phase: 1 } harmonic { amplitude: 0.1 } polynomial { coefficient: [0, 0, 1] } "
                  "table { time: [0, 1] value: [0, 1] } input { position_only { time_constant: 0.1 } } }"));
  const rigstep::Driver& driver = m.drivers()[1];
  REQUIRE(driver.function.terms.size() == 4);
  CHECK(driver.function.terms[1].amplitude == 0.1);
  CHECK(driver.function.terms[2].coefficient == std::vector<double>{0.0, 0.0, 1.0});
  CHECK(driver.function.terms[3].value == std::vector<double>{0.0, 1.0});
  CHECK(driver.from_input == rigstep::Driver::FromInput::filtered);
  CHECK(driver.time_constant == 0.1);
  CHECK(m.input_channels()[0].name == "cubic.position");
  const auto id = [](const std::string& motion) { return parsed(with_driver(motion)).id(); };
  const std::string one = "polynomial { coefficient: [0, 1] }", other = "polynomial { coefficient: [0, 2] }";
  CHECK(id(one) == id("sum { " + one + " }"));
  CHECK(id(one) != id("sum { " + one + other + " }"));
  CHECK(id("sum { " + one + other + " }") != id("sum { " + one + one + " }"));
  CHECK(id("sum { " + one + " input {} }") != id("sum { " + one + " }"));
  CHECK(id("sum { input {} }") == id("input {}"));
}

TEST_CASE("an effort is a constant, a function of time or a sum, with an output of its own") {
  const auto terms = [](const std::string& signal) { return parsed(with_effort(signal)).efforts()[0].function.terms; };
  CHECK(terms("constant: 4")[0].constant == 4.0);
  CHECK(terms("harmonic { amplitude: 3 angular_frequency: 2 }")[0].angular_frequency == 2.0);
  CHECK(terms("polynomial { coefficient: [1, 2] }")[0].coefficient.size() == 2);
  CHECK(terms("table { time: [0, 1] value: [0, 5] }")[0].value[1] == 5.0);
  CHECK(terms("sum { polynomial { coefficient: 1 } harmonic {} table { time: [0, 1] value: [0, 5] } }").size() == 3);
  const Mechanism m = parsed(with_effort("constant: 4") + "output { name: \"e\" force_element { element: \"e\" } }");
  REQUIRE(m.output_channels().size() == 3);
  CHECK(m.output_channels()[2].name == "e.effort");
  CHECK(m.output_channels()[2].unit == "N m");
  CHECK(parsed(with_effort("constant: 4")).id() != parsed(with_effort("constant: 5")).id());
}

TEST_CASE("mistakes in functions of time are told with their place") {
  test::check_complaint(with_driver("sum {}"), 10, "driver \"cubic\".sum", "no terms");
  test::check_complaint(with_driver("sum { table { time: [0, 0] value: [1, 2] } }"), 10, "driver \"cubic\".time",
                        "0 s comes after 0 s");
  test::check_complaint(with_driver("sum { polynomial {} }"), 10, "driver \"cubic\".coefficient", "is missing");
  test::check_complaint(with_effort(""), 14, "effort \"e\".constant", "is missing");
  test::check_complaint(with_effort("constant: inf"), 14, "effort \"e\".constant", "not a finite number");
  test::check_complaint(with_effort("sum {}"), 14, "effort \"e\".sum", "no terms");
  test::check_complaint(test::replaced(with_effort("constant: 1"), "name: \"e\"", "name: \"s\""), 14,
                        "effort \"s\".name", "a spring is named");
  test::check_complaint(test::replaced(with_effort("constant: 1"), "freedom: ANGLE constant", "constant"), 14,
                        "effort \"e\".freedom", "has two");
}

TEST_CASE("points and directions at the start are those of the bodies there") {
  check_same(parsed(at_start()), parsed(built_in()));
}

TEST_CASE("what was placed at the start stays on its bodies when the file is written with another start") {
  const LoadedMechanism loaded = parse_mechanism(at_start(), "m");
  std::vector<rigstep::Body> moved = loaded.mechanism.bodies();
  moved[0].position_0 = {0.5, 0.1, 0.3};
  moved[0].orientation = {0.6, 0.0, 0.0, 0.8};
  check_same(parsed(with_start(loaded, moved).text), loaded.mechanism);
}

TEST_CASE("a point is given once, and a direction of the world needs no start") {
  const auto complaint = [](const char* from, const char* to) {
    return test::complaint(test::replaced(at_start(), from, to));
  };
  CHECK(complaint("at_start { point { x: 2 y: 2 z: 3 } force", "point { x: 1 } at_start { point { x: 2 } force")
            .find("load \"l\".at_start.point: stands beside point") != std::string::npos);
  CHECK(complaint("second: \"B\" at_start", "second: \"B\" first_point { x: 1 } at_start")
            .find("stands beside first_point") != std::string::npos);
  CHECK(complaint("body: \"A\" frame: BODY at_start { point { x: 2 y: 2 z: 3 } force",
                  "body: \"A\" at_start { point { x: 2 } force")
            .find("load \"l\".at_start.force: does not turn with the body: write `frame: BODY`") != std::string::npos);
  CHECK(complaint("at_start { direction { z: 1 } }", "at_start { point {} direction { z: 1 } }")
            .find("belongs to a force") != std::string::npos);
  CHECK(complaint("first: \"A\" second", "first: \"C\" second").find("no body is named \"C\"") != std::string::npos);
}

}  // namespace rigstep::config
