// A step of the implicit midpoint rule: equations of motion at its middle, constraints at its end. kernels/midpoint.h
// has what it does to a body. Per step
//
//   M a_m + J_m' lambda = Q(q_m, v_m),  Phi(q_1) = 0      Newton, a fixed number of iterations with one tangent, by
//                                                         J_m dq_m = -1/2 Phi(q_1)
//   J(q_1) v_1 + Phi_t = 0                                by impulses along J_m', twice
//
// The Jacobian of the middle stands on both sides: joint forces act along J_m' for the position and for the velocity,
// so that the step is its own inverse, and the elimination stays symmetric. Begin, middle and end of the step
// exchanged, the equations are the same: its error has odd powers of the step only. Called in the loop.
#pragma once

#include "core/index3/kernels/sweeps.h"
#include "core/index3/step/workspace.h"

namespace rigstep::index3 {

// What a midpoint step starts from and where it works: from the lanes' last instant to the next.
struct MidpointProblem {
  const Plan& plan;
  const Inputs& inputs;                        // held over the step
  const std::vector<double>& last_coordinate;  // angles are unwrapped from there
  double middle;                               // time of its middle [s]
  Workspace& w;                                // its drive: of the end of the step
};

// Adds to `measures`: the last increment. false: something could not be eliminated.
bool midpoint_step(const MidpointProblem& step, StepMeasures& measures) noexcept;

// Phi of the poses that the lanes show, or half of it: Rows::gaps or half_gaps.
void measure_gaps(const Plan& plan, AssemblySweep::Rows gaps, Workspace& w) noexcept;

// J v + Phi_t of the poses that the lanes show, with the velocities of the next instant; then what restores them to 0,
// with the factor and the Jacobians that the lanes hold.
void measure_velocities(const Plan& plan, Workspace& w) noexcept;
void correct_velocities(const Plan& plan, Workspace& w) noexcept;

}  // namespace rigstep::index3
