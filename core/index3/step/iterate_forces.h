// All forces at an iterate, in the lanes: what stands in Newton's equations, and their part of its tangent. Called in
// the loop.
#pragma once

#include "core/index3/step/applied_forces.h"

namespace rigstep::index3 {

// What the forces at an iterate depend on, and the factors of their tangent.
struct ForceProblem {
  const Plan& plan;
  const Inputs& inputs;
  double t;                                    // [s]
  const std::vector<double>& last_coordinate;  // (followed coordinates) from where angles are unwrapped
  TangentFactors factors;
};

// What becomes of the tangent of force elements.
//   none           it stays as it is
//   where_changed  it is found and written; only where any of it has changed by more than kSteady there is to be a new
//                  factor. Not before it has been written once: each step begins with `always`
//   always         it is found and written, and there is to be a new factor
enum class Renewal { none, where_changed, always };
// What an iteration needs: where no new tangent is asked for, force elements may ask for one.
inline Renewal renewal_of(const Plan& plan, bool is_asked_for, const IterateMoves& moves) noexcept {
  return is_asked_for                             ? Renewal::always
         : plan.tangents.may_follow_forces(moves) ? Renewal::where_changed
                                                  : Renewal::none;
}

// Writes the loads of gravity, inputs, applied loads and force elements into the lanes of their bodies, and with the
// tangent own-body blocks, elastic rows of joints, and the rows of all other elements between two bodies. After
// gather_poses and hold_forces_in_lanes. Says whether there is to be a new factor.
bool load_iterate(const ForceProblem& at, Renewal renewal, Workspace& w) noexcept;

// Writes the same tangent from what evaluate_elements has found one by one; lanes take no part.
void tangent_of_forces(const Plan& plan, const TangentFactors& factors, Workspace& w) noexcept;

}  // namespace rigstep::index3
