#include "core/offline/solver.h"

#include "core/offline/featherstone_dca.h"
#include "core/offline/hamiltonian_dca.h"

namespace rigstep::offline {

std::span<const Solver> solvers() {
  static constexpr Solver all[] = {
      {"hamiltonian_dca", "Hamilton's canonical equations in joint coordinates by divide and conquer [000]",
       hamiltonian_dca_obstacle, hamiltonian_dca},
      {"featherstone_dca", "accelerations in joint coordinates by divide and conquer, loops drift (baseline of [000])",
       featherstone_dca_obstacle, featherstone_dca},
  };
  return all;
}

}  // namespace rigstep::offline
