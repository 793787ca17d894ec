// How a step is timed, the same for the stepper and for everything it is compared with: warm up, save the state, then
// restore it and measure the same window of steps again and again. Offline.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep::server {

// A step that a solver could not make.
struct StepFailed : Error {
  using Error::Error;
};

// One solver on one mechanism, at a fixed step.
struct TimedSolver {
  std::string name;
  std::function<void()> step;
  std::function<void()> save;
  std::function<void()> restore;             // to what was saved
  std::function<Vec3(int body)> position_0;  // mass centre [m]
  std::function<double()> gap;               // by which its joints stand open now [m]; empty: not known
  std::function<int()> not_converged;        // steps so far that said so; empty: none does
  std::string differs;                       // how its mechanism differs from the one asked for; empty: nowhere
};

struct TimingProtocol {
  int warm_up = 50;       // steps before the window
  int window = 200;       // steps measured each time
  int repeats = 5;        // at least
  double budget = 0.5;    // further repeats until this much time is used [s]
  double longest = 10.0;  // stop after this, even within the first window [s]
};
TimingProtocol full_protocol();
TimingProtocol quick_protocol();

// Of single steps, with the cost of reading the clock taken off [us].
struct StepTimes {
  double lowest = 0.0, median = 0.0, p999 = 0.0;
  std::size_t samples = 0;
};
StepTimes time_steps(const TimedSolver& solver, const TimingProtocol& protocol);

// Median cost of reading the clock twice [us].
double clock_cost_us();

// Fused multiply-adds per second that one core of this machine reaches in double precision with its widest vectors.
double peak_multiply_adds();

}  // namespace rigstep::server
