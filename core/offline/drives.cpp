#include "core/offline/drives.h"

#include <algorithm>
#include <cmath>

namespace rigstep::offline {

namespace {

using FromInput = Driver::FromInput;
using Term = TimeFunction::Term;

// Second derivatives of the cubic spline with rate zero at both ends: its tridiagonal equations, eliminated downwards
// and solved upwards.
std::vector<double> spline_curvature(const std::vector<double>& x, const std::vector<double>& y) {
  const std::size_t n = x.size();
  std::vector<double> upper(n), curvature(n);
  const auto slope = [&](std::size_t k) { return (y[k + 1] - y[k]) / (x[k + 1] - x[k]); };
  for (std::size_t k = 0; k < n; ++k) {
    const double before = k > 0 ? x[k] - x[k - 1] : 0.0, after = k + 1 < n ? x[k + 1] - x[k] : 0.0;
    const double left = k > 0 ? slope(k - 1) : 0.0, right = k + 1 < n ? slope(k) : 0.0;
    const double pivot = 2.0 * (before + after) - (k > 0 ? before * upper[k - 1] : 0.0);
    upper[k] = after / pivot;
    curvature[k] = (6.0 * (right - left) - (k > 0 ? before * curvature[k - 1] : 0.0)) / pivot;
  }
  for (std::size_t k = n - 1; k-- > 0;) curvature[k] -= upper[k] * curvature[k + 1];
  return curvature;
}

Prescribed on_spline(const Term& term, const std::vector<double>& curvature, double t) {
  const std::vector<double>&x = term.time, &y = term.value;
  if (t < x.front()) return {y.front(), 0.0, 0.0};
  if (t >= x.back()) return {y.back(), 0.0, 0.0};
  const std::size_t k = static_cast<std::size_t>(std::upper_bound(x.begin(), x.end(), t) - x.begin()) - 1;
  const double h = x[k + 1] - x[k], b = (t - x[k]) / h, a = 1.0 - b, left = curvature[k], right = curvature[k + 1];
  return {a * y[k] + b * y[k + 1] + ((a * a * a - a) * left + (b * b * b - b) * right) * h * h / 6.0,
          (y[k + 1] - y[k]) / h + ((3.0 * b * b - 1.0) * right - (3.0 * a * a - 1.0) * left) * h / 6.0,
          a * left + b * right};
}

Prescribed on_polynomial(const std::vector<double>& coefficient, double t) {
  Prescribed p;
  for (std::size_t k = coefficient.size(); k-- > 0;) {  // Horner's rule and its derivatives
    p.acceleration = p.acceleration * t + 2.0 * p.rate;
    p.rate = p.rate * t + p.value;
    p.value = p.value * t + coefficient[k];
  }
  return p;
}

Prescribed on_harmonic(const Term& term, double t) {
  const double w = term.angular_frequency, angle = w * t + term.phase;
  return {term.constant + term.amplitude * std::sin(angle), term.amplitude * w * std::cos(angle),
          -term.amplitude * w * w * std::sin(angle)};
}

Prescribed on_term(const Term& term, const std::vector<double>& curvature, double t) {
  switch (term.kind) {
    case Term::Kind::harmonic:
      return on_harmonic(term, t);
    case Term::Kind::polynomial:
      return on_polynomial(term.coefficient, t);
    case Term::Kind::table:
      return on_spline(term, curvature, t);
  }
  return {};
}

void add(Prescribed& sum, const Prescribed& other) {
  sum.value += other.value;
  sum.rate += other.rate;
  sum.acceleration += other.acceleration;
}

}  // namespace

TimeFunctionAt::TimeFunctionAt(const TimeFunction& function) : function_(&function) {
  for (const Term& term : function.terms)
    curvature_.push_back(term.kind == Term::Kind::table ? spline_curvature(term.time, term.value)
                                                        : std::vector<double>());
}

Prescribed TimeFunctionAt::at(double t) const {
  Prescribed sum;
  for (std::size_t k = 0; k < curvature_.size(); ++k) add(sum, on_term(function_->terms[k], curvature_[k], t));
  return sum;
}

std::string drive_unsupported_reason(const Mechanism& mechanism) {
  for (const Driver& driver : mechanism.drivers())
    if (driver.from_input == FromInput::motion)
      return "driver \"" + driver.name +
             "\" takes its motion from inputs, three numbers that are held from step to step: a position that stands "
             "and a rate that does not are no motion in between; use position_only, a table or a formula";
  return {};
}

Drives::Drives(const Mechanism& mechanism, std::span<const double> start_coordinates, double start)
    : mechanism_(&mechanism), filter_(mechanism.drivers().size()) {
  for (std::size_t i = 0; i < filter_.size(); ++i) {
    const Driver& driver = mechanism.drivers()[i];
    const double position = start_coordinates[static_cast<std::size_t>(driver.coordinate)];
    function_.emplace_back(driver.function);
    const double rest = position - function_.back().at(start).value;
    filter_[i] = {start, {rest, 0.0, 0.0}, rest};
  }
}

void Drives::hold(double t, std::span<const double> inputs) {
  for (std::size_t i = 0; i < filter_.size(); ++i) {
    const Driver& driver = mechanism_->drivers()[i];
    if (driver.from_input != FromInput::filtered) continue;
    filter_[i] = {t, filtered(i, t), inputs[static_cast<std::size_t>(driver.first_channel)]};
  }
}

// (value - input) solves (time_constant p + 1)^3 z = 0: a parabola in time under one decaying exponential.
Prescribed Drives::filtered(std::size_t driver, double t) const {
  const Filter& filter = filter_[driver];
  const double k = 1.0 / mechanism_->drivers()[driver].time_constant, s = t - filter.time, decay = std::exp(-k * s);
  const double c0 = filter.state.value - filter.input, c1 = filter.state.rate + k * c0;
  const double c2 = 0.5 * (filter.state.acceleration + 2.0 * k * c1 - k * k * c0);
  const double z = c0 + (c1 + c2 * s) * s, zd = c1 + 2.0 * c2 * s, zdd = 2.0 * c2;
  return {filter.input + decay * z, decay * (zd - k * z), decay * (zdd - 2.0 * k * zd + k * k * z)};
}

std::vector<Prescribed> Drives::at(double t) const {
  std::vector<Prescribed> all;
  for (std::size_t i = 0; i < filter_.size(); ++i) {
    all.push_back(function_[i].at(t));
    if (mechanism_->drivers()[i].from_input == FromInput::filtered) add(all.back(), filtered(i, t));
  }
  return all;
}

std::vector<double> Drives::jumps() const {
  std::vector<double> times;
  for (const Driver& driver : mechanism_->drivers()) {
    const std::vector<double> jumps = driver.function.jumps();
    times.insert(times.end(), jumps.begin(), jumps.end());
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace rigstep::offline
