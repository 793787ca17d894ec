// The stepper and the literal form of its paper, ready for timing. Offline.
#pragma once

#include "core/index3/stepper.h"
#include "core/offline/index3_literal.h"
#include "server/machine/timing.h"

namespace rigstep::server {

// Largest number of threads that the stepper can be asked for.
int most_threads();

// The solver owns a stepper and throws StepFailed for steps that were not made; `bytes`, if given, receives what the
// stepper holds beside the mechanism itself: both states and every intermediate [byte]. dt instead of that of the
// settings [s].
TimedSolver timed_stepper(const Mechanism& mechanism, double dt, index3::Settings settings = {},
                          std::size_t* bytes = nullptr);

// Multiplied out as printed, or tuned (LiteralSettings). Throws MechanismError where the literal form does not apply.
TimedSolver timed_literal(const Mechanism& mechanism, double dt, bool tuned, std::size_t* bytes = nullptr,
                          int threads = 1);

}  // namespace rigstep::server
