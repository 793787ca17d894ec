#include "core/index3/reactions.h"

#include <algorithm>
#include <utility>

#include "core/index3/diagnostics.h"

namespace rigstep::index3 {

namespace {

constexpr double kRegularisation = 1e-12;  // of J'J against its mean diagonal: what the constraints leave free
constexpr int kReactionPasses = 3;         // each multiplies its error by kRegularisation over the smallest eigenvalue

// K (its upper half) = L D L': L' replaces what stands right of the diagonal, as far as a row's end
void factorise(RowMajorMatrix& K, Eigen::VectorXd& inverse_d, const std::vector<int>& end) noexcept {
  const int size = static_cast<int>(K.rows());
  for (int j = 0; j < size; ++j) {
    double* const row = &K(j, 0);
    inverse_d[j] = 1.0 / row[j];
    for (int i = j + 1; i < end[j]; ++i) {
      const double l = row[i] * inverse_d[j];
      double* const below = &K(i, 0);
      for (int k = i; k < end[j]; ++k) below[k] -= l * row[k];
    }
    for (int i = j + 1; i < end[j]; ++i) row[i] *= inverse_d[j];
  }
}

void solve(const RowMajorMatrix& K, const Eigen::VectorXd& inverse_d, const std::vector<int>& end,
           Eigen::VectorXd& x) noexcept {
  const int size = static_cast<int>(K.rows());
  for (int j = 0; j < size; ++j)
    for (int i = j + 1; i < end[j]; ++i) x[i] -= K(j, i) * x[j];
  x.array() *= inverse_d.array();
  for (int j = size; j-- > 0;)
    for (int i = j + 1; i < end[j]; ++i) x[j] -= K(j, i) * x[i];
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
  const int size = 6 * static_cast<int>(g.bodies.size());
  for (int k = 0; k < size; ++k) g.end.push_back(6 * (k / 6) + 6);
  for (const int c : constraints) {
    std::vector<Entry> blocks;
    for (int side = 0; side < 4; ++side) {
      const int body = plan_->bodies[c][static_cast<std::size_t>(side)];
      if (body == kGround) continue;
      const auto place = std::lower_bound(g.bodies.begin(), g.bodies.end(), body) - g.bodies.begin();
      blocks.push_back({0, side, 6 * static_cast<int>(place), Vec6::Zero()});
    }
    for (const Entry& one : blocks)
      for (const Entry& other : blocks)
        for (int k = one.at; k < one.at + 6; ++k) g.end[k] = std::max(g.end[k], other.at + 6);
    for (int row = plan_->first_row[c]; row < plan_->first_row[c + 1]; ++row) {
      for (Entry& block : blocks) {
        block.row = static_cast<int>(g.rows.size());
        g.entries.push_back(block);
      }
      g.rows.push_back(row);
    }
  }
  for (int k = 1; k < size; ++k) g.end[k] = std::max(g.end[k], g.end[k - 1]);  // eliminating fills
  g.K.resize(size, size), g.inverse_d.resize(size), g.motion.resize(size);
  g.open.resize(static_cast<Eigen::Index>(g.rows.size()));
  return g;
}

// J, and the upper half of J'J
void Reactions::take_blocks(Group& g, const Workspace& w) const noexcept {
  g.K.setZero();
  for (std::size_t k = 0; k < g.entries.size(); ++k) {
    Entry& entry = g.entries[k];
    entry.J = block(*plan_, w, g.rows[entry.row], entry.side);
    entry.J.tail<3>() /= arm_[g.bodies[entry.at / 6]];
    for (std::size_t l = k + 1; l-- > 0 && g.entries[l].row == entry.row;) {
      const Entry& other = g.entries[l];
      const Entry &left = entry.at <= other.at ? entry : other, &right = entry.at <= other.at ? other : entry;
      g.K.block<6, 6>(left.at, right.at) += left.J * right.J.transpose();
    }
  }
}

// lambda := its part in the range of J, J (J'J)^-1 J' lambda, which loads the bodies alike
void Reactions::redistribute(Group& g, const Workspace& w) noexcept {
  take_blocks(g, w);
  g.K.diagonal().array() += kRegularisation * g.K.diagonal().mean();
  factorise(g.K, g.inverse_d, g.end);
  for (std::size_t k = 0; k < g.rows.size(); ++k)
    g.open[static_cast<Eigen::Index>(k)] = std::exchange(lambda_[g.rows[k]], 0.0);
  for (int pass = 0; pass < kReactionPasses; ++pass) {
    g.motion.setZero();
    for (const Entry& entry : g.entries) g.motion.segment<6>(entry.at) += g.open[entry.row] * entry.J;
    solve(g.K, g.inverse_d, g.end, g.motion);
    for (const Entry& entry : g.entries) {
      const double part = entry.J.dot(g.motion.segment<6>(entry.at));
      lambda_[g.rows[entry.row]] += part;
      g.open[entry.row] -= part;
    }
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
  for (const Group& g : groups_)
    doubles += static_cast<std::size_t>(g.K.size() + g.inverse_d.size() + g.motion.size() + g.open.size()) +
               g.entries.size() * sizeof(Entry) / sizeof(double);
  return doubles * sizeof(double);
}

}  // namespace rigstep::index3
