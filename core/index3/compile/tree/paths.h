// Which constraints act on which bodies, and the serial chains among them, which are cut into equal segments. Load time
// only.
#pragma once

#include <vector>

#include "core/index3/compile/tree/assembly_tree.h"

namespace rigstep::index3 {

struct ConstraintGraph {
  // bodies: with attachments
  ConstraintGraph(std::vector<Constraint>& of_model, int bodies);
  std::vector<int> distinct_bodies(int constraint) const;

  std::vector<Constraint>& constraints;   // padding is added at the end
  std::vector<std::vector<int>> held_by;  // (bodies) constraints
  std::vector<bool> deferred;             // (constraints) kept pending, though all its bodies are there already
  std::vector<int> order;                 // of the constraints as the bodies list them: along a path where there is one
};

// A serial chain: bodies in order, each held by the constraint before and the one after it.
struct Path {
  std::vector<int> bodies;
  std::vector<int> constraints;  // one more than bodies; -1: free end
};

// Bodies; below that a chain is not cut into segments. Chosen; results depend on it by rounding only.
inline constexpr int kShortestPath = 8;

// Into how many segments a chain of so many bodies is cut; more than there are lanes for, so that parts of the chain
// fill lanes of their own.
int segments(int bodies);

std::vector<Path> find_paths(const ConstraintGraph& graph);

// Marks the constraints with the ground at both ends of the path as deferred: pending until only two compounds of the
// path are left. Pads a free end where it ends a segment, and orders the constraints of the path.
void prepare(ConstraintGraph& graph, Path& path);

}  // namespace rigstep::index3
