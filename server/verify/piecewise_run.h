// A reference solver through a run whose parameters change: it knows one mechanism only, so that it starts anew at each
// change, from where it was, with the mechanism of the new values. Offline.
#pragma once

#include <string>

#include "core/offline/solver.h"
#include "server/verify/verify_case.h"

namespace rigstep::server {

// Why no solver can start anew in the midst of this run; empty: it can.
std::string why_not_piecewise(const VerifyCase& a);

// As solver.simulate(), at the instants of the scenario.
offline::Trajectory simulate_piecewise(const offline::Solver& solver, const VerifyCase& a,
                                       const offline::Scenario& scenario, const offline::Options& options);

}  // namespace rigstep::server
