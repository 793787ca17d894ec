// By how much a quantity may be off, for each body, joint and effort of a motion. Offline.
#pragma once

#include <vector>

#include "core/offline/compare.h"

namespace rigstep::server {

using Instants = std::vector<offline::Instant>;

// No allowance is larger than this share of the largest value that the body, joint or effort itself has in the
// comparison; of poses: of the way from the start.
inline constexpr double kShareOfSignal = 0.01;

// The largest values of a motion: differences from one that rests at the start without loads.
offline::Values signals(const Mechanism& mechanism, const Instants& motion, const offline::Determined& determined);

struct Bounds {
  offline::Values solver;    // what a reference solver may be off by
  offline::Values rounding;  // what rounding may move of the stepper, at most as much as `solver`
  offline::Values most;      // what no allowance exceeds
};

// tolerance: of the reference solvers. dt: the stepper's shortest [s].
Bounds bounds(const Mechanism& mechanism, const Instants& motion, const offline::Values& signal, double tolerance,
              double dt);

}  // namespace rigstep::server
