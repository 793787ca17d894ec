// A motor in a step. Prepared at load time, called in the loop.
#pragma once

#include "core/index3/physics/elements/element.h"
#include "core/mechanism/elements/motor.h"

namespace rigstep::index3 {

template <>
struct Stepped<Motor> {
  using Reading = ElementReading;
  using Constants = NoConstants;
  using Evaluated = EvaluatedScalar;
  static constexpr int kMostRows = 1;
  static constexpr Law kLaw = Law::motor;
};

// inputs: values of the input channels
ScalarEffort motor_effort(const Motor& motor, double x, double v, const double* inputs) noexcept;

inline NoConstants prepare(const Motor&, double) { return {}; }
Connectivity connectivity(const Motor& motor, const NoConstants& constants);
bool slopes_change(const Motor& motor);
inline int coordinate_of_tangent(const Motor& motor) { return motor.coordinate; }
NumbersOfLaw law_numbers(const Motor& motor, const double* inputs) noexcept;
EvaluatedScalar evaluate(const Motor& motor, const NoConstants& constants, const Surroundings& at) noexcept;
ElementReading apply(const Motor& motor, const NoConstants& constants, const EvaluatedScalar& now,
                     const Surroundings& at, const Loads& loads) noexcept;
void add_tangent(const Motor& motor, const NoConstants& constants, const EvaluatedScalar& now, const Surroundings& at,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept;
void evaluate_rows(const Motor& motor, const NoConstants& constants, const EvaluatedScalar& now, const Surroundings& at,
                   const TangentFactors& factors, ElementRows rows) noexcept;
inline double energy(const Motor&, const ElementReading&, const Surroundings&) noexcept { return 0.0; }

}  // namespace rigstep::index3
