// All forces at an iterate, in the lanes: what stands in Newton's equations, and their part of its tangent. Called in
// the loop.
#pragma once

#include "core/index3/step/applied_forces.h"

namespace rigstep::index3 {

// Where and when forces act.
struct ForceProblem {
  const Plan& plan;
  const Inputs& inputs;
  double t;                                    // [s]
  const std::vector<double>& last_coordinate;  // (followed coordinates) from where angles are unwrapped
  TangentFactors factors;
};

// Whether the tangent of force elements is found: no; and replaces that of the lanes; and does so where any of it has
// changed since it was written last, by more than a step can do without.
enum class Renewal { none, where_changed, always };
// ... where a new tangent is asked for or not.
inline Renewal renewal_of(const Plan& plan, bool is_asked_for, const IterateMoves& moves) noexcept {
  return is_asked_for                             ? Renewal::always
         : plan.tangents.may_follow_forces(moves) ? Renewal::where_changed
                                                  : Renewal::none;
}

// The loads of gravity, inputs, applied loads and force elements into the lanes of their bodies, from the poses that
// gather_poses and hold_forces_in_lanes have left; with the tangent: own-body blocks, elastic rows of joints, and the
// rows of all others between two bodies. Says whether there is to be a new tangent.
bool load_iterate(const ForceProblem& at, Renewal renewal, Workspace& w) noexcept;

// That tangent of what evaluate_elements has found, whatever lanes find.
void tangent_of_forces(const Plan& plan, const TangentFactors& factors, Workspace& w) noexcept;

}  // namespace rigstep::index3
