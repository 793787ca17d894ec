#include "core/index3/physics/elements/tyre.h"

#include <algorithm>
#include <cmath>

#include "core/mechanism/portable_math.h"

namespace rigstep::index3 {

namespace {

constexpr double kFlat = 0.1;  // sine of the angle between axis and normal below which the wheel lies, not rolls
constexpr double kDampingRamp = 0.01;  // of the radius, over which the damping fades in

Vec6 wrench(const Vec3& force, const Vec3& arm) {
  Vec6 load;
  load << force, arm.cross(force);
  return load;
}

double ramp(const Tyre& tyre, double deflection) {
  return std::clamp(deflection / (kDampingRamp * tyre.radius), 0.0, 1.0);
}

// f(q) / q, with its limit C at 0
double magic_secant(const SlipCurve& curve, double q, double arctangent_q) {
  if (q < 1e-9) return curve.C;
  const double bent = q - curve.E * (q - arctangent_q);
  return sine(curve.C * arctangent(bent, 1.0)) / q;
}

}  // namespace

TyreContact contact(const Tyre& tyre, const Placement& wheel, double road_height, double road_rate) noexcept {
  TyreContact at{};
  const Vec3& n = tyre.road_normal_0;
  const Vec3 axis = wheel.A * tyre.axis_b, s_centre = wheel.A * tyre.centre_b;
  const double sine_camber = axis.dot(n), cosine_camber = axis.cross(n).norm();
  const double height = (wheel.r + s_centre - tyre.road_point_0).dot(n) - road_height;
  at.deflection = tyre.radius * cosine_camber - height;
  at.touches = !(at.deflection <= 0.0) && cosine_camber > kFlat;  // not a number must come out, and fail the step
  if (!at.touches) return at;
  const Vec3 down = (axis * sine_camber - n) / cosine_camber;  // in the wheel's plane
  const double loaded_radius = std::max(0.0, height / cosine_camber);
  const Vec3 forward = axis.cross(n) / cosine_camber, sideways = n.cross(forward);
  const Vec3 arm = s_centre + loaded_radius * down;
  at.normal = wrench(n, s_centre + tyre.radius * down);
  at.forward = wrench(forward, arm);
  at.sideways = wrench(sideways, arm);
  Vec6 motion;
  motion << wheel.v, wheel.w;
  at.deflection_rate = road_rate - at.normal.dot(motion);
  const double vx = (wheel.v + wheel.w.cross(s_centre)).dot(forward);
  at.speed = std::sqrt(vx * vx + tyre.low_speed * tyre.low_speed);
  at.slip_velocity_x = at.forward.dot(motion);
  at.slip_velocity_y = at.sideways.dot(motion);
  return at;
}

double normal_force(const Tyre& tyre, double deflection, double deflection_rate) noexcept {
  const double spring = tyre.stiffness * std::max(deflection, 0.0);
  return std::max(spring + tyre.damping * ramp(tyre, deflection) * deflection_rate, 0.0);
}

SlipForce slip_force(const Tyre& tyre, double normal_force, double speed, double slip_velocity_x,
                     double slip_velocity_y) noexcept {
  SlipForce f;
  f.kappa = -slip_velocity_x / speed;
  f.tan_alpha = -slip_velocity_y / speed;
  const double x = tyre.longitudinal.B * f.kappa, y = tyre.lateral.B * f.tan_alpha;
  const double q = std::sqrt(x * x + y * y), arctangent_q = arctangent(q, 1.0);
  const double factor_x = tyre.longitudinal.friction * normal_force * magic_secant(tyre.longitudinal, q, arctangent_q);
  const double factor_y = tyre.lateral.friction * normal_force * magic_secant(tyre.lateral, q, arctangent_q);
  f.x = factor_x * x;
  f.y = factor_y * y;
  f.damping_x = std::max(0.0, factor_x * tyre.longitudinal.B / speed);
  f.damping_y = std::max(0.0, factor_y * tyre.lateral.B / speed);
  return f;
}

TyreForces tyre_forces(const Tyre& tyre, const Placement& wheel, double road_height, double road_rate) noexcept {
  TyreForces forces{contact(tyre, wheel, road_height, road_rate), 0.0, {}};
  const TyreContact& at = forces.contact;
  if (!at.touches) return forces;
  forces.normal = normal_force(tyre, at.deflection, at.deflection_rate);
  forces.slip = slip_force(tyre, forces.normal, at.speed, at.slip_velocity_x, at.slip_velocity_y);
  return forces;
}

Vec6 tyre_wrench(const TyreForces& forces) noexcept {
  const TyreContact& at = forces.contact;
  if (!at.touches) return Vec6::Zero();
  return forces.normal * at.normal + forces.slip.x * at.forward + forces.slip.y * at.sideways;
}

void add_tyre_tangent(const Tyre& tyre, const TyreForces& forces, double stiffness_factor, double damping_factor,
                      Mat6& tangent) noexcept {
  const TyreContact& at = forces.contact;
  if (!at.touches || forces.normal <= 0.0) return;
  const double normal = stiffness_factor * tyre.stiffness + damping_factor * tyre.damping * ramp(tyre, at.deflection);
  tangent += normal * (at.normal * at.normal.transpose());
  tangent += (damping_factor * forces.slip.damping_x) * (at.forward * at.forward.transpose());
  tangent += (damping_factor * forces.slip.damping_y) * (at.sideways * at.sideways.transpose());
}

Connectivity connectivity(const Tyre& tyre, const NoConstants&) {
  Connectivity connects;
  connects.bodies = connects.own_tangent = {tyre.body};
  connects.keeps_energy_in_reading = true;
  return connects;
}

bool slopes_change(const Tyre&) { return true; }

TyreForces evaluate(const Tyre& tyre, const NoConstants&, const Surroundings& at) noexcept {
  return tyre_forces(tyre, at.body[tyre.body], at.held(tyre.height_input), at.held(tyre.height_rate_input));
}

TyreReading apply(const Tyre& tyre, const NoConstants&, const TyreForces& now, const Surroundings&,
                  const Loads& loads) noexcept {
  loads.add(tyre.body, tyre_wrench(now));
  return {now.slip.x, now.slip.y, now.normal, now.slip.kappa, now.slip.tan_alpha, now.contact.deflection};
}

void add_tangent(const Tyre& tyre, const NoConstants&, const TyreForces& now, const Surroundings&,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept {
  add_tyre_tangent(tyre, now, factors.stiffness, factors.damping, tangents.of[tyre.body]);
}

double energy(const Tyre& tyre, const TyreReading& reading, const Surroundings&) noexcept {
  const double depth = std::max(0.0, reading.deflection);
  return 0.5 * tyre.stiffness * depth * depth;
}

void write(const TyreReading& reading, double* to) noexcept {
  for (const double value :
       {reading.fx, reading.fy, reading.fz, reading.slip, arctangent(reading.tan_alpha, 1.0), reading.deflection})
    *to++ = value;
}

}  // namespace rigstep::index3
