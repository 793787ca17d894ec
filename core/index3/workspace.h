// Every byte that a step may touch and that does not survive it, grouped by the phase that writes it.
// Sized once; starts as NaN, so that anything read before it is written shows at once.
#pragma once

#include <vector>

#include "core/index3/aligned.h"
#include "core/index3/constraints.h"
#include "core/index3/plan.h"

namespace rigstep::index3 {

struct Workspace {
  explicit Workspace(const Plan& plan);
  std::size_t bytes() const noexcept;

  // the step in lanes, written by its kernels (schedule.h says what)
  AlignedDoubles block;  // all of it
  StepArrays lanes;      // views into it

  // The same quantities one by one: in the loop only for what the plan observes, at load time for everything.

  // written by look_at_bodies, evaluate_state
  std::vector<Placement> placement;  // (bodies) of the current iterate

  // written by look_at_joints, evaluate_constraints
  std::vector<JointPlacement> joint;  // (joints)
  std::vector<Vec6> J_first;          // (rows) Jacobian with respect to the first body   (3)
  std::vector<Vec6> J_second;         // (rows)                      the second body
  std::vector<double> Phi;            // (rows) position constraints [m] or [-]           (1)

  // written by apply_forces, force_tangent
  std::vector<Vec6> Q;             // (bodies) force [N] and torque [N m], world frame
  std::vector<double> coordinate;  // (followed coordinates) unwrapped [m] or [rad]
  std::vector<Mat6> tangent;       // (bodies) h2 K + dt/2 C, world frame
};

inline const Placement kGroundPlacement{};

inline const Placement& placement(const Workspace& w, int body) noexcept {
  return body == kGround ? kGroundPlacement : w.placement[body];
}

// w.joint, w.J_first, w.J_second, w.Phi of every joint from w.placement, (1) (3). Load time and diagnostics.
void evaluate_constraints(const Plan& plan, Workspace& w) noexcept;

// J-dot v of every row from w.joint and the velocities in w.placement. Load time and diagnostics.
void evaluate_quadratic_terms(const Plan& plan, const Workspace& w, std::vector<double>& quadratic) noexcept;

}  // namespace rigstep::index3
