// Explicit Runge-Kutta pairs with the step control of MATLAB's ode45 and ode23, so that their evaluations can be
// counted as the papers count them.
//   Shampine, Reichelt: The MATLAB ODE suite, SIAM J. Sci. Comput. 18 (1997) 1-22: norm, first step, choice of steps.
//   Dormand, Prince: A family of embedded Runge-Kutta formulae, J. Comput. Appl. Math. 6 (1980) 19-26.
//   Bogacki, Shampine: A 3(2) pair of Runge-Kutta formulas, Appl. Math. Lett. 2 (1989) 321-325.
//   Hairer, Norsett, Wanner: Solving Ordinary Differential Equations I, II.6: values within a step of Dormand-Prince.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/offline/integration.h"
#include "core/offline/step_control.h"

namespace rigstep::offline {

namespace {

constexpr int kMostStages = 7;

// The last stage is the new y itself, and the first stage of the next step.
struct Pair {
  int stages, order;
  double shrink_at_most;                                       // of a step that failed for the first time
  std::array<double, kMostStages> c;                           // instants of the stages
  std::array<std::array<double, kMostStages>, kMostStages> a;  // row k: stage k from those before it
  std::array<double, kMostStages> error;                       // weights of both orders, subtracted
};

constexpr Pair kDormandPrince{
    7,
    5,
    0.1,
    {0.0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1.0, 1.0},
    {{{},
      {1.0 / 5},
      {3.0 / 40, 9.0 / 40},
      {44.0 / 45, -56.0 / 15, 32.0 / 9},
      {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
      {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
      {35.0 / 384, 0.0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}}},
    {71.0 / 57600, 0.0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40}};

constexpr Pair kBogackiShampine{4,
                                3,
                                0.5,
                                {0.0, 1.0 / 2, 3.0 / 4, 1.0},
                                {{{}, {1.0 / 2}, {0.0, 3.0 / 4}, {2.0 / 9, 1.0 / 3, 4.0 / 9}}},
                                {-5.0 / 72, 1.0 / 12, 1.0 / 9, -1.0 / 8}};

// Of the quartic through both ends of a step of Dormand-Prince and their slopes: what it has beyond the cubic.
constexpr double kQuartic[] = {-12715105075.0 / 11282082432,  0.0,
                               87487479700.0 / 32700410799,   -10690763975.0 / 1880347072,
                               701980252875.0 / 199316789632, -1453857185.0 / 822651844,
                               69997945.0 / 29380423};

class RungeKuttaPair final : public Integration {
 public:
  explicit RungeKuttaPair(const Beginning& from)
      : pair_(from.options.integrator == Integrator::ode45 ? kDormandPrince : kBogackiShampine),
        control_(from),
        f_(&from.f),
        y_(from.y),
        time_(from.start),
        before_(y_.begin(), y_.end()),
        next_(y_.size()),
        slope_(static_cast<std::size_t>(pair_.stages), std::vector<double>(y_.size())) {
    start_afresh();
  }

  double time() const override { return time_; }

  void start_afresh() override {
    if (!(*f_)(time_, y_, slope_.front())) throw gave_up(time_, "the right-hand side is not finite");
    h_ = control_.first_step(y_, slope_.front(), 0.8, pair_.order);
  }

  void advance(double stop) override {
    const double shortest = control_.shortest(time_);
    h_ = std::clamp(h_, shortest, std::max(shortest, control_.longest()));
    std::copy(y_.begin(), y_.end(), before_.begin());
    for (int failed = 0;; ++failed) {
      const bool last = 1.1 * h_ >= stop - time_;
      step_ = last ? stop - time_ : h_;
      const double error = attempt();
      if (error <= control_.relative_tolerance()) {
        accept(last ? stop : time_ + step_);
        if (failed == 0) h_ = grown(error);
        return;
      }
      if (step_ <= shortest) throw gave_up(time_, "the error test fails with the shortest step");
      h_ = std::max(shortest, step_ * (failed == 0 ? shrunk(error) : 0.5));
    }
  }

  // theta: 0 at the beginning of the step, 1 at its end.
  void dense(double t, std::span<double> y) override {
    const double theta = step_ > 0.0 ? 1.0 - (time_ - t) / step_ : 1.0;
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const double rise = y_[i] - before_[i], bend = step_ * first_[i] - rise,
                   twist = rise - step_ * slope_.front()[i] - bend;
      double inner = twist;
      if (pair_.order == kDormandPrince.order) inner += (1.0 - theta) * quartic_[i];
      y[i] = before_[i] + theta * (rise + (1.0 - theta) * (bend + theta * inner));
    }
  }

 private:
  // All stages over step_; the last one stands in next_. Returns the scaled error, infinite where a slope is.
  double attempt() {
    for (int k = 1; k < pair_.stages; ++k) {
      const auto& a = pair_.a[static_cast<std::size_t>(k)];
      for (std::size_t i = 0; i < y_.size(); ++i) {
        double sum = 0.0;
        for (int j = 0; j < k; ++j) sum += a[static_cast<std::size_t>(j)] * slope_[static_cast<std::size_t>(j)][i];
        next_[i] = y_[i] + step_ * sum;
      }
      const double t = time_ + step_ * pair_.c[static_cast<std::size_t>(k)];
      if (!(*f_)(t, next_, slope_[static_cast<std::size_t>(k)])) return std::numeric_limits<double>::infinity();
    }
    return step_ * control_.largest(y_, next_, [&](std::size_t i) { return weighted(pair_.error, i); });
  }

  template <class Weights>
  double weighted(const Weights& weights, std::size_t i) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < slope_.size(); ++k) sum += weights[k] * slope_[k][i];
    return sum;
  }

  void accept(double t) {
    f_->count_step();
    time_ = t;
    if (pair_.order == kDormandPrince.order) {
      quartic_.resize(y_.size());
      for (std::size_t i = 0; i < y_.size(); ++i) quartic_[i] = step_ * weighted(kQuartic, i);
    }
    first_ = slope_.front();
    std::swap(slope_.front(), slope_.back());
    std::copy(next_.begin(), next_.end(), y_.begin());
  }

  double grown(double error) const {
    const double factor = 1.25 * std::pow(error / control_.relative_tolerance(), 1.0 / pair_.order);
    return step_ * (factor > 0.2 ? 1.0 / factor : 5.0);
  }
  double shrunk(double error) const {
    return std::max(pair_.shrink_at_most, 0.8 * std::pow(control_.relative_tolerance() / error, 1.0 / pair_.order));
  }

  const Pair& pair_;
  StepControl control_;
  RightHandSide* f_;
  std::span<double> y_;
  double time_, h_ = 0.0, step_ = 0.0;         // h_: wanted; step_: the last one taken, or tried
  std::vector<double> before_, next_, first_;  // y at the beginning of the step and at its end; slope at the beginning
  std::vector<std::vector<double>> slope_;     // (stages); the first one that of the next step
  std::vector<double> quartic_;
};

}  // namespace

std::unique_ptr<Integration> runge_kutta_pair(const Beginning& from) { return std::make_unique<RungeKuttaPair>(from); }

}  // namespace rigstep::offline
