// An order of the bodies in which those that share a constraint are near each other. Load time only.
#pragma once

#include <vector>

namespace rigstep::index3 {

using Neighbours = std::vector<std::vector<int>>;  // (bodies) those that share a block with each one

// What hangs together is taken breadth first (Cuthill and McKee), from where its factorisation takes the fewest
// operations.
std::vector<int> narrow_order(const Neighbours& neighbours);

// (bodies, in that order) Behind the last one that each one's row of a factor holds.
std::vector<int> profile_of(const Neighbours& neighbours, const std::vector<int>& order);

}  // namespace rigstep::index3
