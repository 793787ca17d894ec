// What the page shows of an instant beyond poses: forces as arrows, and whether it is near a singular pose.
#include <doctest/doctest.h>

#include <cmath>

#include "server/view/acting_forces.h"
#include "server/view/singular_poses.h"

namespace rigstep::server {
namespace {

config::LoadedMechanism parsed(const std::string& text) { return config::parse_mechanism(text, "m.textproto"); }

struct Arrow {
  Vec3 at, force, torque;
};

Arrow arrow(const std::vector<float>& numbers, std::size_t k) {
  const auto vector = [&](std::size_t from) {
    return Vec3(numbers[9 * k + from], numbers[9 * k + from + 1], numbers[9 * k + from + 2]);
  };
  return {vector(0), vector(3), vector(6)};
}

constexpr double kSingle = 1e-6;  // numbers are floats

// A parallelogram of bars of 1 m on hinges in the plane z = 0, its cranks at this angle to the x axis.
Poses parallelogram_at(double angle) {
  const Vec3 along(std::cos(angle), std::sin(angle), 0.0);
  const EulerParameters turn(std::cos(0.5 * angle), 0.0, 0.0, std::sin(0.5 * angle));
  return {
      {0.5 * along, turn}, {along + Vec3(0.5, 0.0, 0.0), {1.0, 0.0, 0.0, 0.0}}, {Vec3(1, 0, 0) + 0.5 * along, turn}};
}

constexpr const char* kParallelogram = R"(name: "parallelogram"
  body { name: "a" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } position { y: 0.5 } orientation { axis_angle { axis { z: 1 } angle: 90 deg } } }
  body { name: "b" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } position { x: 0.5 y: 1 } }
  body { name: "c" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } position { x: 1 y: 0.5 } orientation { axis_angle { axis { z: 1 } angle: 90 deg } } }
  joint { name: "A" type: REVOLUTE first: "ground" second: "a" at_start { point {} axis { z: 1 } } }
  joint { name: "B" type: REVOLUTE first: "a" second: "b" at_start { point { y: 1 } axis { z: 1 } } }
  joint { name: "C" type: REVOLUTE first: "b" second: "c" at_start { point { x: 1 y: 1 } axis { z: 1 } } }
  joint { name: "D" type: REVOLUTE first: "c" second: "ground" at_start { point { x: 1 } axis { z: 1 } } }
)";

}  // namespace

TEST_CASE("forces of elements, loads and inputs act along their lines, with the torque beside them") {
  const config::LoadedMechanism loaded = parsed(R"(name: "m"
    body { name: "box" mass: 2 inertia { xx: 1 yy: 1 zz: 1 } position { x: 3 } }
    joint { name: "hinge" type: REVOLUTE first: "ground" second: "box" at_start { axis { z: 1 } } }
    input { name: "turn" joint_effort { joint: "hinge" } }
    load { name: "blow" body: "box" force { z: 5 } torque { x: 7 } point { y: 0.5 } }
    spring { name: "coil" stiffness: 100 rest: 1
             between_points { first: "ground" first_point { x: 3 y: 4 } second: "box" second_point { y: 1 } } })");
  index3::Stepper stepper(loaded.mechanism, {});
  ActingForces acting(loaded.mechanism);
  REQUIRE(acting.list().size() == 3);
  CHECK(acting.list()[0].name == "coil");
  CHECK(acting.list()[1].name == "blow");
  CHECK(acting.list()[2].name == "turn");
  Inputs inputs{.count = 1};
  inputs.value[0] = 11.0;
  const std::vector<float> numbers = acting.read(stepper, inputs);
  REQUIRE(numbers.size() == 27);

  const Arrow coil = arrow(numbers, 0);  // 3 m long, 2 m more than at rest
  CHECK((coil.force - Vec3(0, 200, 0)).norm() < kSingle * 200);
  CHECK((coil.at - Vec3(3, 1, 0)).cross(coil.force).norm() < kSingle * 200);
  CHECK(coil.torque.norm() < kSingle * 200);
  const Arrow blow = arrow(numbers, 1);
  CHECK((blow.at - Vec3(3, 0.5, 0)).norm() < kSingle);
  CHECK(blow.force == Vec3(0, 0, 5));
  CHECK(blow.torque == Vec3(7, 0, 0));
  const Arrow turn = arrow(numbers, 2);
  CHECK(turn.force.norm() == 0.0);
  CHECK((turn.torque - Vec3(0, 0, 11)).norm() < kSingle * 11);
}

TEST_CASE("a loop near its singular pose is told by the margin, one that is far from it or open is not") {
  SingularPoses loop(parsed(kParallelogram).mechanism);
  CHECK(loop.in_loop() == std::vector<bool>(4, true));
  CHECK(loop.margin(parallelogram_at(1.5)) > 0.1);
  CHECK(loop.margin(parallelogram_at(1e-3)) < kNearSingular);
  CHECK(loop.margin(parallelogram_at(0.0)) < 1e-6);
  std::string open = kParallelogram;
  open.resize(open.find("  joint { name: \"D\""));
  SingularPoses chain(parsed(open).mechanism);
  CHECK(chain.in_loop() == std::vector<bool>(3, false));
  CHECK(chain.margin(parallelogram_at(0.0)) == 1.0);
}

}  // namespace rigstep::server
