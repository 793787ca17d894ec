// The stepper against the judges: the same mechanism under the same inputs, by solvers that share no code with it.
// Offline.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/offline/compare.h"

namespace rigstep::server {

struct VerifyRequest {
  std::string path;                  // mechanism file, or recording (.mcap)
  std::string inputs;                // table of input channels over time, or empty: zero
  std::vector<std::string> solvers;  // none, or "all": every one
  double tolerance = 1e-9;           // of the judges' integrators, absolute and relative
  double duration = 0.0;             // [s]; 0: one second, less for many bodies, the whole of a recording
  double dt = 0.0;                   // of the stepper [s]; 0: 1 ms, or a tenth or hundredth of it where that is too
                                     // long to compare anything, and of the duration; a recording has its own
  double limit = 5.0;                // processor time that a judge gets [s]
};

enum class Verdict {
  agrees,  // the stepper converges, and every judge that can do the mechanism agrees: one at least to the end, those
           // that --limit stopped as far as they came
  incomplete,  // ... but none came to the end, --limit stopped some at the very start, one gave up or differs from a
               // singular start on, which says nothing of the stepper, or too little of the time could be compared
  no,          // it does not converge, or a judge differs
  unjudged,    // no judge has a result
};

struct VerifyReport {
  // A run of the stepper, against its extrapolation to dt = 0.
  struct Step {
    double dt = 0.0;  // [s]
    offline::Deviation error;
  };
  struct Judge {
    std::string name;
    std::string obstacle;          // why there is no result; empty: there is one
    bool failed = false;           // it gave up, or threw
    bool stopped = false;          // by the limit, before the end
    double until = 0.0;            // compared from 0 to here [s]
    double tolerance = 0.0;        // of its integrator
    offline::Deviation deviation;  // from the extrapolated stepper
    double energy_change = 0.0;    // largest difference of the total energy from the start [J]
    double position_residual = 0.0, velocity_residual = 0.0, acceleration_residual = 0.0;
    double seconds = 0.0;
    long right_hand_sides = 0;
    bool agrees = false;

    bool compared() const { return obstacle.empty(); }  // from the start to `until`
    bool agrees_to_the_end() const { return agrees && !stopped; }
    bool differs() const { return compared() && !agrees; }
    bool stopped_at_start() const { return stopped && !compared(); }
  };
  std::string mechanism;
  double tolerance = 0.0;       // of the judges; one that differed is asked again with a hundredth of it
  double until = 0.0;           // compared from 0 to here [s]
  double asked = 0.0;           // [s]
  std::string why_not_further;  // empty: the whole duration
  std::string cut;              // why not all of a recording could be used; empty: all of it was
  bool too_short = false;       // less than half of it, since the stepper does not converge, or next to no steps before
                                // a singular pose
  bool starts_singular = false;  // so that judges that differ say nothing, as long as one agrees
  std::vector<Step> steps;       // dt, dt/2, dt/4, where inputs jump dt/8
  double order = 0.0;      // observed with the last three, of positions and orientations; 0: the errors are rounding
  bool converges = false;  // the order is that of the scheme, or the errors are rounding
  offline::Deviation allowed;  // what agreement means: the extrapolation's own uncertainty and that of a judge
  std::size_t joints = 0, determined_reactions = 0;
  std::vector<Judge> judges;

  Verdict verdict() const;
  std::string text() const;
  nlohmann::json json() const;
};

// progress: what is running and how far it is, 0..1; may throw to stop. Throws MechanismFileError, wire::ConfigError,
// wire::RecordingError, and offline::SolverError when the stepper itself fails.
VerifyReport verify(const VerifyRequest& request,
                    const std::function<void(std::string_view what, double done)>& progress);

}  // namespace rigstep::server
