#include "core/index3/tangent.h"

#include <Eigen/Cholesky>
#include <Eigen/LU>

#include "core/index3/forces.h"
#include "core/index3/sweeps.h"

namespace rigstep::index3 {

namespace {

bool is_positive_definite(const Mat3& S) {
  const double minor = S(0, 0) * S(1, 1) - S(1, 0) * S(1, 0);
  return S(0, 0) > 0.0 && minor > 0.0 && S.determinant() > 0.0;
}

void geometric_stiffness(const Plan& plan, const std::vector<double>& lambda, Workspace& w) {
  for (Mat3& K : w.geometric) K.setZero();
  Mat3 on_ground;  // falls on the ground and is forgotten
  for (std::size_t j = 0; j < w.joint.size(); ++j) {
    const Joint& joint = plan.mechanism.joints()[j];
    on_ground.setZero();
    Mat3& K_first = joint.first == kGround ? on_ground : w.geometric[joint.first];
    Mat3& K_second = joint.second == kGround ? on_ground : w.geometric[joint.second];
    int row = plan.first_row[j];
    for (const Row& r : rows_of(joint.type)) add_geometric_stiffness(r, lambda[row++], w.joint[j], K_first, K_second);
  }
}

// tangent of the rotation; the geometric part must leave a tenth of the inertia, or it is left out for this body
Mat3 rotational_tangent(const Plan& plan, int body, double geometric_factor, const Workspace& w) {
  const Mat3& A = w.placement[body].A;
  const Mat3 inertia = A * plan.mechanism.bodies()[body].inertia_b * A.transpose();
  if (geometric_factor == 0.0) return inertia;
  const Mat3 geometric = geometric_factor * w.geometric[body];
  return is_positive_definite(0.9 * inertia + geometric) ? Mat3(inertia + geometric) : inertia;
}

void invert_tangent_mass(const Plan& plan, int body, const TangentFactors& factors, Workspace& w) {
  const double mass = plan.mechanism.bodies()[body].mass;
  const Mat3 rotation = rotational_tangent(plan, body, factors.geometric, w);
  Mat6& inverse = w.M_inverse[body];
  inverse.setZero();
  if (plan.carries_spring[body] && (factors.stiffness > 0.0 || factors.damping > 0.0)) {
    Eigen::Matrix<double, 6, 6> M = w.tangent[body];
    M.topLeftCorner<3, 3>().diagonal().array() += mass;
    M.bottomRightCorner<3, 3>() += rotation;
    inverse = M.llt().solve(Eigen::Matrix<double, 6, 6>::Identity());
  } else {
    inverse.topLeftCorner<3, 3>().diagonal().setConstant(1.0 / mass);
    inverse.bottomRightCorner<3, 3>() = rotation.inverse();
  }
}

}  // namespace

void evaluate_constraints(const Plan& plan, Workspace& w) noexcept {
  for (std::size_t j = 0; j < w.joint.size(); ++j) {
    const Joint& joint = plan.mechanism.joints()[j];
    w.joint[j] = place(joint, placement(w, joint.first), placement(w, joint.second));
    int row = plan.first_row[j];
    for (const Row& r : rows_of(joint.type)) {
      const RowValue value = evaluate(r, w.joint[j]);
      w.Phi[row] = value.Phi;
      w.J_first[row] = value.J_first;
      w.J_second[row] = value.J_second;
      ++row;
    }
  }
}

void evaluate_quadratic_terms(const Plan& plan, Workspace& w) noexcept {
  for (std::size_t j = 0; j < w.joint.size(); ++j) {
    const Joint& joint = plan.mechanism.joints()[j];
    int row = plan.first_row[j];
    for (const Row& r : rows_of(joint.type))
      w.rhs_term[row++] = quadratic(r, w.joint[j], placement(w, joint.first), placement(w, joint.second));
  }
}

void add_joint_loads(const Plan& plan, const Workspace& w, const std::vector<double>& lambda,
                     std::vector<Vec6>& result) noexcept {
  for (int row = 0; row < plan.rows(); ++row) {
    const Joint& joint = plan.mechanism.joints()[plan.joint_of_row[row]];
    if (joint.first != kGround) result[joint.first] += lambda[row] * w.J_first[row];
    if (joint.second != kGround) result[joint.second] += lambda[row] * w.J_second[row];
  }
}

void factorise(const Plan& plan, const std::vector<double>& lambda, const TangentFactors& factors,
               Workspace& w) noexcept {
  if (factors.geometric > 0.0) geometric_stiffness(plan, lambda, w);
  const bool with_forces = factors.stiffness > 0.0 || factors.damping > 0.0;
  if (with_forces) {
    force_tangent(plan, factors.stiffness, factors.damping, w);
    evaluate_element_rows(plan, factors.stiffness, factors.damping, w);
  }
  for (std::size_t i = 0; i < w.placement.size(); ++i) invert_tangent_mass(plan, static_cast<int>(i), factors, w);
  factorise_compounds(plan, with_forces ? plan.newton_compliance : plan.compliance, w);
}

}  // namespace rigstep::index3
