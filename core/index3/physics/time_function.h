// Functions of time with their derivatives, for drivers and efforts. Preparing is load time only; the rest is called in
// the loop and gives the same bits on every machine.
#pragma once

#include <vector>

#include "core/index3/state.h"
#include "core/mechanism/time_function.h"

namespace rigstep::index3 {

// (terms) Second derivatives of a table's spline at its times [unit/s^2]; empty for the other kinds.
using Curvatures = std::vector<std::vector<double>>;

// The spline is clamped with rate zero at both ends.
Curvatures prepare(const TimeFunction& function);

// At time t [s], by the right-hand limit where the second derivative jumps.
Prescribed evaluate(const TimeFunction& function, const Curvatures& curvatures, double t) noexcept;

// A rate that is typical of the function, to judge rates that should be zero [unit/s].
double typical_rate(const TimeFunction& function) noexcept;

}  // namespace rigstep::index3
