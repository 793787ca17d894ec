// The numerical examples of the Hamiltonian divide-and-conquer paper, section 3 of
//
//   [000] K. Chadaj, P. Malczyk, J. Fraczek: A parallel Hamiltonian formulation for forward dynamics of closed-loop
//         multibody systems. Multibody System Dynamics 39 (2017),
//
// done again: tables and figures beside those of the paper, and what agrees. Offline.
#pragma once

#include "server/studies/study.h"

namespace rigstep::server {

// Writes accuracy_caseN.csv, efficiency.csv, figures and hamiltonian.md, which sets the paper's numbers beside ours.
// Throws FileError, and what the loader and the solvers throw.
StudyPart study_hamiltonian(const StudyRequest& study);

}  // namespace rigstep::server
