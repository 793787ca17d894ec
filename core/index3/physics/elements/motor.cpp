#include "core/index3/physics/elements/motor.h"

#include <algorithm>

namespace rigstep::index3 {

namespace {

double input_value(const double* inputs, int channel) { return channel < 0 ? 0.0 : inputs[channel]; }

}  // namespace

ScalarEffort motor_effort(const Motor& motor, double x, double v, const double* inputs) noexcept {
  const double command = motor.constant + input_value(inputs, motor.effort_input) +
                         motor.position_gain * (input_value(inputs, motor.position_input) - x) +
                         motor.rate_gain * (input_value(inputs, motor.rate_input) - v);
  if (motor.effort_limit == 0.0) return {command, motor.position_gain, motor.rate_gain};
  const auto room = [&motor](double speed) {
    return motor.no_load_speed > 0.0 ? std::clamp(1.0 - speed / motor.no_load_speed, 0.0, 1.0) : 1.0;
  };
  const auto at_limit = [&motor](double effort, double share) {
    const bool falls = motor.no_load_speed > 0.0 && share > 0.0 && share < 1.0;
    return ScalarEffort{effort, 0.0, falls ? motor.effort_limit / motor.no_load_speed : 0.0};
  };
  const double high = motor.effort_limit * room(v), low = -motor.effort_limit * room(-v);
  if (command > high) return at_limit(high, room(v));
  if (command < low) return at_limit(low, room(-v));
  return {command, motor.position_gain, motor.rate_gain};
}

Connectivity connectivity(const Motor& motor, const NoConstants&) {
  return connectivity_of_scalar(motor, motor.coordinate);
}

bool slopes_change(const Motor&) { return true; }

EvaluatedScalar evaluate(const Motor& motor, const NoConstants&, const Surroundings& at) noexcept {
  const Coordinate& x = at.coordinate[motor.coordinate];
  return {x, motor_effort(motor, x.value, x.rate, at.input)};
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
