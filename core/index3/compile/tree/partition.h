// Which thread makes which operations of a step: subtrees of the elimination go to the parts; the top, which joins
// them, every part makes by itself. Load time only. Who makes an operation does not change its arithmetic, so any
// division gives the same bits.
#pragma once

#include <vector>

#include "core/index3/compile/tree/batches.h"

namespace rigstep::index3 {

inline constexpr int kTop = -1;

// Multiply-adds of a lane, roughly: weights by which the work is divided. Estimated; results do not depend on
// them.
inline constexpr long kCostOfAttachment = 100;
constexpr long cost_of_leaf(int rows) { return 400 + 36L * rows; }
constexpr long cost_of_front(int rows, int pivots) {
  return 200 + static_cast<long>(pivots) * (rows + pivots) * (rows + pivots);
}

// The part of every node, kTop: it is of the top. All are of one part where that number of parts cannot be divided.
std::vector<int> divide(const std::vector<Node>& nodes, const std::vector<Constraint>& constraints, int bodies,
                        int parts);

}  // namespace rigstep::index3
