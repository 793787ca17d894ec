// What verifying found: the stepper's convergence, each reference solver's deviation from its limit, and the verdict.
// Offline.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/verify/convergence.h"

namespace rigstep::server {

enum class Verdict {
  agrees,  // the stepper converges, and every reference solver that can do the mechanism agrees: one at least to the
           // end, those that --limit stopped as far as they came
  incomplete,  // ... but none came to the end, --limit stopped some at the very start, one gave up or differs from a
               // singular start on, which says nothing of the stepper, or too little of the time could be compared; or
               // the stepper's order still rises where its steps could not be made shorter
  no,          // its order is too low and stays so, or a reference solver differs
  unverified,  // no reference solver has a result
};

struct VerifyReport {
  // A run of the stepper, against its extrapolation to dt = 0.
  struct Step {
    double dt = 0.0;  // [s]
    offline::Values error;
  };
  // Of a quantity, at its item whose error is the largest share of what an allowance can be.
  struct Quantity {
    std::string at;             // body, joint, coupling or driver; empty: the mechanism has none with this quantity
    double signal = 0.0;        // its largest value; of poses the way from the start
    double allowed = 0.0;       // what agreement means
    std::vector<double> error;  // (steps) of the stepper
    QuantityConvergence convergence;
  };
  struct SolverResult {
    std::string name;
    std::string family;              // offline::family_of: solvers of one family are one opinion
    std::string unsupported_reason;  // why there is no result; empty: there is one
    bool failed = false;             // it gave up, or threw
    bool stopped = false;            // by the limit, before the end
    double until = 0.0;              // compared from 0 to here [s]
    double tolerance = 0.0;          // of its integrator
    offline::Values deviation;       // from the extrapolated stepper
    std::string worst;           // quantity and item whose deviation is the largest multiple of what is allowed there
    double worst_share = 0.0;    // ... which multiple: above 1 it differs
    double energy_change = 0.0;  // largest difference of the total energy from the start [J]
    double position_residual = 0.0, velocity_residual = 0.0, acceleration_residual = 0.0;
    double seconds = 0.0;
    long right_hand_sides = 0;

    bool compared() const { return unsupported_reason.empty(); }  // from the start to `until`
    bool agrees() const { return compared() && worst_share <= 1.0; }
    bool agrees_to_the_end() const { return agrees() && !stopped; }
    bool differs() const { return compared() && !agrees(); }
    bool stopped_at_start() const { return stopped && !compared(); }
  };
  std::string mechanism;
  double tolerance = 0.0;       // of the reference solvers; one that differed is asked again with a hundredth of it
  double alpha = 0.0;           // penalty factor of index3_literal; 0: its own choice
  double until = 0.0;           // compared from 0 to here [s]
  double asked = 0.0;           // [s]
  std::string why_not_further;  // empty: the whole duration
  std::string cut;              // why not all of a recording could be used; empty: all of it was
  bool too_short = false;       // less than half of it, since the stepper does not converge, or next to no steps before
                                // a singular pose
  bool starts_singular = false;      // so that reference solvers that differ say nothing, as long as one agrees
  std::vector<Step> steps;           // dt, dt/2, dt/4, where inputs jump dt/8, and on until it converges
  std::vector<Quantity> quantities;  // in the order of offline::Quantity
  bool converges = false;            // the order of each is that of the scheme, or its errors are rounding
  bool settled = false;              // where it does not: shorter steps do not change that
  double dt_to_try = 0.0;            // ... else this might be short enough [s]
  bool recorded = false;             // so that --dt does not count
  std::size_t joints = 0, determined_reactions = 0;
  std::vector<SolverResult> results;

  // Takes over what was found of the stepper.
  void take(const Mechanism& mechanism, const Convergence& convergence);

  Verdict verdict() const;
  std::vector<std::string> agreeing_families() const;  // of solvers that agree to the end
  std::string text() const;
  nlohmann::json json() const;
};

// How far a reference solver's motion is from the stepper's limit: fills deviation, worst and worst_share.
void compare_solver(const Mechanism& mechanism, const Convergence& stepper, const Instants& motion,
                    const offline::Determined& determined, VerifyReport::SolverResult& result);

}  // namespace rigstep::server
