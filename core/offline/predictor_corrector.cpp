// The Adams-Bashforth-Moulton method of variable order and step in PECE form, as in MATLAB's ode113: the predictor of
// order k, one evaluation, the corrector of order k + 1, a second evaluation.
//   Shampine, Gordon: Computer Solution of Ordinary Differential Equations, Freeman 1975: the formulas, chapter 5; the
//   choice of order and step, chapter 7; the code STEP, chapter 10. Names are theirs: psi, alpha, beta, sigma, g, phi.
//   Shampine, Reichelt: The MATLAB ODE suite, SIAM J. Sci. Comput. 18 (1997) 1-22: norm and first step.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/offline/integration.h"
#include "core/offline/step_control.h"

namespace rigstep::offline {

namespace {

constexpr int kMostOrder = 12;
// Coefficients of the corrector's error with equal steps, by order from 1.
constexpr double kGammaStar[] = {0.5,
                                 1.0 / 12,
                                 1.0 / 24,
                                 19.0 / 720,
                                 3.0 / 160,
                                 863.0 / 60480,
                                 275.0 / 24192,
                                 33953.0 / 3628800,
                                 8183.0 / 1036800,
                                 3250433.0 / 479001600,
                                 4671.0 / 788480,
                                 13695779093.0 / 2615348736000,
                                 2224234463.0 / 475517952000};

// The coefficients of the formulas for unequal steps. Entry i belongs to order i, as in the book; entry 0 is not used.
class Coefficients {
 public:
  using Numbers = std::array<double, kMostOrder + 3>;
  Numbers alpha{}, beta{}, sigma{}, g{}, psi{};
  int equal_steps = 0;  // the last ones, this one counted in

  // Of a step h with order k, after one of length last_h and order last_k.
  void prepare(double h, int k, double last_h, int last_k) {
    if (h != last_h) equal_steps = 0;
    if (equal_steps <= last_k) ++equal_steps;
    const int ns = equal_steps;
    if (k < ns) return;
    renew_steps(h, k);
    renew_integrals(k, last_k);
  }

  void take_back(double h, int k) {
    for (int i = 2; i <= k; ++i) psi[at(i - 1)] = psi[at(i)] - h;
  }

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

 private:
  void renew_steps(double h, int k) {
    const int ns = equal_steps;
    beta[at(ns)] = 1.0;
    alpha[at(ns)] = 1.0 / ns;
    sigma[1] = 1.0;
    double sum = h * ns;
    sigma[at(ns + 1)] = 1.0;
    for (int i = ns + 1; i <= k; ++i) {
      const double psi_before = psi[at(i - 1)];
      psi[at(i - 1)] = sum;
      beta[at(i)] = beta[at(i - 1)] * psi[at(i - 1)] / psi_before;
      sum = psi_before + h;
      alpha[at(i)] = h / sum;
      sigma[at(i + 1)] = i * alpha[at(i)] * sigma[at(i)];
    }
    psi[at(k)] = sum;
  }

  // g: integrals of the predictor's polynomials, by the recursion of g_iq; v keeps its column `equal_steps`.
  void renew_integrals(int k, int last_k) {
    const int ns = equal_steps;
    g[1] = 1.0;
    g[2] = 0.5;
    if (ns == 1) {
      for (int iq = 1; iq <= k; ++iq) w_[at(iq)] = v_[at(iq)] = 1.0 / (iq * (iq + 1));
    } else {
      if (k > last_k) {
        v_[at(k)] = 1.0 / (k * (k + 1));
        for (int j = 1; j <= ns - 2; ++j) v_[at(k - j)] -= alpha[at(j + 1)] * v_[at(k - j + 1)];
      }
      for (int iq = 1; iq <= k + 1 - ns; ++iq) w_[at(iq)] = v_[at(iq)] -= alpha[at(ns)] * v_[at(iq + 1)];
      g[at(ns + 1)] = w_[1];
    }
    for (int i = ns + 2; i <= k + 1; ++i) {
      for (int iq = 1; iq <= k + 2 - i; ++iq) w_[at(iq)] -= alpha[at(i - 1)] * w_[at(iq + 1)];
      g[at(i)] = w_[1];
    }
  }

  Numbers v_{}, w_{};
};

class PredictorCorrector final : public Integration {
 public:
  explicit PredictorCorrector(const Beginning& from)
      : control_(from),
        f_(&from.f),
        y_(from.y),
        time_(from.start),
        before_(y_.size()),
        slope_(y_.size()),
        predicted_(y_.size()),
        difference_(y_.size()),
        phi_(kMostOrder + 3, std::vector<double>(y_.size())) {
    start_afresh();
  }

  double time() const override { return time_; }

  void start_afresh() override {
    if (!(*f_)(time_, y_, slope_)) throw gave_up(time_, "the right-hand side is not finite");
    h_ = control_.first_step(y_, slope_, 0.8, 2);
    k_ = 1;
    last_h_ = 0.0;
    last_k_ = 0;
    starting_ = true;
    c_ = {};
    phi(1) = slope_;
  }

  void advance(double stop) override {
    const double shortest = control_.shortest(time_);
    h_ = std::clamp(h_, shortest, std::max(shortest, control_.longest()));
    const bool last = 1.1 * h_ >= stop - time_;
    if (last) h_ = stop - time_;
    std::copy(y_.begin(), y_.end(), before_.begin());
    for (int failed = 0;;) {
      predict();
      const bool finite = (*f_)(time_ + h_, predicted_, slope_);
      const Errors errors = finite ? estimate() : Errors{};
      if (errors.step <= control_.relative_tolerance()) {
        correct(last && failed == 0 ? stop : time_ + h_);
        choose_order(errors);
        return;
      }
      if (h_ <= shortest) throw gave_up(time_, "the error test fails with the shortest step");
      take_back(errors, ++failed, shortest);
    }
  }

  // The polynomial of order last_k + 1 through the last slopes, of the book's code INTRP.
  void dense(double t, std::span<double> y) override {
    std::copy(y_.begin(), y_.end(), y.begin());
    const double h = t - time_;
    const int order = last_k_ + 1;
    Coefficients::Numbers w{}, g{};
    for (int i = 1; i <= order; ++i) w[at(i)] = 1.0 / i;
    g[1] = 1.0;
    double before = 0.0;
    for (int j = 2; j <= order; ++j) {
      const double psi = c_.psi[at(j - 1)], gamma = (h + before) / psi, eta = h / psi;
      for (int i = 1; i <= order + 1 - j; ++i) w[at(i)] = gamma * w[at(i)] - eta * w[at(i + 1)];
      g[at(j)] = w[1];
      before = psi;
    }
    add_slopes(order, g, h, y);
  }

 private:
  static constexpr double kFails = std::numeric_limits<double>::infinity();
  // Scaled by the tolerance's scale: of the step, and of order k, k - 1 and k - 2 with equal steps.
  struct Errors {
    double step = kFails, of_k = kFails, of_k1 = kFails;
    int order = 1;  // that the next step should have
  };

  static std::size_t at(int i) { return Coefficients::at(i); }
  std::vector<double>& phi(int i) { return phi_[at(i)]; }
  const std::vector<double>& phi(int i) const { return phi_[at(i)]; }

  // y += h sum of g_i phi_i.
  void add_slopes(int order, const Coefficients::Numbers& g, double h, std::span<double> y) const {
    for (std::size_t n = 0; n < y.size(); ++n) {
      double sum = 0.0;
      for (int i = order; i >= 1; --i) sum += g[at(i)] * phi(i)[n];
      y[n] += h * sum;
    }
  }

  // phi becomes phi* and then that of the predicted polynomial at the end of the step.
  void predict() {
    c_.prepare(h_, k_, last_h_, last_k_);
    for (int i = c_.equal_steps + 1; i <= k_; ++i)
      for (double& value : phi(i)) value *= c_.beta[at(i)];
    std::copy(y_.begin(), y_.end(), predicted_.begin());
    add_slopes(k_, c_.g, h_, predicted_);
    phi(k_ + 2) = phi(k_ + 1);
    std::fill(phi(k_ + 1).begin(), phi(k_ + 1).end(), 0.0);
    for (int i = k_; i >= 1; --i)
      for (std::size_t n = 0; n < y_.size(); ++n) phi(i)[n] += phi(i + 1)[n];
  }

  Errors estimate() {
    for (std::size_t n = 0; n < y_.size(); ++n) difference_[n] = slope_[n] - phi(1)[n];
    const auto size = [&](int i) {
      return control_.largest(before_, before_,
                              [&](std::size_t n) { return (i > 1 ? phi(i)[n] : 0.0) + difference_[n]; });
    };
    const auto of_order = [&](int k, double scaled) { return h_ * c_.sigma[at(k + 1)] * kGammaStar[k - 1] * scaled; };
    const double corrector = size(1);
    Errors errors{h_ * (c_.g[at(k_)] - c_.g[at(k_ + 1)]) * corrector, of_order(k_, corrector), 0.0, k_};
    if (k_ >= 2) errors.of_k1 = of_order(k_ - 1, size(k_));
    const double of_k2 = k_ >= 3 ? of_order(k_ - 2, size(k_ - 1)) : 0.0;
    const bool lower =
        k_ == 2 ? errors.of_k1 <= 0.5 * errors.of_k : k_ > 2 && std::max(errors.of_k1, of_k2) <= errors.of_k;
    if (lower) --errors.order;
    return errors;
  }

  // After a failed attempt: phi, psi as before it, a shorter step, order 1 from the third time on.
  void take_back(const Errors& errors, int failed, double shortest) {
    starting_ = false;
    for (int i = 1; i <= k_; ++i)
      for (std::size_t n = 0; n < y_.size(); ++n) phi(i)[n] = (phi(i)[n] - phi(i + 1)[n]) / c_.beta[at(i)];
    c_.take_back(h_, k_);
    double reduce = 0.5;
    if (failed > 3) reduce = std::min(0.5, std::sqrt(0.5 * control_.relative_tolerance() / errors.of_k));
    k_ = failed == 3 ? 1 : std::min(errors.order, k_);
    h_ = std::max(reduce * h_, shortest);
  }

  void correct(double end) {
    f_->count_step();
    last_k_ = k_;
    last_h_ = h_;
    time_ = end;
    for (std::size_t n = 0; n < y_.size(); ++n) y_[n] = predicted_[n] + h_ * c_.g[at(k_ + 1)] * difference_[n];
    if (!(*f_)(time_, y_, slope_)) throw gave_up(time_, "the right-hand side is not finite");
    for (std::size_t n = 0; n < y_.size(); ++n) {
      phi(k_ + 1)[n] = slope_[n] - phi(1)[n];
      phi(k_ + 2)[n] = phi(k_ + 1)[n] - phi(k_ + 2)[n];
      for (int i = 1; i <= k_; ++i) phi(i)[n] += phi(k_ + 1)[n];
    }
  }

  void choose_order(const Errors& errors) {
    const double tolerance = control_.relative_tolerance();
    if (errors.order < k_ || k_ == kMostOrder) starting_ = false;
    if (starting_) {
      ++k_;
      h_ *= 2.0;
      return;
    }
    double error = errors.of_k;
    if (errors.order < k_) {
      --k_;
      error = errors.of_k1;
    } else if (k_ + 1 <= c_.equal_steps) {
      const double above =
          h_ * kGammaStar[k_] * control_.largest(before_, before_, [&](std::size_t n) { return phi(k_ + 2)[n]; });
      if (k_ > 1 && errors.of_k1 <= std::min(errors.of_k, above)) {
        --k_;
        error = errors.of_k1;
      } else if (k_ < kMostOrder && above < (k_ == 1 ? 0.5 : 1.0) * errors.of_k) {
        ++k_;
        error = above;
      }
    }
    if (0.5 * tolerance >= error * std::exp2(k_ + 1))
      h_ *= 2.0;
    else if (0.5 * tolerance < error)
      h_ *= std::clamp(std::pow(0.5 * tolerance / error, 1.0 / (k_ + 1)), 0.5, 0.9);
  }

  StepControl control_;
  RightHandSide* f_;
  std::span<double> y_;
  double time_, h_ = 0.0, last_h_ = 0.0;
  int k_ = 1, last_k_ = 0;
  bool starting_ = true;  // order and step grow with every step
  Coefficients c_;
  std::vector<double> before_;                          // y at the beginning of the step
  std::vector<double> slope_, predicted_, difference_;  // difference: of the slopes there and of the polynomial
  std::vector<std::vector<double>> phi_;                // modified divided differences, by order from 1
};

}  // namespace

std::unique_ptr<Integration> predictor_corrector(const Beginning& from) {
  return std::make_unique<PredictorCorrector>(from);
}

}  // namespace rigstep::offline
