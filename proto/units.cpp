#include "proto/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "core/mechanism/nearest_names.h"
#include "core/mechanism/portable_math.h"

namespace rigstep::config {
namespace {

struct NamedUnit {
  std::string_view name;
  Unit unit;
};

constexpr Unit unit(std::array<int, 4> power, int exponent = 0, double numerator = 1.0, double denominator = 1.0) {
  return {power, exponent, numerator, denominator};
}

constexpr std::array<int, 4> kLength{1, 0, 0, 0}, kMass{0, 1, 0, 0}, kTime{0, 0, 1, 0}, kAngle{0, 0, 0, 1},
    kForce{1, 1, -2, 0}, kTorque{2, 1, -2, 0}, kTurning{0, 0, -1, 1};

constexpr NamedUnit kUnits[] = {
    {"m", unit(kLength)},
    {"mm", unit(kLength, -3)},
    {"cm", unit(kLength, -2)},
    {"um", unit(kLength, -6)},
    {"km", unit(kLength, 3)},
    {"kg", unit(kMass)},
    {"g", unit(kMass, -3)},
    {"mg", unit(kMass, -6)},
    {"t", unit(kMass, 3)},
    {"s", unit(kTime)},
    {"ms", unit(kTime, -3)},
    {"us", unit(kTime, -6)},
    {"min", unit(kTime, 0, 60.0)},
    {"h", unit(kTime, 0, 3600.0)},
    {"rad", unit(kAngle)},
    {"mrad", unit(kAngle, -3)},
    {"deg", unit(kAngle, 0, kPi, 180.0)},
    {"\u00b0", unit(kAngle, 0, kPi, 180.0)},
    {"rpm", unit(kTurning, 0, kPi, 30.0)},
    {"N", unit(kForce)},
    {"mN", unit(kForce, -3)},
    {"kN", unit(kForce, 3)},
    {"MN", unit(kForce, 6)},
    {"Nm", unit(kTorque)},
    {"mNm", unit(kTorque, -3)},
    {"kNm", unit(kTorque, 3)},
};

struct Term {
  std::string_view name;
  int power = 1;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "m", "s^2", "mm2"
std::optional<Term> term(std::string_view text) {
  std::size_t digits = text.size();
  while (digits > 0 && is_digit(text[digits - 1])) --digits;
  std::string_view name = text.substr(0, digits);
  if (!name.empty() && name.back() == '^') name.remove_suffix(1);
  if (name.empty() || (digits == text.size() && name.size() != text.size())) return std::nullopt;
  Term result{name, 1};
  if (digits < text.size()) {
    if (text.size() - digits > 1) return std::nullopt;
    result.power = text[digits] - '0';
  }
  return result;
}

const Unit* named(std::string_view name) {
  for (const NamedUnit& known : kUnits)
    if (known.name == name) return &known.unit;
  return nullptr;
}

// f(term's text, +1 or -1) for each factor. False: there is a '/' or '*' with nothing behind it.
template <class F>
bool for_each_term(std::string_view text, const F& f) {
  int sign = 1;
  bool wants_term = true;
  for (std::size_t k = 0; k < text.size();) {
    const char c = text[k];
    if (c == ' ' || c == '\t') {
      ++k;
    } else if (c == '*' || c == '/') {
      if (wants_term) return false;
      sign = c == '/' ? -1 : 1;
      wants_term = true;
      ++k;
    } else {
      const std::size_t end = std::min(text.find_first_of(" \t*/", k), text.size());
      f(text.substr(k, end - k), sign);
      sign = 1;
      wants_term = false;
      k = end;
    }
  }
  return !wants_term;
}

void multiply(Unit& product, const Unit& factor, int power) {
  for (std::size_t k = 0; k < product.power.size(); ++k) product.power[k] += power * factor.power[k];
  product.exponent += power * factor.exponent;
  for (int k = 0; k < std::abs(power); ++k) {
    product.numerator *= power > 0 ? factor.numerator : factor.denominator;
    product.denominator *= power > 0 ? factor.denominator : factor.numerator;
  }
}

// Digits and exponent of a decimal number: "2.5e3" is "2.5" and 3.
std::pair<std::string, int> split(std::string_view written) {
  const std::size_t at = written.find_first_of("eE");
  if (at == written.npos) return {std::string(written), 0};
  int exponent = 0;
  std::string_view digits = written.substr(at + 1);
  if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
  std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  return {std::string(written.substr(0, at)), std::clamp(exponent, -5000, 5000)};
}

}  // namespace

std::optional<Unit> parse_unit(std::string_view text) {
  Unit product;
  if (text.empty() || text == "-") return product;
  bool is_known = true;
  const bool is_whole = for_each_term(text, [&](std::string_view part, int sign) {
    const auto factor = term(part);
    const Unit* known = factor ? named(factor->name) : nullptr;
    if (known != nullptr)
      multiply(product, *known, sign * factor->power);
    else
      is_known = false;
  });
  if (!is_known || !is_whole) return std::nullopt;
  return product;
}

UnknownUnit find_unknown(std::string_view text) {
  UnknownUnit unknown{std::string(text), "m, kg, s, rad, N"};
  bool is_found = false;
  for_each_term(text, [&](std::string_view part, int) {
    const auto factor = term(part);
    if (is_found || (factor && named(factor->name) != nullptr)) return;
    is_found = true;
    std::vector<std::string> names;
    for (const NamedUnit& known : kUnits) names.emplace_back(known.name);
    unknown.written = std::string(part);
    unknown.nearest.clear();
    for (const std::string& name : nearest_names(names, factor ? factor->name : part))
      unknown.nearest += (unknown.nearest.empty() ? "" : ", ") + name;
  });
  return unknown;
}

std::string quantity(const Unit& unit) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"-", "a plain number"},
      {"m", "a length"},
      {"m/s", "a velocity"},
      {"m/s^2", "an acceleration"},
      {"kg", "a mass"},
      {"kg/m^3", "a density"},
      {"kg m^2", "a moment of inertia"},
      {"s", "a time"},
      {"rad", "an angle"},
      {"rad/s", "an angular velocity"},
      {"N", "a force"},
      {"N m", "a torque"},
      {"N/m", "the stiffness of a displacement"},
      {"N m/rad", "the stiffness of an angle"},
      {"N s/m", "the damping of a displacement"},
      {"N m s/rad", "the damping of an angle"},
      {"m^2", "an area"},
  };
  for (const auto& [text, word] : kWords)
    if (parse_unit(text)->measures_as(unit)) return std::string(word);
  return {};
}

std::string converted(std::string_view written, const Unit& unit, const Unit& target) {
  const auto [digits, exponent] = split(written);
  const int shifted = exponent + unit.exponent - target.exponent;
  const std::string decimal = shifted == 0 ? digits : digits + "e" + std::to_string(shifted);
  if (unit.numerator == unit.denominator && target.numerator == target.denominator) return decimal;
  double value = decimal_number(decimal) * (unit.numerator * target.denominator);
  value /= unit.denominator * target.numerator;
  return shortest(value);
}

double decimal_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0.0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc::result_out_of_range) return value;
  const bool is_negative = text.starts_with('-');
  const std::string_view digits = text.substr(is_negative ? 1 : 0);
  if (digits.find("e-") != digits.npos || digits.starts_with("0.") || digits.starts_with('.')) return 0.0;
  return is_negative ? -HUGE_VAL : HUGE_VAL;
}

std::string shortest(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

std::string shortest(double value, const Unit& unit, const Unit& target) {
  const std::string plain = converted(shortest(value), target, unit);
  const double in_unit = decimal_number(plain);
  for (int digits = 1; digits < 17; ++digits) {
    char text[40];
    const auto end = std::to_chars(text, text + sizeof text, in_unit, std::chars_format::general, digits);
    const std::string shorter = shortest(decimal_number({text, end.ptr}));
    if (decimal_number(converted(shorter, unit, target)) == value) return shorter;
  }
  return shortest(in_unit);
}

}  // namespace rigstep::config
