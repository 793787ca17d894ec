// A reference solver without a formulation of its own: the equations of motion in absolute coordinates as a
// differential-algebraic system of index 2, stabilised after C. W. Gear, B. Leimkuhler, G. K. Gupta: Automatic
// integration of Euler-Lagrange equations with constraints. Journal of Computational and Applied Mathematics 12-13
// (1985), and integrated by SUNDIALS' IDA (backward differentiation):
//
//   dr/dt = v + J_r' mu,   dp/dt = 1/2 G(p)' (omega + J_theta' mu),
//   M dv/dt = loads - J' lambda,   0 = Phi,   0 = J v + Phi_t.
//
// Every joint, coupling, driver and force element. Of redundant rows as many as are independent are chosen, again at
// every jump of the inputs. Offline only.
#pragma once

#include "core/offline/solver.h"

namespace rigstep::offline {

// Options::integrator is not used. Throws SolverError, and std::invalid_argument for tolerances that are not positive.
Trajectory stabilised_index2(const Scenario& scenario, const Options& options);

}  // namespace rigstep::offline
