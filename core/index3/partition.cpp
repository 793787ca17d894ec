#include "core/index3/partition.h"

#include <algorithm>
#include <numeric>

namespace rigstep::index3 {

namespace {

constexpr int kTop = -1;
constexpr double kEven = 0.9, kUneven = 0.5;  // of the least loaded thread, beside the most loaded one

class Divider {
 public:
  Divider(const Elimination& e, int threads)
      : e_(e), threads_(threads), cost_(e.units.size()), holds_hub_(e.units.size()), part_(e.units.size(), kTop) {
    for (std::size_t u = 0; u < e.units.size(); ++u) {
      cost_[u] = e.units[u].cost;
      holds_hub_[u] = e.units[u].is_hub;
      for (const int below : e.units[u].below) {
        cost_[u] += cost_[below];
        holds_hub_[u] = holds_hub_[u] || holds_hub_[below];
      }
    }
  }

  Partition divide() {
    const long all = std::accumulate(e_.units.begin(), e_.units.end(), 0L,
                                     [](long sum, const Elimination::Unit& u) { return sum + u.cost; });
    const int most = static_cast<int>(std::min<long>(threads_, all / kLeastCostOfPart));
    for (int parts = most; parts > 1; --parts)
      // few large subtrees leave little between them
      if (assign(subtrees(all / parts), parts, kEven) || assign(subtrees(all / (2 * parts)), parts, kUneven))
        return tables(parts);
    part_.assign(e_.units.size(), 0);
    return tables(1);
  }

 private:
  // roots of disjoint subtrees of at most `most` each, where they can be divided so far; hubs are in none, since what
  // holds them is in all parts
  std::vector<int> subtrees(long most) const {
    std::vector<bool> is_below(e_.units.size(), false);
    for (const Elimination::Unit& u : e_.units)
      for (const int below : u.below) is_below[below] = true;
    std::vector<int> open, done;
    for (std::size_t u = 0; u < e_.units.size(); ++u)
      if (!is_below[u]) open.push_back(static_cast<int>(u));
    while (!open.empty()) {
      const int u = open.back();
      open.pop_back();
      if (e_.units[u].is_hub) continue;
      if (!holds_hub_[u] && (cost_[u] <= most || e_.units[u].below.empty()))
        done.push_back(u);
      else
        for (const int below : e_.units[u].below)
          if (std::find(open.begin(), open.end(), below) == open.end()) open.push_back(below);
    }
    std::sort(done.begin(), done.end());
    done.erase(std::unique(done.begin(), done.end()), done.end());
    return done;
  }

  bool claim(int unit, int part) {
    if (part_[unit] == part) return true;
    if (part_[unit] != kTop) return false;
    part_[unit] = part;
    return std::all_of(e_.units[unit].below.begin(), e_.units[unit].below.end(),
                       [&](int below) { return claim(below, part); });
  }

  // the costliest subtree goes to the thread with the least to do; false if that does not divide the work
  bool assign(std::vector<int> roots, int parts, double least_share) {
    part_.assign(e_.units.size(), kTop);
    std::stable_sort(roots.begin(), roots.end(), [&](int a, int b) { return cost_[a] > cost_[b]; });
    std::vector<long> load(parts, 0);
    for (const int root : roots) {
      const auto least = std::min_element(load.begin(), load.end()) - load.begin();
      if (!claim(root, static_cast<int>(least))) return false;
      load[least] += cost_[root];
    }
    const auto [smallest, largest] = std::minmax_element(load.begin(), load.end());
    return static_cast<double>(*smallest) > least_share * static_cast<double>(*largest);
  }

  Partition tables(int parts) const {
    Partition result;
    result.parts.resize(parts);
    for (int p = kTop; p < parts; ++p) {
      std::vector<int> units;
      for (std::size_t u = 0; u < e_.units.size(); ++u)
        if (part_[u] == p) units.push_back(static_cast<int>(u));
      (p == kTop ? result.top : result.parts[p]) = part_of(e_, units);
    }
    return result;
  }

  const Elimination& e_;
  int threads_;
  std::vector<long> cost_;  // of the subtree
  std::vector<bool> holds_hub_;
  std::vector<int> part_;
};

}  // namespace

Partition divide(const Elimination& elimination, int threads) { return Divider(elimination, threads).divide(); }

}  // namespace rigstep::index3
