// What the passes share that lay an elimination out in memory: what they start from, what earlier passes found, and the
// tables so far. lay_out() in elimination.cpp runs the passes, in the order in which they are declared here. Load time
// only.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/index3/compile/elimination.h"
#include "core/index3/compile/tree/batches.h"

namespace rigstep::index3 {

inline constexpr int kFallingWidths[] = {8, 4, 2, 1};  // of batches: the widest first, so that they are aligned

// Where the compliance of the compounds of a batch lies, and the right-hand side.
struct Compliance {
  int width, rows, matrix, vector;
};

struct Layout {
  Layout(const std::vector<Constraint>& constraints, const std::vector<bool>& bodies_with_own_tangent,
         const Batches& laid, const std::vector<int>& body_of_attachment, int most_lanes_of_batch);

  // what a batch of nodes becomes
  Run::Of kind(int batch) const;
  const Node& first_of(int batch) const { return nodes[batches[batch].nodes[0]]; }
  bool is_ghost(int batch) const { return first_of(batch).ghost_of >= 0; }
  // by lane; unused lanes repeat lane 0
  const Node& node(const Batch& b, int lane) const {
    return nodes[b.nodes[lane < static_cast<int>(b.nodes.size()) ? lane : 0]];
  }
  int body_of(int body) const;  // the primal body in place of its attachment
  // of a body or an attachment; a part has primal bodies of its own
  const Node& leaf_node(int body, int part) const;
  bool is_elsewhere(int body, int part) const { return leaf_node(body, part).part != part; }
  BodyPlace place_of(const Node& leaf) const;
  Compliance compliance_of(int batch) const;

  int arena(int doubles);  // reserves so many; where they begin
  void align_handles();
  // What belongs to different parts shares no page: a processor fetches beyond the cache lines that it is asked for,
  // but not beyond a page, and a thread whose lines another one's processor fetches must get them back to write them.
  template <class Count>
  void end_part(Count& count, int doubles_of_each = 1) const;

  int most_lanes;
  const std::vector<bool>& has_own_tangent;
  const std::vector<Node>& nodes;
  const std::vector<Batch>& batches;
  int parts = 1;
  std::vector<std::vector<int>> leaf_nodes;  // (bodies, attachments)

  // by number_operations()
  std::vector<int> order;  // of the batches: children before parents
  std::vector<int> index;  // of a batch among leaves, attachments or fronts
  std::vector<int> leaf_batch, attachment_batch, front_batch;

  std::vector<Batch> constraint_batch;                     // by place_constraints(): the fronts' nodes, side by side
  std::map<int, Compliance> ghosts;                        // by place_ghosts(): of batches
  std::map<std::pair<int, int>, BodyPlace> ghost_of_body;  // body, part

  Elimination tables;
};

// rounded up, so that what follows is aligned for the widest batches
template <class Count>
Count in_full_lanes(Count count) {
  return (count + kMostLanes - 1) / kMostLanes * kMostLanes;
}

template <class Count>
void Layout::end_part(Count& count, int doubles_of_each) const {
  if (parts > 1) count = in_full_lanes(count + static_cast<Count>(kPageDoubles / doubles_of_each + kMostLanes));
}

inline int packed(int rows) { return rows * (rows + 1) / 2; }  // numbers of a symmetric matrix
inline int lanes(const Batch& b) { return static_cast<int>(b.nodes.size()); }

std::vector<int> children_of(const Layout& layout, int batch);  // batches, ghosts apart

// The batches in an order in which children stand before parents (order_operations.cpp), and the operations so
// numbered.
std::vector<int> order_of_operations(const Layout& layout, const std::vector<int>& roots);
void number_operations(Layout& layout, std::vector<int> order);

// Places of records, compliances and factors of a part's operations (reserve_operations.cpp).
void reserve_part(Layout& layout, int part);

// Places of constraints and their rows, and of the ground (place_constraints.cpp).
void place_constraints(Layout& layout);
void place_ground(Layout& layout);

// What a part keeps of the others' bodies and compounds (ghosts.cpp).
void place_ghosts(Layout& layout);
void pass_on(const Layout& layout, std::vector<Passed>& all, int from_part, Place from, int count, int part,
             Place ghost);

// Tables of a part's leaves, attachments and fronts (fill_operations.cpp), then of its primal bodies, which need the
// attachments of all parts, and of its constraints (fill_sides.cpp).
void fill_part(Layout& layout, int part);
void fill_primal_body(Layout& layout, const Constraint& displacement, const Node& primal_body);
void fill_constraints(Layout& layout, int part);

// What is passed on of compounds, now that the others' are filled (ghosts.cpp).
void pass_on_ghosts(Layout& layout);

// A lane of a batch; kGround: of the ground's own; kElsewhere: a ghost.
struct Lane {
  static constexpr int kElsewhere = -2;
  int batch;
  int lane;
};
// How the lanes of a batch find what lies there, lane by lane.
Operands operands(const Layout& layout, const Batch& own, const std::vector<Lane>& at);

// The operations as a graph, and the tables of each part (units.cpp).
void make_units(Layout& layout);
void make_parts(Elimination& tables, int parts);

}  // namespace rigstep::index3
