#include "core/index3/compile/tree/paths.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rigstep::index3 {
namespace {

// Chosen so that segments fill lanes; results depend on them by rounding only (tree_shape_test).
constexpr int kLongPath = 16;  // from here on it is cut into eight segments or a multiple of them, otherwise four
constexpr int kShortestSegment = 8;

bool fits_in_path(const ConstraintGraph& graph, int body) {  // it has at most two constraints, each of two sides
  if (graph.held_by[body].size() > 2) return false;
  return std::all_of(graph.held_by[body].begin(), graph.held_by[body].end(), [&](int c) {
    return graph.constraints[c].bodies.size() == 2 && !graph.constraints[c].format.general();
  });
}

int beyond(const Constraint& constraint, int body) {
  return constraint.bodies[0] == body ? constraint.bodies[1] : constraint.bodies[0];
}

// bodies from `body` on through `c`, and the constraint at the end
void follow(const ConstraintGraph& graph, int body, int c, std::vector<bool>& used, std::vector<int>& bodies,
            std::vector<int>& passed) {
  for (;;) {
    passed.push_back(c);
    if (c < 0) return;
    const int next = beyond(graph.constraints[c], body);
    if (next == kGround || !fits_in_path(graph, next) || used[next]) return;
    used[next] = true;
    bodies.push_back(next);
    int onward = -1;
    for (const int other : graph.held_by[next])
      if (other != c) onward = other;
    body = next;
    c = onward;
  }
}

void defer_ends_and_pad(ConstraintGraph& graph, Path& path) {
  for (const int end : {path.constraints.front(), path.constraints.back()})
    if (end >= 0 && graph.distinct_bodies(end).size() == 1) graph.deferred[end] = true;
  const int bodies = static_cast<int>(path.bodies.size());
  if (path.constraints.back() >= 0 || bodies % segments(bodies) != 0) return;
  const int tip = path.bodies.back();
  Constraint padding{graph.constraints[path.constraints[1]].format, {tip, kGround}};
  padding.is_padding = true;
  path.constraints.back() = static_cast<int>(graph.constraints.size());
  graph.held_by[tip].push_back(path.constraints.back());
  graph.constraints.push_back(padding);
  graph.deferred.push_back(true);
  graph.order.push_back(path.constraints.back());
}

}  // namespace

ConstraintGraph::ConstraintGraph(std::vector<Constraint>& of_model, int bodies)
    : constraints(of_model), held_by(bodies), order(of_model.size()) {
  std::iota(order.begin(), order.end(), 0);
  for (int c = 0; c < static_cast<int>(constraints.size()); ++c) {
    deferred.push_back(constraints[c].eliminated_last);
    for (const int body : distinct_bodies(c)) held_by[body].push_back(c);
  }
}

std::vector<int> ConstraintGraph::distinct_bodies(int constraint) const {
  std::vector<int> bodies;
  for (const int body : constraints[constraint].bodies)
    if (body != kGround && std::find(bodies.begin(), bodies.end(), body) == bodies.end()) bodies.push_back(body);
  return bodies;
}

int segments(int bodies) {
  int count = bodies < kLongPath ? 4 : 8;
  while (bodies >= 2 * count * kShortestSegment) count *= 2;
  return count;
}

std::vector<Path> find_paths(const ConstraintGraph& graph) {
  std::vector<Path> paths;
  std::vector<bool> used(graph.held_by.size(), false);
  for (int start = 0; start < static_cast<int>(graph.held_by.size()); ++start) {
    if (used[start] || !fits_in_path(graph, start)) continue;
    used[start] = true;
    const auto constraint = [&](std::size_t k) {
      return k < graph.held_by[start].size() ? graph.held_by[start][k] : -1;
    };
    std::vector<int> before, before_constraints, after{start}, after_constraints;
    follow(graph, start, constraint(0), used, before, before_constraints);
    follow(graph, start, constraint(1), used, after, after_constraints);
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

void prepare(ConstraintGraph& graph, Path& path) {
  defer_ends_and_pad(graph, path);
  std::vector<int> in_order;
  for (const int c : path.constraints)
    if (c >= 0) in_order.push_back(graph.order[c]);
  std::sort(in_order.begin(), in_order.end());
  auto next = in_order.begin();
  for (const int c : path.constraints)
    if (c >= 0) graph.order[c] = *next++;
}

}  // namespace rigstep::index3
