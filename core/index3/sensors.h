// Output channels from the state. Called in the loop.
#pragma once

#include "core/index3/stepper.h"

namespace rigstep::index3 {

// Every output channel of the mechanism after a committed step (or at the start). report: of that step.
void read_outputs(const Stepper& stepper, const StepReport& report, Outputs& outputs) noexcept;

// Load that joint j exerts on its second body, world frame: force [N] and torque about its joint point on the second
// body [N m]. Where constraints are redundant, what is unique of it is right and the rest is one possible distribution.
Vec6 joint_reaction(const Stepper& stepper, int j) noexcept;

// Generalised force of a driver along its freedom; positive increases the coordinate [N] or [N m].
double driver_effort(const Stepper& stepper, int driver) noexcept;

}  // namespace rigstep::index3
