#include "core/index3/compile/tree/narrow_order.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace rigstep::index3 {

namespace {

// Bodies breadth first from one of them, those with few neighbours first: all that hang together with it.
std::vector<int> breadth_first(const Neighbours& neighbours, int start) {
  std::vector<int> order;
  std::vector<bool> reached(neighbours.size(), false);
  const auto reach = [&](int body) {
    if (!reached[body]) order.push_back(body);
    reached[body] = true;
  };
  reach(start);
  for (std::size_t done = 0; done < order.size(); ++done) {
    std::vector<int> around = neighbours[order[done]];
    std::stable_sort(around.begin(), around.end(),
                     [&](int a, int b) { return neighbours[a].size() < neighbours[b].size(); });
    for (const int body : around) reach(body);
  }
  return order;
}

std::int64_t multiply_adds(const std::vector<int>& end) {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < end.size(); ++k) {
    const std::int64_t length = end[k] - static_cast<std::int64_t>(k);
    sum += length * length;
  }
  return sum;
}

// Breadth first from that one of the bodies from where the factorisation takes the fewest operations.
std::vector<int> narrowest(const Neighbours& neighbours, const std::vector<int>& bodies) {
  std::vector<int> best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const int start : bodies) {
    std::vector<int> order = breadth_first(neighbours, start);
    const std::int64_t cost = multiply_adds(profile_of(neighbours, order));
    if (cost >= least) continue;
    best = std::move(order);
    least = cost;
  }
  return best;
}

}  // namespace

std::vector<int> narrow_order(const Neighbours& neighbours) {
  std::vector<int> order;
  std::vector<bool> is_placed(neighbours.size(), false);
  for (int body = 0; body < static_cast<int>(neighbours.size()); ++body) {
    if (is_placed[body]) continue;
    for (const int next : narrowest(neighbours, breadth_first(neighbours, body))) {
      order.push_back(next);
      is_placed[next] = true;
    }
  }
  return order;
}

std::vector<int> profile_of(const Neighbours& neighbours, const std::vector<int>& order) {
  std::vector<int> position(neighbours.size());
  for (std::size_t k = 0; k < order.size(); ++k) position[order[k]] = static_cast<int>(k);
  std::vector<int> end;
  for (std::size_t k = 0; k < order.size(); ++k) {
    int last = static_cast<int>(k);
    for (const int body : neighbours[order[k]]) last = std::max(last, position[body]);
    end.push_back(std::max(last + 1, end.empty() ? 0 : end.back()));  // eliminating fills
  }
  return end;
}

}  // namespace rigstep::index3
