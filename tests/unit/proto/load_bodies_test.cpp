// Bodies of a mechanism file: inertia from a shape.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "proto/load_mechanism.h"
#include "proto/write_mechanism.h"
#include "tests/support/complaint.h"

namespace rigstep::config {
namespace {

constexpr double kPi = 3.14159265358979323846;

// A mechanism of one body, whose own fields stand from line 2 on.
std::string with_body(const std::string& fields) { return "name: \"m\" body { name: \"A\"\n" + fields + "\n}\n"; }

rigstep::Body body_with(const std::string& fields) {
  return parse_mechanism(with_body(fields), "m.textproto").mechanism.bodies().at(0);
}

void check_complaint(const std::string& fields, int line, const std::string& field, const std::string& problem) {
  test::check_complaint(with_body(fields), line, "body \"A\"." + field, problem);
}

bool is_near(const Mat3& a, const Mat3& b) { return (a - b).norm() <= 1e-14 * b.norm(); }

Mat3 diagonal(double xx, double yy, double zz) { return Vec3(xx, yy, zz).asDiagonal(); }

std::string shape(const std::string& inside) { return "mass: 3 shape_inertia { " + inside + " }"; }

}  // namespace

TEST_CASE("a homogeneous solid has the inertia of its closed form, about its mass centre") {
  CHECK(is_near(body_with(shape("box { x: 1 y: 2 z: 4 }")).inertia_b, diagonal(5.0, 17.0 / 4.0, 5.0 / 4.0)));
  CHECK(is_near(body_with(shape("sphere { radius: 0.5 }")).inertia_b, diagonal(0.3, 0.3, 0.3)));
  CHECK(is_near(body_with(shape("cylinder { radius: 0.2 length: 1 }")).inertia_b, diagonal(0.28, 0.28, 0.06)));
  CHECK(is_near(body_with(shape("cylinder { radius: 0.2 length: 1 axis { x: -5 } }")).inertia_b,
                diagonal(0.06, 0.28, 0.28)));
  CHECK(is_near(body_with(shape("tube { inner_radius: 0.1 outer_radius: 0.2 length: 1 axis { y: 1 } }")).inertia_b,
                diagonal(0.2875, 0.075, 0.2875)));
  CHECK(body_with(shape("sphere { radius: 0.5 }")).mass == 3.0);
}

TEST_CASE("a cylinder turned in its body has the turned inertia") {
  const Vec3 u = Vec3(1.0, 2.0, -2.0) / 3.0;
  const Mat3 inertia = body_with(shape("cylinder { radius: 0.2 length: 1 axis { x: 1 y: 2 z: -2 } }")).inertia_b;
  CHECK(std::abs(u.dot(inertia * u) - 0.06) < 1e-15);
  CHECK((inertia * u - 0.06 * u).norm() < 1e-15);
  CHECK(std::abs(inertia.trace() - 0.62) < 1e-14);
}

TEST_CASE("a thin rod has a small moment about its axis and those of a line across it") {
  const Mat3 inertia = body_with(shape("rod { length: 2 axis { x: 1 } }")).inertia_b;
  CHECK(inertia(0, 0) == doctest::Approx(0.5 * 3.0 * 0.002 * 0.002));
  CHECK(inertia(1, 1) == doctest::Approx(3.0 * 4.0 / 12.0).epsilon(4e-6));
  CHECK(inertia(1, 1) == inertia(2, 2));
  CHECK(is_near(body_with(shape("rod { length: 1 radius: 0.2 }")).inertia_b, diagonal(0.28, 0.28, 0.06)));
}

TEST_CASE("a density gives the mass that the volume has") {
  const auto mass = [](const std::string& in) { return body_with("shape_inertia { density: 1000 " + in + " }").mass; };
  CHECK(mass("box { x: 0.1 y: 0.2 z: 0.3 }") == doctest::Approx(6.0));
  CHECK(mass("sphere { radius: 0.1 }") == doctest::Approx(4.0 / 3.0 * kPi));
  CHECK(mass("cylinder { radius: 0.1 length: 0.2 }") == doctest::Approx(2.0 * kPi));
  CHECK(mass("tube { inner_radius: 0.1 outer_radius: 0.2 length: 0.2 }") == doctest::Approx(6.0 * kPi));
  CHECK(mass("rod { length: 1 radius: 0.01 }") == doctest::Approx(0.1 * kPi));
  const rigstep::Body box = body_with("shape_inertia { density: 1000 box { x: 0.1 y: 0.2 z: 0.3 } }");
  CHECK(is_near(box.inertia_b, diagonal(0.065, 0.05, 0.025)));
}

TEST_CASE("a body has its inertia and its mass from one place each") {
  const std::string ball = "shape_inertia {\n sphere { radius: 1 } ";
  check_complaint("mass: 1 inertia { xx: 1 yy: 1 zz: 1 }\n" + ball + "}", 3, "shape_inertia", "stands beside inertia");
  check_complaint("mass: 1", 1, "inertia", "is missing");
  check_complaint(ball + "}", 1, "mass", "is missing");
  check_complaint("mass: 1\n" + ball + "density: 1000 }", 4, "shape_inertia.density", "stands beside mass");
  check_complaint("shape_inertia { density: 1000\n rod { length: 1 } }", 2, "shape_inertia.density",
                  "without a radius");
  check_complaint("mass: 1 shape_inertia {}", 2, "shape_inertia", "has no shape");
  test::check_complaint(with_body("mass: 1 shape_inertia { box { x: 1 y: 1 z: 1 } sphere {} }"), 2, "syntax",
                        "another");
}

TEST_CASE("sizes that no solid has are told where they stand") {
  check_complaint("mass: 1\nshape_inertia {\n box { x: 1 y: 1 } }", 4, "shape_inertia.box.z", "is 0");
  check_complaint("mass: 1 shape_inertia {\n sphere {\n radius: -1 } }", 4, "shape_inertia.sphere.radius",
                  "least is 0");
  check_complaint("mass: 1 shape_inertia {\n sphere {\n radius: nan } }", 4, "shape_inertia.sphere.radius", "nan");
  check_complaint("mass: 1 shape_inertia {\n rod { length: 1e300 } }", 3, "shape_inertia.rod.length", "most is");
  check_complaint("mass: 1 shape_inertia {\n rod { length: 1\n radius: 0 } }", 4, "shape_inertia.rod.radius", "is 0");
  check_complaint("mass: 1 shape_inertia {\n rod { length: 1\n axis {} } }", 4, "shape_inertia.rod.axis",
                  "no direction");
  check_complaint("mass: 1 shape_inertia {\n tube { inner_radius: 2 outer_radius: 1 length: 1 } }", 3,
                  "shape_inertia.tube.inner_radius", "not below");
  check_complaint("shape_inertia {\n sphere { radius: 1 }\n density: 0 }", 4, "shape_inertia.density", "is 0");
  check_complaint("shape_inertia {\n sphere { radius: 1 }\n density: 1e7 }", 4, "shape_inertia.density", "steel");
  check_complaint("mass: 1 shape_inertia { rod { length: 1e-160 } }", 1, "inertia", "principal moment");
}

TEST_CASE("a written mechanism keeps the shapes of its bodies") {
  const LoadedMechanism loaded = parse_mechanism(
      with_body("shape_inertia { density: 1000 tube { inner_radius: 0.1 outer_radius: 0.2 length: 1 } }"),
      "m.textproto");
  CHECK(parse_mechanism(with_start(loaded, loaded.mechanism.bodies()), "m").mechanism.id() == loaded.mechanism.id());
}

}  // namespace rigstep::config
