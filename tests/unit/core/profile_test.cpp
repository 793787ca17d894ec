#include "core/index3/outputs/profile.h"

#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "core/index3/compile/tree/narrow_order.h"
#include "tests/support/random.h"

namespace rigstep::index3 {
namespace {

Neighbours graph(int bodies, const std::vector<std::pair<int, int>>& edges) {
  Neighbours neighbours(static_cast<std::size_t>(bodies));
  for (const auto& [a, b] : edges) {
    neighbours[a].push_back(b);
    neighbours[b].push_back(a);
  }
  return neighbours;
}

}  // namespace

TEST_CASE("the order of a ring whose bodies are numbered at random is two bodies wide, of two chains one") {
  test::Random random(5);
  std::vector<int> number(40);
  std::iota(number.begin(), number.end(), 0);
  for (std::size_t k = number.size(); k-- > 1;) std::swap(number[k], number[random.below(static_cast<int>(k) + 1)]);
  const auto width = [](const Neighbours& neighbours) {
    const std::vector<int> order = narrow_order(neighbours);
    std::vector<int> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t k = 0; k < sorted.size(); ++k) CHECK(sorted[k] == static_cast<int>(k));
    const std::vector<int> end = profile_of(neighbours, order);
    int widest = 0;
    for (std::size_t k = 0; k < end.size(); ++k) widest = std::max(widest, end[k] - static_cast<int>(k) - 1);
    return widest;
  };
  std::vector<std::pair<int, int>> edges;
  for (int k = 0; k + 1 < 40; ++k)
    if (k != 19) edges.emplace_back(number[k], number[k + 1]);
  CHECK(width(graph(40, edges)) == 1);
  edges.emplace_back(number[19], number[20]);
  edges.emplace_back(number[39], number[0]);
  CHECK(width(graph(40, edges)) == 2);
}

TEST_CASE("a profile solves what dense matrices solve, and its diagonal is raised by a share of the mean") {
  test::Random random(11);
  const int bodies = 12, size = 6 * bodies;
  std::vector<std::pair<int, int>> edges;
  for (int k = 0; k < 16; ++k)
    if (const int a = random.below(bodies), b = random.below(bodies); a != b) edges.emplace_back(a, b);
  const Neighbours neighbours = graph(bodies, edges);
  const std::vector<int> order = narrow_order(neighbours);
  std::vector<int> position(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) position[order[k]] = static_cast<int>(k);

  Profile profile(profile_of(neighbours, order));
  REQUIRE(profile.size() == size);
  for (const int round : {0, 1}) {  // the second time over what the first one left
    CAPTURE(round);
    profile.clear();
    Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(size, size);
    const auto set = [&](int i, int k) {
      const double value = i == k ? 60.0 : random.uniform();
      dense(i, k) = dense(k, i) = profile.row(std::min(i, k))[std::max(i, k)] = value;
    };
    for (int i = 0; i < size; ++i) {
      for (int k = Profile::first_of(i); k < i; ++k) profile.row(i)[k] = std::nan("");  // never read
      for (int k = i; k < Profile::first_of(i) + 6; ++k) set(i, k);
    }
    for (const auto& [a, b] : edges)
      for (int i = 0; i < 6; ++i)
        for (int k = 0; k < 6; ++k) set(6 * position[a] + i, 6 * position[b] + k);
    profile.add_to_diagonal(0.1);
    dense.diagonal().array() += 6.0;
    Eigen::VectorXd x = random.values(size);
    const Eigen::VectorXd want = dense.llt().solve(x);
    profile.factorise();
    profile.solve(x);
    CHECK((x - want).norm() < 1e-14 * want.norm());
  }
}

}  // namespace rigstep::index3
