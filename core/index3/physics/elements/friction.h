// Friction along a joint freedom in a step. Prepared at load time, called in the loop.
#pragma once

#include "core/index3/physics/elements/element.h"
#include "core/mechanism/elements/friction.h"

namespace rigstep::index3 {

template <>
struct Stepped<JointFriction> {
  using Reading = ElementReading;
  using Constants = NoConstants;
  using Evaluated = EvaluatedScalar;
  static constexpr int kMostRows = 1;
  static constexpr Law kLaw = Law::friction;
};

ScalarEffort friction_effort(const JointFriction& friction, double v) noexcept;

inline NoConstants prepare(const JointFriction&, double) { return {}; }
Connectivity connectivity(const JointFriction& friction, const NoConstants& constants);
bool slopes_change(const JointFriction& friction);
inline int coordinate_of_tangent(const JointFriction& friction) { return friction.coordinate; }
NumbersOfLaw law_numbers(const JointFriction& friction, const double* inputs) noexcept;
EvaluatedScalar evaluate(const JointFriction& friction, const NoConstants& constants, const Surroundings& at) noexcept;
ElementReading apply(const JointFriction& friction, const NoConstants& constants, const EvaluatedScalar& now,
                     const Surroundings& at, const Loads& loads) noexcept;
void add_tangent(const JointFriction& friction, const NoConstants& constants, const EvaluatedScalar& now,
                 const Surroundings& at, const TangentFactors& factors, const OwnTangents& tangents) noexcept;
void evaluate_rows(const JointFriction& friction, const NoConstants& constants, const EvaluatedScalar& now,
                   const Surroundings& at, const TangentFactors& factors, ElementRows rows) noexcept;
inline double energy(const JointFriction&, const ElementReading&, const Surroundings&) noexcept { return 0.0; }

}  // namespace rigstep::index3
