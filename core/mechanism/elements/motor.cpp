#include "core/mechanism/elements/motor.h"

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

namespace {

using checks::require_finite;
using checks::require_not_negative;

}  // namespace

void check_numbers(const Motor& motor) {
  require_finite(motor.constant, "constant");
  require_not_negative(motor.position_gain, "position_gain");
  require_not_negative(motor.rate_gain, "rate_gain");
  require_not_negative(motor.effort_limit, "effort_limit");
  require_not_negative(motor.no_load_speed, "no_load_speed");
  if (motor.no_load_speed > 0.0 && motor.effort_limit == 0.0)
    throw MechanismError("no_load_speed", "stands without effort_limit", "give the effort at standstill, effort_limit");
}

std::span<const Number<Motor>> numbers(const Motor&) {
  static constexpr Number<Motor> kNumbers[] = {
      {"constant", kEffort, Changes::tunable, member<Motor, &Motor::constant>},
      {"position_gain", kStiffness, Changes::tunable, member<Motor, &Motor::position_gain>},
      {"rate_gain", kDamping, Changes::tunable, member<Motor, &Motor::rate_gain>},
      {"effort_limit", kEffort, Changes::tunable_but_not_zero, member<Motor, &Motor::effort_limit>},
      {"no_load_speed", kRate, Changes::tunable_but_not_zero, member<Motor, &Motor::no_load_speed>},
  };
  return kNumbers;
}

void connect(Motor& motor, MechanismBuilder& builder, const std::string& joint, Freedom freedom,
             const MotorInputs& inputs) {
  check_numbers(motor);
  motor.effort_input = builder.find_input(inputs.effort, "effort_input");
  motor.position_input = builder.find_input(inputs.position, "position_input");
  motor.rate_input = builder.find_input(inputs.rate, "rate_input");
  if (motor.position_input >= 0 && motor.position_gain == 0.0)
    throw MechanismError("position_input", "has no effect without position_gain", "give position_gain");
  if (motor.rate_input >= 0 && motor.rate_gain == 0.0)
    throw MechanismError("rate_input", "has no effect without rate_gain", "give rate_gain");
  const AlongFreedom along = builder.along(joint, freedom);
  motor.coordinate = along.coordinate;
  motor.first = along.first;
  motor.second = along.second;
}

void add(ContentHash& hash, const Motor& motor) {
  hash.add(motor.name);
  hash.integers({motor.coordinate, motor.effort_input, motor.position_input, motor.rate_input});
  hash.numbers({motor.constant, motor.position_gain, motor.rate_gain, motor.effort_limit, motor.no_load_speed});
}

std::vector<Channel> channels(const Motor& motor, const Mechanism& mechanism) {
  return scalar_channels(mechanism, motor.coordinate);
}

}  // namespace rigstep
