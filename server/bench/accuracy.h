// Cost at equal error: how small a step each solver needs to stay within a distance of a reference, and what a second
// of simulation costs then. Offline.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/bench/mechanisms.h"
#include "server/machine/timing.h"

namespace rigstep::server {

// Mass centres of all bodies at regular instants, found in the smallest set of coordinates by a fine Runge-Kutta
// integration of fourth order that shares nothing with any solver.
struct ReferenceMotion {
  double interval = 0.1;                  // [s]
  std::vector<std::vector<Vec3>> bodies;  // (instants from `interval` on) (bodies) [m]
  double duration() const { return interval * static_cast<double>(bodies.size()); }
};
// The chain of make_chain, which stays in its plane: absolute angles of the links.
ReferenceMotion chain_motion(int links, double duration);
// The four-bar of config/mechanisms: 3.5 phi'' = -2 g cos(phi) from rest at 45 degrees.
ReferenceMotion four_bar_motion(double duration);
// Whichever of the two fits. Throws config::ConfigError for other mechanisms.
ReferenceMotion reference_motion(const BenchMechanism& which, double duration);

struct AccuracyPoint {
  double dt = 0.0;             // [s]
  double error = 0.0;          // largest distance of a mass centre from the reference [m]; infinite: it blew up
  double us_per_step = 0.0;    // wall time [us]
  double ms_per_second = 0.0;  // wall time per simulated second [ms]
  double time_constant = 0.0;  // of constraints that are springs, the one that errs least [steps]; 0: there are none
};

struct AccuracyLadder {
  double smallest_error = 1e-4;  // go on to smaller steps until this is reached [m]
  double smallest_dt = 1e-5;     // or this [s]
  double longest_run = 20.0;     // or a run that would take longer [s]
};

// A solver at its start, for a step [s].
using MakeSolver = std::function<TimedSolver(double dt)>;

// From 100 ms down, by factors of two and two and a half.
std::vector<AccuracyPoint> climb_down(const MakeSolver& make, const ReferenceMotion& reference,
                                      const AccuracyLadder& ladder);

}  // namespace rigstep::server
