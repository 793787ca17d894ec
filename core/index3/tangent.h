// Constraints and tangent at the pose in w.placement: what Newton's iterations, the projections and the start state all
// begin with. Called in the loop.
#pragma once

#include "core/index3/workspace.h"

namespace rigstep::index3 {

inline const Placement kGroundPlacement{};

inline const Placement& placement(const Workspace& w, int body) noexcept {
  return body == kGround ? kGroundPlacement : w.placement[body];
}

// Jacobian of a row with respect to body k of its constraint, plan.bodies[plan.joint_of_row[row]][k].
inline const Vec6& block(const Plan& plan, const Workspace& w, int row, int k) noexcept {
  if (k < 2) return k == 0 ? w.J_first[row] : w.J_second[row];
  const int coupling = plan.joint_of_row[row] - plan.first_coupling();
  return k == 2 ? w.J_third[coupling] : w.J_fourth[coupling];
}

// Runs f(body, Jacobian) for every moving body that the row acts on.
template <class Visit>
void for_each_block(const Plan& plan, const Workspace& w, int row, const Visit& f) {
  const CoupledBodies& bodies = plan.bodies[plan.joint_of_row[row]];
  for (int k = 0; k < 4; ++k)
    if (bodies[k] != kGround) f(bodies[k], block(plan, w, row, k));
}

// w.joint, the Jacobians and w.Phi from w.placement, w.reference and w.drive, (1) (3).
void evaluate_constraints(const Plan& plan, Workspace& w) noexcept;

// What a row adds to J v and to J a besides the bodies' motion: Phi_t, and J-dot v + Phi_tt. Of a coupling or driver.
struct RowTerms {
  double velocity;
  double acceleration;
};
RowTerms row_terms(const Plan& plan, const Workspace& w, int constraint) noexcept;

// w.rhs_term := Phi_t of every row: minus the prescribed rate of a driver, else zero.
void evaluate_velocity_terms(const Plan& plan, Workspace& w) noexcept;

// w.rhs_term := J-dot v + Phi_tt of every row, from the velocities in w.placement and the prescribed accelerations.
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
