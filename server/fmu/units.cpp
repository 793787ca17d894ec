#include "server/fmu/units.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <numbers>

namespace rigstep::server {

namespace {

struct Named {
  std::string_view name;
  BaseUnit unit;  // exponents of kg m s A K mol cd rad, factor
};

constexpr double kDegree = std::numbers::pi / 180.0;
constexpr Named kUnits[] = {
    {"kg", {{1, 0, 0, 0, 0, 0, 0, 0}, 1.0}},
    {"g", {{1, 0, 0, 0, 0, 0, 0, 0}, 1e-3}},
    {"t", {{1, 0, 0, 0, 0, 0, 0, 0}, 1e3}},
    {"m", {{0, 1, 0, 0, 0, 0, 0, 0}, 1.0}},
    {"mm", {{0, 1, 0, 0, 0, 0, 0, 0}, 1e-3}},
    {"cm", {{0, 1, 0, 0, 0, 0, 0, 0}, 1e-2}},
    {"km", {{0, 1, 0, 0, 0, 0, 0, 0}, 1e3}},
    {"s", {{0, 0, 1, 0, 0, 0, 0, 0}, 1.0}},
    {"ms", {{0, 0, 1, 0, 0, 0, 0, 0}, 1e-3}},
    {"min", {{0, 0, 1, 0, 0, 0, 0, 0}, 60.0}},
    {"h", {{0, 0, 1, 0, 0, 0, 0, 0}, 3600.0}},
    {"A", {{0, 0, 0, 1, 0, 0, 0, 0}, 1.0}},
    {"mA", {{0, 0, 0, 1, 0, 0, 0, 0}, 1e-3}},
    {"K", {{0, 0, 0, 0, 1, 0, 0, 0}, 1.0}},
    {"mol", {{0, 0, 0, 0, 0, 1, 0, 0}, 1.0}},
    {"cd", {{0, 0, 0, 0, 0, 0, 1, 0}, 1.0}},
    {"rad", {{0, 0, 0, 0, 0, 0, 0, 1}, 1.0}},
    {"deg", {{0, 0, 0, 0, 0, 0, 0, 1}, kDegree}},
    {"rev", {{0, 0, 0, 0, 0, 0, 0, 1}, 360.0 * kDegree}},
    {"N", {{1, 1, -2, 0, 0, 0, 0, 0}, 1.0}},
    {"kN", {{1, 1, -2, 0, 0, 0, 0, 0}, 1e3}},
    {"J", {{1, 2, -2, 0, 0, 0, 0, 0}, 1.0}},
    {"W", {{1, 2, -3, 0, 0, 0, 0, 0}, 1.0}},
    {"kW", {{1, 2, -3, 0, 0, 0, 0, 0}, 1e3}},
    {"Pa", {{1, -1, -2, 0, 0, 0, 0, 0}, 1.0}},
    {"bar", {{1, -1, -2, 0, 0, 0, 0, 0}, 1e5}},
    {"V", {{1, 2, -3, -1, 0, 0, 0, 0}, 1.0}},
    {"Ohm", {{1, 2, -3, -2, 0, 0, 0, 0}, 1.0}},
    {"Hz", {{0, 0, -1, 0, 0, 0, 0, 0}, 1.0}},
    {"%", {{0, 0, 0, 0, 0, 0, 0, 0}, 1e-2}},
    {"1", {{0, 0, 0, 0, 0, 0, 0, 0}, 1.0}},
    {"-", {{0, 0, 0, 0, 0, 0, 0, 0}, 1.0}},
};

// "m^2": the unit and its exponent
std::optional<BaseUnit> factor_of(std::string_view text) {
  int exponent = 1;
  if (const std::size_t at = text.find('^'); at != std::string_view::npos) {
    const std::string_view digits = text.substr(at + 1);
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), exponent);
    if (error != std::errc() || end != digits.end() || std::abs(exponent) > 9) return {};
    text = text.substr(0, at);
  }
  for (const Named& named : kUnits)
    if (named.name == text) {
      BaseUnit power = named.unit;
      for (int& e : power.exponent) e *= exponent;
      power.factor = std::pow(power.factor, exponent);
      return power;
    }
  return {};
}

}  // namespace

std::optional<BaseUnit> base_unit_of(std::string_view unit) {
  BaseUnit product;
  int sign = 1;
  bool any = false;
  for (std::size_t at = 0; at < unit.size();) {
    if (unit[at] == ' ' || unit[at] == '*' || unit[at] == '(' || unit[at] == ')') {
      ++at;
    } else if (unit[at] == '/') {
      sign = -1;
      ++at;
    } else {
      const std::size_t end = std::min(unit.find_first_of(" */()", at), unit.size());
      const std::optional<BaseUnit> factor = factor_of(unit.substr(at, end - at));
      if (!factor) return {};
      for (std::size_t k = 0; k < product.exponent.size(); ++k) product.exponent[k] += sign * factor->exponent[k];
      product.factor *= std::pow(factor->factor, sign);
      any = true;
      at = end;
    }
  }
  return any ? std::optional(product) : std::nullopt;
}

}  // namespace rigstep::server
