// Measured characteristics of springs and dampers. Part of the description: immutable once checked.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rigstep {

// A measured characteristic y(x): piecewise linear between its points, the first and the last slope go on outside.
// Empty: zero everywhere.
struct Characteristic {
  std::vector<double> x;  // strictly increasing, at least two
  std::vector<double> y;  // as many

  bool empty() const { return x.empty(); }
  double value(double at) const noexcept;
  double slope(double at) const noexcept;     // near a point of the table between those of both sides, half-way at it
  double integral(double at) const noexcept;  // of value from 0 to `at`

  double slope_of_piece(std::size_t piece) const noexcept;  // from point number `piece` to the next one
  double near() const noexcept;                             // how far around a point its two slopes are mixed
};

namespace checks {

// Strictly increasing abscissae, as many ordinates, all finite; empty is no table. Throws MechanismError.
void check_characteristic(const Characteristic& table, const std::string& field, const char* abscissa);

}  // namespace checks

}  // namespace rigstep
