// Friction along a joint freedom: description, checks, identity and output channels. In SI units.
#pragma once

#include "core/mechanism/elements/element.h"

namespace rigstep {

// Friction along a joint freedom, regularised Coulomb: effort = -coulomb v / sqrt(v^2 + v_r^2) - viscous v.
// Below about v_r it creeps instead of sticking: under a load P < coulomb at v_r P / sqrt(coulomb^2 - P^2).
struct JointFriction {
  static constexpr const char* kName = "joint_friction";  // in the schema
  static constexpr const char* kPlural = "frictions";
  static constexpr bool kIsScalar = true;
  std::string name;
  int coordinate = -1;  // index into Mechanism::coordinates()
  int first = -1;       // bodies of the joint
  int second = -1;
  double coulomb = 0.0;                // [N] or [N m]
  double viscous = 0.0;                // [N s/m] or [N m s/rad]
  double regularisation_speed = 1e-3;  // v_r [m/s] or [rad/s]
};

void connect(JointFriction& friction, MechanismBuilder& builder, const std::string& joint, Freedom freedom);

void check_numbers(const JointFriction& friction);
std::span<const Number<JointFriction>> numbers(const JointFriction& friction);
void add(ContentHash& hash, const JointFriction& friction);
std::vector<Channel> channels(const JointFriction& friction, const Mechanism& mechanism);

}  // namespace rigstep
