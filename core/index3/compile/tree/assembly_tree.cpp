#include "core/index3/compile/tree/assembly_tree.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/index3/compile/tree/compounds.h"
#include "core/index3/compile/tree/narrow_order.h"
#include "core/index3/compile/tree/paths.h"

namespace rigstep::index3 {

namespace {

// Three numbers that are chosen. Results depend on them by rounding only (tree_shape_test), and elimination_test holds
// that nets keep narrow fronts.
//
// Merging from both ends is taken where it needs less than this share of the operations of pairwise merging. That lays
// more side by side than a count of operations tells.
constexpr double kWorthIt = 0.6;
// So many lanes share an operation in the estimate, however many the processor has: the order decides about the bits.
constexpr int kNominalLanes = 4;
// Merging for lanes is taken where it needs less than this share of the operations in lanes that merging for few
// operations needs.
constexpr double kClearlyLess = 0.9;

using Pair = std::tuple<long, int, int, int>;  // cost, depth, compounds: compared in this order

int merge_run(Compounds& compounds, const std::vector<int>& sequence, int begin, int end) {
  if (end - begin == 1) return sequence[begin];
  const int middle = begin + (end - begin) / 2;
  const int left = merge_run(compounds, sequence, begin, middle), right = merge_run(compounds, sequence, middle, end);
  return compounds.merge(left, right);
}

// Two compounds, which together are the path; what is left over after equal segments is cut into shorter ones.
std::pair<int, int> merge_segments(Compounds& compounds, const std::vector<int>& bodies, int begin, int end) {
  const int count = end - begin < kShortestPath ? end - begin : segments(end - begin);
  const int length = (end - begin) / count, rest = begin + count * length;
  std::vector<int> roots;
  roots.reserve(static_cast<std::size_t>(count));
  for (int s = 0; s < count; ++s)
    roots.push_back(merge_run(compounds, bodies, begin + s * length, begin + (s + 1) * length));
  const int first = merge_run(compounds, roots, 0, count / 2), second = merge_run(compounds, roots, count / 2, count);
  if (rest == end) return {first, second};
  const int root = compounds.merge(compounds.close_path_end(first), compounds.close_path_end(second));
  if (end - rest == 1) return {root, bodies[rest]};
  const auto [left, right] = merge_segments(compounds, bodies, rest, end);
  return {root, compounds.merge(compounds.close_path_end(left), compounds.close_path_end(right))};
}

void merge_path(Compounds& compounds, const Path& path) {
  const auto [left, right] = merge_segments(compounds, path.bodies, 0, static_cast<int>(path.bodies.size()));
  compounds.merge(compounds.close_path_end(left), compounds.close_path_end(right));
}

bool is_primal(const Compounds& compounds, int body) {  // the only leaf with nothing but a displacement
  return body >= 0 && compounds.graph.held_by[body].size() == 1 &&
         compounds.graph.constraints[compounds.graph.held_by[body].front()].is_primal;
}

// What is left to do around a primal body is to add up: in pairs, so that equal parts stay equal, and the primal body
// itself last.
bool add_up_around_primal_bodies(Compounds& compounds) {
  bool added = false;
  for (auto& [constraint, list] : compounds.owners()) {
    if (!compounds.graph.constraints[constraint].is_primal) continue;
    std::vector<int> parts;
    for (const int c : list)
      if (!compounds.all[c].merged && !is_primal(compounds, compounds.all[c].body)) parts.push_back(c);
    std::stable_sort(parts.begin(), parts.end(), [&](int a, int b) {
      const Compound &x = compounds.all[a], &y = compounds.all[b];
      return std::pair(x.pending.size(), x.depth) < std::pair(y.pending.size(), y.depth);
    });
    for (std::size_t k = 0; k + 1 < parts.size(); k += 2, added = true) compounds.merge(parts[k], parts[k + 1]);
  }
  return added;
}

std::vector<Pair> costs_of(const Compounds& compounds, const std::set<std::pair<int, int>>& neighbours,
                           bool eliminating) {
  std::vector<Pair> pairs;
  for (const auto& [a, b] : neighbours) {
    const Compounds::Union u = compounds.united(a, b);
    const long e = rows_of(compounds.graph.constraints, u.closed), size = compounds.open_rows(u.open) + e;
    if (e > 0 || !eliminating)
      pairs.emplace_back(std::max(e, 1L) * size * size, std::max(compounds.all[a].depth, compounds.all[b].depth), a, b);
  }
  return pairs;
}

std::vector<Pair> adjacent_pairs(const Compounds& compounds) {
  std::set<std::pair<int, int>> closing, neighbours;
  for (const auto& [constraint, list] : compounds.owners()) {
    if (list.size() == 2) closing.emplace(list[0], list[1]);
    if (compounds.graph.constraints[constraint].is_primal && list.size() > 2) continue;
    for (std::size_t i = 0; i < list.size(); ++i)
      for (std::size_t k = i + 1; k < list.size(); ++k) neighbours.emplace(list[i], list[k]);
  }
  // a merge that eliminates nothing only makes the next one possible
  const std::vector<Pair> pairs = costs_of(compounds, closing, true);
  return pairs.empty() ? costs_of(compounds, neighbours, false) : pairs;
}

// The cheapest merges now: those of one kind that can lie side by side, none with a compound of another. Up to so many
// of them share the cost of one. pairs: not empty.
std::vector<Pair> cheapest_merges(const Compounds& compounds, std::vector<Pair> pairs, int lanes) {
  std::sort(pairs.begin(), pairs.end());
  struct Alike {
    std::vector<Pair> merges;
    std::set<int> taken;
  };
  std::map<std::vector<int>, Alike> by_kind;
  for (const Pair& pair : pairs) {
    const auto& [cost, depth, a, b] = pair;
    if (cost > lanes * std::get<0>(pairs[0])) break;  // can no longer be the cheapest
    Alike& alike = by_kind[compounds.kind_of_merge(a, b)];
    if (alike.taken.contains(a) || alike.taken.contains(b)) continue;
    alike.taken.insert({a, b});
    alike.merges.push_back(pair);
  }
  const auto shared_cost = [lanes](const auto& kind) {
    const std::vector<Pair>& merges = kind.second.merges;
    return std::pair(static_cast<double>(std::get<0>(merges[0])) / std::min(static_cast<int>(merges.size()), lanes),
                     merges[0]);
  };
  return std::min_element(by_kind.begin(), by_kind.end(),
                          [&](const auto& x, const auto& y) { return shared_cost(x) < shared_cost(y); })
      ->second.merges;
}

void merge_by_operations(Compounds& compounds, int lanes) {
  do {
    for (auto pairs = adjacent_pairs(compounds); !pairs.empty(); pairs = adjacent_pairs(compounds))
      for (const auto& [operations, depth, a, b] : cheapest_merges(compounds, std::move(pairs), lanes))
        compounds.merge(a, b);
  } while (add_up_around_primal_bodies(compounds));
}

// Compounds as they are numbered, and in an order in which neighbours are near.
std::array<std::vector<int>, 2> sequences(const Compounds& compounds) {
  std::vector<int> numbered;
  std::vector<int> place(compounds.all.size(), -1);
  for (std::size_t c = 0; c < compounds.all.size(); ++c)
    if (!compounds.all[c].merged && !compounds.all[c].pending.empty()) {
      place[c] = static_cast<int>(numbered.size());
      numbered.push_back(static_cast<int>(c));
    }
  Neighbours neighbours(numbered.size());
  for (const auto& [constraint, list] : compounds.owners())
    for (const int a : list)
      for (const int b : list)
        if (a != b) neighbours[place[a]].push_back(place[b]);
  std::vector<int> narrow;
  for (const int k : narrow_order(neighbours)) narrow.push_back(numbered[k]);
  return {std::move(numbered), std::move(narrow)};
}

// One compound after the other joins the front that started at its end of the sequence.
void merge_from_both_ends(Compounds& compounds, const std::vector<int>& sequence) {
  if (sequence.size() < 2) return;
  const auto sweep = [&](auto from, auto to) {
    int front = *from;
    while (++from != to) front = compounds.merge(front, *from);
    return front;
  };
  const auto middle = sequence.begin() + static_cast<std::ptrdiff_t>(sequence.size() / 2);
  const int left = sweep(sequence.begin(), middle);
  compounds.merge(left, sweep(sequence.rbegin(), std::make_reverse_iterator(middle)));
}

// What is cheapest now, for lanes where that makes fewer operations in lanes; where it leads to large fronts, as in
// nets, from both ends to the middle. Around primal bodies there is an order to keep.
void merge_with_few_operations(Compounds& compounds, int lanes) {
  const Compounds before = compounds;
  merge_by_operations(compounds, 1);
  double least = kWorthIt * compounds.operations();
  Compounds in_lanes = before;
  merge_by_operations(in_lanes, lanes);
  if (in_lanes.operations_in_lanes(lanes) < kClearlyLess * compounds.operations_in_lanes(lanes))
    compounds.take_over(std::move(in_lanes));
  if (std::any_of(compounds.graph.constraints.begin(), compounds.graph.constraints.end(),
                  [](const Constraint& c) { return c.is_primal; }))
    return;
  for (const std::vector<int>& sequence : sequences(before)) {
    Compounds other = before;
    merge_from_both_ends(other, sequence);
    const double needed = other.operations();
    if (needed >= least) continue;
    least = needed;
    compounds.take_over(std::move(other));
  }
}

void merge_by_levels(Compounds& compounds) {
  do {
    for (auto pairs = adjacent_pairs(compounds); !pairs.empty(); pairs = adjacent_pairs(compounds)) {
      std::sort(pairs.begin(), pairs.end());
      for (const auto& [cost, depth, a, b] : pairs)
        if (!compounds.all[a].merged && !compounds.all[b].merged) compounds.merge(a, b);
    }
  } while (add_up_around_primal_bodies(compounds));
}

}  // namespace

int rows_of(const std::vector<Constraint>& constraints, const std::vector<int>& list) {
  int n = 0;
  for (const int c : list) n += constraints[c].format.rows;
  return n;
}

CompoundTree build_tree(std::vector<Constraint>& constraints, int bodies, MergeOrder order) {
  ConstraintGraph graph(constraints, bodies);
  std::vector<Path> paths = order == MergeOrder::in_lanes ? find_paths(graph) : std::vector<Path>{};
  for (Path& path : paths) prepare(graph, path);
  Compounds compounds(graph);
  for (int i = 0; i < bodies; ++i) compounds.make_leaf(i);
  for (const Path& path : paths) merge_path(compounds, path);
  if (order == MergeOrder::fewest_levels)
    merge_by_levels(compounds);
  else
    merge_with_few_operations(compounds, order == MergeOrder::in_lanes ? kNominalLanes : 1);
  compounds.close_deferred();
  return {std::move(compounds.all), std::move(graph.order)};
}

}  // namespace rigstep::index3
