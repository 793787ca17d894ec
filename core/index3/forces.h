// Applied forces Q and their partial derivatives, [001] (8): gravity, loads, springs and dampers, inputs.
// Called in the loop.
#pragma once

#include "core/index3/plan.h"
#include "core/index3/workspace.h"

namespace rigstep::index3 {

// One spring's scalar: x, dx/dt, the gradients of x with respect to both bodies' delta.
// coordinate: current value of a joint spring's coordinate, unwrapped.
Coordinate spring_coordinate(const Spring& spring, const Workspace& w, const Mechanism& mechanism,
                             const std::vector<double>& coordinate) noexcept;

// w.coordinate: the followed joint coordinates, unwrapped from their values at the last instant.
void follow_coordinates(const Plan& plan, const std::vector<double>& last_coordinate, Workspace& w) noexcept;

// Follows the joint coordinates, and sums every load at time t [s] on the observed bodies into w.Q.
void apply_forces(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                  Workspace& w) noexcept;

// w.tangent = stiffness_factor K + damping_factor C of the springs, own-body blocks, positive semidefinite.
void force_tangent(const Plan& plan, double stiffness_factor, double damping_factor, Workspace& w) noexcept;

// Energy stored in gravity and springs [J]; zero height is the world's origin.
double potential_energy(const Plan& plan, const State& x, const Workspace& w) noexcept;

}  // namespace rigstep::index3
