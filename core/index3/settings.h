// What an embedder chooses for a stepper, and the limits that its mechanism sets to the residuals of a step.
#pragma once

#include <cstdint>

#include "core/mechanism/mechanism.h"
#include "core/mechanism/signals.h"

namespace rigstep::index3 {

// Order in which compounds are merged; the result is the same up to rounding.
enum class MergeOrder {
  in_lanes,           // fewest operations where equal ones share lanes; chains in equal segments
  fewest_operations,  // each for itself
  fewest_levels,
};

// Bodies with many joints: eliminated like any other, or kept primal, which is the hybrid elimination
// (primal_bodies.h). The result is the same up to rounding.
enum class PrimalBodies {
  by_cost,  // primal where that saves operations and is sound
  dual,
  primal,  // wherever it is sound
};

inline constexpr int kMostThreads = 64;

struct Settings {
  std::int64_t dt_ns = 1'000'000;     // step [ns]
  int iterations = 3;                 // Newton iterations per step: a fixed count, never "until converged"
  double relative_compliance = -1.0;  // of each constraint, beside a scale of its own [-]: in trees the least
                                      // eigenvalue of J M^-1 J', with loops its mean diagonal (compliance.h). Negative:
                                      // 1e-7 with closed loops, 1e-10 without
  int projection_passes = 0;          // passes of each projection; 0: 2 with closed loops, 1 without
  int order_of_accuracy = 2;          // 2: the trapezoidal rule of [001]; 4: extrapolated midpoint steps, about three
                                      // times as long (step/extrapolated_step.h)
  int threads = 1;                    // that share a step, at most kMostThreads; same bits for any number. Order 4: 1
  MergeOrder order = MergeOrder::in_lanes;
  PrimalBodies primal_bodies = PrimalBodies::by_cost;
  const char* instruction_set = nullptr;  // "x86-64", "x86-64-v3", ...; null: the fastest of this processor. Same bits
  double increment_tolerance = 1e-4;  // above this the last iteration is reported as not converged [largest arm, rad];
                                      // chosen, only the status depends on it
};

// Stops and ropes act over a step as a whole, to order 2.
inline bool allows_order_4(const Mechanism& mechanism) {
  return mechanism.all<Stop>().empty() && mechanism.all<Rope>().empty();
}

// What the residuals of a step stay below where its mechanism can hold its constraints: a small part of the lengths,
// speeds and accelerations that it has at the start or that gravity and drivers can give it, so that what is left to
// rounding and to the last iteration lies far below. Beyond that a step does not say that it is good. Found at load
// time.
struct ResidualLimits {
  double position;      // [m] and [-]
  double velocity;      // [m/s] and [1/s]
  double acceleration;  // [m/s^2] and [1/s^2]

  bool hold(const StepReport& report) const noexcept {
    return report.position_residual <= position && report.velocity_residual <= velocity &&
           report.acceleration_residual <= acceleration;
  }
};

}  // namespace rigstep::index3
