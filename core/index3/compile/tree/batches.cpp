#include "core/index3/compile/tree/batches.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "core/index3/compile/tree/partition.h"

namespace rigstep::index3 {

namespace {

class Nodes {
 public:
  Nodes(const CompoundTree& tree, const std::vector<Constraint>& constraints, const std::vector<bool>& has_own_tangent)
      : compounds_(tree.compounds),
        order_(tree.order),
        constraints_(constraints),
        is_closed_(constraints.size(), false),
        has_own_tangent_(has_own_tangent),
        bodies_(static_cast<int>(has_own_tangent.size())) {
    for (std::size_t c = 0; c < compounds_.size(); ++c)
      if (!compounds_[c].merged) roots_.push_back(add(static_cast<int>(c)));
    for (Node& node : nodes_) sign(node);
  }
  std::vector<Node>& nodes() { return nodes_; }
  const std::vector<int>& roots() const { return roots_; }

 private:
  int push(Node node) {
    for (const int child : node.child)
      if (child >= 0) {
        node.size += nodes_[child].size;
        node.level = std::max(node.level, nodes_[child].level + 1);
      }
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }

  int add(int index) {
    const Compound& c = compounds_[index];
    std::vector<int> still;
    std::copy_if(c.eliminated.begin(), c.eliminated.end(), std::back_inserter(still),
                 [this](int each) { return !constraints_[each].is_padding; });
    Node first;
    if (c.body >= 0) {
      first.body = c.body;
      for (const OpenConstraint& each : c.pending) first.pending.push_back(each.constraint);
      std::sort(first.pending.begin(), first.pending.end(), [this](int a, int b) { return order_[a] < order_[b]; });
      // what is eliminated here comes first, so that both ends of a loop look alike
      first.pending.insert(first.pending.begin(), c.eliminated.begin(), c.eliminated.end());
    } else {
      first.child[0] = add(c.left);
      first.child[1] = add(c.right);
      if (!still.empty()) {
        first.pivot = still.front();
        still.erase(still.begin());
      }
      inherit(first);
    }
    int top = push(std::move(first));
    for (const int pivot : still) {
      Node next;
      next.child[0] = top;
      next.pivot = pivot;
      inherit(next);
      top = push(std::move(next));
    }
    for (const int each : c.eliminated) is_closed_[each] = true;
    return top;
  }

  // without what is closed already: padding, which no front eliminates, is dropped
  void inherit(Node& node) const {
    for (const int child : node.child)
      if (child >= 0)
        for (const int c : nodes_[child].pending)
          if (c != node.pivot && !is_closed_[c] &&
              std::find(node.pending.begin(), node.pending.end(), c) == node.pending.end())
            node.pending.push_back(c);
  }

  static std::string text(const RowFormat& f) {
    return std::to_string(f.rows) + "." + std::to_string(f.cosines) + "." + std::to_string(f.lines) + "." +
           std::to_string(static_cast<int>(f.coordinate));
  }

  std::string text_of_leaf(const Node& node) const {
    std::string s = node.body >= bodies_ ? "G" : has_own_tangent_[node.body] ? "D" : "B";
    for (const int c : node.pending) {
      if (!constraints_[c].is_primal)
        s += text(constraints_[c].format) + " ";
      else if (constraints_[c].bodies[0] == node.body)
        s += "primal " + std::to_string(node.body);  // like no other
    }
    return s;
  }

  // children come first in nodes_, so their signatures are there already
  void sign(Node& node) {
    std::string& s = node.signature;
    if (node.body >= 0) {
      s = text_of_leaf(node);
    } else {
      s = "F" + (node.pivot >= 0 ? text(constraints_[node.pivot].format) : std::string("-"));
      for (const int child : node.child) {
        if (child < 0) continue;
        const Node& below = nodes_[child];
        s += "(" + std::to_string(id_of(below.signature)) + ":";
        for (const int c : below.pending) {
          const auto at = std::find(node.pending.begin(), node.pending.end(), c);
          s += c == node.pivot            ? "p,"
               : at == node.pending.end() ? "-,"
                                          : std::to_string(at - node.pending.begin()) + ",";
        }
        s += ")";
      }
    }
  }

  int id_of(const std::string& signature) {
    return signature_ids_.emplace(signature, static_cast<int>(signature_ids_.size())).first->second;
  }

  const std::vector<Compound>& compounds_;
  const std::vector<int>& order_;
  const std::vector<Constraint>& constraints_;
  std::vector<bool> is_closed_;  // (constraints) by a compound that has its nodes
  const std::vector<bool>& has_own_tangent_;
  int bodies_;  // of the model; behind them stand the attachments
  std::vector<Node> nodes_;
  std::vector<int> roots_;
  std::map<std::string, int> signature_ids_;
};

class Lanes {
 public:
  Lanes(std::vector<Node>& nodes, int lanes) : nodes_(nodes), parent_(nodes.size(), -1) {
    std::map<std::tuple<int, std::string, int, bool>, std::vector<int>> alike;  // by falling size, of one part
    for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
      alike[{-nodes[i].size, nodes[i].signature, nodes[i].part, nodes[i].is_top}].push_back(i);
      ++alike_[nodes[i].signature];
      for (const int child : nodes[i].child)
        if (child >= 0) parent_[child] = i;
    }
    for (auto width = static_cast<std::size_t>(lanes); width > 1; width /= 2)
      for (const std::size_t least : {width, width - width / 4})  // full batches first: the parts below follow
        for (const auto& [key, list] : alike) batch_alike(list, least, width);
    for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
      if (nodes[i].batch < 0) make_batch({i});
  }
  const std::vector<Batch>& batches() const { return batches_; }

 private:
  void batch_alike(const std::vector<int>& list, std::size_t least, std::size_t width) {
    std::vector<int> open;
    for (const int node : list)
      if (nodes_[node].batch < 0) open.push_back(node);
    if (open.size() < least) return;
    std::stable_sort(open.begin(), open.end(), [this](int a, int b) { return is_before(a, b); });
    for (std::size_t k = 0; k + least <= open.size(); k += width)
      make_batch({open.begin() + static_cast<std::ptrdiff_t>(k),
                  open.begin() + static_cast<std::ptrdiff_t>(std::min(open.size(), k + width))});
  }

  // only what is of one part, and comes before or after what the others pass on is received, may lie side by side
  std::tuple<int, bool, bool> place_of(int n) const {
    return {nodes_[n].part, nodes_[n].is_top, nodes_[n].ghost_of >= 0};
  }

  // Children of parents that are alike follow each other; those with the most parents of a kind come first. Among them
  // left ones come before right ones, those of left parents first among each. Then the children of parents that lie
  // side by side do so too, lefts and rights.
  bool is_before(int a, int b) const {
    for (; parent_[a] >= 0 && parent_[b] >= 0 && a != b; a = parent_[a], b = parent_[b]) {
      const Node &over_a = nodes_[parent_[a]], &over_b = nodes_[parent_[b]];
      if (over_a.signature != over_b.signature)
        return std::pair(-alike_.at(over_a.signature), over_a.signature) <
               std::pair(-alike_.at(over_b.signature), over_b.signature);
      const bool left_a = nodes_[parent_[a]].child[0] == a, left_b = nodes_[parent_[b]].child[0] == b;
      if (left_a != left_b) return left_a;
    }
    return parent_[a] < 0 && parent_[b] >= 0;
  }

  void make_batch(const std::vector<int>& group) {
    for (std::size_t lane = 0; lane < group.size(); ++lane) {
      nodes_[group[lane]].batch = static_cast<int>(batches_.size());
      nodes_[group[lane]].lane = static_cast<int>(lane);
    }
    batches_.push_back({group});
    if (group.size() == 1) return;
    for (int side = 0; side < 2; ++side) {
      std::vector<int> children;
      const int first = nodes_[group[0]].child[side];
      for (const int node : group) {
        const int child = nodes_[node].child[side];
        if (child >= 0 && nodes_[child].batch < 0 && place_of(child) == place_of(first)) children.push_back(child);
      }
      if (children.size() == group.size()) make_batch(children);
    }
  }

  std::vector<Node>& nodes_;
  std::vector<int> parent_;
  std::map<std::string, int> alike_;  // how many nodes have a signature
  std::vector<Batch> batches_;
};

// The top, once for every part: each makes it by itself, with ghosts of what the others have found.
class Tops {
 public:
  Tops(const std::vector<int>& part, Batches& b) : part_(part), tree_(b.nodes), b_(b) {}

  void make() {
    const int parts = *std::max_element(part_.begin(), part_.end()) + 1;
    for (std::size_t n = 0; n < part_.size(); ++n) b_.nodes[n].part = part_[n];
    const std::vector<int> roots = std::exchange(b_.roots, {});
    for (const int root : roots) {
      if (part_[root] != kTop) b_.roots.push_back(root);
      for (int part = 0; part < parts && part_[root] == kTop; ++part)
        b_.roots.push_back(seen_from(part, root, nullptr));
    }
  }

 private:
  // above: what takes it
  int seen_from(int part, int n, const Node* above) {
    if (part_[n] == part) return n;
    Node node = tree_[n];
    node.part = part;
    if (part_[n] != kTop) {
      node.ghost_of = n;
      node.signature = "ghost of " + node.signature;
      node.body = node.pivot = node.child[0] = node.child[1] = -1;
      node.size = 1;
      node.passed = static_cast<int>(node.pending.size());
      // padding that is dropped there comes last
      while (node.passed > 0 && drops_padding(*above, node.pending[static_cast<std::size_t>(node.passed) - 1]))
        --node.passed;
    } else {
      node.is_top = true;
      node.repeats = part > 0;
      for (int& child : node.child)
        if (child >= 0) child = seen_from(part, child, &tree_[n]);
      if (part == 0) {
        b_.nodes[n] = std::move(node);
        return n;
      }
    }
    b_.nodes.push_back(std::move(node));
    return static_cast<int>(b_.nodes.size()) - 1;
  }

  const std::vector<int>& part_;
  const std::vector<Node> tree_;
  Batches& b_;
};

}  // namespace

bool drops_padding(const Node& above, int constraint) {
  return constraint != above.pivot &&
         std::find(above.pending.begin(), above.pending.end(), constraint) == above.pending.end();
}

Batches lay_side_by_side(const CompoundTree& tree, const std::vector<Constraint>& constraints,
                         const std::vector<bool>& has_own_tangent, int lanes, int parts) {
  Nodes made(tree, constraints, has_own_tangent);
  Batches b{std::move(made.nodes()), made.roots(), {}};
  Tops(divide(b.nodes, constraints, static_cast<int>(has_own_tangent.size()), parts), b).make();
  b.batches = Lanes(b.nodes, lanes).batches();
  return b;
}

}  // namespace rigstep::index3
