// Operations side by side: every compound becomes a leaf or as many fronts as it eliminates constraints, and equal
// subtrees of these are laid into the lanes of one batch. Load time only.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "core/index3/compile/tree/assembly_tree.h"

namespace rigstep::index3 {

struct Node {
  int body = -1;
  int pivot = -1;  // constraint
  int child[2] = {-1, -1};
  std::vector<int> pending;  // constraints: of a body in order, of a front its children's, without dropped padding
  int size = 1;              // nodes of the subtree
  int level = 1;
  std::string signature;  // equal for subtrees of equal work
  int part = 0;           // whose work it is (partition.h)
  bool is_top = false;    // of the top: each part has one like it
  bool repeats = false;   // ... and this is not the first part's
  int ghost_of = -1;      // node of another part, whose compound is passed on from there
  int passed = 0;         // ... with so many of its constraints: without padding that is dropped
  int batch = -1, lane = -1;
};

// A padding constraint that is pending in a child of `above`, which no front eliminates and nobody above knows.
bool drops_padding(const Node& above, int constraint);

struct Batch {
  std::vector<int> nodes;  // by lane; fewer than the width: the others repeat the first
  int width() const { return static_cast<int>(std::bit_ceil(nodes.size())); }
};

struct Batches {
  std::vector<Node> nodes;  // parts before the whole
  std::vector<int> roots;   // nodes
  std::vector<Batch> batches;
};

// has_own_tangent: per body of the model, as for compile(). lanes: of the widest batches. parts: requested, each in
// batches of its own, and each with the top; there is one where the nodes cannot be divided.
Batches lay_side_by_side(const CompoundTree& tree, const std::vector<Constraint>& constraints,
                         const std::vector<bool>& has_own_tangent, int lanes, int parts);

}  // namespace rigstep::index3
