#include "core/index3/compile/tree/partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rigstep::index3 {

namespace {

// Of the least loaded part, beside the most loaded one. Chosen; results do not depend on them.
constexpr double kEven = 0.9, kUneven = 0.5;

class Divider {
 public:
  Divider(const std::vector<Node>& nodes, const std::vector<Constraint>& constraints, int bodies)
      : nodes_(nodes),
        cost_(nodes.size()),
        is_root_(nodes.size(), true),
        is_primal_(nodes.size()),
        holds_primal_body_(nodes.size()),
        part_(nodes.size()) {
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const Node& node = nodes[n];
      is_primal_[n] =
          node.body >= 0 && node.body < bodies && !node.pending.empty() && constraints[node.pending[0]].is_primal;
      holds_primal_body_[n] = is_primal_[n];
      const int rows = rows_of(constraints, node.pending);
      cost_[n] = node.body >= bodies ? kCostOfAttachment
                 : node.body >= 0    ? cost_of_leaf(rows)
                                     : cost_of_front(rows, node.pivot < 0 ? 0 : constraints[node.pivot].format.rows);
      for (const int child : node.child) {
        if (child < 0) continue;
        cost_[n] += cost_[child];
        holds_primal_body_[n] = holds_primal_body_[n] || holds_primal_body_[child];
        is_root_[child] = false;
      }
    }
  }

  std::vector<int> divide(int parts) {
    std::vector<int> roots;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (is_root_[n]) roots.push_back(static_cast<int>(n));
    const long all =
        std::accumulate(roots.begin(), roots.end(), 0L, [&](long sum, int root) { return sum + cost_[root]; });
    if (parts == 1) return std::vector<int>(nodes_.size(), 0);
    // few large subtrees leave little between them: at first as large as the others can still be even with
    const long largest = std::lround(static_cast<double>(all) / (1.0 + kEven * (parts - 1)));
    if (assign(subtrees(roots, largest), parts, kEven) || assign(subtrees(roots, all / parts), parts, kEven) ||
        assign(subtrees(roots, all / (2L * parts)), parts, kUneven))
      return part_;
    return std::vector<int>(nodes_.size(), 0);
  }

 private:
  // roots of disjoint subtrees of at most `most` each, where they can be divided so far; primal bodies are in none,
  // since what holds them is in all parts
  std::vector<int> subtrees(std::vector<int> open, long most) const {
    std::vector<int> done;
    while (!open.empty()) {
      const int n = open.back();
      open.pop_back();
      if (is_primal_[n]) continue;
      const Node& node = nodes_[n];
      if (!holds_primal_body_[n] && (cost_[n] <= most || node.child[0] < 0))
        done.push_back(n);
      else
        for (const int child : node.child)
          if (child >= 0) open.push_back(child);
    }
    std::sort(done.begin(), done.end());
    return done;
  }

  void claim(int n, int part) {
    part_[n] = part;
    for (const int child : nodes_[n].child)
      if (child >= 0) claim(child, part);
  }

  // the costliest subtree goes to the part with the least to do; false if that does not divide the work
  bool assign(std::vector<int> roots, int parts, double least_share) {
    std::fill(part_.begin(), part_.end(), kTop);
    std::stable_sort(roots.begin(), roots.end(), [&](int a, int b) { return cost_[a] > cost_[b]; });
    std::vector<long> load(parts, 0);
    for (const int root : roots) {
      const auto least = std::min_element(load.begin(), load.end()) - load.begin();
      claim(root, static_cast<int>(least));
      load[least] += cost_[root];
    }
    const auto [smallest, largest] = std::minmax_element(load.begin(), load.end());
    return static_cast<double>(*smallest) > least_share * static_cast<double>(*largest);
  }

  const std::vector<Node>& nodes_;
  std::vector<long> cost_;  // of the subtree
  std::vector<bool> is_root_, is_primal_, holds_primal_body_;
  std::vector<int> part_;
};

}  // namespace

std::vector<int> divide(const std::vector<Node>& nodes, const std::vector<Constraint>& constraints, int bodies,
                        int parts) {
  return Divider(nodes, constraints, bodies).divide(parts);
}

}  // namespace rigstep::index3
