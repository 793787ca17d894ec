// Constraints and tangent at the pose in w.placement: what Newton's iterations, the projections and the start state all
// begin with. Called in the loop.
#pragma once

#include "core/index3/workspace.h"

namespace rigstep::index3 {

inline const Placement kGroundPlacement{};

inline const Placement& placement(const Workspace& w, int body) noexcept {
  return body == kGround ? kGroundPlacement : w.placement[body];
}

// w.joint, w.J_first, w.J_second, w.Phi from w.placement, (1) (3).
void evaluate_constraints(const Plan& plan, Workspace& w) noexcept;

// w.rhs_term := J-dot v of every row, from the velocities in w.placement.
void evaluate_quadratic_terms(const Plan& plan, Workspace& w) noexcept;

// J' lambda on every body: result[i] += ...; the joints' loads with the sign of M qdd + J' lambda = Q.
void add_joint_loads(const Plan& plan, const Workspace& w, const std::vector<double>& lambda,
                     std::vector<Vec6>& result) noexcept;

// What enters the tangent mass matrix besides the mass; all zero: the plain mass matrix.
struct TangentFactors {
  double geometric = 0.0;  // of (J' lambda)_q: dt^2/4 [s^2]
  double stiffness = 0.0;  // of -dQ/dq: dt^2/4 [s^2]
  double damping = 0.0;    // of -dQ/dqd: dt/2 [s]
};

// Tangent mass matrices M - (dt^2/4) dQ/dq - (dt/2) dQ/dqd + (dt^2/4) (J' lambda)_q inverted, and all compounds
// factorised.
// A row without positive pivot is noted in w.failed_row.
void factorise(const Plan& plan, const std::vector<double>& lambda, const TangentFactors& factors,
               Workspace& w) noexcept;

}  // namespace rigstep::index3
