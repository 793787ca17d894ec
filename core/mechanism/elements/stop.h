// End stops: description, checks, identity and output channels. In SI units.
#pragma once

#include <limits>

#include "core/mechanism/elements/element.h"

namespace rigstep {

// End stops of one scalar x: a joint freedom, or the distance of two points. Nothing acts between the limits. Beyond a
// limit by a depth d > 0 the stop pushes back and never pulls, K. H. Hunt and F. R. E. Crossley, Coefficient of
// restitution interpreted as damping in vibroimpact, J. Appl. Mech. 42 (1975), with exponent 1:
//   effort = -+ stiffness d max(0, 1 + damping dd/dt)    - beyond the upper limit, + beyond the lower one
struct Stop {
  static constexpr const char* kName = "stop";  // in the schema
  static constexpr const char* kPlural = "stops";
  static constexpr bool kIsScalar = true;
  std::string name;
  int coordinate = -1;  // index into Mechanism::coordinates(); -1: the distance of the two points
  int first = kGround;  // bodies; of a freedom those of the joint
  int second = kGround;
  Vec3 first_point_b = Vec3::Zero();  // from the mass centre, body frame; ground: world frame [m]
  Vec3 second_point_b = Vec3::Zero();
  double lower = -std::numeric_limits<double>::infinity();  // [m] or [rad]; infinite: no stop on this side
  double upper = std::numeric_limits<double>::infinity();
  double stiffness = 0.0;  // [N/m] or [N m/rad]
  double damping = 0.0;    // [s/m] or [s/rad]

  bool is_along_freedom() const { return coordinate >= 0; }
};

// The damping [s/m] or [s/rad] with which what hits a stop at `speed` [m/s] or [rad/s] leaves it at restitution times
// this speed: the root u = damping speed of u (1 + e) = ln((1 + u) / (1 - u e)), from the energy that the law above
// takes. Faster impacts lose more, slower ones less. 0 < restitution <= 1.
double hunt_crossley_damping(double restitution, double speed);

// The distance of points of two bodies.
void connect(Stop& stop, MechanismBuilder& builder, const std::string& first, const std::string& second);
// A joint freedom.
void connect(Stop& stop, MechanismBuilder& builder, const std::string& joint, Freedom freedom);

void check_numbers(const Stop& stop);
std::span<const Number<Stop>> numbers(const Stop& stop);
void add(ContentHash& hash, const Stop& stop);
std::vector<Channel> channels(const Stop& stop, const Mechanism& mechanism);

}  // namespace rigstep
