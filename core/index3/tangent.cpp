#include "core/index3/tangent.h"

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>

#include "core/index3/forces.h"
#include "core/index3/sweeps.h"

namespace rigstep::index3 {

namespace {

bool is_positive_definite(const Mat3& S) {
  const double minor = S(0, 0) * S(1, 1) - S(1, 0) * S(1, 0);
  return S(0, 0) > 0.0 && minor > 0.0 && S.determinant() > 0.0;
}

// a joint coordinate at the pose in w, with its angle unwrapped
Coordinate coordinate_at(const Plan& plan, const Workspace& w, int k) {
  const JointCoordinate& c = plan.mechanism.coordinates()[k];
  const Joint& joint = plan.mechanism.joints()[c.joint];
  Coordinate x = coordinate(c.freedom, w.joint[c.joint], placement(w, joint.first), placement(w, joint.second));
  x.value = followed(c.freedom, w.joint[c.joint], x.value + c.offset, w.reference[k]);
  return x;
}

const Joint& joint_of(const Plan& plan, int coordinate) {
  return plan.mechanism.joints()[plan.mechanism.coordinates()[coordinate].joint];
}

void evaluate_couplings(const Plan& plan, Workspace& w) {
  for (std::size_t k = 0; k < plan.mechanism.couplings().size(); ++k) {
    const Coupling& coupling = plan.mechanism.couplings()[k];
    const int constraint = plan.first_coupling() + static_cast<int>(k), row = plan.first_row[constraint];
    const Coordinate first = coordinate_at(plan, w, coupling.first), second = coordinate_at(plan, w, coupling.second);
    w.Phi[row] = first.value + coupling.ratio * second.value - plan.coupling_constant[k];
    const CoupledJacobians J = coupled_jacobians(plan.bodies[constraint], joint_of(plan, coupling.first), first,
                                                 joint_of(plan, coupling.second), second, coupling.ratio);
    w.J_first[row] = J[0];
    w.J_second[row] = J[1];
    w.J_third[k] = J[2];
    w.J_fourth[k] = J[3];
  }
}

void evaluate_drivers(const Plan& plan, Workspace& w) {
  for (std::size_t k = 0; k < plan.mechanism.drivers().size(); ++k) {
    const JointCoordinate& driven = plan.mechanism.coordinates()[plan.mechanism.drivers()[k].coordinate];
    const Joint& joint = plan.mechanism.joints()[driven.joint];
    const int row = plan.first_row[plan.first_driver() + static_cast<int>(k)];
    const Coordinate x =
        coordinate(driven.freedom, w.joint[driven.joint], placement(w, joint.first), placement(w, joint.second));
    w.Phi[row] = driver_gap(driven.freedom, x.value + driven.offset, w.drive[k].value);
    w.J_first[row] = x.first;
    w.J_second[row] = x.second;
  }
}

double quadratic_of(const Plan& plan, const Workspace& w, int k) {
  const JointCoordinate& c = plan.mechanism.coordinates()[k];
  const Joint& joint = plan.mechanism.joints()[c.joint];
  return coordinate_quadratic(c.freedom, w.joint[c.joint], placement(w, joint.first), placement(w, joint.second));
}

void add_stiffness(const Plan& plan, int k, double weight, Workspace& w) {
  const JointCoordinate& c = plan.mechanism.coordinates()[k];
  const Joint& joint = plan.mechanism.joints()[c.joint];
  Mat3 on_ground = Mat3::Zero();
  add_coordinate_stiffness(c.freedom, weight, w.joint[c.joint],
                           joint.first == kGround ? on_ground : w.geometric[joint.first],
                           joint.second == kGround ? on_ground : w.geometric[joint.second]);
}

// of couplings and drivers
void coordinate_stiffness(const Plan& plan, const std::vector<double>& lambda, Workspace& w) {
  int row = plan.first_row[plan.first_coupling()];
  for (const Coupling& coupling : plan.mechanism.couplings()) {
    add_stiffness(plan, coupling.first, lambda[row], w);
    add_stiffness(plan, coupling.second, coupling.ratio * lambda[row], w);
    ++row;
  }
  for (const Driver& driver : plan.mechanism.drivers()) add_stiffness(plan, driver.coordinate, lambda[row++], w);
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
  coordinate_stiffness(plan, lambda, w);
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
  evaluate_couplings(plan, w);
  evaluate_drivers(plan, w);
}

RowTerms row_terms(const Plan& plan, const Workspace& w, int constraint) noexcept {
  const int driver = constraint - plan.first_driver();
  if (driver < 0) {
    const Coupling& coupling = plan.mechanism.couplings()[constraint - plan.first_coupling()];
    return {0.0, quadratic_of(plan, w, coupling.first) + coupling.ratio * quadratic_of(plan, w, coupling.second)};
  }
  const Prescribed& drive = w.drive[driver];
  return {-drive.rate, quadratic_of(plan, w, plan.mechanism.drivers()[driver].coordinate) - drive.acceleration};
}

void evaluate_velocity_terms(const Plan& plan, Workspace& w) noexcept {
  std::fill(w.rhs_term.begin(), w.rhs_term.end(), 0.0);
  for (int c = plan.first_driver(); c < plan.mechanism.constraints(); ++c)
    w.rhs_term[plan.first_row[c]] = row_terms(plan, w, c).velocity;
}

void evaluate_quadratic_terms(const Plan& plan, Workspace& w) noexcept {
  for (std::size_t j = 0; j < w.joint.size(); ++j) {
    const Joint& joint = plan.mechanism.joints()[j];
    int row = plan.first_row[j];
    for (const Row& r : rows_of(joint.type))
      w.rhs_term[row++] = quadratic(r, w.joint[j], placement(w, joint.first), placement(w, joint.second));
  }
  for (int c = plan.first_coupling(); c < plan.mechanism.constraints(); ++c)
    w.rhs_term[plan.first_row[c]] = row_terms(plan, w, c).acceleration;
}

void add_joint_loads(const Plan& plan, const Workspace& w, const std::vector<double>& lambda,
                     std::vector<Vec6>& result) noexcept {
  for (int row = 0; row < plan.rows(); ++row)
    for_each_block(plan, w, row, [&](int body, const Vec6& J) { result[body] += lambda[row] * J; });
}

void factorise(const Plan& plan, const std::vector<double>& lambda, const TangentFactors& factors,
               Workspace& w) noexcept {
  if (factors.geometric > 0.0) geometric_stiffness(plan, lambda, w);
  if (factors.stiffness > 0.0 || factors.damping > 0.0) force_tangent(plan, factors.stiffness, factors.damping, w);
  for (std::size_t i = 0; i < w.placement.size(); ++i) invert_tangent_mass(plan, static_cast<int>(i), factors, w);
  factorise_compounds(plan, w);
}

}  // namespace rigstep::index3
