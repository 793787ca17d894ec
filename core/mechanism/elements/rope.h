// A rope: description, checks, identity and output channels. In SI units.
#pragma once

#include "core/mechanism/elements/element.h"

namespace rigstep {

// A rope without mass from the first point through all others to the last, in which it slides without friction; it
// pulls and never pushes. x: its length along the points [m]; unstretched = length + what the input pays out.
//   stretch = x - unstretched
//   tension = max(0, (stiffness stretch + damping dx/dt) / unstretched) where stretch > 0, else 0;   effort = -tension
struct Rope {
  static constexpr const char* kName = "rope";  // in the schema
  static constexpr const char* kPlural = "ropes";
  static constexpr bool kIsScalar = true;
  static constexpr double kShortest = 1e-3;  // an unstretched length below this counts as this [m]
  struct Point {
    int body = kGround;
    Vec3 point_b = Vec3::Zero();  // from the mass centre, body frame; ground: world frame [m]
  };
  std::string name;
  std::vector<Point> points;  // two at least
  double length = 0.0;        // unstretched, while the input is 0 [m]
  int pay_out_input = -1;     // input channel [m]; -1: none
  double stiffness = 0.0;     // tension per strain [N]
  double damping = 0.0;       // tension per rate of strain [N s]
};

// bodies: of the points.
void connect(Rope& rope, MechanismBuilder& builder, const std::vector<std::string>& bodies,
             const std::string& pay_out_input);

void check_numbers(const Rope& rope);
std::span<const Number<Rope>> numbers(const Rope& rope);
void add(ContentHash& hash, const Rope& rope);
std::vector<Channel> channels(const Rope& rope, const Mechanism& mechanism);

}  // namespace rigstep
