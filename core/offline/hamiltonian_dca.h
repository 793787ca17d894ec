// The Hamiltonian divide-and-conquer algorithm,
//
//   [000] K. Chadaj, P. Malczyk, J. Fraczek: A parallel Hamiltonian formulation for forward dynamics of closed-loop
//         multibody systems. Multibody System Dynamics 39 (2017).
//
// The state is the relative coordinates of a spanning tree and the canonical momenta of its joints. Open chains, trees,
// single and coupled loops, free-floating systems, any number of joints per body. Where paper and code differ:
//
//   (14)       shifts start from the mass centres and from the joint point of the second body
//   (27) (45)  loops are closed with a pseudo-inverse: of redundant constraints the impulses of least norm are taken
//   (69) (77)  the loads and the impulses of all cut joints outboard of a joint are summed up by (74)-(76)
//   3.4        constraint forces by a second pass with the same compliances; impulses of cut joints, which grow with
//              the integral of the constraint forces, are put back to zero every kRebasePeriod and at every break: the
//              canonical momenta then are those of the bodies again, H'P
//
// Through a singular pose impulses along rows that lose their rank are taken as zero. The motion keeps to its branch
// but loses digits: the rhombic four-bar at tolerance 1e-10 is within 1e-10 m of the exact motion until its first
// passage, within 4e-7 m after it, within 3e-4 m after five.
//
// Offline only.
#pragma once

#include "core/offline/solver.h"

namespace rigstep::offline {

inline constexpr double kRebasePeriod = 10.0;  // [s]

// Throws SolverError, and std::invalid_argument for tolerances that are not positive.
Trajectory hamiltonian_dca(const Scenario& scenario, const Options& options);

// Why the algorithm cannot do the mechanism; empty: it can.
std::string hamiltonian_dca_unsupported_reason(const Mechanism& mechanism);

// One evaluation of the right-hand side at the start, the same at every call: for measurements. The scenario must
// outlive it. Throws as hamiltonian_dca does.
std::function<void()> hamiltonian_dca_evaluation(const Scenario& scenario, int threads = 1);

}  // namespace rigstep::offline
