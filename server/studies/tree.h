// The comparison of tree methods of section 8 of
//
//   [003] V. Ivanov, V. Shimanovskiy: Matrix equations of the motion of multibody systems with a tree structure in
//         Hamiltonian variables. J. Appl. Comput. Mech. 9 (2023),
//
// done again: operations counted beside table 1, times of figures 6-8 with those of the stepper, selection diagrams of
// figure 9, and the pipelayer of section 6. Offline.
#pragma once

#include "core/mechanism/mechanism.h"
#include "server/studies/study.h"
#include "server/studies/tree_costs.h"

namespace rigstep::server {

// Bodies of 1 kg hinged half a metre apart, at rest: 1 freedom by revolutes, 2 universal, 3 spherical, 4 point on line,
// 5 point on plane.
Mechanism tree_mechanism(const TreeShape& shape);

// Writes operations.csv, times.csv, selection.csv, pipelayer.csv, figures and tree.md, which sets the paper's numbers
// beside ours. Throws FileError, StepFailed, and what the loader and the solvers throw.
StudyPart study_tree(const StudyRequest& study);

}  // namespace rigstep::server
