// The motions that drivers prescribe, over time, for the reference solvers. Offline only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep::offline {

struct Prescribed {
  double value = 0.0;         // [m] or [rad]
  double rate = 0.0;          // [m/s] or [rad/s]
  double acceleration = 0.0;  // [m/s^2] or [rad/s^2]
};

// A function of time, with the splines of its tables.
class TimeFunctionAt {
 public:
  explicit TimeFunctionAt(const TimeFunction& function);
  Prescribed at(double t) const;

 private:
  const TimeFunction* function_;
  std::vector<std::vector<double>> curvature_;  // (terms) of a table's spline at its times
};

// Why a reference solver cannot follow the mechanism's drivers; empty: it can. A driver that takes position, velocity
// and acceleration from inputs jumps with them and has no motion between two samples.
std::string drive_unsupported_reason(const Mechanism& mechanism);

class Drives {
 public:
  // start_coordinates: (joint coordinates) where filters are at rest at `start` [s].
  Drives(const Mechanism& mechanism, std::span<const double> start_coordinates, double start);

  // From t on the inputs have these values. t ascends from call to call.
  void hold(double t, std::span<const double> inputs);
  // (drivers), at or after the last hold.
  std::vector<Prescribed> at(double t) const;
  // Where an acceleration jumps by itself: the ends of tables [s].
  std::vector<double> jumps() const;

 private:
  struct Filter {  // 1 / (time_constant p + 1)^3 since it was last told an input
    double time = 0.0;
    Prescribed state;
    double input = 0.0;
  };
  Prescribed filtered(std::size_t driver, double t) const;

  const Mechanism* mechanism_;
  std::vector<Filter> filter_;            // (drivers)
  std::vector<TimeFunctionAt> function_;  // (drivers)
};

}  // namespace rigstep::offline
