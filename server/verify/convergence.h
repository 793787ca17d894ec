// How the stepper converges as its steps get shorter, quantity by quantity, and what agreement with its limit means.
// Offline.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "server/verify/allowance.h"

namespace rigstep::server {

// Runs of the stepper, each with half the step of the one before: the last three are judged.
struct StepperMotions {
  std::vector<Instants> runs;
  double finest_dt = 0.0;       // of the last one [s]
  double expected_order = 2.0;  // of its error
  bool start_has_loads = true;  // else accelerations and loads of the start are left out

  void resize(std::size_t instants);
};

// How the errors of one quantity fall; of the item (body, joint or effort) whose error is the largest share of what an
// allowance can be.
struct QuantityConvergence {
  double order = 0.0;    // observed over the last three runs; 0: the errors are rounding
  bool low = false;      // below the expected order
  bool resolved = true;  // the limit is known within what an allowance can be, for every item
  std::size_t item = 0;

  bool converges() const { return !low && resolved; }
};

struct Convergence {
  Instants limit;                      // extrapolated to dt = 0
  std::vector<offline::Values> error;  // (runs) from that limit
  offline::Values signal;              // largest value of each item
  offline::Values allowed;             // by which a reference solver may differ from the limit
  std::array<QuantityConvergence, offline::kQuantities> quantity;

  const QuantityConvergence& of(offline::Quantity q) const { return quantity[static_cast<std::size_t>(q)]; }
  bool converges() const;  // every quantity
};

// Where the extrapolation of poses gets uncertain: the number of instants before, all of them where it does not.
std::size_t certain_instants(const Mechanism& mechanism, const StepperMotions& motions);

// tolerance: of the reference solvers. motions: three runs at least, of two instants at least.
Convergence assess(const Mechanism& mechanism, const StepperMotions& motions, const offline::Determined& determined,
                   double tolerance);

// Whether a coarser assessment of the same run converged no worse: what is too low will then stay so.
bool has_settled(const Convergence& coarser, const Convergence& finer);

// Where a motion is farthest from the limit, as a multiple of the allowance.
struct Difference {
  offline::Quantity quantity = offline::Quantity::position;
  std::size_t item = 0;
  double share = 0.0;  // of the allowance; above 1: it differs
};
std::array<Difference, offline::kQuantities> differences(const Convergence& stepper, const offline::Values& deviation);

}  // namespace rigstep::server
