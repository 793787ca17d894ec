// A tyre: description, checks, identity and output channels. In SI units.
#pragma once

#include "core/mechanism/elements/element.h"

namespace rigstep {

// Magic formula of pure slip, H. B. Pacejka, Tyre and Vehicle Dynamics, 4.3, without shifts:
//   F = D sin(C atan(B s - E (B s - atan(B s)))), D = friction Fz,
// of the slip s [-] and the normal force Fz [N]; slip stiffness dF/ds = B C D at s = 0. F has the sign of s.
struct SlipCurve {
  double B = 10.0;        // stiffness factor [-]
  double C = 1.65;        // shape factor [-], at most 2 so that the force never changes sign
  double E = 0.0;         // curvature factor [-], at most 1
  double friction = 1.0;  // peak factor D over normal force [-]
};

// A tyre on a flat road, a thin disc. Road axes: x forward = axis x road normal, z the road normal, y = z x x. Forces
// are those on the wheel. v_s: velocity of the wheel's material point at the road, on the loaded radius below the
// centre; v = sqrt(vx^2 + low_speed^2) of the centre.
//   longitudinal slip  s = kappa = -v_sx / v, positive when driving, -1 for a locked wheel
//   lateral slip       s = tan(alpha) = -v_sy / v, alpha the slip angle
// Combined slip by similarity (4.2 there): both curves at |(B_x kappa, B_y tan(alpha))|, within the friction ellipse.
// Normal force Fz = stiffness d + damping dd/dt, never below 0, d [m] the depth of the undeflected disc's lowest point
// below the road, where it acts. Steady state: no relaxation length; no camber thrust, aligning torque or rolling
// resistance. core/index3/physics/elements/tyre.h tells the rest.
struct Tyre {
  static constexpr const char* kName = "tyre";  // in the schema
  static constexpr const char* kPlural = "tyres";
  static constexpr bool kIsScalar = false;
  std::string name;
  int body = 0;                  // the wheel
  Vec3 centre_b = Vec3::Zero();  // of the wheel, from the mass centre, body frame [m]
  Vec3 axis_b = Vec3::UnitY();   // spin axis, unit, body frame; forward is axis x road normal
  double radius = 0.0;           // unloaded [m]
  double stiffness = 0.0;        // radial [N/m]
  double damping = 0.0;          // radial [N s/m]
  SlipCurve longitudinal, lateral;
  double low_speed = 0.1;              // below it slip is slip velocity over low_speed [m/s]
  Vec3 road_point_0 = Vec3::Zero();    // world frame [m]
  Vec3 road_normal_0 = Vec3::UnitZ();  // unit, world frame, away from the ground
  int height_input = -1;               // input channel: road height along the normal [m]; -1: 0
  int height_rate_input = -1;          // its rate, seen by the damping alone [m/s]; -1: 0
};

void connect(Tyre& tyre, MechanismBuilder& builder, const std::string& body, const std::string& height_input,
             const std::string& height_rate_input);

void check_numbers(const Tyre& tyre);
std::span<const Number<Tyre>> numbers(const Tyre& tyre);
void add(ContentHash& hash, const Tyre& tyre);
std::vector<Channel> channels(const Tyre& tyre, const Mechanism& mechanism);

}  // namespace rigstep
