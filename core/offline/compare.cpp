#include "core/offline/compare.h"

#include <algorithm>
#include <cmath>

#include "core/offline/absolute_system.h"
#include "core/offline/dense.h"

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

void keep_larger(Values& values, Quantity q, std::size_t item, double value) {
  offline::keep_larger(values[q][item], value);
}

void compare_bodies(const Instant& one, const Instant& other, Values& apart) {
  for (std::size_t i = 0; i < one.body.size(); ++i) {
    const BodyMotion &a = one.body[i], &b = other.body[i];
    keep_larger(apart, Quantity::position, i, (a.r_0 - b.r_0).norm());
    keep_larger(apart, Quantity::orientation, i, angle_between(a.p, b.p));
    keep_larger(apart, Quantity::velocity, i, (a.v_0 - b.v_0).norm());
    keep_larger(apart, Quantity::angular_velocity, i, (a.omega_0 - b.omega_0).norm());
  }
  for (std::size_t i = 0; i < std::min(one.acceleration.size(), other.acceleration.size()); ++i) {
    const Vec6 change = one.acceleration[i] - other.acceleration[i];
    keep_larger(apart, Quantity::acceleration, i, change.head<3>().norm());
    keep_larger(apart, Quantity::angular_acceleration, i, change.tail<3>().norm());
  }
}

void compare_loads(const Mechanism& mechanism, const Instant& one, const Instant& other, const Determined& determined,
                   Values& apart) {
  const std::size_t joints = mechanism.joints().size();
  const auto is_determined = [&](std::size_t constraint) {
    return constraint < determined.size() && determined[constraint];
  };
  if (one.reaction.empty() || other.reaction.empty() || determined.empty()) return;
  for (std::size_t j = 0; j < joints; ++j) {
    if (!is_determined(j)) continue;
    keep_larger(apart, Quantity::force, j, (one.reaction[j].force_0 - other.reaction[j].force_0).norm());
    keep_larger(apart, Quantity::torque, j, (one.reaction[j].torque_0 - other.reaction[j].torque_0).norm());
  }
  for (std::size_t e = 0; e < std::min(one.effort.size(), other.effort.size()); ++e)
    if (is_determined(joints + e)) keep_larger(apart, Quantity::effort, e, std::abs(one.effort[e] - other.effort[e]));
  const std::vector<Vec6> a = constraint_loads(mechanism, one), b = constraint_loads(mechanism, other);
  for (std::size_t i = 0; i < a.size(); ++i) {
    keep_larger(apart, Quantity::body_force, i, (a[i] - b[i]).head<3>().norm());
    keep_larger(apart, Quantity::body_torque, i, (a[i] - b[i]).tail<3>().norm());
  }
}

}  // namespace

double angle_between(const EulerParameters& p, const EulerParameters& q) {
  const double apart = std::min((p - q).norm(), (p + q).norm());  // 2 sin(angle / 4)
  return 4.0 * std::asin(std::min(1.0, 0.5 * apart));
}

void keep_larger(double& largest, double value) {
  if (!(value <= largest) && !std::isnan(largest)) largest = value;
}

Values::Values(const Mechanism& mechanism) {
  const std::size_t bodies = mechanism.bodies().size(), joints = mechanism.joints().size();
  for (std::vector<double>& items : item_) items.assign(bodies, 0.0);
  for (const Quantity q : {Quantity::force, Quantity::torque}) (*this)[q].assign(joints, 0.0);
  (*this)[Quantity::effort].assign(mechanism.couplings().size() + mechanism.drivers().size(), 0.0);
}

double Values::largest(Quantity q) const {
  double largest = 0.0;
  for (const double value : (*this)[q]) keep_larger(largest, value);
  return largest;
}

Values compare(const Mechanism& mechanism, std::span<const Instant> one, std::span<const Instant> other,
               const Determined& determined) {
  Values apart(mechanism);
  for (std::size_t k = 0; k < std::min(one.size(), other.size()); ++k) {
    compare_bodies(one[k], other[k], apart);
    compare_loads(mechanism, one[k], other[k], determined, apart);
  }
  return apart;
}

Determined determined_constraints(const Scenario& scenario, std::span<const BodyMotion> bodies) {
  const PoseRows at = rows_at(scenario, bodies);
  Determined determined(static_cast<std::size_t>(scenario.mechanism->constraints()), true);
  if (at.rows.empty()) return determined;
  // combinations of rows without effect: columns of the null space of J', from R = (R1 R2) of J' E = Q R
  const PivotedQr qr = pivoted_qr(at.J.transpose(), kRank);
  const Index rank = qr.rank, redundant = at.J.rows() - rank;
  if (redundant == 0) return determined;
  MatrixXd idle(at.J.rows(), redundant);
  idle.topRows(rank) =
      -qr.R.topLeftCorner(rank, rank).triangularView<Eigen::Upper>().solve(qr.R.topRightCorner(rank, redundant));
  idle.bottomRows(redundant).setIdentity();
  for (Index k = 0; k < idle.rows(); ++k) {
    const auto row = static_cast<std::size_t>(qr.order[static_cast<std::size_t>(k)]);
    const std::size_t constraint = static_cast<std::size_t>(at.rows[row].constraint);
    if (idle.row(k).cwiseAbs().maxCoeff() > kRank) determined[constraint] = false;
  }
  return determined;
}

int constraint_rank(const Scenario& scenario, std::span<const BodyMotion> bodies) {
  const PoseRows at = rows_at(scenario, bodies);
  return at.rows.empty() ? 0 : pivoted_qr(at.J.transpose(), kRank).rank;
}

double margin(const Scenario& scenario, std::span<const BodyMotion> bodies, int rank) {
  if (rank == 0) return 1.0;
  const PoseRows at = rows_at(scenario, bodies);
  const PivotedQr qr = pivoted_qr(at.J.transpose(), kRank);
  return std::abs(qr.R(rank - 1, rank - 1)) / std::abs(qr.R(0, 0));
}

}  // namespace rigstep::offline
