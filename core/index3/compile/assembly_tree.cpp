#include "core/index3/compile/assembly_tree.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "core/index3/compile/profile.h"

namespace rigstep::index3 {

namespace {

constexpr int kShortestPath = 8;  // bodies; below that cutting a chain into segments does not pay
constexpr int kLongPath = 16;     // from here on it is cut into eight segments or a multiple of them, otherwise four
constexpr int kShortestSegment = 8;
constexpr double kWorthIt = 0.6;  // of the operations of pairwise merging, which lays more side by side

// A serial chain: bodies in order, each held by the constraint before and the one after it.
struct Path {
  std::vector<int> bodies;
  std::vector<int> constraints;  // one more than bodies; -1: free end
};
class Tree {
 public:
  // bodies: with attachments
  Tree(std::vector<Constraint>& constraints, int bodies)
      : constraints_(constraints), held_by_(bodies), order_(constraints.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    for (int c = 0; c < static_cast<int>(constraints.size()); ++c) {
      deferred_.push_back(constraints[c].eliminated_last);
      for (const int body : distinct_bodies(c)) held_by_[body].push_back(c);
    }
  }

  CompoundTree build(MergeOrder order) {
    std::vector<Path> paths = order == MergeOrder::in_lanes ? find_paths() : std::vector<Path>{};
    for (Path& path : paths) prepare(path);
    for (int i = 0; i < static_cast<int>(held_by_.size()); ++i) make_leaf(i);
    for (const Path& path : paths) merge_path(path);
    if (order == MergeOrder::fewest_levels)
      merge_by_levels();
    else
      merge_with_few_operations();
    close_deferred();
    return {std::move(compounds_), std::move(order_)};
  }

 private:
  using Pair = std::tuple<long, int, int, int>;  // cost, depth, compounds: compared in this order

  std::vector<int> distinct_bodies(int c) const {
    std::vector<int> bodies;
    for (const int body : constraints_[c].bodies)
      if (body != kGround && std::find(bodies.begin(), bodies.end(), body) == bodies.end()) bodies.push_back(body);
    return bodies;
  }

  // ---- paths

  bool is_link(int body) const {  // of a path: at most two constraints, each of two sides
    if (held_by_[body].size() > 2) return false;
    return std::all_of(held_by_[body].begin(), held_by_[body].end(),
                       [&](int c) { return constraints_[c].bodies.size() == 2 && !constraints_[c].format.general(); });
  }

  int beyond(int c, int body) const {
    const auto& sides = constraints_[c].bodies;
    return sides[0] == body ? sides[1] : sides[0];
  }

  // bodies from `body` on through `c`, and the constraint at the end
  void follow(int body, int c, std::vector<bool>& used, std::vector<int>& bodies, std::vector<int>& passed) const {
    for (;;) {
      passed.push_back(c);
      if (c < 0) return;
      const int next = beyond(c, body);
      if (next == kGround || !is_link(next) || used[next]) return;
      used[next] = true;
      bodies.push_back(next);
      int onward = -1;
      for (const int other : held_by_[next])
        if (other != c) onward = other;
      body = next;
      c = onward;
    }
  }

  std::vector<Path> find_paths() const {
    std::vector<Path> paths;
    std::vector<bool> used(held_by_.size(), false);
    for (int start = 0; start < static_cast<int>(held_by_.size()); ++start) {
      if (used[start] || !is_link(start)) continue;
      used[start] = true;
      const auto constraint = [&](std::size_t k) { return k < held_by_[start].size() ? held_by_[start][k] : -1; };
      std::vector<int> before, before_constraints, after{start}, after_constraints;
      follow(start, constraint(0), used, before, before_constraints);
      follow(start, constraint(1), used, after, after_constraints);
      Path path;
      path.bodies.assign(before.rbegin(), before.rend());
      path.bodies.insert(path.bodies.end(), after.begin(), after.end());
      path.constraints.assign(before_constraints.rbegin(), before_constraints.rend());
      path.constraints.insert(path.constraints.end(), after_constraints.begin(), after_constraints.end());
      if (path.constraints.front() < 0 && path.constraints.back() >= 0) {
        std::reverse(path.bodies.begin(), path.bodies.end());
        std::reverse(path.constraints.begin(), path.constraints.end());
      }
      const bool is_ring = path.constraints.front() >= 0 && path.constraints.front() == path.constraints.back();
      if (path.bodies.size() >= kShortestPath && !is_ring) paths.push_back(std::move(path));
    }
    return paths;
  }

  // of a chain of so many bodies; more than there are lanes for, so that parts of the chain fill lanes of their own
  static int segments(int bodies) {
    int count = bodies < kLongPath ? 4 : 8;
    while (bodies >= 2 * count * kShortestSegment) count *= 2;
    return count;
  }

  // its ends stay open until the path is two compounds; a free end is filled up where it ends a segment
  void prepare(Path& path) {
    fill_up(path);
    std::vector<int> in_order;
    for (const int c : path.constraints)
      if (c >= 0) in_order.push_back(order_[c]);
    std::sort(in_order.begin(), in_order.end());
    auto next = in_order.begin();
    for (const int c : path.constraints)
      if (c >= 0) order_[c] = *next++;
  }

  void fill_up(Path& path) {
    for (const int end : {path.constraints.front(), path.constraints.back()})
      if (end >= 0 && distinct_bodies(end).size() == 1) deferred_[end] = true;
    const int bodies = static_cast<int>(path.bodies.size());
    if (path.constraints.back() >= 0 || bodies % segments(bodies) != 0) return;
    const int tip = path.bodies.back();
    Constraint padding{constraints_[path.constraints[1]].format, {tip, kGround}};
    padding.is_padding = true;
    path.constraints.back() = static_cast<int>(constraints_.size());
    held_by_[tip].push_back(path.constraints.back());
    constraints_.push_back(padding);
    deferred_.push_back(true);
    order_.push_back(path.constraints.back());
  }

  void merge_path(const Path& path) {
    const auto [left, right] = merge_segments(path.bodies, 0, static_cast<int>(path.bodies.size()));
    merge(closed(left), closed(right));
  }

  // Two compounds, which together are the path; what is left over after equal segments is cut into shorter ones.
  std::pair<int, int> merge_segments(const std::vector<int>& bodies, int begin, int end) {
    const int count = end - begin < kShortestPath ? end - begin : segments(end - begin);
    const int length = (end - begin) / count, rest = begin + count * length;
    std::vector<int> roots;
    roots.reserve(static_cast<std::size_t>(count));
    for (int s = 0; s < count; ++s) roots.push_back(merge_run(bodies, begin + s * length, begin + (s + 1) * length));
    const int first = merge_run(roots, 0, count / 2), second = merge_run(roots, count / 2, count);
    if (rest == end) return {first, second};
    const int root = merge(closed(first), closed(second));
    if (end - rest == 1) return {root, bodies[rest]};
    const auto [left, right] = merge_segments(bodies, rest, end);
    return {root, merge(closed(left), closed(right))};
  }

  // with the end of the path, which waited only for equal segments to be two compounds
  int closed(int compound) {
    Compound& half = compounds_[compound];
    std::vector<OpenConstraint> open;
    for (const OpenConstraint& each : half.pending) {
      const int c = each.constraint;
      const bool is_end = deferred_[c] && !constraints_[c].eliminated_last && distinct_bodies(c).size() == 1;
      is_end ? half.eliminated.push_back(c) : open.push_back(each);
    }
    half.pending = std::move(open);
    return compound;
  }

  int merge_run(const std::vector<int>& compounds, int begin, int end) {
    if (end - begin == 1) return compounds[begin];
    const int middle = begin + (end - begin) / 2;
    const int left = merge_run(compounds, begin, middle), right = merge_run(compounds, middle, end);
    return merge(left, right);
  }

  // ---- general merging

  void make_leaf(int body) {
    Compound c;
    c.body = body;
    for (const int constraint : held_by_[body]) {
      const int missing = static_cast<int>(distinct_bodies(constraint).size()) - 1 + (deferred_[constraint] ? 1 : 0);
      if (missing == 0)
        c.eliminated.push_back(constraint);
      else
        c.pending.push_back({constraint, missing});
    }
    compounds_.push_back(std::move(c));
  }

  struct Union {
    std::vector<int> closed;
    std::vector<OpenConstraint> open;
  };
  Union united(int a, int b) const {
    Union u;
    const auto &left = compounds_[a].pending, &right = compounds_[b].pending;
    auto l = left.begin();
    auto r = right.begin();
    while (l != left.end() || r != right.end()) {
      if (r == right.end() || (l != left.end() && l->constraint < r->constraint)) {
        u.open.push_back(*l++);
      } else if (l == left.end() || r->constraint < l->constraint) {
        u.open.push_back(*r++);
      } else {
        const int all = static_cast<int>(distinct_bodies(l->constraint).size()) + (deferred_[l->constraint] ? 1 : 0);
        const int missing = l->missing + r->missing - all;
        if (missing == 0)
          u.closed.push_back(l->constraint);
        else
          u.open.push_back({l->constraint, missing});
        ++l, ++r;
      }
    }
    return u;
  }

  // compounds where a constraint is pending
  std::map<int, std::vector<int>> owners() const {
    std::map<int, std::vector<int>> result;
    for (int c = 0; c < static_cast<int>(compounds_.size()); ++c)
      if (!compounds_[c].merged)
        for (const OpenConstraint& open : compounds_[c].pending) result[open.constraint].push_back(c);
    return result;
  }

  // What is left to do around a primal body is to add up: in pairs, so that equal parts stay equal, and the primal body
  // itself last.
  bool add_up_around_primal_bodies() {
    bool added = false;
    for (auto& [constraint, list] : owners()) {
      if (!constraints_[constraint].is_primal) continue;
      std::vector<int> parts;
      for (const int c : list)
        if (!compounds_[c].merged && !is_primal(compounds_[c].body)) parts.push_back(c);
      std::stable_sort(parts.begin(), parts.end(), [this](int a, int b) {
        const Compound &x = compounds_[a], &y = compounds_[b];
        return std::pair(x.pending.size(), x.depth) < std::pair(y.pending.size(), y.depth);
      });
      for (std::size_t k = 0; k + 1 < parts.size(); k += 2, added = true) merge(parts[k], parts[k + 1]);
    }
    return added;
  }

  bool is_primal(int body) const {  // the only leaf with nothing but a displacement
    return body >= 0 && held_by_[body].size() == 1 && constraints_[held_by_[body].front()].is_primal;
  }

  std::vector<Pair> adjacent_pairs() const {
    std::set<std::pair<int, int>> closing, neighbours;
    for (const auto& [constraint, list] : owners()) {
      if (list.size() == 2) closing.emplace(list[0], list[1]);
      if (constraints_[constraint].is_primal && list.size() > 2) continue;
      for (std::size_t i = 0; i < list.size(); ++i)
        for (std::size_t k = i + 1; k < list.size(); ++k) neighbours.emplace(list[i], list[k]);
    }
    // a merge that eliminates nothing only makes the next one possible
    const std::vector<Pair> pairs = costs_of(closing, true);
    return pairs.empty() ? costs_of(neighbours, false) : pairs;
  }

  std::vector<Pair> costs_of(const std::set<std::pair<int, int>>& neighbours, bool eliminating) const {
    std::vector<Pair> pairs;
    for (const auto& [a, b] : neighbours) {
      const Union u = united(a, b);
      const long e = rows_of(constraints_, u.closed), size = open_rows(u.open) + e;
      if (e > 0 || !eliminating)
        pairs.emplace_back(std::max(e, 1L) * size * size, std::max(compounds_[a].depth, compounds_[b].depth), a, b);
    }
    return pairs;
  }

  void merge_by_operations() {
    do {
      for (auto pairs = adjacent_pairs(); !pairs.empty(); pairs = adjacent_pairs()) {
        const auto best = *std::min_element(pairs.begin(), pairs.end());
        merge(std::get<2>(best), std::get<3>(best));
      }
    } while (add_up_around_primal_bodies());
  }

  // Pair by pair what is cheapest now; where that leads to large fronts, as in nets, from both ends to the middle.
  // Around primal bodies there is an order to keep.
  void merge_with_few_operations() {
    if (std::any_of(constraints_.begin(), constraints_.end(), [](const Constraint& c) { return c.is_primal; }))
      return merge_by_operations();
    const Tree before = *this;
    merge_by_operations();
    double least = kWorthIt * operations();
    for (const std::vector<int>& sequence : before.sequences()) {
      Tree other = before;
      other.merge_from_both_ends(sequence);
      const double needed = other.operations();
      if (needed >= least) continue;
      least = needed;
      compounds_ = std::move(other.compounds_);
    }
  }

  int open_rows(const std::vector<OpenConstraint>& open) const {
    int rows = 0;
    for (const OpenConstraint& each : open) rows += constraints_[each.constraint].format.rows;
    return rows;
  }

  double operations() const {
    double sum = 0.0;
    for (const Compound& c : compounds_) {
      const double e = rows_of(constraints_, c.eliminated), size = e + open_rows(c.pending);
      sum += e * size * size;
    }
    return sum;
  }

  // Compounds as they are numbered, and in an order in which neighbours are near.
  std::array<std::vector<int>, 2> sequences() const {
    std::vector<int> numbered;
    std::vector<int> place(compounds_.size(), -1);
    for (std::size_t c = 0; c < compounds_.size(); ++c)
      if (!compounds_[c].merged && !compounds_[c].pending.empty()) {
        place[c] = static_cast<int>(numbered.size());
        numbered.push_back(static_cast<int>(c));
      }
    Neighbours neighbours(numbered.size());
    for (const auto& [constraint, list] : owners())
      for (const int a : list)
        for (const int b : list)
          if (a != b) neighbours[place[a]].push_back(place[b]);
    std::vector<int> narrow;
    for (const int k : narrow_order(neighbours)) narrow.push_back(numbered[k]);
    return {std::move(numbered), std::move(narrow)};
  }

  // One compound after the other joins the front that started at its end of the sequence.
  void merge_from_both_ends(const std::vector<int>& sequence) {
    if (sequence.size() < 2) return;
    const auto sweep = [this](auto from, auto to) {
      int front = *from;
      while (++from != to) front = merge(front, *from);
      return front;
    };
    const auto middle = sequence.begin() + static_cast<std::ptrdiff_t>(sequence.size() / 2);
    const int left = sweep(sequence.begin(), middle);
    merge(left, sweep(sequence.rbegin(), std::make_reverse_iterator(middle)));
  }

  void merge_by_levels() {
    do {
      for (auto pairs = adjacent_pairs(); !pairs.empty(); pairs = adjacent_pairs()) {
        std::sort(pairs.begin(), pairs.end());
        for (const auto& [cost, depth, a, b] : pairs)
          if (!compounds_[a].merged && !compounds_[b].merged) merge(a, b);
      }
    } while (add_up_around_primal_bodies());
  }

  int merge(int a, int b) {
    Union u = united(a, b);
    Compound c;
    c.left = a;
    c.right = b;
    c.eliminated = std::move(u.closed);
    c.pending = std::move(u.open);
    c.depth = std::max(compounds_[a].depth, compounds_[b].depth) + 1;
    compounds_[a].merged = compounds_[b].merged = true;
    compounds_.push_back(std::move(c));
    return static_cast<int>(compounds_.size()) - 1;
  }

  void close_deferred() {
    for (Compound& c : compounds_)
      if (!c.merged)
        for (const OpenConstraint& open : std::exchange(c.pending, {})) c.eliminated.push_back(open.constraint);
  }

  std::vector<Constraint>& constraints_;
  std::vector<std::vector<int>> held_by_;
  std::vector<bool> deferred_;  // closed last, though all its bodies are there earlier
  std::vector<int> order_;      // of the constraints as the bodies list them: along a path where there is one
  std::vector<Compound> compounds_;
};

}  // namespace

int rows_of(const std::vector<Constraint>& constraints, const std::vector<int>& list) {
  int n = 0;
  for (const int c : list) n += constraints[c].format.rows;
  return n;
}
CompoundTree build_tree(std::vector<Constraint>& constraints, int bodies, MergeOrder order) {
  return Tree(constraints, bodies).build(order);
}

}  // namespace rigstep::index3
