#include "core/mechanism/joint_paths.h"

namespace rigstep {

JointPaths::JointPaths(const Mechanism& mechanism, const std::vector<bool>& is_fixed)
    : mechanism_(mechanism),
      is_placed_(is_fixed),
      edge_to_(is_fixed.size(), -1),
      depth_(is_fixed.size(), 0),
      is_used_(mechanism.joints().size()) {
  const int bodies = static_cast<int>(is_fixed.size()), joints = static_cast<int>(mechanism.joints().size());
  std::vector<std::vector<int>> joints_of(is_fixed.size() + 1);  // the ground is the last
  const auto place_of = [bodies](int body) { return static_cast<std::size_t>(body == kGround ? bodies : body); };
  for (int j = 0; j < joints; ++j) {
    const Joint& joint = mechanism.joints()[static_cast<std::size_t>(j)];
    joints_of[place_of(joint.first)].push_back(j);
    joints_of[place_of(joint.second)].push_back(j);
  }
  std::vector<int> roots{kGround};
  for (int i = 0; i < bodies; ++i)
    if (is_fixed[static_cast<std::size_t>(i)]) roots.push_back(i);
  grow_from(roots, joints_of);
  for (int i = 0; i < bodies; ++i) {
    if (is_placed_[static_cast<std::size_t>(i)]) continue;
    is_placed_[static_cast<std::size_t>(i)] = true;
    grow_from({i}, joints_of);
  }
  for (int j = 0; j < joints; ++j)
    if (const Joint& joint = mechanism.joints()[static_cast<std::size_t>(j)];
        !is_used_[static_cast<std::size_t>(j)] && joint.type != JointType::floating)
      mark_loop(joint.first, joint.second);
}

// Joints that constrain come before those that only measure, which connect what nothing else does.
void JointPaths::grow_from(const std::vector<int>& roots, const std::vector<std::vector<int>>& joints_of) {
  std::vector<int> queue = roots;
  const auto spread = [&](bool measures_only) {
    for (std::size_t next = 0; next < queue.size(); ++next) {
      const int inner = queue[next];
      for (const int j : joints_of[inner == kGround ? joints_of.size() - 1 : static_cast<std::size_t>(inner)]) {
        const Joint& joint = mechanism_.joints()[static_cast<std::size_t>(j)];
        const int outer = joint.first == inner ? joint.second : joint.first;
        if ((joint.type == JointType::floating) != measures_only) continue;
        if (outer == kGround || is_placed_[static_cast<std::size_t>(outer)]) continue;
        is_placed_[static_cast<std::size_t>(outer)] = true;
        is_used_[static_cast<std::size_t>(j)] = true;
        edge_to_[static_cast<std::size_t>(outer)] = static_cast<int>(edges_.size());
        depth_[static_cast<std::size_t>(outer)] = inner == kGround ? 1 : depth_[static_cast<std::size_t>(inner)] + 1;
        edges_.push_back({j, inner, outer, false});
        queue.push_back(outer);
        if (measures_only) return;  // what hangs on it by other joints comes first
      }
    }
  };
  for (std::size_t placed = 0; placed != queue.size();) {
    placed = queue.size();
    spread(false);
    spread(true);
  }
}

// All joints of the tree between two bodies that another joint connects.
void JointPaths::mark_loop(int first, int second) {
  has_loops_ = true;
  const auto is_root = [this](int body) { return body == kGround || edge_to_[static_cast<std::size_t>(body)] < 0; };
  while (first != second && !(is_root(first) && is_root(second))) {
    const bool up_first = is_root(second) || (!is_root(first) && depth_[static_cast<std::size_t>(first)] >=
                                                                     depth_[static_cast<std::size_t>(second)]);
    int& end = up_first ? first : second;
    Edge& edge = edges_[static_cast<std::size_t>(edge_to_[static_cast<std::size_t>(end)])];
    edge.is_in_loop = true;
    end = edge.inner;
  }
}

}  // namespace rigstep
