// The binary tree of compounds: which bodies are joined in which order, and which constraints are eliminated where.
//
// A compound body is a set of bodies with constraints still pending to the outside. Any topology: a loop closes when
// two compounds share several constraints. Load time only.
#pragma once

#include <vector>

#include "core/index3/compile/schedule.h"
#include "core/index3/settings.h"

namespace rigstep::index3 {

// A constraint as the elimination sees it.
struct Constraint {
  RowFormat format;
  std::vector<int> bodies;       // its sides in order, kGround allowed
  bool eliminated_last = false;  // eliminated after everything else
  bool is_primal = false;        // the displacement of a primal body: its sides are the primal body and its attachments
  bool is_padding = false;       // acts on no body and is not eliminated: it only makes segments of a chain equal
};

int rows_of(const std::vector<Constraint>& constraints, const std::vector<int>& list);

struct OpenConstraint {
  int constraint;
  int missing;  // bodies outside the compound
};

struct Compound {
  int body = -1, left = -1, right = -1;
  std::vector<int> eliminated;          // constraints that this compound closes
  std::vector<OpenConstraint> pending;  // ascending
  int depth = 0;
  int kind = -1;  // equal for compounds of equal structure
  bool merged = false;
};

struct CompoundTree {
  std::vector<Compound> compounds;  // parts before the whole
  std::vector<int> order;           // of the constraints as the bodies list them: along a path where there is one
};

// A serial chain is cut into equal segments, so that they can be laid side by side, and padded by a constraint that
// acts on no body at its free end, which is added to the constraints. bodies: those of the model, then the attachments.
CompoundTree build_tree(std::vector<Constraint>& constraints, int bodies, MergeOrder order);

}  // namespace rigstep::index3
