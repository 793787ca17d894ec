// Prescribed motion of a joint coordinate: value, rate and acceleration at an instant, from a function of time, from
// input channels, or the sum of both. Preparing is load time only; the rest is called in the loop.
#pragma once

#include "core/index3/physics/time_function.h"
#include "core/mechanism/signals.h"

namespace rigstep::index3 {

// What is computed of a driver once.
struct DriverPlan {
  Curvatures curvatures;           // of its function
  double dt = 0.0;                 // step [s]
  Mat3 filter = Mat3::Identity();  // filtered: takes (value - input, rate, acceleration) over one step
};

// dt: step [s]. The filter is
//   position = input / (time_constant p + 1)^3,
// three equal real poles, solved exactly for an input that is held over the step: it does not overshoot, its
// acceleration is continuous, and it lags a ramp by 3 time_constant.
DriverPlan prepare(const Driver& driver, double dt);

// Brings the plan to other numbers of the driver. In the loop.
void renew(const Driver& driver, DriverPlan& plan) noexcept;

// What the driver's function adds at time t [s].
Prescribed prescribed(const Driver& driver, const DriverPlan& plan, double t) noexcept;

// The motion at time 0: what comes from inputs rests where, with the function, the coordinate [m] or [rad] is met.
Prescribed prescribed_at_start(const Driver& driver, const DriverPlan& plan, double coordinate) noexcept;

// The motion at the end of a step, at time t [s], from that at its beginning and the inputs held over it.
Prescribed prescribed_next(const Driver& driver, const DriverPlan& plan, const Prescribed& last, const Inputs& inputs,
                           double t) noexcept;

}  // namespace rigstep::index3
