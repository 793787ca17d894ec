// What the builder's checks of all elements share. Load time.
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "core/mechanism/mechanism.h"

namespace rigstep::checks {

inline constexpr double kUnitTolerance =
    1e-6;  // how far a direction or quaternion read from a file may be from unit norm

inline std::string quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

inline std::string number(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6).ptr};
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
  if (!std::isfinite(norm)) throw MechanismError(field, "is too long for a direction", "give a unit vector");
  if (!(norm > 1e-12)) throw MechanismError(field, "has no direction", "give a vector that is not zero");
  return direction / norm;
}

template <class Element>
void require_new_name(const std::vector<Element>& elements, const std::string& name, const char* kind) {
  for (const Element& element : elements)
    if (element.name == name)
      throw MechanismError("name", std::string("another ") + kind + " is named " + checks::quoted(name),
                           "rename one of them");
}

template <class Element>
std::string names_of(const std::vector<Element>& elements) {
  std::string names;
  for (std::size_t i = 0; i < elements.size() && i < 12; ++i) names += (i ? ", " : "") + elements[i].name;
  return elements.size() > 12 ? names + ", ..." : names;
}

template <class Element>
int index_of(const std::vector<Element>& elements, const std::string& name) {
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i].name == name) return static_cast<int>(i);
  return -1;
}

template <class Element>
void append_names(const std::vector<Element>& elements, std::string& list) {
  for (const Element& element : elements) list += (list.empty() ? "" : ", ") + element.name;
}

}  // namespace rigstep::checks
