#include "core/mechanism/time_function.h"

#include <algorithm>

#include "core/mechanism/checks.h"
#include "core/mechanism/portable_math.h"

namespace rigstep {

using Term = TimeFunction::Term;

std::vector<double> TimeFunction::jumps() const {
  std::vector<double> times;
  for (const Term& term : terms)
    if (term.kind == Term::Kind::table) times.insert(times.end(), {term.time.front(), term.time.back()});
  std::sort(times.begin(), times.end());
  return times;
}

TimeFunction harmonic(double constant, double amplitude, double angular_frequency, double phase) {
  Term term;
  term.kind = Term::Kind::harmonic;
  term.constant = constant;
  term.amplitude = amplitude;
  term.angular_frequency = angular_frequency;
  term.phase = phase;
  return {{term}};
}

TimeFunction polynomial(std::vector<double> coefficient) {
  Term term;
  term.coefficient = std::move(coefficient);
  return {{term}};
}

TimeFunction table(std::vector<double> time, std::vector<double> value) {
  Term term;
  term.kind = Term::Kind::table;
  term.time = std::move(time);
  term.value = std::move(value);
  return {{term}};
}

TimeFunction operator+(TimeFunction one, const TimeFunction& other) {
  one.terms.insert(one.terms.end(), other.terms.begin(), other.terms.end());
  return one;
}

namespace {

// Slopes of the cubic spline at its points, zero at both ends: the tridiagonal equations of a continuous second
// derivative, eliminated downwards and solved upwards.
std::vector<double> spline_slopes(const std::vector<double>& x, const std::vector<double>& y) {
  const std::size_t n = x.size();
  std::vector<double> upper(n), slope(n);
  for (std::size_t k = 1; k + 1 < n; ++k) {
    const double before = 1.0 / (x[k] - x[k - 1]), after = 1.0 / (x[k + 1] - x[k]);
    const double pivot = 2.0 * (before + after) - before * upper[k - 1];
    upper[k] = after / pivot;
    slope[k] =
        (3.0 * ((y[k] - y[k - 1]) * before * before + (y[k + 1] - y[k]) * after * after) - before * slope[k - 1]) /
        pivot;
  }
  for (std::size_t k = n - 1; k-- > 1;) slope[k] -= upper[k] * slope[k + 1];
  return slope;
}

ValueAndRate table_at_zero(const Term& term) {
  const std::vector<double>&x = term.time, &y = term.value;
  if (x.front() > 0.0) return {y.front(), 0.0};
  if (x.back() <= 0.0) return {y.back(), 0.0};
  const std::vector<double> slope = spline_slopes(x, y);
  const std::size_t k = static_cast<std::size_t>(std::upper_bound(x.begin(), x.end(), 0.0) - x.begin()) - 1;
  const double h = x[k + 1] - x[k], b = -x[k] / h, a = 1.0 - b;
  return {a * a * (1.0 + 2.0 * b) * y[k] + b * b * (1.0 + 2.0 * a) * y[k + 1] +
              h * a * b * (a * slope[k] - b * slope[k + 1]),
          6.0 * a * b * (y[k + 1] - y[k]) / h + a * (a - 2.0 * b) * slope[k] + b * (b - 2.0 * a) * slope[k + 1]};
}

ValueAndRate term_at_zero(const Term& term) {
  switch (term.kind) {
    case Term::Kind::harmonic:
      return {term.constant + term.amplitude * sine(term.phase),
              term.amplitude * term.angular_frequency * sine(term.phase + 0.5 * kPi)};
    case Term::Kind::polynomial:
      return {term.coefficient[0], term.coefficient.size() > 1 ? term.coefficient[1] : 0.0};
    case Term::Kind::table:
      return table_at_zero(term);
  }
  return {};
}

}  // namespace

ValueAndRate at_time_zero(const TimeFunction& function) {
  ValueAndRate sum;
  for (const Term& term : function.terms) {
    const ValueAndRate at = term_at_zero(term);
    sum.value += at.value;
    sum.rate += at.rate;
  }
  return sum;
}

namespace checks {

namespace {

void check_table(const Term& term) {
  if (term.time.size() < 2)
    throw MechanismError("time", "has " + std::to_string(term.time.size()) + " points", "give two or more");
  if (term.value.size() != term.time.size())
    throw MechanismError(
        "value",
        "has " + std::to_string(term.value.size()) + " numbers for " + std::to_string(term.time.size()) + " times",
        "give one for each time");
  for (std::size_t k = 0; k < term.time.size(); ++k) {
    require_finite(term.time[k], "time");
    require_finite(term.value[k], "value");
    if (k > 0 && !(term.time[k] > term.time[k - 1]))
      throw MechanismError("time", number(term.time[k]) + " s comes after " + number(term.time[k - 1]) + " s",
                           "times must ascend");
  }
}

}  // namespace

void check_time_function(const TimeFunction& function) {
  for (const Term& term : function.terms) switch (term.kind) {
      case Term::Kind::harmonic:
        require_finite(term.constant, "constant");
        require_finite(term.amplitude, "amplitude");
        require_finite(term.angular_frequency, "angular_frequency");
        require_finite(term.phase, "phase");
        break;
      case Term::Kind::polynomial:
        if (term.coefficient.empty())
          throw MechanismError("coefficient", "is missing", "give at least the constant one");
        for (const double c : term.coefficient) require_finite(c, "coefficient");
        break;
      case Term::Kind::table:
        check_table(term);
        break;
    }
}

}  // namespace checks

}  // namespace rigstep
