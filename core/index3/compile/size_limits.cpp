#include "core/index3/compile/size_limits.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "core/index3/compile/elimination.h"

namespace rigstep::index3 {

namespace {

constexpr const char* kRemedy =
    "; leave out joints that others make redundant, or replace bodies that do not move against each other by one";

std::string in_millions(double count) { return std::to_string(std::llround(std::ceil(1e-6 * count))) + " million"; }

std::vector<std::set<int>> neighbours_of(const std::vector<Constraint>& constraints, int bodies) {
  std::vector<std::set<int>> neighbours(static_cast<std::size_t>(bodies));
  for (const Constraint& constraint : constraints)
    for (const int a : constraint.bodies)
      for (const int b : constraint.bodies)
        if (a != b && a != kGround && b != kGround) neighbours[a].insert(b);
  return neighbours;
}

// The largest k for which some bodies have k neighbours among themselves, each of them: the one with the fewest is
// taken away again and again.
int densest_core(std::vector<std::set<int>> neighbours) {
  std::set<std::pair<std::size_t, int>> by_count;
  for (std::size_t i = 0; i < neighbours.size(); ++i) by_count.emplace(neighbours[i].size(), static_cast<int>(i));
  std::size_t core = 0;
  while (!by_count.empty()) {
    const auto [count, body] = *by_count.begin();
    by_count.erase(by_count.begin());
    core = std::max(core, count);
    for (const int other : neighbours[body]) {
      by_count.erase({neighbours[other].size(), other});
      neighbours[other].erase(body);
      by_count.emplace(neighbours[other].size(), other);
    }
  }
  return static_cast<int>(core);
}

}  // namespace

// Of k + 1 or more bodies with k neighbours each, some compound on the way to the whole has m of them, with
// k / 4 < m <= k / 2: sizes at most double where two compounds become one. Each of these m has k / 2 neighbours outside
// at least, so k^2 / 8 constraints are pending there, and their rows are eliminated from a dense matrix later on.
LeastWork least_work(const std::vector<Constraint>& constraints, int bodies) {
  LeastWork least;
  least.least_neighbours = densest_core(neighbours_of(constraints, bodies));
  int rows = constraints.empty() ? 0 : constraints.front().format.rows;
  for (const Constraint& constraint : constraints) rows = std::min(rows, constraint.format.rows);
  const double k = least.least_neighbours, pending = rows * k * k / 8.0;
  least.multiply_adds = pending * pending * pending / 6.0;
  return least;
}

void require_moderate_joints(const std::vector<Constraint>& constraints, int bodies) {
  const LeastWork least = least_work(constraints, bodies);
  if (least.multiply_adds <= kMostMultiplyAdds) return;
  throw MechanismError("joints",
                       "tie bodies to " + std::to_string(least.least_neighbours) +
                           " and more others each, all among themselves: a step would take at least " +
                           in_millions(least.multiply_adds) + " multiply-adds a factorisation",
                       "at most " + in_millions(kMostMultiplyAdds) + " are possible" + kRemedy);
}

void require_moderate_elimination(const Elimination& e, bool is_dual_by_choice) {
  const double bytes = 8.0 * static_cast<double>(e.arena_doubles), operations = static_cast<double>(e.multiply_adds);
  if (bytes <= kMostBytes && (is_dual_by_choice || operations <= kMostMultiplyAdds)) return;
  throw MechanismError(
      "joints",
      "close so many loops across one another that a step would take " + in_millions(operations) +
          " multiply-adds a factorisation and " + in_millions(bytes) + " bytes",
      "at most " + in_millions(kMostMultiplyAdds) + " and " + in_millions(kMostBytes) + " are possible" + kRemedy);
}

void require_moderate_rank(int rows) {
  if (rows <= kMostRowsOfRank) return;
  const double bytes = 3.0 * sizeof(double) * rows * rows;
  throw MechanismError("joints",
                       "have " + std::to_string(rows) +
                           " constraint rows, and close loops: to find which of them are " +
                           "redundant takes dense matrices of " + in_millions(bytes) + " bytes",
                       "at most " + std::to_string(kMostRowsOfRank) + " rows are possible with reactions among the " +
                           "outputs, and to check or verify: leave reactions out, or describe a part of the mechanism");
}

}  // namespace rigstep::index3
