#include "core/index3/compile/compliance.h"

#include <Eigen/Dense>
#include <algorithm>

#include "core/index3/compile/symmetric_eigen.h"
#include "core/index3/compile/tuned.h"
#include "core/mechanism/body_groups.h"

namespace rigstep::index3 {

namespace {

// Chosen; light_bodies_test holds that loops of slender rods and light links move right with them.
constexpr double kPartOfLargest = 0.1;  // mass and moments of inertia of a connected body, at least
constexpr double kOfOwnBlock = 1e-14;   // compliance at least: a hundred times the rounding of a pivot
constexpr double kRounding = 1e-14;     // of a least eigenvalue, beside the mean of all: likewise

// The ground connects nothing: it takes part in no motion.
BodyGroups connected_bodies(const Mechanism& m) {
  BodyGroups groups(m.bodies().size());
  for (const Joint& joint : m.joints())
    if (joint.first != kGround && joint.second != kGround) groups.join(joint.first, joint.second);
  return groups;
}

}  // namespace

ComplianceChoice::ComplianceChoice(const Mechanism& mechanism, bool has_loops, double relative)
    : has_loops_(has_loops),
      masses_change_(std::any_of(mechanism.parameters().begin(), mechanism.parameters().end(), moves_weights)),
      relative_(relative),
      own_(mechanism.bodies().size()),
      connected_(own_) {
  const BodyGroups groups = connected_bodies(mechanism);
  for (int i = 0; i < static_cast<int>(mechanism.bodies().size()); ++i) group_of_.push_back(groups.group_of(i));
  largest_.resize(mechanism.bodies().size() + 1);
  follow(mechanism);
}

void ComplianceChoice::follow(const Mechanism& mechanism) noexcept {
  std::fill(largest_.begin(), largest_.end(), Largest());
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const Body& body = mechanism.bodies()[i];
    Largest& group = largest_[group_of_[i]];
    const Eigen::SelfAdjointEigenSolver<Mat3> principal(body.inertia_b, Eigen::EigenvaluesOnly);
    group.mass = std::max(group.mass, body.mass);
    group.moment = std::max(group.moment, principal.eigenvalues()[2]);
  }
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const Body& body = mechanism.bodies()[i];
    const Largest& group = largest_[group_of_[i]];
    const Eigen::SelfAdjointEigenSolver<Mat3> principal(body.inertia_b);
    const Vec3 moments = principal.eigenvalues().cwiseMax(kPartOfLargest * group.moment);
    const Mat3& axes = principal.eigenvectors();
    own_[i] = {1.0 / body.mass, body.inertia_b.inverse()};
    connected_[i] = {1.0 / std::max(body.mass, kPartOfLargest * group.mass),
                     axes * moments.cwiseInverse().asDiagonal() * axes.transpose()};
  }
}

namespace {

// J M^-1 J' of all bodies. Rows, Block: of matrices that allocate, or of those that do not and round differently.
template <class Rows, class Block, class Inverse>
Block block(std::span<const RowsOnBody> rows, const std::vector<Inverse>& inverse) {
  const Eigen::Index size = rows.front().J.cols();
  Block sum = Block::Zero(size, size);
  for (const RowsOnBody& on : rows) {
    if (on.body == kGround) continue;
    const Inverse& body = inverse[static_cast<std::size_t>(on.body)];
    const Rows J = on.J;
    const Block force = J.template topRows<3>(), torque_b = on.A.transpose() * J.template bottomRows<3>();
    sum += body.translation * force.transpose() * force + torque_b.transpose() * body.rotation_b * torque_b;
  }
  return sum;
}

}  // namespace

template <class Rows, class Block>
double ComplianceChoice::of_blocks(std::span<const RowsOnBody> rows) const {
  const Block own = block<Rows, Block>(rows, own_);
  if (has_loops_)
    return std::max(relative_ * block<Rows, Block>(rows, connected_).diagonal().mean(),
                    kOfOwnBlock * own.diagonal().maxCoeff());
  double least;
  if constexpr (Block::MaxRowsAtCompileTime == Eigen::Dynamic)
    least = eigenvalues(own)[0];
  else
    least = Eigen::SelfAdjointEigenSolver<Block>(own, Eigen::EigenvaluesOnly).eigenvalues()[0];
  return relative_ * std::max(least, kRounding * own.diagonal().mean());
}

double ComplianceChoice::of(std::span<const RowsOnBody> rows) const {
  using Bounded = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, 6, 6>;
  if (masses_change_) return of_blocks<decltype(RowsOnBody::J), Bounded>(rows);
  return of_blocks<Eigen::Matrix<double, 6, Eigen::Dynamic>, Eigen::MatrixXd>(rows);
}

}  // namespace rigstep::index3
