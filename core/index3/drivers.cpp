#include "core/index3/drivers.h"

#include <algorithm>
#include <cmath>

#include "core/index3/portable_math.h"

namespace rigstep::index3 {

namespace {

// the same bits on every machine, for x >= 0; a series at x / 2^k, squared k times
double exponential_of_minus(double x) {
  if (x > 700.0) return 0.0;
  int halvings = 0;
  for (; x > 0.25; ++halvings) x *= 0.5;
  double sum = 1.0;
  for (int n = 16; n >= 1; --n) sum = 1.0 - x / n * sum;
  for (; halvings > 0; --halvings) sum *= sum;
  return sum;
}

// In z = value - input the held input is zero and (T p + 1)^3 z = 0: z = exp(-t/T) (A + B t + C t^2).
Mat3 filter_over(double time_constant, double dt) {
  const double a = 1.0 / time_constant, decay = exponential_of_minus(a * dt);
  Mat3 step;
  for (int column = 0; column < 3; ++column) {
    const Vec3 z = Vec3::Unit(column);
    const double A = z[0], B = z[1] + a * z[0], C = 0.5 * (z[2] + 2.0 * a * z[1] + a * a * z[0]);
    const double p = A + (B + C * dt) * dt, p_rate = B + 2.0 * C * dt;
    step.col(column) = decay * Vec3(p, p_rate - a * p, 2.0 * C - 2.0 * a * p_rate + a * a * p);
  }
  return step;
}

// second derivatives of the cubic spline with rate zero at both ends: a tridiagonal system, Thomas' algorithm
std::vector<double> spline(const std::vector<double>& t, const std::vector<double>& y) {
  const std::size_t n = t.size();
  std::vector<double> M(n), upper(n);
  double slope = 0.0, width = 0.0;  // of the interval before
  for (std::size_t i = 0; i < n; ++i) {
    const bool last = i + 1 == n;
    const double next_width = last ? 0.0 : t[i + 1] - t[i];
    const double next_slope = last ? 0.0 : (y[i + 1] - y[i]) / next_width;
    const double pivot = 2.0 * (width + next_width) - (i > 0 ? width * upper[i - 1] : 0.0);
    upper[i] = next_width / pivot;
    M[i] = (6.0 * (next_slope - slope) - (i > 0 ? width * M[i - 1] : 0.0)) / pivot;
    slope = next_slope;
    width = next_width;
  }
  for (std::size_t i = n - 1; i-- > 0;) M[i] -= upper[i] * M[i + 1];
  return M;
}

Prescribed harmonic(const Driver& d, double t) {
  const double w = d.angular_frequency, phase = w * t + d.phase;
  const double s = d.amplitude * sine(phase), c = d.amplitude * sine(phase + 0.5 * kPi);
  return {d.constant + s, w * c, -w * w * s};
}

Prescribed polynomial(const Driver& d, double t) {
  Prescribed p{0.0, 0.0, 0.0};
  for (std::size_t k = d.coefficient.size(); k-- > 0;) {
    p.acceleration = p.acceleration * t + 2.0 * p.rate;
    p.rate = p.rate * t + p.value;
    p.value = p.value * t + d.coefficient[k];
  }
  return p;
}

Prescribed table(const Driver& d, const std::vector<double>& M, double t) {
  if (t < d.time.front()) return {d.value.front(), 0.0, 0.0};
  if (!(t < d.time.back())) return {d.value.back(), 0.0, 0.0};
  const std::size_t j = static_cast<std::size_t>(std::upper_bound(d.time.begin(), d.time.end(), t) - d.time.begin());
  const std::size_t i = j - 1;
  const double h = d.time[j] - d.time[i], a = (d.time[j] - t) / h, b = (t - d.time[i]) / h;
  return {
      a * d.value[i] + b * d.value[j] + h * h / 6.0 * ((a * a * a - a) * M[i] + (b * b * b - b) * M[j]),
      (d.value[j] - d.value[i]) / h + h / 6.0 * ((3.0 * b * b - 1.0) * M[j] - (3.0 * a * a - 1.0) * M[i]),
      a * M[i] + b * M[j],
  };
}

}  // namespace

DriverPlan prepare(const Driver& driver, double dt) {
  DriverPlan plan;
  if (driver.motion == Driver::Motion::table) plan.curvature = spline(driver.time, driver.value);
  if (driver.motion == Driver::Motion::filtered_input) plan.filter = filter_over(driver.time_constant, dt);
  return plan;
}

Prescribed prescribed(const Driver& driver, const DriverPlan& plan, double t) noexcept {
  switch (driver.motion) {
    case Driver::Motion::harmonic:
      return harmonic(driver, t);
    case Driver::Motion::polynomial:
      return polynomial(driver, t);
    case Driver::Motion::table:
      return table(driver, plan.curvature, t);
    default:
      return {0.0, 0.0, 0.0};
  }
}

double typical_rate(const Driver& driver) noexcept {
  double rate = 0.0;
  switch (driver.motion) {
    case Driver::Motion::harmonic:
      return std::abs(driver.amplitude * driver.angular_frequency);
    case Driver::Motion::polynomial:
      return driver.coefficient.size() > 1 ? std::abs(driver.coefficient[1]) : 0.0;
    case Driver::Motion::table:
      for (std::size_t k = 1; k < driver.time.size(); ++k)
        rate =
            std::max(rate, std::abs((driver.value[k] - driver.value[k - 1]) / (driver.time[k] - driver.time[k - 1])));
      return rate;
    default:
      return 0.0;
  }
}

Prescribed prescribed_next(const Driver& driver, const DriverPlan& plan, const Prescribed& last, const Inputs& inputs,
                           double t) noexcept {
  const double* channel = inputs.value.data() + driver.first_channel;
  switch (driver.motion) {
    case Driver::Motion::input:
      return {channel[0], channel[1], channel[2]};
    case Driver::Motion::filtered_input: {
      const Vec3 next = plan.filter * Vec3(last.value - channel[0], last.rate, last.acceleration);
      return {next[0] + channel[0], next[1], next[2]};
    }
    default:
      return prescribed(driver, plan, t);
  }
}

}  // namespace rigstep::index3
