#include "core/mechanism/characteristic.h"

#include <algorithm>
#include <cmath>

#include "core/mechanism/checks.h"

namespace rigstep {

namespace {

// index of the piece that holds `at`; the outer pieces go on outside
std::size_t piece(const std::vector<double>& x, double at) noexcept {
  std::size_t k = 0;
  while (k + 2 < x.size() && at >= x[k + 1]) ++k;
  return k;
}

}  // namespace

double Characteristic::slope(double at) const noexcept {
  if (empty()) return 0.0;
  const std::size_t k = piece(x, at);
  return (y[k + 1] - y[k]) / (x[k + 1] - x[k]);
}

double Characteristic::value(double at) const noexcept {
  if (empty()) return 0.0;
  return y[piece(x, at)] + slope(at) * (at - x[piece(x, at)]);
}

double Characteristic::integral(double at) const noexcept {
  if (empty()) return 0.0;
  // trapezia over whole pieces are exact; from 0 to `at`, backwards if `at` is negative
  const double low = std::min(0.0, at), high = std::max(0.0, at);
  double sum = 0.0, from = low;
  while (from < high) {
    const std::size_t k = piece(x, from);
    const double to = k + 2 < x.size() ? std::min(high, x[k + 1]) : high;
    sum += 0.5 * (value(from) + y[k] + (y[k + 1] - y[k]) / (x[k + 1] - x[k]) * (to - x[k])) * (to - from);
    from = to;
  }
  return at < 0.0 ? -sum : sum;
}

namespace checks {

void check_characteristic(const Characteristic& table, const std::string& field, const char* abscissa) {
  if (table.x.size() != table.y.size())
    throw MechanismError(field,
                         "has " + std::to_string(table.x.size()) + " values of " + abscissa + " and " +
                             std::to_string(table.y.size()) + " of effort",
                         "give as many of each");
  if (table.x.size() == 1) throw MechanismError(field, "has one point", "give two at least");
  for (std::size_t k = 0; k < table.x.size(); ++k) {
    if (!std::isfinite(table.x[k]) || !std::isfinite(table.y[k]))
      throw MechanismError(field, "has a value that is not finite", "write finite numbers");
    if (k > 0 && !(table.x[k] > table.x[k - 1]))
      throw MechanismError(field + "." + abscissa,
                           std::string(abscissa) + " " + number(table.x[k]) + " follows " + number(table.x[k - 1]),
                           "sort the points so that it grows, and keep one of those that are equal");
  }
}

}  // namespace checks

}  // namespace rigstep
