// Which thread makes which operations of a step: subtrees of the elimination go to the parts, what joins them is the
// top. Load time only. Who makes an operation does not change its arithmetic, so any division gives the same bits.
#pragma once

#include <vector>

#include "core/index3/elimination.h"

namespace rigstep::index3 {

struct Partition {
  std::vector<Part> parts;  // one per thread; a single one has everything
  Part top;
};

// At most `threads` parts; fewer where the mechanism is too small, or cannot be divided.
Partition divide(const Elimination& elimination, int threads);

}  // namespace rigstep::index3
