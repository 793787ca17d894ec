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

constexpr double kNear = 1e-4;  // of the table's range, around its points. Chosen: only Newton's tangent depends on it

}  // namespace

double Characteristic::slope_of_piece(std::size_t piece) const noexcept {
  return (y[piece + 1] - y[piece]) / (x[piece + 1] - x[piece]);
}

double Characteristic::near() const noexcept { return kNear * (x.back() - x.front()); }

// A slope that jumps at a point of the table would change with rounding where a mechanism rests there.
double Characteristic::slope(double at) const noexcept {
  if (empty()) return 0.0;
  const std::size_t left = piece(x, at - near()), right = piece(x, at + near());
  const double on_left = slope_of_piece(left), on_right = slope_of_piece(right);
  if (left == right) return on_left;
  const double share = std::clamp(0.5 + 0.5 * (at - x[right]) / near(), 0.0, 1.0);
  return on_left + share * (on_right - on_left);
}

double Characteristic::value(double at) const noexcept {
  if (empty()) return 0.0;
  const std::size_t k = piece(x, at);
  return y[k] + slope_of_piece(k) * (at - x[k]);
}

double Characteristic::integral(double at) const noexcept {
  if (empty()) return 0.0;
  // trapezia over whole pieces are exact; from 0 to `at`, backwards if `at` is negative
  const double low = std::min(0.0, at), high = std::max(0.0, at);
  double sum = 0.0, from = low;
  while (from < high) {
    const std::size_t k = piece(x, from);
    const double to = k + 2 < x.size() ? std::min(high, x[k + 1]) : high;
    sum += 0.5 * (value(from) + y[k] + slope_of_piece(k) * (to - x[k])) * (to - from);
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
