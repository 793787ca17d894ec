// The numbers of a description that a parameter may name, one table for each type of their owners: force elements have
// theirs in their own files, everything else in numbers.cpp. Load time; what `at` gives may be written in the loop.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/mechanism/time_function.h"
#include "core/mechanism/types.h"

namespace rigstep {

// When a parameter may change a number.
enum class Changes : std::uint8_t {
  tunable,               // between two steps
  tunable_but_not_zero,  // likewise; zero says something else than a small number, so that no range may hold it
  fixed,                 // only before the start
  fixed_but_not_zero,
};

constexpr bool is_tunable(Changes changes) {
  return changes == Changes::tunable || changes == Changes::tunable_but_not_zero;
}
constexpr bool excludes_zero(Changes changes) {
  return changes == Changes::tunable_but_not_zero || changes == Changes::fixed_but_not_zero;
}

// The unit of a number of something that acts along a length, and along an angle.
struct UnitPair {
  const char* along_length;
  const char* along_angle;
};
constexpr UnitPair unit_of(const char* unit) { return {unit, unit}; }

inline constexpr UnitPair kLengthOrAngle{"m", "rad"};
inline constexpr UnitPair kRate{"m/s", "rad/s"};
inline constexpr UnitPair kEffort{"N", "N m"};
inline constexpr UnitPair kStiffness{"N/m", "N m/rad"};
inline constexpr UnitPair kDamping{"N s/m", "N m s/rad"};

template <class Owner>
struct Number {
  const char* name;  // as the file calls it, from its owner on; of a repeated field with [] for the index
  UnitPair unit;
  Changes changes;
  double* (*at)(Owner& owner, int index);      // index: 0 but for a repeated field
  int (*count)(const Owner& owner) = nullptr;  // how many there are; null: one
};

// What `at` is of a member, of a member of a member, of a component of a vector and of a diagonal element.
template <class Owner, auto Member>
double* member(Owner& owner, int) {
  return &(owner.*Member);
}
template <class Owner, auto Outer, auto Inner>
double* nested(Owner& owner, int) {
  return &((owner.*Outer).*Inner);
}
template <class Owner, auto Member, int kComponent>
double* component(Owner& owner, int) {
  return &(owner.*Member)[kComponent];
}
template <class Owner, auto Outer, auto Inner, int kComponent>
double* nested_component(Owner& owner, int) {
  return &((owner.*Outer).*Inner)[kComponent];
}
template <class Owner, auto Member, int kRow>
double* diagonal(Owner& owner, int) {
  return &(owner.*Member)(kRow, kRow);
}

// ... of the index-th harmonic of a function of time, and of a coefficient of its first polynomial.
template <class Owner, auto Function, auto OfTerm>
double* of_harmonic(Owner& owner, int index) {
  for (TimeFunction::Term& term : (owner.*Function).terms)
    if (term.kind == TimeFunction::Term::Kind::harmonic && index-- == 0) return &(term.*OfTerm);
  return nullptr;
}
template <class Owner, auto Function>
int harmonics(const Owner& owner) {
  int count = 0;
  for (const TimeFunction::Term& term : (owner.*Function).terms)
    if (term.kind == TimeFunction::Term::Kind::harmonic) ++count;
  return count;
}
template <class Owner, auto Function>
double* of_polynomial(Owner& owner, int index) {
  for (TimeFunction::Term& term : (owner.*Function).terms)
    if (term.kind == TimeFunction::Term::Kind::polynomial) return &term.coefficient[static_cast<std::size_t>(index)];
  return nullptr;
}
template <class Owner, auto Function>
int coefficients(const Owner& owner) {
  for (const TimeFunction::Term& term : (owner.*Function).terms)
    if (term.kind == TimeFunction::Term::Kind::polynomial) return static_cast<int>(term.coefficient.size());
  return 0;
}

}  // namespace rigstep
