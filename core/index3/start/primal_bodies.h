// Load time: whether bodies with many joints stay primal, which is the hybrid elimination (elimination.h), or are
// eliminated with the others.
//
// A constraint may be eliminated before the primal bodies only if holding these fixed does not make it redundant: else
// its pivot is its compliance alone, and what it adds to the primal bodies drowns their mass. Such constraints (all of
// a primal body with the ground or another primal body, a driver in a leg) are eliminated last, after the primal
// bodies. That is decided at the start pose and at another one; the result is verified by comparison with a pivoted
// dense solve.
#pragma once

#include <string>

#include "core/index3/compile/plan.h"

namespace rigstep::index3 {

inline constexpr int kLeastRowsOfPrimalBody = 18;  // fewer are eliminated as fast in the dual form

// Makes the choice for a plan that is complete in its dual form, in one part, and lays out the hybrid one where that is
// chosen, with those of the plan's constraints marked that are eliminated last there.
void choose_primal_bodies(Plan& plan);

// Largest relative error of the velocities that the plan's elimination, in one part, projects, at the start pose and
// another one, against a pivoted dense solve; in a plan with many rows, against the dual form.
double projection_error(const Plan& plan);

// One line: which elimination was chosen, and why.
std::string describe_elimination(const Plan& plan);

}  // namespace rigstep::index3
