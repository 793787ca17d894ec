#include "core/index3/physics/time_function.h"

#include <algorithm>
#include <cmath>

#include "core/mechanism/portable_math.h"

namespace rigstep::index3 {

namespace {

using Term = TimeFunction::Term;

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

Prescribed harmonic_at(const Term& d, double t) {
  const double w = d.angular_frequency, phase = w * t + d.phase;
  const double s = d.amplitude * sine(phase), c = d.amplitude * sine(phase + 0.5 * kPi);
  return {d.constant + s, w * c, -w * w * s};
}

Prescribed polynomial_at(const Term& d, double t) {
  Prescribed p{0.0, 0.0, 0.0};
  for (std::size_t k = d.coefficient.size(); k-- > 0;) {
    p.acceleration = p.acceleration * t + 2.0 * p.rate;
    p.rate = p.rate * t + p.value;
    p.value = p.value * t + d.coefficient[k];
  }
  return p;
}

Prescribed table_at(const Term& d, const std::vector<double>& M, double t) {
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

Prescribed term_at(const Term& term, const std::vector<double>& curvature, double t) {
  switch (term.kind) {
    case Term::Kind::harmonic:
      return harmonic_at(term, t);
    case Term::Kind::polynomial:
      return polynomial_at(term, t);
    case Term::Kind::table:
      return table_at(term, curvature, t);
  }
  return {0.0, 0.0, 0.0};
}

double typical_rate(const Term& term) {
  double rate = 0.0;
  switch (term.kind) {
    case Term::Kind::harmonic:
      return std::abs(term.amplitude * term.angular_frequency);
    case Term::Kind::polynomial:
      return term.coefficient.size() > 1 ? std::abs(term.coefficient[1]) : 0.0;
    case Term::Kind::table:
      for (std::size_t k = 1; k < term.time.size(); ++k)
        rate = std::max(rate, std::abs((term.value[k] - term.value[k - 1]) / (term.time[k] - term.time[k - 1])));
      return rate;
  }
  return rate;
}

}  // namespace

Curvatures prepare(const TimeFunction& function) {
  Curvatures curvatures;
  for (const Term& term : function.terms)
    curvatures.push_back(term.kind == Term::Kind::table ? spline(term.time, term.value) : std::vector<double>());
  return curvatures;
}

Prescribed evaluate(const TimeFunction& function, const Curvatures& curvatures, double t) noexcept {
  if (function.terms.empty()) return {0.0, 0.0, 0.0};
  Prescribed sum = term_at(function.terms[0], curvatures[0], t);
  for (std::size_t k = 1; k < function.terms.size(); ++k) sum = sum + term_at(function.terms[k], curvatures[k], t);
  return sum;
}

double typical_rate(const TimeFunction& function) noexcept {
  double rate = 0.0;
  for (const Term& term : function.terms) rate += typical_rate(term);
  return rate;
}

}  // namespace rigstep::index3
