// Aerodynamic drag: description, checks, identity and output channels. In SI units.
#pragma once

#include "core/mechanism/elements/element.h"

namespace rigstep {

// Aerodynamic drag at a point of a body: force = -1/2 density drag_area |u| u, u = velocity of the point - wind.
struct Drag {
  static constexpr const char* kName = "drag";  // in the schema
  static constexpr const char* kPlural = "drags";
  static constexpr bool kIsScalar = false;
  std::string name;
  int body = 0;
  Vec3 point_b = Vec3::Zero();  // from the mass centre, body frame [m]
  double density = 1.225;       // of the air [kg/m^3]
  double drag_area = 0.0;       // drag coefficient times frontal area [m^2]
  Vec3 wind_0 = Vec3::Zero();   // world frame [m/s]
};

void connect(Drag& drag, MechanismBuilder& builder, const std::string& body);

void check_numbers(const Drag& drag);
std::span<const Number<Drag>> numbers(const Drag& drag);
void add(ContentHash& hash, const Drag& drag);
std::vector<Channel> channels(const Drag& drag, const Mechanism& mechanism);

}  // namespace rigstep
