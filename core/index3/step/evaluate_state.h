// Everything of the step's memory that follows from a state: poses, constraints, coordinates and forces, one by one.
// Called at load time and in the loop: after a restore and a failed step, and for outputs that need constraints.
#pragma once

#include "core/index3/step/workspace.h"

namespace rigstep::index3 {

// w.placement of all bodies.
void place_bodies(const State& x, Workspace& w) noexcept;

// w.placement and constraints of an arbitrary state.
void evaluate_pose(const Plan& plan, const State& x, Workspace& w) noexcept;

// The same with forces and coordinates at the time of the state, as sensors and diagnostics read them. Inputs are zero:
// readings of force elements that inputs drive are those of zero inputs until the next step. Elements that act over a
// step begin one here.
void evaluate_state(const Plan& plan, const State& x, Workspace& w) noexcept;

}  // namespace rigstep::index3
