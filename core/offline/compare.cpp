#include "core/offline/compare.h"

#include <algorithm>
#include <cmath>

#include "core/offline/absolute_system.h"

namespace rigstep::offline {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;

constexpr double kRank = 1e-6;  // pivots below it, relative to the largest, count as zero

// Rows at rest with unit length; the prescribed values of drivers do not enter.
struct PoseRows {
  std::vector<ConstraintRow> rows;
  MatrixXd J;
};

PoseRows rows_at(const Scenario& scenario, std::span<const BodyMotion> bodies) {
  const Mechanism& mechanism = *scenario.mechanism;
  const std::vector<Jet> coordinates = CoordinateFollower(mechanism).follow(bodies);
  const std::vector<double> inputs(mechanism.input_channels().size(), 0.0);
  const std::vector<Prescribed> drives(mechanism.drivers().size());
  PoseRows at{Constraints(mechanism).rows({0.0, bodies, coordinates, inputs}, drives), {}};
  at.J = jacobian(at.rows, bodies.size());
  for (Index k = 0; k < at.J.rows(); ++k) at.J.row(k).normalize();
  return at;
}

Eigen::ColPivHouseholderQR<MatrixXd> decomposed(const MatrixXd& J) {
  Eigen::ColPivHouseholderQR<MatrixXd> qr;
  qr.setThreshold(kRank);
  return qr.compute(J.transpose());
}

}  // namespace

double angle_between(const EulerParameters& p, const EulerParameters& q) {
  const double apart = std::min((p - q).norm(), (p + q).norm());  // 2 sin(angle / 4)
  return 4.0 * std::asin(std::min(1.0, 0.5 * apart));
}

void keep_larger(double& largest, double value) {
  if (!(value <= largest) && !std::isnan(largest)) largest = value;
}

Deviation compare(std::span<const Instant> one, std::span<const Instant> other, const std::vector<bool>& comparable) {
  Deviation d;
  for (std::size_t k = 0; k < std::min(one.size(), other.size()); ++k) {
    for (std::size_t i = 0; i < one[k].body.size(); ++i) {
      const BodyMotion &a = one[k].body[i], &b = other[k].body[i];
      keep_larger(d.position, (a.r_0 - b.r_0).norm());
      keep_larger(d.orientation, angle_between(a.p, b.p));
      keep_larger(d.velocity, (a.v_0 - b.v_0).norm());
      keep_larger(d.angular_velocity, (a.omega_0 - b.omega_0).norm());
    }
    for (std::size_t j = 0; j < std::min(one[k].reaction.size(), other[k].reaction.size()); ++j) {
      if (j >= comparable.size() || !comparable[j]) continue;
      keep_larger(d.force, (one[k].reaction[j].force_0 - other[k].reaction[j].force_0).norm());
      keep_larger(d.torque, (one[k].reaction[j].torque_0 - other[k].reaction[j].torque_0).norm());
    }
  }
  return d;
}

std::vector<bool> determined_constraints(const Scenario& scenario, std::span<const BodyMotion> bodies) {
  const PoseRows at = rows_at(scenario, bodies);
  std::vector<bool> determined(static_cast<std::size_t>(scenario.mechanism->constraints()), true);
  if (at.rows.empty()) return determined;
  // combinations of rows without effect: columns of the null space of J', from R = (R1 R2) of J' E = Q R
  const auto qr = decomposed(at.J);
  const Index rank = qr.rank(), redundant = at.J.rows() - rank;
  if (redundant == 0) return determined;
  MatrixXd idle(at.J.rows(), redundant);
  const MatrixXd R = qr.matrixQR().topRows(rank).triangularView<Eigen::Upper>();
  idle.topRows(rank) = -R.leftCols(rank).triangularView<Eigen::Upper>().solve(R.rightCols(redundant));
  idle.bottomRows(redundant).setIdentity();
  idle = qr.colsPermutation() * idle;
  for (Index k = 0; k < idle.rows(); ++k) {
    const std::size_t constraint = static_cast<std::size_t>(at.rows[static_cast<std::size_t>(k)].constraint);
    if (idle.row(k).cwiseAbs().maxCoeff() > kRank) determined[constraint] = false;
  }
  return determined;
}

std::vector<bool> determined_reactions(const Scenario& scenario, std::span<const BodyMotion> bodies) {
  std::vector<bool> determined = determined_constraints(scenario, bodies);
  determined.resize(scenario.mechanism->joints().size());
  return determined;
}

int constraint_rank(const Scenario& scenario, std::span<const BodyMotion> bodies) {
  const PoseRows at = rows_at(scenario, bodies);
  return at.rows.empty() ? 0 : static_cast<int>(decomposed(at.J).rank());
}

double margin(const Scenario& scenario, std::span<const BodyMotion> bodies, int rank) {
  if (rank == 0) return 1.0;
  const PoseRows at = rows_at(scenario, bodies);
  const auto qr = decomposed(at.J);
  return std::abs(qr.matrixQR()(rank - 1, rank - 1)) / std::abs(qr.matrixQR()(0, 0));
}

}  // namespace rigstep::offline
