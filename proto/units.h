// Units as people write them behind a number: what they measure, and how to get SI from them without a digit lost. Load
// time only.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace rigstep::config {

// A product of powers of m, kg, s and rad, times 10^exponent, times numerator / denominator.
struct Unit {
  std::array<int, 4> power{0, 0, 0, 0};  // m, kg, s, rad
  int exponent = 0;
  double numerator = 1.0, denominator = 1.0;  // degrees, minutes and turns are no power of ten

  bool measures_as(const Unit& other) const { return power == other.power; }
  bool is_si() const { return exponent == 0 && numerator == denominator; }
};

// "N m/rad", "kN/m", "m/s^2", "deg"; "-" and "" are those of a plain number. std::nullopt: not known.
std::optional<Unit> parse_unit(std::string_view text);

// The first part of a unit that is not known, and the nearest ones that are: "mmm" of "N/mmm".
struct UnknownUnit {
  std::string written;
  std::string nearest;  // "mm, m, km"
};
UnknownUnit find_unknown(std::string_view text);

// What is measured, for people, of the units that occur often: "a length"; empty: no word for it.
std::string quantity(const Unit& unit);

// The decimal number `written` in `unit` as a number in `target`, which measures the same: for powers of ten the same
// digits with another exponent, so that 250 mm is the number that 0.25 m is.
std::string converted(std::string_view written, const Unit& unit, const Unit& target);

// The shortest decimal number that is `value`.
// Of decimal digits with or without an exponent, whatever the locale of the process is; too large ones are infinite.
double decimal_number(std::string_view text);
std::string shortest(double value);

// The shortest decimal number in `unit` that converted() makes `value` [`target`] of again, or the nearest one.
std::string shortest(double value, const Unit& unit, const Unit& target);

}  // namespace rigstep::config
