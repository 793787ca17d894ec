// Where the time of a step goes, and how much arithmetic it is. Offline.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep::server {

// Shares of a step of step_us [us] on one thread: each phase timed by itself at the start state,
// and as "rest" what is left: force elements, constraints that are evaluated one by one, bookkeeping.
std::vector<std::pair<std::string, double>> phase_shares(const Mechanism& mechanism, double dt, double step_us);

// Multiply-adds of one step, from the tables of the elimination and the formulas of its operations; a multiplication or
// an addition alone counts as one, force elements and general constraints are not counted.
double multiply_adds_per_step(const Mechanism& mechanism, double dt);

}  // namespace rigstep::server
