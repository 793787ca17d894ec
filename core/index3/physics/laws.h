// What force elements do, and what their kernels take and find: one formula for a single element (T is double) and for
// several side by side (T is Lanes of kernels/lanes.h, whose functions are found by the type). Called in the loop.
#pragma once

#include <cmath>

#include "core/mechanism/portable_math.h"

namespace rigstep::index3 {

// Always inlined: a kernel must not leave a function behind that another instruction set would call.
#define RIGSTEP_LAW [[gnu::always_inline]] inline

RIGSTEP_LAW double square_root(double a) { return std::sqrt(a); }
RIGSTEP_LAW double larger(double a, double b) { return a > b ? a : b; }
RIGSTEP_LAW double smaller(double a, double b) { return a < b ? a : b; }
RIGSTEP_LAW double where_positive(double a, double yes, double no) { return a > 0.0 ? yes : no; }

// What a tangent takes of stiffness and of damping.
struct TangentFactors {
  double stiffness;
  double damping;
};

// Effort and slopes along a scalar x with rate v; slopes are -d effort / dx and dv, clipped to what keeps the tangent
// positive semidefinite.
template <class T>
struct EffortAlong {
  T effort;
  T stiffness;
  T damping;
};
template <class T>
RIGSTEP_LAW EffortAlong<T> operator+(const EffortAlong<T>& a, const EffortAlong<T>& b) {
  return {a.effort + b.effort, a.stiffness + b.stiffness, a.damping + b.damping};
}

// The kinds of laws, for tables that hold several; an element of a kind that has a law here writes its numbers there
// in the order of the structures below.
enum class Law : unsigned char { spring, friction, motor };
inline constexpr int kLawNumbers = 7;  // at most

template <class T>
struct SpringNumbers {
  T preload, stiffness, damping, rest;
};
// A characteristic at the deflection or the rate of a spring.
template <class T>
struct TableValue {
  T value, slope;
};
template <class T>
RIGSTEP_LAW EffortAlong<T> spring_law(const SpringNumbers<T>& spring, T deflection, T v, TableValue<T> over_deflection,
                                      TableValue<T> over_rate) {
  return {spring.preload - spring.stiffness * deflection - over_deflection.value - spring.damping * v - over_rate.value,
          larger(spring.stiffness + over_deflection.slope, T(0.0)), larger(spring.damping + over_rate.slope, T(0.0))};
}

template <class T>
struct FrictionNumbers {
  T coulomb, viscous, regularisation_speed;
};
// damping is the secant -effort / v: it bounds the slope, and holds when the step brings the joint to rest
template <class T>
RIGSTEP_LAW EffortAlong<T> friction_law(const FrictionNumbers<T>& friction, T v) {
  const T v_r = friction.regularisation_speed;
  const T secant = friction.coulomb / square_root(v * v + v_r * v_r) + friction.viscous;
  return {-secant * v, T(0.0), secant};
}

template <class T>
struct MotorNumbers {
  T feed_forward, position, rate;  // what inputs and the motor itself command
  T position_gain, rate_gain;
  T effort_limit, no_load_speed;  // infinite: none
};
// At a limit the gains have no slope. Without a limit `falling` may be no number, but no room is then between none and
// all.
template <class T>
RIGSTEP_LAW EffortAlong<T> motor_law(const MotorNumbers<T>& motor, T x, T v) {
  const T command =
      motor.feed_forward + motor.position_gain * (motor.position - x) + motor.rate_gain * (motor.rate - v);
  const T share = v / motor.no_load_speed, none(0.0), all(1.0);
  const T forwards = smaller(larger(all - share, none), all), backwards = smaller(larger(all + share, none), all);
  const T high = motor.effort_limit * forwards, low = -motor.effort_limit * backwards;
  const T falling = motor.effort_limit / motor.no_load_speed;  // the limit's slope, where it has one
  const auto slope = [&](T room) { return where_positive(room, where_positive(all - room, falling, none), none); };
  const T above = command - high, below = low - command;
  const auto choose = [&](T at_high, T at_low, T between) {
    return where_positive(above, at_high, where_positive(below, at_low, between));
  };
  return {choose(high, low, command), choose(none, none, motor.position_gain),
          choose(slope(forwards), slope(backwards), motor.rate_gain)};
}

// What something does to a body, its action, world frame: a load, force and torque about the mass centre, and behind it
// its own-body block of the tangent, the packed lower half by rows.
inline constexpr int kLoadNumbers = 6, kActionNumbers = kLoadNumbers + 21;

// ---- tyres; physics/elements/tyre.h has the equations

inline constexpr double kFlatWheel = 0.1;     // sine of the angle between axis and normal below which the wheel lies
inline constexpr double kDampingRamp = 0.01;  // of the radius, over which the damping fades in

// The numbers of a tyre for its kernel: axis and centre in the wheel, radius, stiffness, damping, B C E and friction of
// the longitudinal and of the lateral curve, low speed, road point and normal, height of the road and its rate.
inline constexpr int kCentreOfTyre = 3, kRadiusOfTyre = 6, kCurvesOfTyre = 9, kLowSpeedOfTyre = 17;
inline constexpr int kRoadPointOfTyre = 18, kRoadNormalOfTyre = 21, kRoadHeightOfTyre = 24, kTyreNumbers = 26;
// What that finds: deflection, normal force; kappa, tan(alpha), the slip forces and their damping; 1 where it touches,
// else 0; the wrenches of a unit force in each direction, normal, forward, sideways; and its action on the wheel.
inline constexpr int kWrenchesOfTyre = 9, kActionOfTyre = 27, kTyreFound = kActionOfTyre + kActionNumbers;

template <class T>
struct RadialNumbers {
  T radius, stiffness, damping;
};
template <class T>
RIGSTEP_LAW T damping_ramp(const RadialNumbers<T>& tyre, T deflection) {
  return smaller(larger(deflection / (T(kDampingRamp) * tyre.radius), T(0.0)), T(1.0));
}
// The normal force; what is not a number stays so.
template <class T>
RIGSTEP_LAW T radial_law(const RadialNumbers<T>& tyre, T deflection, T rate) {
  const T spring = tyre.stiffness * larger(T(0.0), deflection);
  return larger(T(0.0), spring + tyre.damping * damping_ramp(tyre, deflection) * rate);
}

template <class T>
struct SlipCurveNumbers {
  T B, C, E, friction;
};
// f(q) / q, with its limit C at 0
template <class T>
RIGSTEP_LAW T magic_secant(const SlipCurveNumbers<T>& curve, T q, T arctangent_q) {
  const T smallest(1e-9), bent = q - curve.E * (q - arctangent_q);
  const T secant = sine(curve.C * arctangent(bent, T(1.0))) / larger(smallest, q);
  return where_positive(smallest - q, curve.C, secant);
}

template <class T>
struct SlipForceOf {
  T kappa, tan_alpha;      // [-]
  T x, y;                  // [N]
  T damping_x, damping_y;  // -F / v_s, its limit at v_s = 0, never negative [N s/m]
};
template <class T>
RIGSTEP_LAW SlipForceOf<T> slip_law(const SlipCurveNumbers<T>& longitudinal, const SlipCurveNumbers<T>& lateral,
                                    T normal_force, T speed, T slip_velocity_x, T slip_velocity_y) {
  const T kappa = -slip_velocity_x / speed, tan_alpha = -slip_velocity_y / speed;
  const T x = longitudinal.B * kappa, y = lateral.B * tan_alpha;
  const T q = square_root(x * x + y * y), arctangent_q = arctangent(q, T(1.0));
  const T factor_x = longitudinal.friction * normal_force * magic_secant(longitudinal, q, arctangent_q);
  const T factor_y = lateral.friction * normal_force * magic_secant(lateral, q, arctangent_q);
  return {kappa,
          tan_alpha,
          factor_x * x,
          factor_y * y,
          larger(factor_x * longitudinal.B / speed, T(0.0)),
          larger(factor_y * lateral.B / speed, T(0.0))};
}

// ---- bushings; physics/elements/bushing.h has the equations

// The numbers of a bushing for its kernel: point, x and y of both frames, each in its body; stiffness and damping, row
// by row. What that finds: deflection and rate; the axes of the first frame, by which all directions below are counted;
// the arms of the second point about both mass centres, seen from the first body and from the second; how a rotation of
// either body changes each component of the turn; and its loads on both bodies.
inline constexpr int kSecondFrameOfBushing = 9, kStiffnessOfBushing = 18, kDampingOfBushing = 54, kBushingNumbers = 90;
inline constexpr int kRateOfBushing = 6, kAxesOfBushing = 12, kArmsOfBushing = 21, kTurningOfBushing = 27;
inline constexpr int kActionsOfBushing = 36, kBushingFound = kActionsOfBushing + 2 * kLoadNumbers;

// ---- drags; physics/elements/drag.h has the equations

// The numbers of a drag for its kernel: point in its body, wind, and half the density times the drag area. What that
// finds: arm of the point, its velocity against the wind, and its action on the body.
inline constexpr int kWindOfDrag = 3, kFactorOfDrag = 6, kDragNumbers = 7;
inline constexpr int kVelocityOfDrag = 3, kActionOfDrag = 6, kDragFound = kActionOfDrag + kActionNumbers;

}  // namespace rigstep::index3
