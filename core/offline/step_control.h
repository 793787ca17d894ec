// What the step control of MATLAB's integrators has in common: the norm of errors, the first step, the longest and the
// shortest. Shampine, Reichelt: The MATLAB ODE suite, SIAM J. Sci. Comput. 18 (1997) 1-22, section 4. Offline only.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/offline/integration.h"

namespace rigstep::offline {

class StepControl {
 public:
  explicit StepControl(const Beginning& from)
      : relative_(from.options.relative_tolerance),
        threshold_(from.options.absolute_tolerance / from.options.relative_tolerance),
        longest_(0.1 * (from.end - from.start)) {}

  double relative_tolerance() const { return relative_; }
  double longest() const { return longest_; }
  // Below it instants are not told apart well enough [s].
  double shortest(double t) const { return 16.0 * (std::nextafter(std::abs(t), 1e300) - std::abs(t)); }

  // The scale of component i: its size, and where that is small the absolute tolerance over the relative one.
  double scale(double y) const { return std::max(std::abs(y), threshold_); }

  // Largest component of an error, each by the scale at the larger end of a step.
  template <class Error>
  double largest(std::span<const double> y, std::span<const double> next, const Error& error) const {
    double value = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i)
      value = std::max(value, std::abs(error(i)) / std::max(scale(y[i]), scale(next[i])));
    return value;
  }

  // So short that its change of y is `share` of what the tolerance allows to a method of that order.
  double first_step(std::span<const double> y, std::span<const double> slope, double share, int order) const {
    const double rate =
        largest(y, y, [&](std::size_t i) { return slope[i]; }) / (share * std::pow(relative_, 1.0 / order));
    return longest_ * rate > 1.0 ? 1.0 / rate : longest_;
  }

 private:
  double relative_, threshold_, longest_;
};

}  // namespace rigstep::offline
