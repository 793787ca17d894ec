#include "core/index3/outputs/reactions.h"

#include <algorithm>
#include <utility>

#include "core/index3/compile/tree/narrow_order.h"
#include "core/index3/outputs/diagnostics.h"

namespace rigstep::index3 {

namespace {

constexpr double kRegularisation = 1e-12;  // of J'J against its mean diagonal: what the constraints leave free
constexpr int kReactionPasses = 3;         // each multiplies its error by kRegularisation over the smallest eigenvalue
constexpr double kSmallestLoad = 1e-12;    // of the load of all bodies, that another pass is made for

// Moving bodies that constraints act on, in ascending order.
std::vector<int> bodies_of(const Plan& plan, const std::vector<int>& constraints) {
  std::vector<int> bodies;
  for (const int c : constraints)
    for (const int body : plan.bodies_of_constraint[c])
      if (body != kGround) bodies.push_back(body);
  std::sort(bodies.begin(), bodies.end());
  bodies.erase(std::unique(bodies.begin(), bodies.end()), bodies.end());
  return bodies;
}

// by their places in `bodies`
Neighbours neighbours_of(const Plan& plan, const std::vector<int>& constraints, const std::vector<int>& bodies) {
  Neighbours all(bodies.size());
  const auto place = [&bodies](int body) {
    return static_cast<int>(std::lower_bound(bodies.begin(), bodies.end(), body) - bodies.begin());
  };
  for (const int c : constraints)
    for (const int one : plan.bodies_of_constraint[c])
      for (const int other : plan.bodies_of_constraint[c])
        if (one != kGround && other != kGround && one != other) all[place(one)].push_back(place(other));
  for (std::vector<int>& list : all) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return all;
}

}  // namespace

Placement placement_in(const State& x, int body) noexcept {
  return body == kGround ? Placement{} : placement_of(x.body[body]);
}

Vec6 load_on_second(const Plan& plan, const State& x, int j, const double* lambda) noexcept {
  const Joint& joint = plan.mechanism.joints()[j];
  const JointPlacement at = place_joint(joint, placement_in(x, joint.first), placement_in(x, joint.second));
  Vec6 load = Vec6::Zero();  // -J_second' lambda
  for (const Row& r : rows_of(joint.type)) load -= *lambda++ * evaluate(r, at).J_second;
  load.tail<3>() -= at.s_second.cross(load.head<3>());
  return load;
}

Reactions::Reactions(const Plan& plan, const State& start, const std::vector<bool>& requested)
    : plan_(&plan), arm_(arms(plan)), lambda_(static_cast<std::size_t>(plan.rows())) {
  if (!plan.has_loops) return;
  for (const std::vector<int>& constraints : open_groups(start_rank(plan, start))) {
    if (std::none_of(constraints.begin(), constraints.end(), [&requested](int c) { return requested[c]; })) continue;
    groups_.push_back(make_group(constraints));
  }
}

Reactions::Group Reactions::make_group(const std::vector<int>& constraints) const {
  const std::vector<int> bodies = bodies_of(*plan_, constraints);
  const Neighbours neighbours = neighbours_of(*plan_, constraints, bodies);
  const std::vector<int> order = narrow_order(neighbours);
  Group g{{}, {}, {}, {}, Profile(profile_of(neighbours, order)), {}, {}};
  std::vector<int> position(arm_.size());
  for (const int place : order) {
    position[bodies[place]] = static_cast<int>(g.bodies.size());
    g.bodies.push_back(bodies[place]);
  }
  for (const int c : constraints) {
    const int first = static_cast<int>(g.rows.size());
    for (int row = plan_->first_row[c]; row < plan_->first_row[c + 1]; ++row) g.rows.push_back(row);
    const int rows = static_cast<int>(g.rows.size()) - first;
    for (int side = 0; side < 4; ++side) {
      const int body = plan_->bodies_of_constraint[c][static_cast<std::size_t>(side)];
      if (body == kGround) continue;
      g.blocks.push_back({first, rows, side, 6 * position[body], static_cast<int>(g.J.size())});
      g.J.resize(g.J.size() + static_cast<std::size_t>(rows));
    }
  }
  g.motion.resize(g.K.size());
  g.open.resize(static_cast<Eigen::Index>(g.rows.size()));
  return g;
}

// J, and the upper half of J'J
void Reactions::take_blocks(Group& g, const Workspace& w) const noexcept {
  g.K.clear();
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
        auto to = six(g.K.row(left.at + r), right.at);
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
  g.K.add_to_diagonal(kRegularisation);
  g.K.factorise();
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
    g.K.solve(g.motion);
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

double Reactions::of_coupling(int coupling) const noexcept {
  return -lambda_[plan_->first_row[plan_->first_coupling() + coupling]];
}

std::size_t Reactions::bytes() const noexcept {
  std::size_t bytes = lambda_.size() * sizeof(double);
  for (const Group& g : groups_)
    bytes += g.K.bytes() + static_cast<std::size_t>(g.motion.size() + g.open.size()) * sizeof(double) +
             g.J.size() * sizeof(Vec6) + g.blocks.size() * sizeof(Block);
  return bytes;
}

}  // namespace rigstep::index3
