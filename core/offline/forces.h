// Every load of a mechanism as wrenches on its bodies, written from the meaning of the fields in core/mechanism, for
// the judges in absolute and in relative coordinates. Efforts act along the gradient of the scalar that they belong to.
// Offline only.
#pragma once

#include <span>
#include <vector>

#include "core/offline/joint_motion.h"

namespace rigstep::offline {

// What loads depend on.
struct Situation {
  double time = 0.0;                 // [s]
  std::span<const BodyMotion> body;  // (bodies)
  std::span<const Jet> coordinate;   // (joint coordinates) from CoordinateFollower
  std::span<const double> input;     // (input channels) held
};

// Force and torque about the mass centre of every body, world frame [N] [N m]: gravity, loads, inputs, springs,
// bushings, friction, motors, drag, tyres.
std::vector<Vec6> wrenches(const Mechanism& mechanism, const Situation& at);

// Of gravity, springs, bushings and tyres; dampers, friction, motors, drag, loads and inputs have none [J].
double potential_energy(const Mechanism& mechanism, const Situation& at);

double kinetic_energy(const Mechanism& mechanism, std::span<const BodyMotion> bodies);  // [J]

Mat3 inertia_0(const Body& body, const BodyMotion& motion);  // about the mass centre, world axes [kg m^2]

}  // namespace rigstep::offline
