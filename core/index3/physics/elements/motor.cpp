#include "core/index3/physics/elements/motor.h"

#include <limits>

namespace rigstep::index3 {

namespace {

MotorNumbers<double> numbers_at(const Motor& motor, const double* inputs) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const auto held = [inputs](int channel) { return channel < 0 ? 0.0 : inputs[channel]; };
  const bool is_limited = motor.effort_limit != 0.0, slows = is_limited && motor.no_load_speed > 0.0;
  return {motor.constant + held(motor.effort_input),
          held(motor.position_input),
          held(motor.rate_input),
          motor.position_gain,
          motor.rate_gain,
          is_limited ? motor.effort_limit : kNone,
          slows ? motor.no_load_speed : kNone};
}

}  // namespace

ScalarEffort motor_effort(const Motor& motor, double x, double v, const double* inputs) noexcept {
  return motor_law(numbers_at(motor, inputs), x, v);
}

Connectivity connectivity(const Motor& motor, const NoConstants&) {
  return connectivity_of_scalar(motor, motor.coordinate);
}

bool slopes_change(const Motor&) { return true; }

EvaluatedScalar evaluate(const Motor& motor, const NoConstants&, const Surroundings& at) noexcept {
  const Coordinate& x = at.coordinate[motor.coordinate];
  return {x, motor_effort(motor, x.value, x.rate, at.input)};
}

NumbersOfLaw law_numbers(const Motor& motor, const double* inputs) noexcept {
  const MotorNumbers<double> n = numbers_at(motor, inputs);
  return {n.feed_forward, n.position, n.rate, n.position_gain, n.rate_gain, n.effort_limit, n.no_load_speed};
}

ElementReading apply(const Motor& motor, const NoConstants&, const EvaluatedScalar& now, const Surroundings&,
                     const Loads& loads) noexcept {
  return apply_scalar(motor.first, motor.second, now.x, now.x.value, now.effort.effort, loads);
}

void add_tangent(const Motor& motor, const NoConstants&, const EvaluatedScalar& now, const Surroundings&,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept {
  if (on_ground(motor)) add_own_blocks(motor, now.x, now.tangent(factors), tangents);
}

void evaluate_rows(const Motor&, const NoConstants&, const EvaluatedScalar& now, const Surroundings&,
                   const TangentFactors& factors, ElementRows rows) noexcept {
  set_row(now.x, now.tangent(factors), rows);
}

}  // namespace rigstep::index3
