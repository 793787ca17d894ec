// Mechanism files with parameters, for tests.
#pragma once

#include <string>

namespace rigstep::test {

// A cart-pole with a spring, friction, a motor and an input; its masses, gravity and forces are tunable.
inline std::string tuned_chain_text() {
  return R"(
name: "tuned_cart_pole"
gravity { z: -9.81 }
body { name: "cart" mass: 1 inertia { xx: 0.01 yy: 0.01 zz: 0.01 } }
body { name: "pole" mass: 0.2 inertia { xx: 0.006 yy: 0.005 zz: 0.004 } position { x: 0.5 } }
joint { name: "slide" type: PRISMATIC first: "ground" second: "cart" at_start { axis { x: 1 } } }
joint { name: "hinge" type: REVOLUTE first: "cart" second: "pole" at_start { axis { y: 1 } } }
spring { name: "spring" along_direction { first: "ground" second: "cart" direction { x: 1 } } stiffness: 40 damping: 1 }
joint_friction { name: "rubbing" joint: "hinge" coulomb: 0.01 viscous: 0.002 }
motor { name: "drive" joint: "hinge" constant: 0.1 }
input { name: "push" body_force { body: "cart" direction { x: 1 } } }
output { name: "pose" body_pose { body: "pole" } }
output { name: "energy" energy {} }
parameter { name: "tip" of: "pole.mass" of: "pole.inertia.yy" factor: 1 factor: 0.025 minimum: 0.15 maximum: 0.35 }
parameter { name: "stiffness" of: "spring.stiffness" minimum: 0 maximum: 500 }
parameter { name: "rubbing" of: "rubbing.coulomb" minimum: 0 maximum: 0.5 }
parameter { name: "torque" of: "drive.constant" minimum: -1 maximum: 1 }
parameter { name: "gravity" of: "gravity.z" factor: -1 minimum: 0 maximum: 20 }
parameter { name: "arm" of: "hinge.in_second.point.x" minimum: -0.6 maximum: -0.4 }
)";
}

// A four-bar with a ballast on bushings, so that masses change the compliance of a loop.
inline std::string tuned_loop_text() {
  return R"(
name: "tuned_four_bar"
gravity { z: -9.81 }
body { name: "crank" mass: 1 inertia { xx: 0.01 yy: 0.02 zz: 0.02 } position { x: 0 z: 0.5 } }
body { name: "coupler" mass: 1 inertia { xx: 0.01 yy: 0.08 zz: 0.08 } position { x: 0.5 z: 1 } }
body { name: "rocker" mass: 1 inertia { xx: 0.01 yy: 0.02 zz: 0.02 } position { x: 1 z: 0.5 } }
body { name: "ballast" mass: 0.5 inertia { xx: 0.01 yy: 0.01 zz: 0.01 } position { x: 0.5 z: 1.2 } }
joint { name: "a" type: REVOLUTE first: "ground" second: "crank" at_start { point { x: 0 } axis { y: 1 } } }
joint { name: "b" type: REVOLUTE first: "crank" second: "coupler" at_start { point { z: 1 } axis { y: 1 } } }
joint { name: "c" type: REVOLUTE first: "coupler" second: "rocker" at_start { point { x: 1 z: 1 } axis { y: 1 } } }
joint { name: "d" type: REVOLUTE first: "rocker" second: "ground" at_start { point { x: 1 } axis { y: 1 } } }
bushing {
  name: "mount" first: "coupler" second: "ballast" at_start { point { x: 0.5 z: 1.1 } }
  stiffness { diagonal: 1e4 diagonal: 1e4 diagonal: 1e4 diagonal: 50 diagonal: 50 diagonal: 0 }
  damping { diagonal: 10 diagonal: 10 diagonal: 10 diagonal: 1 diagonal: 1 diagonal: 0 }
}
bushing {
  name: "other_mount" first: "coupler" second: "ballast" at_start { point { x: 0.4 z: 1.1 } }
  stiffness { diagonal: 1e3 diagonal: 1e3 diagonal: 1e3 diagonal: 0 diagonal: 0 diagonal: 0 }
}
output { name: "pose" body_pose { body: "coupler" } }
parameter { name: "crank" of: "crank.mass" minimum: 0.1 maximum: 20 }
parameter { name: "ballast" of: "ballast.mass" minimum: 0.1 maximum: 5 }
parameter { name: "mount" of: "mount.stiffness.x" of: "mount.stiffness.z" minimum: 0 maximum: 1e6 }
parameter { name: "twist" of: "mount.stiffness.rz" minimum: 0 maximum: 100 }
)";
}

}  // namespace rigstep::test
