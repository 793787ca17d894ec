// Bodies of a mechanism file: inertia from a shape, orientations, placement relative to one another.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "core/mechanism/portable_math.h"
#include "proto/load_mechanism.h"
#include "proto/write_mechanism.h"
#include "tests/support/complaint.h"

namespace rigstep::config {
namespace {

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

namespace {

constexpr const char* kBall = "mass: 1 shape_inertia { sphere { radius: 1 } }\n";

Mat3 rotation(const EulerParameters& p) { return Eigen::Quaterniond(p[0], p[1], p[2], p[3]).toRotationMatrix(); }

Mat3 axes_with(const std::string& orientation) {
  return rotation(body_with(kBall + ("orientation { " + orientation + " }")).orientation);
}

Mat3 turn(char axis, double angle) { return Eigen::AngleAxisd(angle, Vec3::Unit(axis - 'x')).toRotationMatrix(); }

void check_orientation(const std::string& inside, int line, const std::string& field, const std::string& problem) {
  check_complaint(kBall + ("orientation {" + inside + "}"), line, field, problem);
}

}  // namespace

TEST_CASE("every sequence of Euler angles is the product of its rotations") {
  for (const std::string letters :
       {"xyz", "xzy", "yxz", "yzx", "zxy", "zyx", "xyx", "xzx", "yxy", "yzy", "zxz", "zyz"}) {
    CAPTURE(letters);
    const std::string angles = "\" angle: [0.3, -1.1, 2.5] }";
    const Mat3 a = turn(letters[0], 0.3), b = turn(letters[1], -1.1), c = turn(letters[2], 2.5);
    CHECK((axes_with("euler { sequence: \"" + letters + angles) - a * b * c).norm() < 1e-14);
    std::string capitals = letters;
    for (char& letter : capitals) letter = static_cast<char>(letter - 'x' + 'X');
    CHECK((axes_with("euler { sequence: \"" + capitals + angles) - c * b * a).norm() < 1e-14);
  }
}

TEST_CASE("an axis and an angle turn right-handed") {
  CHECK((axes_with("axis_angle { axis { z: 7 } angle: 1.5707963267948966 }") * Vec3::UnitX() - Vec3::UnitY()).norm() <
        1e-15);
  const Vec3 u = Vec3(1.0, 2.0, -2.0) / 3.0;
  CHECK((axes_with("axis_angle { axis { x: 1 y: 2 z: -2 } angle: -4 }") - Eigen::AngleAxisd(-4.0, u).toRotationMatrix())
            .norm() < 1e-14);
}

TEST_CASE("any two axes of a body give the third") {
  const Mat3 axes = turn('x', 0.4) * turn('y', 1.3) * turn('z', -2.0);
  const std::string names = "xyz";
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      if (i == j) continue;
      std::string two;
      for (const int k : {i, j})
        two += std::string(1, names[static_cast<std::size_t>(k)]) + " { x: " + std::to_string(3.0 * axes(0, k)) +
               " y: " + std::to_string(3.0 * axes(1, k)) + " z: " + std::to_string(3.0 * axes(2, k)) + " } ";
      CAPTURE(two);
      const Mat3 got = axes_with("two_axes { " + two + "}");
      CHECK((got - axes).norm() < 3e-6);
      CHECK((got.transpose() * got - Mat3::Identity()).norm() < 1e-14);
    }
  CHECK((axes_with("two_axes { z { y: 1 } x { x: 2 } }").col(1) + Vec3::UnitZ()).norm() < 1e-15);
}

TEST_CASE("an orientation is said in one way, and in one that there is") {
  const std::string zyx = "euler {\n sequence: \"zyx\"\n angle: ";
  check_orientation("e0: 1 " + zyx + "[0, 0, 0] }", 3, "orientation", "beside another way");
  test::check_complaint(with_body(kBall + ("orientation { " + zyx + "[0, 0, 0] }\n axis_angle {} }")), 6, "syntax",
                        "another");
  check_orientation(zyx + "[0, 0] }", 5, "orientation.euler.angle", "has 2 values");
  check_orientation(zyx + "[0, 1e5, 0] }", 5, "orientation.euler.angle", "is 100000 rad");
  check_orientation(zyx + "[0, nan, 0] }", 5, "orientation.euler.angle", "nan");
  for (const char* bad : {"zy", "zzx", "zyy", "zYx", "abc", "zyxz", "z\\000x"})
    check_orientation("euler {\n sequence: \"" + std::string(bad) + "\" angle: [0, 0, 0] }", 4,
                      "orientation.euler.sequence", "is no sequence");
  check_orientation("euler {\n angle: [0, 0, 0] }", 3, "orientation.euler.sequence", "is missing");
  check_orientation("axis_angle {\n axis {} angle: 1 }", 4, "orientation.axis_angle.axis", "no direction");
  check_orientation("axis_angle {\n axis { x: 1e200 } angle: 1 }", 4, "orientation.axis_angle.axis", "too long");
  check_orientation("axis_angle { axis { x: 1 }\n angle: inf }", 4, "orientation.axis_angle.angle", "inf");
  check_orientation("two_axes { x { x: 1 } y { x: 0.0523359562 y: 0.9986295348 } }", 3, "orientation.two_axes",
                    "stand at 87 degrees");
  check_orientation("two_axes { x { x: 1 } }", 3, "orientation.two_axes", "has 1 axes");
  check_orientation("two_axes { x { x: 1 } y { y: 1 } z { z: 1 } }", 3, "orientation.two_axes", "has 3 axes");
  check_orientation("two_axes { x { x: 1 }\n z {} }", 4, "orientation.two_axes.z", "no direction");
}

TEST_CASE("an orientation that is written anew is in Euler parameters only, and others stay as they are") {
  const LoadedMechanism loaded = parse_mechanism(
      with_body(kBall + std::string("orientation { euler { sequence: \"zyx\" angle: [1, 2, 3] } }")), "m.textproto");
  std::vector<rigstep::Body> bodies = loaded.mechanism.bodies();
  bodies[0].position_0[0] += 1.0;
  CHECK(with_start(loaded, bodies).text.find("euler") != std::string::npos);
  bodies[0].orientation = EulerParameters{0.6, 0.0, 0.8, 0.0};
  const std::string text = with_start(loaded, bodies).text;
  CHECK(text.find("euler") == std::string::npos);
  CHECK((parse_mechanism(text, "m").mechanism.bodies()[0].orientation - bodies[0].orientation).norm() < 1e-15);
}

namespace {

// Bodies A, B and C, each placed in the frame of the one before, and a hinge given in the frame of B.
std::string chain(const std::string& hinge) {
  const std::string ball = " mass: 1 shape_inertia { sphere { radius: 1 } } ";
  const auto quarter = [](const std::string& axis) {
    return "orientation { axis_angle { axis { " + axis + ": 1 } angle: 1.5707963267948966 } } }\n";
  };
  return "name: \"m\"\nbody { name: \"A\" relative_to: \"ground\"" + ball + "position { x: 1 } " + quarter("z") +
         "body { name: \"B\" relative_to: \"A\"" + ball + "position { x: 2 } velocity { x: 5 } " + quarter("y") +
         "body { name: \"C\" relative_to: \"B\"" + ball + "position { x: 3 } }\n" + hinge;
}

}  // namespace

TEST_CASE("a body placed in the frame of another one stands where the product of the frames is") {
  const auto bodies = parse_mechanism(chain(""), "m").mechanism.bodies();
  CHECK((bodies[0].position_0 - Vec3(1.0, 0.0, 0.0)).norm() < 1e-15);
  CHECK((bodies[1].position_0 - Vec3(1.0, 2.0, 0.0)).norm() < 1e-15);
  CHECK((bodies[2].position_0 - Vec3(1.0, 2.0, -3.0)).norm() < 1e-15);
  const double quarter = 0.5 * kPi;
  CHECK((rotation(bodies[1].orientation) - turn('z', quarter) * turn('y', quarter)).norm() < 1e-15);
  CHECK((rotation(bodies[2].orientation) - rotation(bodies[1].orientation)).norm() < 1e-15);
  CHECK(bodies[1].velocity_0 == Vec3(5.0, 0.0, 0.0));
}

TEST_CASE("a joint at the start may be given in the frame of any body") {
  const std::string joint = "joint { name: \"hinge\" type: UNIVERSAL first: \"A\" second: \"C\" at_start { ";
  const Mechanism relative = parse_mechanism(chain(joint + "relative_to: \"B\" point { x: 1 z: 4 } axis { x: 1 } "
                                                           "second_axis { y: 1 } } }\n"),
                                             "m")
                                 .mechanism;
  const Mechanism in_world =
      parse_mechanism(chain(joint + "point { x: 1 y: 6 z: -1 } axis { z: -1 } second_axis { x: -1 } } }\n"), "m")
          .mechanism;
  CHECK((relative.joints()[0].in_first.point_b - in_world.joints()[0].in_first.point_b).norm() < 1e-14);
  CHECK((relative.joints()[0].in_second.point_b - Vec3(-2.0, 0.0, 4.0)).norm() < 1e-14);
  CHECK((relative.joints()[0].in_first.axes_b - in_world.joints()[0].in_first.axes_b).norm() < 1e-14);
  CHECK((relative.joints()[0].in_second.axes_b - in_world.joints()[0].in_second.axes_b).norm() < 1e-14);
}

TEST_CASE("what a body is placed relative to stands before it") {
  const std::string text = chain(
      "joint { name: \"j\" type: SPHERICAL first: \"A\" second: \"C\"\n"
      "at_start { point {}\n relative_to: \"D\" } }\n");
  test::check_complaint(text, 7, "joint \"j\".at_start.relative_to", "no body is named \"D\"");
  test::check_complaint(test::replaced(text, "relative_to: \"A\"", "relative_to: \"C\""), 3, "body \"B\".relative_to",
                        "no body is named \"C\" before this one");
  test::check_complaint(test::replaced(text, "relative_to: \"A\"", "relative_to: \"B\""), 3, "body \"B\".relative_to",
                        "no body is named \"B\" before this one");
  test::check_complaint(test::replaced(text, "position { x: 3 }", "position { x: inf }"), 4, "body \"C\".position",
                        "finite");
}

TEST_CASE("a written mechanism has its bodies in the world and the same joints") {
  const LoadedMechanism loaded =
      parse_mechanism(chain("joint { name: \"j\" type: REVOLUTE first: \"A\" second: \"C\"\n"
                            "at_start { relative_to: \"B\" point { y: 1 } axis { z: 1 } coordinate: 0.5 } }\n"),
                      "m");
  std::vector<rigstep::Body> moved = loaded.mechanism.bodies();
  for (rigstep::Body& body : moved) body.position_0[0] += 1e-15;
  const std::string text = with_start(loaded, moved).text;
  CHECK(text.find("relative_to") == std::string::npos);
  const Mechanism again = parse_mechanism(text, "m").mechanism;
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(again.bodies()[i].position_0 == moved[i].position_0);
    CHECK((again.bodies()[i].orientation - loaded.mechanism.bodies()[i].orientation).norm() < 1e-15);
  }
  CHECK((again.joints()[0].in_first.point_b - loaded.mechanism.joints()[0].in_first.point_b).norm() < 1e-15);
}

TEST_CASE("a written mechanism keeps the shapes of its bodies") {
  const LoadedMechanism loaded = parse_mechanism(
      with_body("shape_inertia { density: 1000 tube { inner_radius: 0.1 outer_radius: 0.2 length: 1 } }"),
      "m.textproto");
  CHECK(parse_mechanism(with_start(loaded, loaded.mechanism.bodies()).text, "m").mechanism.id() ==
        loaded.mechanism.id());
}

}  // namespace rigstep::config
