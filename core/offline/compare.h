// How far two motions of the same mechanism are apart. Offline only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/offline/solver.h"

namespace rigstep::offline {

// Largest over instants and bodies or joints; reactions over the joints named as comparable.
struct Deviation {
  double position = 0.0;          // [m]
  double orientation = 0.0;       // angle between the two [rad]
  double velocity = 0.0;          // [m/s]
  double angular_velocity = 0.0;  // [rad/s]
  double force = 0.0;             // of reactions [N]
  double torque = 0.0;            // about the joint points [N m]
};

// Of the rotation that takes the one into the other [rad].
double angle_between(const EulerParameters& p, const EulerParameters& q);

// What is not a number stays.
void keep_larger(double& largest, double value);

// Instants that both have, in the same order; the shorter one ends the comparison. comparable: (joints) whether
// reactions are; empty: none is.
Deviation compare(std::span<const Instant> one, std::span<const Instant> other, const std::vector<bool>& comparable);

// (constraints) whether its multipliers are determined by the motion: no redundant combination of rows touches it at
// the given pose.
std::vector<bool> determined_constraints(const Scenario& scenario, std::span<const BodyMotion> bodies);

// The joints' part of it: (joints) whether the reaction is determined.
std::vector<bool> determined_reactions(const Scenario& scenario, std::span<const BodyMotion> bodies);

// Nearness to a singular pose, 0..1: the smallest pivot of the constraint Jacobian, its rows scaled to unit length,
// among as many as are independent at the start. `rank`: that many.
int constraint_rank(const Scenario& scenario, std::span<const BodyMotion> bodies);
double margin(const Scenario& scenario, std::span<const BodyMotion> bodies, int rank);

}  // namespace rigstep::offline
