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

// A one-sided force in Newton's equations of a step.
struct OverStep {
  double start_x, start_effort;      // scalar and effort at the begin of the step [m, N] or [rad, N m]
  double x, effort, stiffness;       // the line that stands for the force: effort - stiffness (scalar - x)
  double iterate_x, iterate_effort;  // the iterate before, and what stood in Newton's equations there

  double effort_at(double scalar) const noexcept { return effort - stiffness * (scalar - x); }
};

inline OverStep at_start(double x, double effort) noexcept { return {x, effort, x, effort, 0.0, x, effort}; }

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
inline ScalarEffort in_newtons_equations(const OverStep& step, const MeanEffort& mean) noexcept {
  return {2.0 * mean.effort - step.start_effort, 2.0 * mean.slope, 0.0};
}

// The scalar x at which x = iterate + compliance (force(x) - effort), force falling with x: a bracketed Newton
// iteration.
template <class Force>
double where_force_is_met(double iterate, double effort, double compliance, const Force& force) noexcept {
  constexpr int kMostIterations = 30;
  constexpr double kRounding = 1e-15;
  const double reach = compliance * (force(iterate).effort - effort);
  double low = std::min(iterate, iterate + reach), high = std::max(iterate, iterate + reach);
  double x = iterate;
  for (int k = 0; k < kMostIterations && low < high; ++k) {
    const ScalarEffort at = force(x);
    const double beyond = x - iterate - compliance * (at.effort - effort);
    const double newton = x - beyond / (1.0 + compliance * at.stiffness);
    if (std::abs(newton - x) <= kRounding * (std::abs(x) + std::abs(iterate))) break;
    (beyond > 0.0 ? high : low) = x;
    x = low < newton && newton < high ? newton : 0.5 * (low + high);
  }
  return x;
}

// The line for the iteration from `iterate` on; force: of the scalar at the end of the step, as in_newtons_equations.
// How far the iteration before has moved the scalar, and by what effort, tells how much the mechanism gives way; the
// line touches the force where this meets it. A tangent at the iterate itself would halve the depth of a light body in
// a stiff stop per iteration; this one arrives at once where the mechanism is linear, and is the same at the solution.
template <class Force>
void linearise(double iterate, const Force& force, OverStep& step) noexcept {
  const double effort = step.effort_at(iterate);
  const double compliance = (iterate - step.iterate_x) / (effort - step.iterate_effort);
  const bool is_known = compliance > 0.0 && std::isfinite(compliance);
  step.x = is_known ? where_force_is_met(iterate, effort, compliance, force) : iterate;
  const ScalarEffort at = force(step.x);
  step.effort = at.effort, step.stiffness = at.stiffness;
  step.iterate_x = iterate, step.iterate_effort = effort;
}

}  // namespace rigstep::index3
