// The passes over the elimination: factorise the compounds, assemble from leaves to root, disassemble from root to
// leaves. What they solve, for every level alike, is the dual system of all joints,
//
//   (compliance + J M^-1 J') Lambda = J bias + rhs_term,    motion of a body = bias - M^-1 J' Lambda.
//
// Called in the loop.
#pragma once

#include "core/index3/workspace.h"

namespace rigstep::index3 {

// Compliance of every compound between its pending joints, (26) (36)-(38), from w.M_inverse and the Jacobians.
// compliance: of every row, plan.compliance or plan.newton_compliance.
// A pivot that is not positive is noted in w.failed_row.
void factorise_compounds(const Plan& plan, const std::vector<double>& compliance, Workspace& w) noexcept;

// (39): carries w.bias and w.rhs_term from the leaves to the root, which solves for its own joints on the way.
void assemble(const Plan& plan, Workspace& w) noexcept;

// (34): w.Lambda of every joint, from the root to the leaves.
void disassemble(const Plan& plan, Workspace& w) noexcept;

// bias -= M^-1 J' Lambda: the bodies' motion with the joints closed, (24) (25).
void close_joints(const Plan& plan, Workspace& w) noexcept;

}  // namespace rigstep::index3
