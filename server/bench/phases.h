// Where the time of a step goes, and how much arithmetic it is. Offline.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep::server {

// Shares of a step of step_us [us] on one thread, 1 in all: each phase timed by itself at the start state, and as
// "rest" what is left: force elements, couplings, bookkeeping. Apart the phases of a
// small step may take longer than the step: then nothing is left. instruction_set: null: the fastest of this processor.
std::vector<std::pair<std::string, double>> phase_shares(const Mechanism& mechanism, double dt, double step_us,
                                                         const char* instruction_set);

// Multiply-adds of one step; a multiplication or an addition alone counts as one; what evaluates force elements and
// couplings is not counted. From the tables of the elimination, with a cost of each kind of operation that
// was fitted to the kernels' arithmetic as counted by instrumented ones: chains within 3 %, the car, with springs and a
// primal body, 14 % below its count.
double multiply_adds_per_step(const Mechanism& mechanism, double dt);

}  // namespace rigstep::server
