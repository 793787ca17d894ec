#include "core/index3/reactions.h"

#include <algorithm>
#include <utility>

#include "core/index3/diagnostics.h"

namespace rigstep::index3 {

namespace {

constexpr double kRegularisation = 1e-12;  // of J'J against its mean diagonal: what the constraints leave free
constexpr int kReactionPasses = 3;         // each multiplies its error by kRegularisation over the smallest eigenvalue
constexpr double kSmallestLoad = 1e-12;    // of the load of all bodies, that another pass is made for

// Six places of a body in a row, from `at` on.
auto six(double* row, int at) { return Eigen::Map<Vec6>(row + at); }
auto six(const double* row, int at) { return Eigen::Map<const Vec6>(row + at); }

// The place behind those of the body that has place j.
int behind(int j) { return j - j % 6 + 6; }

// K (its upper half) = L D L': L' replaces what stands right of the diagonal, as far as a row's end. Whole bodies at a
// time: what is left of the diagonal among a body's own six is never read.
void factorise(RowMajorMatrix& K, Eigen::VectorXd& inverse_d, const std::vector<int>& end) noexcept {
  const int size = static_cast<int>(K.rows());
  for (int j = 0; j < size; ++j) {
    double* const row = &K(j, 0);
    inverse_d[j] = 1.0 / row[j];
    for (int i = j + 1; i < end[j]; ++i) {
      const double l = row[i] * inverse_d[j];
      double* const below = &K(i, 0);
      for (int at = behind(i) - 6; at < end[j]; at += 6) six(below, at) -= l * six(row, at);
    }
    for (int i = j + 1; i < end[j]; ++i) row[i] *= inverse_d[j];
  }
}

void solve(const RowMajorMatrix& K, const Eigen::VectorXd& inverse_d, const std::vector<int>& end,
           Eigen::VectorXd& x) noexcept {
  const int size = static_cast<int>(K.rows());
  for (int j = 0; j < size; ++j) {
    const double* const row = &K(j, 0);
    for (int i = j + 1; i < behind(j); ++i) x[i] -= row[i] * x[j];
    for (int at = behind(j); at < end[j]; at += 6) six(x.data(), at) -= x[j] * six(row, at);
  }
  x.array() *= inverse_d.array();
  for (int j = size; j-- > 0;) {
    const double* const row = &K(j, 0);
    for (int at = behind(j); at < end[j]; at += 6) x[j] -= six(row, at).dot(six(x.data(), at));
    for (int i = j + 1; i < behind(j); ++i) x[j] -= row[i] * x[i];
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
  const int size = 6 * static_cast<int>(g.bodies.size());
  for (int k = 0; k < size; ++k) g.end.push_back(6 * (k / 6) + 6);
  for (const int c : constraints) {
    const int first = static_cast<int>(g.rows.size());
    const std::size_t first_block = g.blocks.size();
    for (int row = plan_->first_row[c]; row < plan_->first_row[c + 1]; ++row) g.rows.push_back(row);
    for (int side = 0; side < 4; ++side) {
      const int body = plan_->bodies[c][static_cast<std::size_t>(side)];
      if (body == kGround) continue;
      const auto place = std::lower_bound(g.bodies.begin(), g.bodies.end(), body) - g.bodies.begin();
      const int rows = static_cast<int>(g.rows.size()) - first;
      g.blocks.push_back({first, rows, side, 6 * static_cast<int>(place), static_cast<int>(g.J.size())});
      g.J.resize(g.J.size() + static_cast<std::size_t>(rows));
    }
    for (std::size_t one = first_block; one < g.blocks.size(); ++one)
      for (std::size_t other = first_block; other < g.blocks.size(); ++other)
        for (int k = g.blocks[one].at; k < behind(g.blocks[one].at); ++k)
          g.end[k] = std::max(g.end[k], behind(g.blocks[other].at));
  }
  for (int k = 1; k < size; ++k) g.end[k] = std::max(g.end[k], g.end[k - 1]);  // eliminating fills
  g.K.resize(size, size), g.inverse_d.resize(size), g.motion.resize(size);
  g.open.resize(static_cast<Eigen::Index>(g.rows.size()));
  return g;
}

// J, and the upper half of J'J
void Reactions::take_blocks(Group& g, const Workspace& w) const noexcept {
  for (int k = 0; k < static_cast<int>(g.end.size()); ++k)
    std::fill(&g.K(k, behind(k) - 6), &g.K(k, 0) + g.end[k], 0.0);
  for (std::size_t k = 0; k < g.blocks.size(); ++k) {
    const Block& one = g.blocks[k];
    for (int i = 0; i < one.rows; ++i) {
      Vec6& J = g.J[one.first_J + i];
      J = block(*plan_, w, g.rows[one.first + i], one.side);
      J.tail<3>() /= arm_[g.bodies[one.at / 6]];
    }
    for (std::size_t l = k + 1; l-- > 0 && g.blocks[l].first == one.first;) {
      const bool is_left = one.at <= g.blocks[l].at;
      const Block &left = is_left ? one : g.blocks[l], &right = is_left ? g.blocks[l] : one;
      for (int r = 0; r < 6; ++r) {
        auto to = six(&g.K(left.at + r, 0), right.at);
        Vec6 sum = to;
        for (int i = 0; i < one.rows; ++i) sum += g.J[left.first_J + i][r] * g.J[right.first_J + i];
        to = sum;
      }
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
  double load2 = 0.0;
  for (int pass = 0; pass < kReactionPasses; ++pass) {
    g.motion.setZero();
    for (const Block& block : g.blocks) {
      Vec6 load = six(g.motion.data(), block.at);
      for (int i = 0; i < block.rows; ++i) load += g.open[block.first + i] * g.J[block.first_J + i];
      six(g.motion.data(), block.at) = load;
    }
    const double open2 = g.motion.squaredNorm();
    if (pass == 0) load2 = open2;
    if (pass > 0 && open2 <= kSmallestLoad * kSmallestLoad * load2) return;
    solve(g.K, g.inverse_d, g.end, g.motion);
    for (const Block& block : g.blocks) {
      const Vec6 motion = six(g.motion.data(), block.at);
      for (int i = 0; i < block.rows; ++i) {
        const double part = g.J[block.first_J + i].dot(motion);
        lambda_[g.rows[block.first + i]] += part;
        g.open[block.first + i] -= part;
      }
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
               6 * g.J.size() + g.blocks.size() * sizeof(Block) / sizeof(double);
  return doubles * sizeof(double);
}

}  // namespace rigstep::index3
