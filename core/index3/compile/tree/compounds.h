// Compounds while they are merged into the assembly tree: a pair becomes one that closes what was pending between them.
// Load time only.
#pragma once

#include <map>
#include <vector>

#include "core/index3/compile/tree/assembly_tree.h"
#include "core/index3/compile/tree/paths.h"

namespace rigstep::index3 {

struct Compounds {
  explicit Compounds(const ConstraintGraph& of_model) : graph(of_model) {}

  void make_leaf(int body);
  int merge(int a, int b);  // returns the new compound
  // Eliminates the constraint at the compound's end of the path, which was kept pending so that all segments have equal
  // structure. Returns the compound.
  int close_path_end(int compound);
  void close_deferred();
  void take_over(Compounds other);  // of the same graph

  struct Union {
    std::vector<int> closed;
    std::vector<OpenConstraint> open;
  };
  Union united(int a, int b) const;
  std::map<int, std::vector<int>> owners() const;  // compounds where a constraint is pending
  int open_rows(const std::vector<OpenConstraint>& open) const;
  double operations(const Compound& c) const;  // that the elimination of what it closes takes
  double operations() const;                   // ... of all
  // ... where compounds of one kind lie side by side, `lanes` of them
  double operations_in_lanes(int lanes) const;
  // Equal for merges of equal structure: the kinds of both compounds, and the places of what is pending in both.
  std::vector<int> kind_of_merge(int a, int b) const;

  const ConstraintGraph& graph;
  std::vector<Compound> all;  // parts before the whole

 private:
  void add(Compound c, const std::vector<int>& kind);

  std::map<std::vector<int>, int> kinds_;
};

}  // namespace rigstep::index3
