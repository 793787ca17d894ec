#include "server/verify/convergence.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rigstep::server {

namespace {

using offline::BodyMotion;
using offline::Instant;
using offline::kAllQuantities;
using offline::Quantity;
using offline::Values;

constexpr double kUncertain = 1e-3;   // [m, rad] beyond which the extrapolation says nothing any more
constexpr double kLackOfOrder = 0.3;  // that the observed one may have
constexpr double kSettled = 0.05;     // by which an order has to rise to count as rising

// Without the error of that order: order 2 gives (4 fine - coarse) / 3.
class Extrapolation {
 public:
  explicit Extrapolation(double order) : ratio_(std::exp2(order)) {}

  Instants operator()(const Instants& coarse, const Instants& fine) const {
    Instants result(fine.begin(), fine.begin() + static_cast<std::ptrdiff_t>(std::min(coarse.size(), fine.size())));
    for (std::size_t k = 0; k < result.size(); ++k) mix(coarse[k], fine[k], result[k]);
    return result;
  }

 private:
  template <class Vector>
  Vector mix(const Vector& coarse, const Vector& fine) const {
    return (ratio_ * fine - coarse) / (ratio_ - 1.0);
  }

  void mix(const Instant& coarse, const Instant& fine, Instant& result) const {
    for (std::size_t i = 0; i < result.body.size(); ++i) {
      const BodyMotion &c = coarse.body[i], &f = fine.body[i];
      const EulerParameters p = mix(c.p.dot(f.p) < 0.0 ? EulerParameters(-c.p) : c.p, f.p);
      result.body[i] = {mix(c.r_0, f.r_0), p.normalized(), mix(c.v_0, f.v_0), mix(c.omega_0, f.omega_0)};
    }
    for (std::size_t i = 0; i < result.acceleration.size(); ++i)
      result.acceleration[i] = mix(coarse.acceleration[i], fine.acceleration[i]);
    for (std::size_t j = 0; j < result.reaction.size(); ++j)
      result.reaction[j] = {mix(coarse.reaction[j].force_0, fine.reaction[j].force_0),
                            mix(coarse.reaction[j].torque_0, fine.reaction[j].torque_0)};
    for (std::size_t e = 0; e < result.effort.size(); ++e) result.effort[e] = mix(coarse.effort[e], fine.effort[e]);
  }

  double ratio_;
};

struct Extrapolated {
  Instants once, twice, limit;  // from the coarse and the middle run, the middle and the fine one, from both

  explicit Extrapolated(const StepperMotions& m) {
    const auto& runs = m.runs;
    const Extrapolation first(m.expected_order), second(m.expected_order + 1.0);
    once = first(runs[runs.size() - 3], runs[runs.size() - 2]);
    twice = first(runs[runs.size() - 2], runs.back());
    limit = second(once, twice);
    if (!m.start_has_loads) {
      limit.front().acceleration.clear();
      limit.front().reaction.clear();
    }
  }
};

QuantityConvergence order_of(const std::vector<double>& first, const std::vector<double>& second,
                             const std::vector<double>& rounding, const std::vector<double>& most, double expected) {
  QuantityConvergence found;
  const double ratio = std::exp2(expected - kLackOfOrder);
  double largest_first = 0.0, largest_second = 0.0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const bool is_rounding = first[i] <= rounding[i] || (!(first[i] >= ratio * second[i]) && second[i] <= rounding[i]);
    if (is_rounding) continue;
    offline::keep_larger(largest_first, first[i] / most[i]);
    if (!(second[i] / most[i] <= largest_second)) found.item = i;
    offline::keep_larger(largest_second, second[i] / most[i]);
  }
  if (largest_second == 0.0) return found;
  found.order = std::log2(largest_first / largest_second);
  found.low = !(found.order >= expected - kLackOfOrder);
  return found;
}

double pose(const Values& d) { return std::max(d.largest(Quantity::position), d.largest(Quantity::orientation)); }

}  // namespace

void StepperMotions::resize(std::size_t instants) {
  for (Instants& run : runs) run.resize(instants);
}

bool Convergence::converges() const {
  return std::ranges::all_of(quantity, [](const QuantityConvergence& q) { return q.converges(); });
}

std::size_t certain_instants(const Mechanism& mechanism, const StepperMotions& motions) {
  const Extrapolated x(motions);
  for (std::size_t k = 0; k < x.twice.size(); ++k)
    if (!(pose(offline::compare(mechanism, {&x.once[k], 1}, {&x.twice[k], 1}, {})) <= kUncertain)) return k;
  return x.twice.size();
}

Convergence assess(const Mechanism& mechanism, const StepperMotions& motions, const offline::Determined& determined,
                   double tolerance) {
  const auto& runs = motions.runs;
  const Extrapolated x(motions);
  const auto compare = [&](const Instants& a, const Instants& b) {
    return offline::compare(mechanism, a, b, determined);
  };
  Convergence result;
  result.limit = x.limit;
  result.signal = signals(mechanism, x.limit, determined);
  for (const Instants& run : runs) result.error.push_back(compare(run, x.limit));
  const Bounds bound = bounds(mechanism, x.limit, result.signal, tolerance, motions.finest_dt);
  const Values first = compare(runs[runs.size() - 3], runs[runs.size() - 2]);
  const Values second = compare(runs[runs.size() - 2], runs.back()), moved = compare(x.once, x.twice);
  result.allowed = moved;
  for (const Quantity q : kAllQuantities) {
    QuantityConvergence& found = result.quantity[static_cast<std::size_t>(q)];
    found = order_of(first[q], second[q], bound.rounding[q], bound.most[q], motions.expected_order);
    for (std::size_t i = 0; i < moved[q].size(); ++i) {
      if (!(2.0 * moved[q][i] <= bound.most[q][i])) {
        found.resolved = false;
        found.item = i;
      }
      result.allowed[q][i] = std::min(2.0 * moved[q][i] + bound.solver[q][i], bound.most[q][i]);
    }
  }
  return result;
}

bool has_settled(const Convergence& coarser, const Convergence& finer) {
  const auto settled = [&](Quantity q) {
    return finer.of(q).low && coarser.of(q).low && finer.of(q).order < coarser.of(q).order + kSettled;
  };
  return std::ranges::any_of(kAllQuantities, settled);
}

std::array<Difference, offline::kQuantities> differences(const Convergence& stepper, const Values& deviation) {
  std::array<Difference, offline::kQuantities> found;
  for (const Quantity q : kAllQuantities) {
    Difference& worst = found[static_cast<std::size_t>(q)];
    worst.quantity = q;
    for (std::size_t i = 0; i < deviation[q].size(); ++i) {
      const double share = deviation[q][i] == 0.0 ? 0.0 : deviation[q][i] / stepper.allowed[q][i];
      if (share <= worst.share) continue;
      worst.item = i;
      worst.share = std::isnan(share) ? std::numeric_limits<double>::infinity() : share;
    }
  }
  return found;
}

}  // namespace rigstep::server
