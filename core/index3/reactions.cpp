#include "core/index3/reactions.h"

#include <algorithm>
#include <cmath>

#include "core/index3/diagnostics.h"

namespace rigstep::index3 {

namespace {

constexpr double kRegularisation = 1e-12;  // of J'J against its mean diagonal: what the constraints leave free
constexpr int kReactionPasses = 3;         // each multiplies its error by kRegularisation over the smallest eigenvalue

// rows with respect to a body's motion, its rotation measured by the path of its farthest joint point
Vec6 scaled(const Vec6& J, double arm) {
  Vec6 y = J;
  y.tail<3>() /= arm;
  return y;
}

// row-wise, from the first entry of each row on that is not zero
template <class Matrix>
void cholesky(Matrix& K, const std::vector<int>& first_body) {
  const auto first = [&first_body](Eigen::Index i) { return Eigen::Index{6} * first_body[i / 6]; };
  for (Eigen::Index i = 0; i < K.rows(); ++i) {
    for (Eigen::Index j = first(i); j < i; ++j) {
      const Eigen::Index from = std::max(first(i), first(j)), count = j - from;
      K(i, j) = (K(i, j) - K.row(i).segment(from, count).dot(K.row(j).segment(from, count))) / K(j, j);
    }
    K(i, i) = std::sqrt(K(i, i) - K.row(i).segment(first(i), i - first(i)).squaredNorm());
  }
}

template <class Matrix>
void solve(const Matrix& L, Eigen::VectorXd& x) {
  const Eigen::Index n = L.rows();
  for (Eigen::Index i = 0; i < n; ++i) x[i] = (x[i] - L.row(i).head(i).dot(x.head(i).transpose())) / L(i, i);
  for (Eigen::Index i = n - 1; i >= 0; --i) {
    x[i] /= L(i, i);
    x.head(i) -= x[i] * L.row(i).head(i).transpose();
  }
}

}  // namespace

Placement placement_in(const State& x, int body) noexcept {
  return body == kGround ? Placement{} : placement_of(x.body[body]);
}

Vec6 load_on_second(const Plan& plan, const State& x, int j, const double* lambda) noexcept {
  const Joint& joint = plan.mechanism.joints()[j];
  const JointPlacement at = place(joint, placement_in(x, joint.first), placement_in(x, joint.second));
  Vec6 load = Vec6::Zero();  // -J_second' lambda
  for (const Row& r : rows_of(joint.type)) load -= *lambda++ * evaluate(r, at).J_second;
  load.tail<3>() -= at.s_second.cross(load.head<3>());
  return load;
}

std::vector<int> bodies_of(const Plan& plan, const std::vector<int>& constraints) {
  std::vector<int> bodies;
  for (const int c : constraints)
    for (const int body : plan.bodies[c])
      if (body != kGround) bodies.push_back(body);
  std::sort(bodies.begin(), bodies.end());
  bodies.erase(std::unique(bodies.begin(), bodies.end()), bodies.end());
  return bodies;
}

Reactions::Reactions(const Plan& plan, const State& start, const std::vector<bool>& wanted)
    : plan_(&plan), arm_(arms(plan)), lambda_(static_cast<std::size_t>(plan.rows())) {
  if (!plan.has_loops) return;
  for (const std::vector<int>& constraints : rank_at(plan, regular_pose(plan, start)).groups) {
    if (std::none_of(constraints.begin(), constraints.end(), [&wanted](int c) { return wanted[c]; })) continue;
    if (bodies_of(plan, constraints).size() <= kMostBodiesOfGroup) groups_.push_back(make_group(constraints));
  }
}

Reactions::Group Reactions::make_group(const std::vector<int>& constraints) const {
  Group g;
  g.bodies = bodies_of(*plan_, constraints);
  for (std::size_t k = 0; k < g.bodies.size(); ++k) g.first.push_back(static_cast<int>(k));
  for (const int c : constraints) {
    std::array<int, 4> place;
    int lowest = static_cast<int>(g.bodies.size());
    for (std::size_t side = 0; side < place.size(); ++side) {
      const int body = plan_->bodies[c][side];
      place[side] = body == kGround
                        ? -1
                        : static_cast<int>(std::lower_bound(g.bodies.begin(), g.bodies.end(), body) - g.bodies.begin());
      if (place[side] >= 0) lowest = std::min(lowest, place[side]);
    }
    for (const int body : place)
      if (body >= 0) g.first[body] = std::min(g.first[body], lowest);
    for (int row = plan_->first_row[c]; row < plan_->first_row[c + 1]; ++row) {
      g.rows.push_back(row);
      g.place.push_back(place);
    }
  }
  const auto size = static_cast<Eigen::Index>(6 * g.bodies.size());
  g.K.resize(size, size), g.motion.resize(size);
  g.given.resize(static_cast<Eigen::Index>(g.rows.size()));
  return g;
}

void Reactions::factorise(Group& g, const Workspace& w) noexcept {
  g.K.setZero();
  for (std::size_t k = 0; k < g.rows.size(); ++k)
    for (int side = 0; side < 4; ++side) {
      const int a = g.place[k][side];
      if (a < 0) continue;
      const Vec6 J = scaled(block(*plan_, w, g.rows[k], side), arm_[g.bodies[a]]);
      for (int other = 0; other < 4; ++other) {
        const int b = g.place[k][other];
        if (b < 0 || b > a) continue;
        g.K.block<6, 6>(6 * a, 6 * b) += J * scaled(block(*plan_, w, g.rows[k], other), arm_[g.bodies[b]]).transpose();
      }
    }
  g.K.diagonal().array() += kRegularisation * g.K.diagonal().mean();
  cholesky(g.K, g.first);
}

// lambda := its part in the range of J, J (J'J)^-1 J' lambda, which loads the bodies alike
void Reactions::redistribute(Group& g, const Workspace& w) noexcept {
  factorise(g, w);
  const auto for_each_place = [&](std::size_t k, const auto& f) {
    for (int side = 0; side < 4; ++side) {
      const int a = g.place[k][side];
      if (a >= 0) f(6 * a, scaled(block(*plan_, w, g.rows[k], side), arm_[g.bodies[a]]));
    }
  };
  for (std::size_t k = 0; k < g.rows.size(); ++k) {
    g.given[static_cast<Eigen::Index>(k)] = lambda_[g.rows[k]];
    lambda_[g.rows[k]] = 0.0;
  }
  for (int pass = 0; pass < kReactionPasses; ++pass) {
    g.motion.setZero();
    for (std::size_t k = 0; k < g.rows.size(); ++k)
      for_each_place(k, [&](int at, const Vec6& J) {
        g.motion.segment<6>(at) += (g.given[static_cast<Eigen::Index>(k)] - lambda_[g.rows[k]]) * J;
      });
    solve(g.K, g.motion);
    for (std::size_t k = 0; k < g.rows.size(); ++k)
      for_each_place(k, [&](int at, const Vec6& J) { lambda_[g.rows[k]] += J.dot(g.motion.segment<6>(at)); });
  }
}

void Reactions::read(const State& x, const Workspace& w) noexcept {
  for (std::size_t row = 0; row < lambda_.size(); ++row) lambda_[row] = x.lambda[row] + x.kappa[row];
  for (Group& group : groups_) redistribute(group, w);
}

Vec6 Reactions::of_joint(const State& x, int j) const noexcept {
  return load_on_second(*plan_, x, j, lambda_.data() + plan_->first_row[j]);
}

double Reactions::of_driver(int driver) const noexcept {
  return -lambda_[plan_->first_row[plan_->first_driver() + driver]];
}

std::size_t Reactions::bytes() const noexcept {
  std::size_t doubles = lambda_.size();
  for (const Group& g : groups_) doubles += static_cast<std::size_t>(g.K.size() + g.motion.size() + g.given.size());
  return doubles * sizeof(double);
}

}  // namespace rigstep::index3
