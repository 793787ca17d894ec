// A tyre on a flat road: a thin disc with radial stiffness, and slip forces by the magic formula.
//
// Normal force: max(0, stiffness d + damping dd/dt ramp(d)) with d the depth of the undeflected disc's lowest point
// below the road, never adhesive; the damping fades in over the first hundredth of the radius, so that a landing does
// not jump. It acts at that point, along the gradient of d: without damping it keeps energy, at any camber.
//
// Slip: of the material point of the wheel at the road, on the loaded radius below the centre, over the speed
// v = sqrt(vx^2 + low_speed^2) of the wheel centre; kappa = -v_sx / v, tan(alpha) = -v_sy / v, so that each force has
// the sign of its slip. Below low_speed the tyre is a damper: it stands without creep on the level and creeps on a
// slope, at slope low_speed / (B C).
//
// Combined slip by similarity: q = |(B_x kappa, B_y tan(alpha))|, F_i = friction_i Fz f_i(q) q_i / q, f(q) =
// sin(C atan(q - E (q - atan q))). Pure slip is the formula itself, and (F_x, F_y) stays within the friction ellipse.
// Not modelled: camber thrust, aligning torque, rolling resistance, relaxation.
// Called in the loop.
#pragma once

#include "core/index3/physics/elements/element.h"
#include "core/mechanism/elements/tyre.h"

namespace rigstep::index3 {

// Where and how the wheel meets the road, world frame.
struct TyreContact {
  bool touches;            // false: all other fields but deflection are unset
  double deflection;       // d [m], negative in the air
  double deflection_rate;  // [m/s]
  Vec6 normal;             // minus the gradient of d: the wrench of a unit normal force about the mass centre
  Vec6 forward, sideways;  // wrenches of unit forces at the road: forward = axis x normal, sideways = normal x forward
  double speed;            // v [m/s]
  double slip_velocity_x, slip_velocity_y;  // v_sx, v_sy [m/s]
};
TyreContact contact(const Tyre& tyre, const Placement& wheel, double road_height, double road_rate) noexcept;

double normal_force(const Tyre& tyre, double deflection, double deflection_rate) noexcept;

using SlipForce = SlipForceOf<double>;
SlipForce slip_force(const Tyre& tyre, double normal_force, double speed, double slip_velocity_x,
                     double slip_velocity_y) noexcept;

// All of it; without a contact forces are zero.
struct TyreForces {
  TyreContact contact;
  double normal;  // [N]
  SlipForce slip;
};
TyreForces tyre_forces(const Tyre& tyre, const Placement& wheel, double road_height, double road_rate) noexcept;

// On the wheel about its mass centre, world frame.
Vec6 tyre_wrench(const TyreForces& forces) noexcept;

// Adds stiffness_factor K + damping_factor C of the wheel, positive semidefinite: the normal force's slopes and the
// slip forces' secants, which unlike their slopes stay positive past the peak and hold when the slip falls within the
// step.
void add_tyre_tangent(const Tyre& tyre, const TyreForces& forces, double stiffness_factor, double damping_factor,
                      Mat6& tangent) noexcept;

struct TyreReading {
  double fx, fy, fz;       // on the wheel, road axes [N]
  double slip, tan_alpha;  // kappa, tangent of the slip angle [-]
  double deflection;       // [m]
};

template <>
struct Stepped<Tyre> {
  using Reading = TyreReading;
  using Constants = NoConstants;
  using Evaluated = TyreForces;
  static constexpr int kMostRows = 0;
  static constexpr int kLaneNumbers = kTyreNumbers, kLaneFound = kTyreFound;
  static constexpr std::array kActions{kActionOfTyre};
};

LaneNumbersOf<Tyre> lane_numbers(const Tyre& tyre, const double* inputs) noexcept;
TyreForces from_lane(const Tyre& tyre, const FoundInLane& found) noexcept;

inline NoConstants prepare(const Tyre&, double) { return {}; }
Connectivity connectivity(const Tyre& tyre, const NoConstants& constants);
bool slopes_change(const Tyre& tyre);
TyreForces evaluate(const Tyre& tyre, const NoConstants& constants, const Surroundings& at) noexcept;
TyreReading apply(const Tyre& tyre, const NoConstants& constants, const TyreForces& now, const Surroundings& at,
                  const Loads& loads) noexcept;
void add_tangent(const Tyre& tyre, const NoConstants& constants, const TyreForces& now, const Surroundings& at,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept;
inline void evaluate_rows(const Tyre&, const NoConstants&, const TyreForces&, const Surroundings&,
                          const TangentFactors&, ElementRows) noexcept {}
double energy(const Tyre& tyre, const TyreReading& reading, const Surroundings& at) noexcept;
void write(const TyreReading& reading, double* to) noexcept;

}  // namespace rigstep::index3
