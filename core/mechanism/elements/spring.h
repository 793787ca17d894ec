// A spring and damper: description, checks, identity and output channels. In SI units.
#pragma once

#include "core/mechanism/characteristic.h"
#include "core/mechanism/elements/element.h"

namespace rigstep {

// A spring and damper on one scalar, linear parts and measured characteristics added:
// effort = preload - stiffness (x - rest) - stiffness_table(x - rest) - damping dx/dt - damping_table(dx/dt).
struct Spring {
  static constexpr const char* kName = "spring";  // in the schema
  static constexpr const char* kPlural = "springs";
  static constexpr bool kIsScalar = true;
  enum class Kind {
    between_points,   // x: distance of the two points [m]
    along_direction,  // x: (second point - first point) . direction_0 [m]; the force has that direction
    in_joint,         // x: a joint coordinate [m] or [rad]
  };
  std::string name;
  Kind kind = Kind::between_points;
  int first = kGround;  // bodies; for in_joint those of the joint
  int second = kGround;
  Vec3 first_point_b = Vec3::Zero();  // from the mass centre, body frame; ground: world frame [m]
  Vec3 second_point_b = Vec3::Zero();
  Vec3 direction_0 = Vec3::UnitZ();  // unit, world frame
  int coordinate = -1;               // in_joint: index into Mechanism::coordinates()
  double stiffness = 0.0;            // [N/m] or [N m/rad]
  double damping = 0.0;              // [N s/m] or [N m s/rad]
  double rest = 0.0;                 // x from which the deflection x - rest counts [m] or [rad]
  double preload = 0.0;              // effort at rest; positive pushes the ends apart [N] or [N m]
  Characteristic stiffness_table;    // opposing effort [N] or [N m] over deflection [m] or [rad]
  Characteristic damping_table;      // opposing effort over rate [m/s] or [rad/s]
};

// Between two bodies.
void connect(Spring& spring, MechanismBuilder& builder, const std::string& first, const std::string& second);
// Along a joint freedom.
void connect(Spring& spring, MechanismBuilder& builder, const std::string& joint, Freedom freedom);

void check_numbers(const Spring& spring);
std::span<const Number<Spring>> numbers(const Spring& spring);
void add(ContentHash& hash, const Spring& spring);
std::vector<Channel> channels(const Spring& spring, const Mechanism& mechanism);

}  // namespace rigstep
