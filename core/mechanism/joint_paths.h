// How bodies hang together by joints: a tree from what stands still outwards, and which of its joints loops go through.
// Load time.
#pragma once

#include <span>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep {

class JointPaths {
 public:
  struct Edge {
    int joint = 0;
    int inner = kGround, outer = 0;  // bodies
    bool is_in_loop = false;         // the outer body hangs on something else, too
  };

  // is_fixed: (bodies) those that stand still like the ground. Bodies that hang on neither hang on the first of them.
  JointPaths(const Mechanism& mechanism, const std::vector<bool>& is_fixed);

  std::span<const Edge> edges() const { return edges_; }  // of the tree, each after the one that carries its inner body
  bool has_loops() const { return has_loops_; }

 private:
  void grow_from(const std::vector<int>& roots, const std::vector<std::vector<int>>& joints_of);
  void mark_loop(int first, int second);

  const Mechanism& mechanism_;
  std::vector<bool> is_placed_;
  std::vector<int> edge_to_, depth_;  // (bodies) the edge whose outer body it is, -1: a root
  std::vector<bool> is_used_;         // (joints)
  std::vector<Edge> edges_;
  bool has_loops_ = false;
};

}  // namespace rigstep
