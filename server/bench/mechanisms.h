// The mechanisms that are benchmarked, by name and size, the same for the stepper and for everything it is compared
// with. Offline.
#pragma once

#include <string>

#include "core/mechanism/mechanism.h"

namespace rigstep::server {

struct BenchMechanism {
  std::string name;  // one of kChains (request.h), or that of a mechanism file
  int bodies = 0;    // of a chain
  std::string file;  // empty for chains
  double dt = 1e-2;  // step to measure at [s]
};

// Links of 1 m and 1 kg along x, at rest, hinged by spherical joints or by revolutes about z and y in turn, as an arm
// has them; inertia 1 kg m^2 about each axis as in the paper's chain.
Mechanism make_chain(int bodies, JointType type);

// The same with revolutes; in each joint a motor that holds it where it starts, and friction.
Mechanism make_motor_chain(int bodies);

// Throws config::ConfigError for files that cannot be used and for sizes below one body.
Mechanism make_mechanism(const BenchMechanism& which);

// The same where it has no driver, motor or tyre. Else its bodies and joints on springs between points, which every
// engine has: each driver and motor gives way to one along its prismatic joint, each tyre to one from the wheel's mass
// centre to a point 10 m above it. Springs between points stay, their tables as straight lines with the slope at rest.
// All else is left out: other force elements, loads, couplings, inputs, outputs, parameters. It starts at rest. Throws
// config::ConfigError where a driver or motor acts along another joint.
Mechanism moved_by_gravity(const Mechanism& mechanism);
// What gives way to springs, for a remark; empty: nothing.
std::string replaced_by_springs(const Mechanism& mechanism);

}  // namespace rigstep::server
