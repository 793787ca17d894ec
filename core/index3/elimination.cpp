#include "core/index3/elimination.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace rigstep::index3 {

namespace {

struct Compound {
  int body = -1, left = -1, right = -1;
  std::vector<int> eliminated;  // joints
  std::vector<int> pending;     // joints, ascending
  int depth = 0;
  bool merged = false;
};

class Compiler {
 public:
  Compiler(const Mechanism& mechanism, const std::vector<int>& first_row)
      : joints_(connections(mechanism)), first_row_(first_row) {
    for (int i = 0; i < static_cast<int>(mechanism.bodies().size()); ++i) make_leaf(i);
  }

  void merge_by_operations() {
    for (;;) {
      const auto pairs = adjacent_pairs();
      if (pairs.empty()) return;
      const auto best = *std::min_element(pairs.begin(), pairs.end());
      merge(std::get<2>(best), std::get<3>(best));
    }
  }

  void merge_by_levels() {
    for (;;) {
      auto pairs = adjacent_pairs();
      if (pairs.empty()) return;
      std::sort(pairs.begin(), pairs.end());
      for (const auto& [cost, depth, a, b] : pairs)
        if (!compounds_[a].merged && !compounds_[b].merged) merge(a, b);
    }
  }

  Elimination flatten() const {
    Elimination e;
    std::vector<int> front_of(compounds_.size(), -1);
    for (std::size_t c = 0; c < compounds_.size(); ++c)
      if (!compounds_[c].merged) emit_tree(static_cast<int>(c), e, front_of);
    return e;
  }

 private:
  using Pair = std::tuple<long, int, int, int>;  // cost, depth, compounds: compared in this order

  int rows(const std::vector<int>& joints) const {
    int n = 0;
    for (const int j : joints) n += first_row_[j + 1] - first_row_[j];
    return n;
  }

  void make_leaf(int body) {
    Compound c;
    c.body = body;
    for (int j = 0; j < static_cast<int>(joints_.size()); ++j) {
      const Connection& joint = joints_[j];
      if (joint.first != body && joint.second != body) continue;
      const bool on_ground = joint.first == kGround || joint.second == kGround;
      (on_ground ? c.eliminated : c.pending).push_back(j);
    }
    compounds_.push_back(std::move(c));
  }

  std::vector<int> shared(int a, int b) const {
    std::vector<int> joints;
    std::set_intersection(compounds_[a].pending.begin(), compounds_[a].pending.end(), compounds_[b].pending.begin(),
                          compounds_[b].pending.end(), std::back_inserter(joints));
    return joints;
  }

  std::vector<Pair> adjacent_pairs() const {
    std::vector<int> owner(joints_.size(), -1);
    std::vector<std::pair<int, int>> neighbours;
    for (int c = 0; c < static_cast<int>(compounds_.size()); ++c) {
      if (compounds_[c].merged) continue;
      for (const int j : compounds_[c].pending) {
        if (owner[j] >= 0) neighbours.emplace_back(owner[j], c);
        owner[j] = c;
      }
    }
    std::sort(neighbours.begin(), neighbours.end());
    neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
    std::vector<Pair> pairs;
    for (const auto& [a, b] : neighbours) {
      const long e = rows(shared(a, b));
      const long size = rows(compounds_[a].pending) + rows(compounds_[b].pending) - e;
      pairs.emplace_back(e * size * size, std::max(compounds_[a].depth, compounds_[b].depth), a, b);
    }
    return pairs;
  }

  void merge(int a, int b) {
    Compound c;
    c.left = a;
    c.right = b;
    c.eliminated = shared(a, b);
    std::set_symmetric_difference(compounds_[a].pending.begin(), compounds_[a].pending.end(),
                                  compounds_[b].pending.begin(), compounds_[b].pending.end(),
                                  std::back_inserter(c.pending));
    c.depth = std::max(compounds_[a].depth, compounds_[b].depth) + 1;
    compounds_[a].merged = compounds_[b].merged = true;
    compounds_.push_back(std::move(c));
  }

  // children right before their parent: what a merge reads is still in the cache
  void emit_tree(int root, Elimination& e, std::vector<int>& front_of) const {
    std::vector<int> stack{root}, order;
    while (!stack.empty()) {
      const int c = stack.back();
      stack.pop_back();
      order.push_back(c);
      if (compounds_[c].left >= 0) stack.insert(stack.end(), {compounds_[c].left, compounds_[c].right});
    }
    for (auto c = order.rbegin(); c != order.rend(); ++c) {
      front_of[*c] = static_cast<int>(e.fronts.size());
      emit(compounds_[*c], e, front_of);
    }
    e.levels = std::max(e.levels, compounds_[root].depth + 1);
  }

  void emit(const Compound& c, Elimination& e, const std::vector<int>& front_of) const {
    Front f;
    f.body = c.body;
    f.eliminated = rows(c.eliminated);
    f.pending = rows(c.pending);
    f.first_row = static_cast<int>(e.row.size());
    for (const auto* joints : {&c.eliminated, &c.pending})
      for (const int j : *joints)
        for (int row = first_row_[j]; row < first_row_[j + 1]; ++row) e.row.push_back(row);
    if (c.left >= 0) {
      f.left = front_of[c.left];
      f.right = front_of[c.right];
      f.left_place = add_places(e.fronts[f.left], f, e);
      f.right_place = add_places(e.fronts[f.right], f, e);
    }
    f.matrix = e.matrix_doubles;
    f.vector = e.vector_doubles;
    const long size = f.size();
    e.matrix_doubles += static_cast<std::size_t>(size * size);
    e.vector_doubles += static_cast<std::size_t>(size);
    e.largest_front = std::max(e.largest_front, f.size());
    e.multiply_adds += operations(f);
    e.fronts.push_back(f);
  }

  static long operations(const Front& f) {
    const long size = f.size();
    long n = f.body >= 0 ? 36 * size + 6 * size * (size + 1) / 2 : 0;  // J M^-1 and J M^-1 J'
    for (long c = 0; c < f.eliminated; ++c) n += (size - c) * (size - c + 1) / 2;
    return n;
  }

  static int add_places(const Front& child, const Front& parent, Elimination& e) {
    const int first = static_cast<int>(e.place.size());
    const auto begin = e.row.begin() + parent.first_row;
    for (int k = 0; k < child.pending; ++k) {
      const int row = e.row[child.first_row + child.eliminated + k];
      e.place.push_back(static_cast<int>(std::find(begin, e.row.end(), row) - begin));
    }
    return first;
  }

  const std::vector<Connection> joints_;
  const std::vector<int>& first_row_;
  std::vector<Compound> compounds_;
};

}  // namespace

std::vector<Connection> connections(const Mechanism& mechanism) {
  using Kind = Connection::Kind;
  std::vector<Connection> all;
  const auto add = [&all](Kind kind, const auto& elements, bool also_on_ground) {
    for (std::size_t i = 0; i < elements.size(); ++i)
      if (also_on_ground || (elements[i].first != kGround && elements[i].second != kGround))
        all.push_back({kind, static_cast<int>(i), elements[i].first, elements[i].second});
  };
  add(Kind::joint, mechanism.joints(), true);
  add(Kind::bushing, mechanism.bushings(), true);
  add(Kind::spring, mechanism.springs(), false);
  add(Kind::friction, mechanism.frictions(), false);
  add(Kind::motor, mechanism.motors(), false);
  return all;
}

Elimination compile(const Mechanism& mechanism, const std::vector<int>& first_row, MergeOrder order) {
  Compiler compiler(mechanism, first_row);
  if (order == MergeOrder::fewest_operations)
    compiler.merge_by_operations();
  else
    compiler.merge_by_levels();
  return compiler.flatten();
}

}  // namespace rigstep::index3
