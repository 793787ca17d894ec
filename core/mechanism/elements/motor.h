// A motor: description, checks, identity and output channels. In SI units.
#pragma once

#include "core/mechanism/elements/element.h"

namespace rigstep {

// A motor or actuator along a joint freedom x with rate v:
//   command = constant + effort input + position_gain (position input - x) + rate_gain (rate input - v)
//   effort  = command, kept within -limit(-v) .. limit(v)
//   limit(v) = effort_limit clamp(1 - v / no_load_speed, 0, 1): the whole limit below standstill, none at no-load speed
struct Motor {
  static constexpr const char* kName = "motor";  // in the schema
  static constexpr const char* kPlural = "motors";
  static constexpr bool kIsScalar = true;
  std::string name;
  int coordinate = -1;  // index into Mechanism::coordinates()
  int first = -1;       // bodies of the joint
  int second = -1;
  double constant = 0.0;       // [N] or [N m]
  int effort_input = -1;       // input channel [N] or [N m]; -1: none
  int position_input = -1;     // [m] or [rad]; -1: the target is 0
  int rate_input = -1;         // [m/s] or [rad/s]; -1: the target is 0
  double position_gain = 0.0;  // [N/m] or [N m/rad]
  double rate_gain = 0.0;      // [N s/m] or [N m s/rad]
  double effort_limit = 0.0;   // [N] or [N m]; 0: none
  double no_load_speed = 0.0;  // [m/s] or [rad/s]; 0: the limit does not depend on speed
};

// Channel names; empty: none. They refer to inputs added before.
struct MotorInputs {
  std::string effort, position, rate;
};

void connect(Motor& motor, MechanismBuilder& builder, const std::string& joint, Freedom freedom,
             const MotorInputs& inputs);

void check_numbers(const Motor& motor);
std::span<const Number<Motor>> numbers(const Motor& motor);
void add(ContentHash& hash, const Motor& motor);
std::vector<Channel> channels(const Motor& motor, const Mechanism& mechanism);

}  // namespace rigstep
