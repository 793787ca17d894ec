// Bodies that hang together, the ground among them: joined pair by pair.
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep {

class BodyGroups {
 public:
  explicit BodyGroups(std::size_t bodies) : next_(bodies + 1) { std::iota(next_.begin(), next_.end(), std::size_t{0}); }

  // The same number for all bodies of a group, up to the number of bodies. kGround allowed.
  std::size_t group_of(int body) const {
    std::size_t i = body == kGround ? next_.size() - 1 : static_cast<std::size_t>(body);
    while (next_[i] != i) i = next_[i] = next_[next_[i]];
    return i;
  }

  // False: they were in one group already.
  bool join(int first, int second) {
    const std::size_t a = group_of(first), b = group_of(second);
    next_[a] = b;
    return a != b;
  }

 private:
  // In the group, up to the one that stands for it; the ground is the last. Who asks leaves shorter paths.
  mutable std::vector<std::size_t> next_;
};

}  // namespace rigstep
