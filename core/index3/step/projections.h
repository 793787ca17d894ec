// The projections that end a step, [001] 3.5 steps 4 and 5: the nearest velocities and accelerations that satisfy the
// constraints. Metric: mass, inertia and geometric stiffness at the converged pose, without derivatives of forces,
// since a metric that holds springs does not keep momentum. Called in the loop; false: a thread was late.
#pragma once

#include "core/index3/step/newton.h"

namespace rigstep::index3 {

// (40)-(54): J v + Phi_t = 0. renew_tangent: else both projections use that of the iterations, which newton() allows
// where bodies have not moved since and no force stands in it.
bool project_velocities(const StepProblem& step, PartSweeps& sweeps, bool renew_tangent);

// (55)-(69): J a = gamma, with gamma of the projected velocities
bool project_accelerations(const StepProblem& step, PartSweeps& sweeps);

}  // namespace rigstep::index3
