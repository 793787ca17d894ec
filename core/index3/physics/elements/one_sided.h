// Forces that only push back, or only pull, over a whole step.
//
// The trapezoidal rule takes the mean of the forces at both ends of a step for the force over it. Where a stiff spring
// ends in between, this mean gives back more than the spring holds, up to k (v dt)^2 / 8, and a mechanism that rattles
// between stops gains energy without limit. The mean over the step is therefore made of the spring's energy instead:
// the discrete gradient (U_1 - U_0) / (x_1 - x_0), O. Gonzalez, Time integration and discrete Hamiltonian systems, J.
// Nonlinear Sci. 6 (1996). It returns what the spring holds, for any stiffness and step. In Newton's equations stands
// twice this mean less the effort at the begin of the step, which the accelerations of the last instant contain (15).
// At the end the accelerations are made to belong to the instant again (step/projections.cpp). Called in the loop.
#pragma once

#include <algorithm>

#include "core/index3/physics/elements/element.h"

namespace rigstep::index3 {

// The scalar that the force acts along, and the effort, at the begin of a step.
struct ScalarStart {
  double x;       // [m] or [rad]
  double effort;  // [N] or [N m]
};

// The mean over a step of what opposes a depth, and its slope by the depth at the end.
struct MeanEffort {
  double effort;
  double slope;
};

// Of a spring of the energy U = stiffness / 2 max(0, depth)^2.
inline MeanEffort mean_of_spring(double stiffness, double start, double end) noexcept {
  if (start <= 0.0 && end <= 0.0) return {0.0, 0.0};
  if (start >= 0.0 && end >= 0.0) return {0.5 * stiffness * (start + end), 0.5 * stiffness};
  const double d_0 = std::max(0.0, start), d_1 = std::max(0.0, end), travel = end - start;
  const double mean = 0.5 * stiffness * (d_1 * d_1 - d_0 * d_0) / travel;
  return {mean, (stiffness * d_1 - mean) / travel};
}

// What stands in Newton's equations for an effort of this mean over the step, and the slope that goes with it.
inline ScalarEffort over_step(const ScalarStart& start, double mean_effort, double mean_slope) noexcept {
  return {2.0 * mean_effort - start.effort, 2.0 * mean_slope, 0.0};
}

}  // namespace rigstep::index3
