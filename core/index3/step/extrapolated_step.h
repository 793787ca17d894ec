// A step of order 4: local extrapolation of the midpoint rule. One whole step and two half steps from the same state
// with the same inputs; their difference is three quarters of the error in h^3 of the whole step, so that a third of
// it, added to the half steps, leaves an error in h^5. What is stiff is not extrapolated (stiff_filter.h). Constraints
// then hold again, poses and velocities, in the metric of the masses, and the accelerations and multipliers are those
// of the equations of motion at the state that is reached.
//
// The third is an estimate of the local error of the half steps, and far above that of the state that is reached.
// Called in the loop, by one thread.
#pragma once

#include "core/index3/step/newton.h"
#include "core/index3/step/stiff_filter.h"

namespace rigstep::index3 {

// What an order-4 stepper has beside an order-2 one.
struct Extrapolation {
  Extrapolation(const Plan& plan, Plan half_step_plan);
  std::size_t bytes() const noexcept { return whole_step.bytes() + filter.bytes(); }

  Plan half_step;        // the plan of half a step
  Workspace whole_step;  // where the whole step is made; its last instant is the committed one
  StiffFilter filter;
  Increment error{};    // a third of the difference of the last step
  int error_body = -1;  // whose difference is largest, position beside the largest arm
};

// step: of the whole step; step.w: a workspace of the plan of half a step, where the next instant is reached. Its last
// instant is lost.
void extrapolated_step(const StepProblem& step, Extrapolation& extrapolation) noexcept;

}  // namespace rigstep::index3
