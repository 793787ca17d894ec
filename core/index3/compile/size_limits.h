// What a step would take is estimated from the joints before any of it is allocated: a mechanism whose bodies are
// joined all to all takes operations with the sixth power of their number, and memory with the fifth. Load time only.
#pragma once

#include <vector>

#include "core/index3/compile/tree/assembly_tree.h"

namespace rigstep::index3 {

struct Elimination;

inline constexpr double kMostMultiplyAdds = 5e7;  // a factorisation: tens of milliseconds, several times a step
inline constexpr int kMostRowsOfRank = 4000;
inline constexpr double kMostBytes = 2'147'483'648.0;  // of all compliances

// A lower bound of the multiply-adds of a factorisation, in whatever order it goes, in a time that grows with the
// number of constraints only. `least_neighbours`: some of the bodies are each joined to as many others of them.
struct LeastWork {
  int least_neighbours = 0;
  double multiply_adds = 0.0;
};
LeastWork least_work(const std::vector<Constraint>& constraints, int bodies);

// Before compile(), whose own work would grow too large; throws MechanismError with the figure.
void require_moderate_joints(const std::vector<Constraint>& constraints, int bodies);

// Before what it needs is allocated. `is_dual_by_choice`: asked for, or to compare with, so only memory counts.
void require_moderate_elimination(const Elimination& elimination, bool is_dual_by_choice);

// Before the dense eigenvalue problem that tells which rows of closed loops are redundant.
void require_moderate_rank(int rows);

}  // namespace rigstep::index3
