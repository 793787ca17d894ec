#include "core/offline/relative_system.h"

#include <algorithm>
#include <chrono>

#include "core/offline/outputs.h"

namespace rigstep::offline {

namespace {

const JointTree& checked(const JointTree& tree, const Mechanism& mechanism, const std::string& solver) {
  const std::string unsupported_reason = joint_tree_unsupported_reason(mechanism);
  if (!unsupported_reason.empty())
    throw SolverError(solver + ": cannot simulate " + mechanism.name() + ": " + unsupported_reason);
  return tree;
}

Vec6 about(const Vec3& linear, const Vec3& angular) {
  Vec6 v;
  v << linear, angular;
  return v;
}

double largest_rate(std::span<const ConstraintRow> rows, std::span<const Vec6> motion, bool second) {
  double largest = 0.0;
  for (const ConstraintRow& row : rows)
    largest = std::max(largest, std::abs(row.times(motion) + (second ? -row.gamma : row.Phi_t)));
  return largest;
}

}  // namespace

RelativeSystem::RelativeSystem(const Scenario& scenario, std::string solver, int threads)
    : scenario_(&scenario),
      mechanism_(scenario.mechanism),
      solver_(std::move(solver)),
      tree_(*mechanism_),
      compounds_(*mechanism_, checked(tree_, *mechanism_, solver_), threads),
      follower_(*mechanism_),
      constraints_(*mechanism_),
      input_(mechanism_->input_channels().size(), 0.0) {
  const std::vector<BodyMotion> start = AbsoluteSystem(scenario, solver_).start();
  for (const BodyMotion& body : start) {
    poses_.push_back({body.r_0, rotation(body.p)});
    start_motions_.push_back(about(body.v_0, body.omega_0));
  }
  subspaces_.resize(tree_.links().size());
  rates_.resize(tree_.links().size());
  absolute_ = start;
  accelerations_.resize(start.size());
  lambda_.resize(tree_.links().size());
  start_coordinates_ = tree_.coordinates_of(poses_);
  motions_ = start_motions_;
  hold(scenario.instants.front());
}

void RelativeSystem::place(std::span<const double> q) {
  tree_.place(q, poses_);
  const std::span<const Pose> poses(poses_);
  for (std::size_t k = 0; k < subspaces_.size(); ++k) {
    const Link& link = tree_.links()[k];
    subspaces_[k] = offline::subspaces(link, of_body(poses, link.first, Pose{}), of_body(poses, link.second, Pose{}));
  }
  compounds_.assemble(poses_, subspaces_);
}

void RelativeSystem::move(std::span<const Vec6> motions) {
  motions_.assign(motions.begin(), motions.end());
  const std::span<const Pose> poses(poses_);
  const Vec6 rest = Vec6::Zero();
  for (std::size_t k = 0; k < rates_.size(); ++k) {
    const Link& link = tree_.links()[k];
    rates_[k] = offline::subspace_rates(link, of_body(poses, link.first, Pose{}), of_body(motions, link.first, rest),
                                        of_body(poses, link.second, Pose{}), of_body(motions, link.second, rest));
  }
}

void RelativeSystem::load(double t) {
  for (std::size_t i = 0; i < absolute_.size(); ++i) {
    const Eigen::Quaterniond turn(poses_[i].A);
    absolute_[i].r_0 = poses_[i].r_0;
    absolute_[i].p << turn.w(), turn.x(), turn.y(), turn.z();
    absolute_[i].v_0 = motions_[i].head<3>();
    absolute_[i].omega_0 = motions_[i].tail<3>();
  }
  coordinate_ = follower_.follow(absolute_, t);
  wrenches_ = offline::wrenches(*mechanism_, {t, absolute_, coordinate_, input_});
}

Mat6 RelativeSystem::mass(int body) const {
  const Body& b = mechanism_->bodies()[static_cast<std::size_t>(body)];
  const Mat3& A = poses_[static_cast<std::size_t>(body)].A;
  Mat6 mass = Mat6::Zero();
  mass.topLeftCorner<3, 3>() = b.mass * Mat3::Identity();
  mass.bottomRightCorner<3, 3>() = A * b.inertia_b * A.transpose();
  return mass;
}

Vec6 RelativeSystem::relative_motion(int k) const {
  const Link& link = tree_.links()[static_cast<std::size_t>(k)];
  const Vec3& point = subspaces_[static_cast<std::size_t>(k)].point_0;
  Vec6 relative = Vec6::Zero();
  if (link.second != kGround) relative += motion_at(motions_[link.second], poses_[link.second].r_0, point);
  if (link.first != kGround) relative -= motion_at(motions_[link.first], poses_[link.first].r_0, point);
  return relative;
}

// The joint point moves with the second body, also where the velocity of the first one is taken there.
Vec6 RelativeSystem::convective(int k) const {
  const Link& link = tree_.links()[static_cast<std::size_t>(k)];
  const Vec3& point_rate = rates_[static_cast<std::size_t>(k)].point_0;
  Vec6 a = Vec6::Zero();
  if (link.second != kGround) {
    const Vec6& motion = motions_[link.second];
    a.head<3>() += motion.tail<3>().cross(point_rate - motion.head<3>());
  }
  if (link.first != kGround) {
    const Vec6& motion = motions_[link.first];
    a.head<3>() -= motion.tail<3>().cross(point_rate - motion.head<3>());
  }
  return a;
}

Vec6 RelativeSystem::relative_acceleration(int k) const {
  const Link& link = tree_.links()[static_cast<std::size_t>(k)];
  const Vec3& point = subspaces_[static_cast<std::size_t>(k)].point_0;
  Vec6 relative = convective(k);
  if (link.second != kGround) relative += motion_at(accelerations_[link.second], poses_[link.second].r_0, point);
  if (link.first != kGround) relative -= motion_at(accelerations_[link.first], poses_[link.first].r_0, point);
  return relative;
}

void RelativeSystem::accelerate() {
  std::vector<Vec6> loads = wrenches_;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const Vec3 omega = motions_[i].tail<3>();
    loads[i].tail<3>() -= omega.cross(mass(static_cast<int>(i)).bottomRightCorner<3, 3>() * omega);
  }
  std::vector<LinkVector> bias(rates_.size());
  for (std::size_t k = 0; k < bias.size(); ++k)
    bias[k] = subspaces_[k].D.transpose() * convective(static_cast<int>(k)) +
              rates_[k].D.transpose() * relative_motion(static_cast<int>(k));
  compounds_.solve(loads, bias, lambda_, accelerations_);
}

void RelativeSystem::hold(double t) {
  for (const HeldInputs& inputs : scenario_->inputs)
    if (inputs.time <= t) input_ = inputs.value;
}

Instant RelativeSystem::instant(double t) {
  const Situation now{t, absolute_, coordinate_, input_};
  Instant instant;
  instant.time = t;
  instant.body = absolute_;
  instant.reaction.resize(mechanism_->joints().size());
  for (std::size_t k = 0; k < lambda_.size(); ++k) {
    const Link& link = tree_.links()[k];
    if (link.joint < 0) continue;
    const Vec6 wrench = subspaces_[k].D * lambda_[k];
    instant.reaction[static_cast<std::size_t>(link.joint)] = {wrench.head<3>(), wrench.tail<3>()};
  }
  instant.acceleration = accelerations_;
  instant.kinetic_energy = kinetic_energy(*mechanism_, absolute_);
  instant.energy = instant.kinetic_energy + potential_energy(*mechanism_, now);
  const std::vector<ConstraintRow> rows = constraints_.rows(now, {});
  for (const ConstraintRow& row : rows)
    instant.position_residual = std::max(instant.position_residual, std::abs(row.Phi));
  instant.velocity_residual = largest_rate(rows, motions_, false);
  instant.acceleration_residual = largest_rate(rows, accelerations_, true);
  instant.output = output_values(*mechanism_, now, instant);
  return instant;
}

Trajectory RelativeSystem::integrate(const Equations& equations, std::vector<double> y, const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<double> scratch(y.size());
  Problem problem;
  problem.size = y.size();
  problem.f = equations.f;
  problem.breaks = equations.breaks;
  for (const double t : load_jumps(*mechanism_)) problem.breaks.push_back(t);
  for (const HeldInputs& inputs : scenario_->inputs) problem.breaks.push_back(inputs.time);
  std::sort(problem.breaks.begin(), problem.breaks.end());
  problem.breaks.erase(std::unique(problem.breaks.begin(), problem.breaks.end()), problem.breaks.end());
  problem.at_break = [&](double t, std::span<double> at) {
    hold(t);
    if (!equations.restart) return;
    equations.f(t, at, scratch);
    equations.restart(t, at);
  };
  Trajectory trajectory;
  const auto deliver = [&](double t, std::span<const double> at) {
    equations.f(t, at, scratch);
    accelerate();
    trajectory.instants.push_back(instant(t));
  };
  try {
    const Effort effort = offline::integrate(problem, std::move(y), scenario_->instants, options, deliver);
    trajectory.right_hand_sides = effort.right_hand_sides;
    trajectory.right_hand_side_seconds = effort.right_hand_side_seconds;
  } catch (const SolverError& error) {
    throw SolverError(solver_ + ": " + error.what());
  }
  trajectory.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return trajectory;
}

}  // namespace rigstep::offline
