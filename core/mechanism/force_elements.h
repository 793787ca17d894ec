// Force elements of a mechanism besides loads and linear springs: what each one is, in SI units.
// Part of the description: checked by MechanismBuilder, immutable afterwards.
#pragma once

#include <string>
#include <vector>

#include "core/mechanism/time_function.h"
#include "core/mechanism/types.h"

namespace rigstep {

// A measured characteristic y(x): piecewise linear between its points, the first and the last slope go on outside.
// Empty: zero everywhere.
struct Characteristic {
  std::vector<double> x;  // strictly increasing, at least two
  std::vector<double> y;  // as many

  bool empty() const { return x.empty(); }
  double value(double at) const noexcept;
  double slope(double at) const noexcept;     // of the piece to the right at a point of the table
  double integral(double at) const noexcept;  // of value from 0 to `at`
};

// One side of a joint or bushing. For the ground, body frame means world frame.
struct JointFrame {
  Vec3 point_b = Vec3::Zero();     // joint point, from the body's mass centre, body frame [m]
  Mat3 axes_b = Mat3::Identity();  // columns x, y, z in body coordinates, right-handed; z is the joint axis
};

// An elastic mount between two frames, linear in the deflection x of the second frame against the first, (6) in the
// axes of the first frame, which turn with its body:
//   x[0..2]  from the first point to the second [m]
//   x[3..5]  1/2 sum a_i x b_i over the axes a of the first and b of the second frame [-]: the axial vector of the
//            relative rotation matrix, sin(angle) times the axis of rotation, which is the rotation vector [rad] as
//            long as that is small; elastic below 90 degrees
// Load on the second body -(stiffness x + damping dx/dt), force [N] at the second point, then torque [N m]; the first
// body takes the opposite one at the same point. The torque is the gradient's, conjugate to x[3..5]: with the stiffness
// alone the mount is conservative, of the energy 1/2 x' stiffness x. No source: the common linear mount, with a
// rotation measure that is smooth and needs no order of angles.
struct Bushing {
  std::string name;
  int first = -1;  // body index or kGround
  int second = -1;
  JointFrame in_first;
  JointFrame in_second;
  // (6 x 6) both symmetric, positive semidefinite, rows and columns in the order of x; blocks
  // [N/m] [N/rad; N m/m] [N m/rad] and [N s/m] [N s/rad; N m s/m] [N m s/rad]
  Mat6 stiffness = Mat6::Zero();
  Mat6 damping = Mat6::Zero();
};

// Friction along a joint freedom, regularised Coulomb: effort = -coulomb v / sqrt(v^2 + v_r^2) - viscous v.
// Below about v_r it creeps instead of sticking: under a load P < coulomb at v_r P / sqrt(coulomb^2 - P^2).
struct JointFriction {
  std::string name;
  int coordinate = -1;  // index into Mechanism::coordinates()
  int first = -1;       // bodies of the joint
  int second = -1;
  double coulomb = 0.0;                // [N] or [N m]
  double viscous = 0.0;                // [N s/m] or [N m s/rad]
  double regularisation_speed = 1e-3;  // v_r [m/s] or [rad/s]
};

// An effort along a joint freedom that is given over time; positive increases the coordinate.
struct AppliedEffort {
  std::string name;
  int coordinate = -1;  // index into Mechanism::coordinates()
  int first = -1;       // bodies of the joint
  int second = -1;
  TimeFunction function;  // [N] or [N m]
};

// A motor or actuator along a joint freedom x with rate v:
//   command = constant + effort input + position_gain (position input - x) + rate_gain (rate input - v)
//   effort  = command, kept within -limit(-v) .. limit(v)
//   limit(v) = effort_limit clamp(1 - v / no_load_speed, 0, 1): the whole limit below standstill, none at no-load speed
struct Motor {
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

// Aerodynamic drag at a point of a body: force = -1/2 density drag_area |u| u, u = velocity of the point - wind.
struct Drag {
  std::string name;
  int body = 0;
  Vec3 point_b = Vec3::Zero();  // from the mass centre, body frame [m]
  double density = 1.225;       // of the air [kg/m^3]
  double drag_area = 0.0;       // drag coefficient times frontal area [m^2]
  Vec3 wind_0 = Vec3::Zero();   // world frame [m/s]
};

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

}  // namespace rigstep
