// Load-time compiler: from a mechanism's topology to flat tables of operations over one arena (schedule.h).
//
// A compound body is a set of bodies with constraints still pending to the outside; it stores only the compliance
// between those. A leaf makes a compound of one body; a front joins at most two compounds and eliminates one
// constraint that is closed thereby, which is block elimination of the dual system (compliance + J M^-1 J') Lambda = b
// in the order of the tree. The ground is a body without compliance. Any topology: a loop closes when two compounds
// share several constraints, which are then eliminated one after the other.
//
// A primal body is a body that stays primal: instead of a compliance between all its constraints, a large dense block,
// the six rows of its displacement x are eliminated like a constraint, after those that hold it (primal_bodies.h says
// when that is sound). Each of these takes an attachment of its own on the primal body, which stands for it in the
// tree:
//
//   (compliance + J M^-1 J') Lambda - J_primal x = b                    [ D  -J_primal ]
//   -J_primal' Lambda               - M_primal x = -M_primal motion     [ .  -M_primal ]
//
// motion: of the primal body without further loads of its joints. The second line is M x = M motion - J' Lambda,
// negated for symmetry.
//
// Equal subtrees are laid side by side into lanes. A serial chain is cut into equal segments for that purpose, and
// padded by a constraint at its free end that acts on no body, so that its segments are equal; the padding is dropped
// where its end of the chain is one compound: its solution there is as good as zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/index3/compile/tree/assembly_tree.h"

namespace rigstep::index3 {

inline constexpr int kPageDoubles = 4096 / sizeof(double);

// Row k at rows.base + k rows.stride in every array of rows.
struct RowsPlace {
  int batch = -1;
  Place rows;
};

// Where a constraint of the model lies; a padding constraint has handles alone.
struct ConstraintPlace : RowsPlace {
  struct {
    int front = 0, lane = 0;
  } eliminated_by;
  int level = 0;                            // of that: operations one above the other, from the leaves
  std::vector<RowsPlace> copies;            // in unused lanes (they repeat lane 0); in the tops of other parts
  std::vector<std::vector<Place>> handles;  // per side, with those in unused lanes; none for the ground
};

// Tables for the kernels: a selection of the elimination's.
struct Part {
  std::vector<Run> runs;
  std::vector<ConstraintBatch> constraints;  // eliminated here; those that runs evaluate first
};

// Numbers that a part passes on to all others, which keep them as ghosts.
struct Passed {
  int part = 0;  // whose
  Place from;    // the first of them
  int count = 0;
  std::vector<Place> ghost;  // (parts) stride 0: none there
};

struct PassedOn {
  std::vector<Passed> bodies;                         // records; what of them depends on the phase
  std::vector<Passed> compliances, right_hand_sides;  // of compounds
  std::vector<Passed> handles;  // what load and stiffness need, of the attachments of primal bodies
};

struct Elimination {
  std::vector<Leaf> leaves;
  std::vector<Attachment> attachments;
  std::vector<Handle> handles;
  std::vector<Signs> signs;
  std::vector<Front> fronts;
  std::vector<Pending> pending;
  std::vector<Copy> copies;
  std::vector<ScatteredChild> scattered_children;
  std::vector<ScatteredSide> scattered_sides;
  std::vector<ChosenSide> chosen_sides;
  std::vector<ConstraintBatch> constraint_batches;

  std::vector<BodyPlace> body;                      // of every body of the model
  std::vector<std::vector<int>> leaves_of_body;     // several: of a primal body, one for each part
  std::vector<std::vector<BodyPlace>> body_copies;  // ... in unused lanes, or of other parts
  std::vector<BodyPlace> ground;                    // a body at rest, for every width; one at least
  std::vector<ConstraintPlace> constraint_place;  // of every constraint of the model, then of primal bodies and padding
  std::vector<Constraint> constraints;            // the same; bodies: of the model, then the attachments
  std::vector<int> primal_bodies;                 // bodies
  std::vector<int> body_of_attachment;            // (attachments) body

  // f(place) of a body of the model, wherever lanes hold it
  template <class F>
  void at_all_places(int of_body, const F& f) const {
    f(body[of_body]);
    for (const BodyPlace& copy : body_copies[of_body]) f(copy);
  }

  // that computes with the record at one of the places of a body
  const Leaf& leaf_at(int of_body, const BodyPlace& place) const {
    const auto has_it = [&](int leaf) { return leaves[leaf].record == kBodyFields * place.position; };
    return leaves[*std::find_if(leaves_of_body[of_body].begin(), leaves_of_body[of_body].end(), has_it)];
  }

  // The same operations as a graph, in order.
  struct Unit {
    Run::Of of = Run::Of::leaves;
    int index = 0;        // among leaves, attachments or fronts
    int constraint = -1;  // batch of what it eliminates, perhaps with that of others
    int part = 0;
    bool is_top = false;     // of the top, which joins the parts: each part has one like it
    long cost = 0;           // multiply-adds of a lane
    std::vector<int> below;  // units whose results it takes
    std::vector<int> holds;  // leaves and attachments of the bodies of its constraint
    bool is_border = false;
  };
  std::vector<Unit> units;

  // One part per thread; a single one has everything. What joins several is the top. Each part makes the top by itself,
  // once it has received what the others pass on, with operations of its own: the same arithmetic as that of the
  // others, without waiting for them. The bodies that others must know, and what takes their results, are the borders,
  // last on the way to the root and first on the way back: so their poses are on their way while the rest moves.
  std::vector<Part> parts, borders, tops;
  PassedOn passed;

  int positions = 0;  // of bodies, ground included
  int constraint_positions = 0;
  int rows = 0;  // of all constraints, in lanes
  std::size_t handle_doubles = 0;
  std::size_t dense_doubles = 0;
  std::size_t arena_doubles = 0;  // leaves and fronts
  std::size_t scratch_doubles = 0;

  int largest_front = 0;   // rows
  int levels = 0;          // longest chain of operations
  long multiply_adds = 0;  // per factorisation, leaves included
};

// Of the places of so many lanes.
LanePlaces::Pattern pattern_of(const Place* of_lane, int lanes);

// has_own_tangent[i]: body i carries force elements, so that its tangent mass matrix couples displacement and rotation.
// lanes: of the widest batches. primal bodies: bodies that stay primal. threads: among how many the work may be
// divided; it is among as many as make the step shortest.
Elimination compile(const std::vector<Constraint>& constraints, const std::vector<bool>& has_own_tangent,
                    MergeOrder order, int lanes, const std::vector<int>& primal_bodies = {}, int threads = 1);

}  // namespace rigstep::index3
