// The acceleration form of the divide-and-conquer algorithm, which [000] sets its own against:
//
//   R. Featherstone: A divide-and-conquer articulated-body algorithm for parallel O(log(n)) calculation of rigid-body
//   dynamics. The International Journal of Robotics Research 18 (1999).
//
// The state is the relative coordinates of a spanning tree and their rates. Loops are closed at the acceleration level
// with a pseudo-inverse and without stabilisation, as [000] 3.1 has it: positions drift. Offline only.
#pragma once

#include "core/offline/solver.h"

namespace rigstep::offline {

// Throws SolverError, and std::invalid_argument for tolerances that are not positive.
Trajectory featherstone_dca(const Scenario& scenario, const Options& options);

// Why the algorithm cannot do the mechanism; empty: it can.
std::string featherstone_dca_unsupported_reason(const Mechanism& mechanism);

// One evaluation of the right-hand side at the start, the same at every call: for measurements. The scenario must
// outlive it. Throws as featherstone_dca does.
std::function<void()> featherstone_dca_evaluation(const Scenario& scenario, int threads = 1);

}  // namespace rigstep::offline
