#include "core/index3/physics/elements/motor.h"

#include <algorithm>

namespace rigstep::index3 {

namespace {

ScalarTangent tangent(const Motor& motor, const Surroundings& at, const TangentFactors& factors) {
  Coordinate x = followed_coordinate(motor.coordinate, motor.first, motor.second, at);
  x.value = current_coordinate(motor.coordinate, at);
  const ScalarEffort e = motor_effort(motor, x.value, x.rate, at.input);
  return {x, factors.stiffness * e.stiffness + factors.damping * e.damping};
}

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

Connectivity connectivity(const Motor& motor, const NoConstants&) { return connectivity_of_scalar(motor, true); }

bool slopes_change(const Motor&) { return true; }

ElementReading apply(const Motor& motor, const NoConstants&, const Surroundings& at, const Loads& loads) noexcept {
  const Coordinate x = followed_coordinate(motor.coordinate, motor.first, motor.second, at);
  return apply_scalar(motor.first, motor.second, x, x.value, motor_effort(motor, x.value, x.rate, at.input).effort,
                      loads);
}

void add_tangent(const Motor& motor, const NoConstants&, const Surroundings& at, const TangentFactors& factors,
                 const OwnTangents& tangents) noexcept {
  if (on_ground(motor)) add_own_blocks(motor, tangent(motor, at, factors), tangents);
}

void evaluate_rows(const Motor& motor, const NoConstants&, const Surroundings& at, const TangentFactors& factors,
                   ElementRows rows) noexcept {
  set_row(tangent(motor, at, factors), rows);
}

}  // namespace rigstep::index3
