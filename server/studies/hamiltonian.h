// The numerical examples of the Hamiltonian divide-and-conquer paper, section 3 of
//
//   [000] K. Chadaj, P. Malczyk, J. Fraczek: A parallel Hamiltonian formulation for forward dynamics of closed-loop
//         multibody systems. Multibody System Dynamics 39 (2017),
//
// done again: tables and figures beside those of the paper, and what agrees. Offline.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/offline/solver.h"

namespace rigstep::server {

struct HamiltonianStudy {
  bool quick = false;                                                  // 1 s and few tolerances: shows that it works
  std::filesystem::path folder;                                        // of the results; exists
  std::function<std::string(const std::string& name)> mechanism_file;  // path of a mechanism that comes with Rigstep
  std::function<void(double done)> progress;                           // 0 to 1; may throw to stop
};

// A claim of the paper against our numbers.
struct Finding {
  std::string claim, ours;
  bool agrees = false;
};

// Writes accuracy_caseN.csv, efficiency.csv, figures and hamiltonian.md, which sets the paper's numbers beside ours.
// Throws FileError, and what the loader and the solvers throw.
std::vector<Finding> study_hamiltonian(const HamiltonianStudy& study);

}  // namespace rigstep::server
