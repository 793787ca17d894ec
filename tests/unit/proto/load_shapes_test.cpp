// What a mechanism file says about how it looks.
#include <doctest/doctest.h>

#include <string>

#include "proto/load_mechanism.h"
#include "tests/support/complaint.h"

namespace rigstep::config {
namespace {

using Kind = DrawnShape::Kind;

// A mechanism of one body, whose own fields stand from line 2 on.
std::string drawn_body(const std::string& fields) {
  return "name: \"m\" body { name: \"A\" mass: 1 inertia { xx: 1 yy: 1 zz: 1 }\n" + fields + "\n}\n";
}

LoadedMechanism drawn(const std::string& fields) { return parse_mechanism(drawn_body(fields), "m.textproto"); }

void check_shape_complaint(const std::string& shape, const std::string& field, const std::string& problem) {
  test::check_complaint(drawn_body("\nshape { " + shape + " }"), 3, "body[0].shape[0]." + field, problem);
}

}  // namespace

TEST_CASE("a body has as many shapes as it is given, with size, place and colour") {
  const auto shapes = drawn(
                          "shape { box { x: 1 y: 2 z: 3 } position { x: 0.5 } colour: \"#0a64ff80\" }\n"
                          "shape { capsule { radius: 0.1 length: 2 axis { x: 2 } } }")
                          .shapes;
  REQUIRE(shapes.size() == 2);
  CHECK(shapes[0].kind == Kind::box);
  CHECK(shapes[0].size == Vec3(1, 2, 3));
  CHECK(shapes[0].position_b == Vec3(0.5, 0, 0));
  CHECK(*shapes[0].colour == std::array<std::uint8_t, 4>{10, 100, 255, 128});
  CHECK(shapes[1].kind == Kind::capsule);
  CHECK_FALSE(shapes[1].colour.has_value());
  const EulerParameters p = shapes[1].orientation;  // takes z to x: third column of the matrix
  CHECK(2.0 * (p[1] * p[3] + p[0] * p[2]) == doctest::Approx(1.0));
}

TEST_CASE("shapes are no part of a mechanism's identity") {
  const Mechanism bare = drawn("").mechanism;
  CHECK(drawn("shape { sphere { radius: 0.2 } }").mechanism.id() == bare.id());
  CHECK(parse_mechanism(drawn_body("") + "ground_shape { sphere { radius: 0.2 } }", "m").mechanism.id() == bare.id());
}

TEST_CASE("a body with shape_inertia and without shapes is drawn as that solid") {
  const std::string solid =
      "name: \"m\" body { name: \"A\" mass: 1 shape_inertia { tube { inner_radius: 1 outer_radius: 2 length: 3 } } ";
  const auto shapes = parse_mechanism(solid + "}", "m").shapes;
  REQUIRE(shapes.size() == 1);
  CHECK(shapes[0].kind == Kind::tube);
  CHECK(shapes[0].size == Vec3(2, 1, 3));
  CHECK(parse_mechanism(solid + "shape { sphere { radius: 1 } } }", "m").shapes.at(0).kind == Kind::sphere);
}

TEST_CASE("a mesh is a file of the mechanism file's folder or of one below") {
  const auto shapes = drawn("shape { mesh { file: \"parts/arm.STL\" scale: 0.001 } }").shapes;
  CHECK(shapes.at(0).file == "parts/arm.STL");
  CHECK(shapes.at(0).size == Vec3::Constant(0.001));
  for (const char* file : {"/etc/passwd.stl", "../arm.stl", "parts/../../arm.stl"})
    check_shape_complaint("mesh { file: \"" + std::string(file) + "\" }", "mesh.file", "outside the folder");
  check_shape_complaint("mesh { file: \"arm.step\" }", "mesh.file", "not drawn");
  check_shape_complaint("mesh { }", "mesh.file", "missing");
}

TEST_CASE("a shape that cannot be drawn is refused with its place in the file") {
  check_shape_complaint("colour: \"#000000\"", "shape", "no form");
  check_shape_complaint("sphere { radius: -1 }", "sphere.radius", "the least is 0");
  check_shape_complaint("box { x: 1 y: 1 }", "box.z", "is 0");
  check_shape_complaint("box { x: 1 y: 1 z: 1e7 }", "box.z", "the most is");
  check_shape_complaint("tube { inner_radius: 2 outer_radius: 1 length: 1 }", "tube.inner_radius", "not below");
  check_shape_complaint("cylinder { radius: 1 length: 1 axis { } }", "cylinder.axis", "zero");
  for (const char* colour : {"red", "#12345", "#12345g", "#1234567", "# 12345"})
    check_shape_complaint("sphere { radius: 1 } colour: \"" + std::string(colour) + "\"", "colour", "no colour");
  check_shape_complaint("sphere { radius: 1 } orientation { e0: 2 }", "orientation", "unit");
}

}  // namespace rigstep::config
