// A spring and damper in a step. Prepared at load time, called in the loop.
#pragma once

#include "core/index3/physics/elements/element.h"
#include "core/mechanism/elements/spring.h"

namespace rigstep::index3 {

struct EvaluatedSpring : EvaluatedScalar {
  Vec3 arm_first, arm_second;  // between points: of these about the mass centres, world frame [m]
};

template <>
struct Stepped<Spring> {
  using Reading = ElementReading;
  using Constants = NoConstants;
  using Evaluated = EvaluatedSpring;
  static constexpr int kMostRows = 1;
  static constexpr Law kLaw = Law::spring;
};

// Its scalar: x, dx/dt, the gradients of x with respect to both bodies' delta.
Coordinate spring_coordinate(const Spring& spring, const Surroundings& at) noexcept;
ScalarEffort spring_effort(const Spring& spring, double x, double v) noexcept;

inline NoConstants prepare(const Spring&, double) { return {}; }
Connectivity connectivity(const Spring& spring, const NoConstants& constants);
bool slopes_change(const Spring& spring);
inline int coordinate_of_tangent(const Spring& spring) {
  return spring.kind == Spring::Kind::in_joint ? spring.coordinate : -1;
}
NumbersOfLaw law_numbers(const Spring& spring, const double* inputs) noexcept;
EvaluatedSpring evaluate(const Spring& spring, const NoConstants& constants, const Surroundings& at) noexcept;
ElementReading apply(const Spring& spring, const NoConstants& constants, const EvaluatedSpring& now,
                     const Surroundings& at, const Loads& loads) noexcept;
void add_tangent(const Spring& spring, const NoConstants& constants, const EvaluatedSpring& now, const Surroundings& at,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept;
void evaluate_rows(const Spring& spring, const NoConstants& constants, const EvaluatedSpring& now,
                   const Surroundings& at, const TangentFactors& factors, ElementRows rows) noexcept;
double energy(const Spring& spring, const ElementReading& reading, const Surroundings& at) noexcept;

}  // namespace rigstep::index3
