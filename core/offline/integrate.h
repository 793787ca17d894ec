// Ordinary differential equations y' = f(t, y) with error control, by the integrators of integration.h.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/offline/solver.h"

namespace rigstep::offline {

struct Problem {
  std::size_t size = 0;                                                              // of y
  std::function<void(double t, std::span<const double> y, std::span<double> yd)> f;  // may throw: the run ends with it
  // Called at each break after the values up to it were delivered: inputs jump here, y may be changed (re-projected,
  // re-charted). The integrator starts afresh after it, so that no step straddles a jump.
  std::function<void(double t, std::span<double> y)> at_break;
  // After every step, once the values up to it were delivered; may be empty. Returns whether it changed y: the
  // integrator then starts afresh from there.
  std::function<bool(double t, std::span<double> y)> after_step;
  std::vector<double> breaks;  // ascending [s]; those outside the instants are passed over
};

struct Effort {
  long right_hand_sides = 0;
  long steps = 0;
  double right_hand_side_seconds = 0.0;
};

// From y at instants.front() on; calls deliver at each instant, the first included, with dense output. Throws
// SolverError with the time at which the integrator gave up, and std::invalid_argument for tolerances that are not
// positive or instants that do not ascend.
Effort integrate(const Problem& problem, std::vector<double> y, std::span<const double> instants,
                 const Options& options, const std::function<void(double t, std::span<const double> y)>& deliver);

}  // namespace rigstep::offline
