// Cost at equal error: how small a step each solver needs to stay within a distance of a reference, and what a second
// of simulation costs then. Offline.
#pragma once

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/bench/mechanisms.h"
#include "server/machine/timing.h"

namespace rigstep::server {

// Mass centres of all bodies at regular instants.
struct ReferenceMotion {
  double interval = 1e-3;                 // [s]
  std::vector<std::vector<Vec3>> bodies;  // (instants from `interval` on) (bodies) [m]
  double duration() const { return interval * static_cast<double>(bodies.size()); }
};
// In the smallest set of coordinates, by a fine Runge-Kutta integration of fourth order that shares nothing with any
// solver. The chain of make_chain, which stays in its plane: absolute angles of the links.
ReferenceMotion chain_motion(int links, double duration);
// The four-bar of config/mechanisms: 3.5 phi'' = -2 g cos(phi) from rest at 45 degrees.
ReferenceMotion four_bar_motion(double duration);
// Any mechanism, by the reference solver `ida` (core/offline/stabilised_index2.h) with a tolerance of 1e-10. Ends
// early, with what it has, where `stop` becomes true. Throws offline::SolverError.
ReferenceMotion solved_motion(const Mechanism& mechanism, double duration, const std::atomic<bool>& stop);
// Whichever of the three fits; mechanism: what moved_by_gravity makes of `which`.
ReferenceMotion reference_motion(const BenchMechanism& which, const Mechanism& mechanism, double duration,
                                 const std::atomic<bool>& stop);

// For a process that moves the same mechanism; read throws nlohmann::json::exception.
nlohmann::json to_json(const ReferenceMotion& motion);
ReferenceMotion read_reference_motion(const nlohmann::json& document);

struct AccuracyPoint {
  double dt = 0.0;             // [s]
  double error = 0.0;          // largest distance of a mass centre from the reference [m]; infinite: it blew up
  double us_per_step = 0.0;    // wall time [us]
  double ms_per_second = 0.0;  // wall time per simulated second [ms]
  double time_constant = 0.0;  // of constraints that are springs [steps]; 0: there are none
  int iterations = 0;          // a step; 0: the solver has none to choose
  int steps = 0;               // made
  int not_converged = 0;       // ... that said so
};

struct AccuracyLadder {
  double largest_dt = 0.5;       // begin with the largest step that is no longer [s]
  double smallest_error = 1e-4;  // go on to smaller steps until this is reached, and on to half of that step [m]
  double smallest_dt = 1e-5;     // or this [s]
  double longest_run = 20.0;     // or a run that would take longer [s]
};

// A solver at its start, for a step [s].
using MakeSolver = std::function<TimedSolver(double dt)>;

// From the largest step down, ten steps a decade, until the error is small and has been so down to half the step.
// Compared about every 5 ms, or after each longer step.
std::vector<AccuracyPoint> climb_down(const MakeSolver& make, const ReferenceMotion& reference,
                                      const AccuracyLadder& ladder);

}  // namespace rigstep::server
