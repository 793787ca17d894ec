// What the builder's checks of all elements share. Load time.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

#include "core/mechanism/mechanism.h"

namespace rigstep::checks {

inline std::string quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

inline std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

inline void require_finite(const Eigen::Ref<const Eigen::MatrixXd>& value, const char* field) {
  if (!value.allFinite()) throw MechanismError(field, "is not a finite number", "write a finite number");
}

inline void require_finite(double value, const char* field) {
  if (!std::isfinite(value)) throw MechanismError(field, "is not a finite number", "write a finite number");
}

inline void require_not_negative(double value, const char* field) {
  if (!(value >= 0.0) || !std::isfinite(value))
    throw MechanismError(field, "is " + number(value), "give a finite number, zero or above");
}

inline void require_positive(double value, const char* field) {
  if (!(value > 0.0) || !std::isfinite(value))
    throw MechanismError(field, "is " + number(value), "give a finite number above zero");
}

inline Vec3 unit(const Vec3& direction, const char* field) {
  require_finite(direction, field);
  const double norm = direction.norm();
  if (!(norm > 1e-12)) throw MechanismError(field, "has no direction", "give a vector that is not zero");
  return direction / norm;
}

}  // namespace rigstep::checks
