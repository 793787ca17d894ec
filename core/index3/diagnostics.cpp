#include "core/index3/diagnostics.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <random>

#include "core/index3/forces.h"
#include "core/index3/initial_state.h"
#include "core/index3/tangent.h"

namespace rigstep::index3 {

namespace {

constexpr double kRankTolerance = 1e-11;  // eigenvalue of the scaled J M^-1 J' that counts as zero

double along(const Vec6& J, const Vec3& linear, const Vec3& angular) {
  return J.head<3>().dot(linear) + J.tail<3>().dot(angular);
}

Eigen::MatrixXd dense_jacobian(const Plan& plan, const Workspace& w) {
  Eigen::MatrixXd J = Eigen::MatrixXd::Zero(plan.rows(), 6 * static_cast<int>(w.placement.size()));
  for (int row = 0; row < plan.rows(); ++row)
    for_each_block(plan, w, row,
                   [&](int body, const Vec6& J_body) { J.block<1, 6>(row, 6 * body) = J_body.transpose(); });
  return J;
}

// J M^-1/2 with the rows scaled to unit length; the plain mass matrix
Eigen::MatrixXd scaled_jacobian(const Plan& plan, const Workspace& w) {
  Eigen::MatrixXd J = dense_jacobian(plan, w);
  for (std::size_t i = 0; i < w.placement.size(); ++i) {
    const Body& body = plan.mechanism.bodies()[i];
    const Mat3 inertia = w.placement[i].A * body.inertia_b * w.placement[i].A.transpose();
    const Mat3 root = inertia.llt().matrixL();
    auto columns = J.middleCols<6>(6 * static_cast<int>(i));
    columns.leftCols<3>() /= std::sqrt(body.mass);
    columns.rightCols<3>() = columns.rightCols<3>().eval() * root.inverse().transpose();
  }
  for (int row = 0; row < J.rows(); ++row) J.row(row) /= J.row(row).norm();
  return J;
}

// moves along a random admissible motion and closes the joints again
State nearby(const Plan& plan, const State& x, const Workspace& w) {
  const Eigen::MatrixXd J = dense_jacobian(plan, w);
  Eigen::VectorXd motion(J.cols());
  std::mt19937 random(1);
  for (Eigen::Index k = 0; k < motion.size(); ++k) motion[k] = static_cast<double>(random()) / 4294967296.0 - 0.5;
  if (J.rows() > 0) motion -= J.completeOrthogonalDecomposition().solve(J * motion);
  double largest = 0.0;
  for (Eigen::Index k = 0; k < motion.size(); k += 6)
    largest = std::max({largest, motion.segment<3>(k).norm() / plan.length, motion.segment<3>(k + 3).norm()});
  if (largest > 0.0) motion *= 0.01 / largest;
  State y = x;
  for (std::size_t i = 0; i < y.body.size(); ++i) {
    y.body[i].r += motion.segment<3>(6 * static_cast<Eigen::Index>(i));
    y.body[i].p = turned(y.body[i].p, motion.segment<3>(6 * static_cast<Eigen::Index>(i) + 3));
  }
  return y;
}

}  // namespace

Energy energy(const Plan& plan, const State& x, const Workspace& w) noexcept {
  double kinetic = 0.0;
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    const Body& body = plan.mechanism.bodies()[i];
    kinetic += 0.5 * body.mass * x.body[i].v.squaredNorm() + 0.5 * x.body[i].w_b.dot(body.inertia_b * x.body[i].w_b);
  }
  return {kinetic, potential_energy(plan, w)};
}

void residuals(const Plan& plan, const State& x, const Workspace& w, StepReport& report) noexcept {
  double position = 0.0, velocity = 0.0, acceleration = 0.0;
  for (std::size_t j = 0; j < w.joint.size(); ++j) {
    const Joint& joint = plan.mechanism.joints()[j];
    const Placement &first = placement(w, joint.first), &second = placement(w, joint.second);
    const auto linear = [&x](int body) { return body == kGround ? Vec3(Vec3::Zero()) : x.body[body].a; };
    const auto angular = [&x, &w](int body) {
      return body == kGround ? Vec3(Vec3::Zero()) : Vec3(w.placement[body].A * x.body[body].alpha_b);
    };
    const Vec3 a1 = linear(joint.first), a2 = linear(joint.second);
    const Vec3 alpha1 = angular(joint.first), alpha2 = angular(joint.second);
    int row = plan.first_row[j];
    for (const Row& r : rows_of(joint.type)) {
      const Vec6 &J1 = w.J_first[row], &J2 = w.J_second[row];
      position = std::max(position, std::abs(w.Phi[row]));
      velocity = std::max(velocity, std::abs(along(J1, first.v, first.w) + along(J2, second.v, second.w)));
      acceleration = std::max(acceleration, std::abs(along(J1, a1, alpha1) + along(J2, a2, alpha2) +
                                                     quadratic(r, w.joint[j], first, second)));
      ++row;
    }
  }
  for (int c = plan.first_coupling(); c < plan.mechanism.constraints(); ++c) {
    const int row = plan.first_row[c];
    RowTerms terms = row_terms(plan, w, c);
    for_each_block(plan, w, row, [&](int body, const Vec6& J) {
      const Placement& at = w.placement[body];
      terms.velocity += along(J, at.v, at.w);
      terms.acceleration += along(J, x.body[body].a, at.A * x.body[body].alpha_b);
    });
    position = std::max(position, std::abs(w.Phi[row]));
    velocity = std::max(velocity, std::abs(terms.velocity));
    acceleration = std::max(acceleration, std::abs(terms.acceleration));
  }
  report.position_residual = position;
  report.velocity_residual = velocity;
  report.acceleration_residual = acceleration;
}

Rank rank_at(const Plan& plan, const State& x) {
  Workspace w(plan);
  evaluate_state(plan, x, w);
  Rank result;
  result.redundancy_share.assign(static_cast<std::size_t>(plan.mechanism.constraints()), 0.0);
  result.degrees_of_freedom = 6 * static_cast<int>(x.body.size());
  if (plan.rows() == 0) return result;
  const Eigen::MatrixXd J = scaled_jacobian(plan, w);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(J * J.transpose());
  for (int k = 0; k < plan.rows(); ++k) {
    if (eigen.eigenvalues()[k] < kRankTolerance) {
      ++result.redundant;
      for (int row = 0; row < plan.rows(); ++row)
        result.redundancy_share[plan.joint_of_row[row]] += std::pow(eigen.eigenvectors()(row, k), 2);
    } else {
      result.margin = std::min(1.0, std::sqrt(eigen.eigenvalues()[k]));
      break;  // ascending
    }
  }
  result.rank = plan.rows() - result.redundant;
  result.degrees_of_freedom -= result.rank;
  return result;
}

StartRank start_rank(const Mechanism& mechanism) {
  const Plan plan(mechanism, {});
  const State x = start_pose(plan);
  StartRank result;
  result.start = rank_at(plan, x);
  Workspace w(plan);
  evaluate_state(plan, x, w);
  result.rank_nearby = rank_at(plan, closed(plan, nearby(plan, x, w), w)).rank;
  return result;
}

}  // namespace rigstep::index3
