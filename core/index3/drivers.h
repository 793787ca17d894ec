// Prescribed motion of a joint coordinate: value, rate and acceleration at an instant, from a function of time or from
// input channels. Preparing is load time only; the rest is called in the loop.
#pragma once

#include <vector>

#include "core/index3/state.h"
#include "core/mechanism/signals.h"

namespace rigstep::index3 {

// What is computed of a driver once.
struct DriverPlan {
  std::vector<double> curvature;   // table: second derivatives of the spline at its times [unit/s^2]
  Mat3 filter = Mat3::Identity();  // filtered_input: takes (value - input, rate, acceleration) over one step
};

// dt: step [s]. The table's spline is clamped with rate zero at both ends. The filter is
//   position = input / (time_constant p + 1)^3,
// three equal real poles, solved exactly for an input that is held over the step: it does not overshoot, its
// acceleration is continuous, and it lags a ramp by 3 time_constant.
DriverPlan prepare(const Driver& driver, double dt);

// A driver's motion at time t [s], by the right-hand limit where the acceleration jumps. For harmonic, polynomial and
// table.
Prescribed prescribed(const Driver& driver, const DriverPlan& plan, double t) noexcept;

// A rate that is typical of the motion, to judge rates that should be zero [unit/s]; 0 for inputs.
double typical_rate(const Driver& driver) noexcept;

// The motion at the end of a step, at time t [s], from that at its beginning and the inputs held over it.
Prescribed prescribed_next(const Driver& driver, const DriverPlan& plan, const Prescribed& last, const Inputs& inputs,
                           double t) noexcept;

}  // namespace rigstep::index3
