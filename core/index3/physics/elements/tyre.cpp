#include "core/index3/physics/elements/tyre.h"

#include <algorithm>
#include <cmath>

#include "core/mechanism/portable_math.h"

namespace rigstep::index3 {

namespace {

Vec6 wrench(const Vec3& force, const Vec3& arm) {
  Vec6 load;
  load << force, arm.cross(force);
  return load;
}

RadialNumbers<double> radial(const Tyre& tyre) { return {tyre.radius, tyre.stiffness, tyre.damping}; }

SlipCurveNumbers<double> numbers(const SlipCurve& curve) { return {curve.B, curve.C, curve.E, curve.friction}; }

}  // namespace

TyreContact contact(const Tyre& tyre, const Placement& wheel, double road_height, double road_rate) noexcept {
  TyreContact at{};
  const Vec3& n = tyre.road_normal_0;
  const Vec3 axis = wheel.A * tyre.axis_b, s_centre = wheel.A * tyre.centre_b;
  const double sine_camber = axis.dot(n), cosine_camber = axis.cross(n).norm();
  const double height = (wheel.r + s_centre - tyre.road_point_0).dot(n) - road_height;
  at.deflection = tyre.radius * cosine_camber - height;
  at.touches = !(at.deflection <= 0.0) && cosine_camber > kFlatWheel;  // not a number must come out, and fail the step
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
  return radial_law(radial(tyre), deflection, deflection_rate);
}

SlipForce slip_force(const Tyre& tyre, double normal_force, double speed, double slip_velocity_x,
                     double slip_velocity_y) noexcept {
  return slip_law(numbers(tyre.longitudinal), numbers(tyre.lateral), normal_force, speed, slip_velocity_x,
                  slip_velocity_y);
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
  const double normal =
      stiffness_factor * tyre.stiffness + damping_factor * tyre.damping * damping_ramp(radial(tyre), at.deflection);
  tangent += normal * (at.normal * at.normal.transpose());
  tangent += (damping_factor * forces.slip.damping_x) * (at.forward * at.forward.transpose());
  tangent += (damping_factor * forces.slip.damping_y) * (at.sideways * at.sideways.transpose());
}

LaneNumbersOf<Tyre> lane_numbers(const Tyre& tyre, const double* inputs) noexcept {
  const auto held = [inputs](int channel) { return channel < 0 ? 0.0 : inputs[channel]; };
  const SlipCurve &x = tyre.longitudinal, &y = tyre.lateral;
  return LaneNumbers<kTyreNumbers>::of(tyre.axis_b, tyre.centre_b, tyre.radius, tyre.stiffness, tyre.damping,  //
                                       x.B, x.C, x.E, x.friction, y.B, y.C, y.E, y.friction, tyre.low_speed,
                                       tyre.road_point_0, tyre.road_normal_0, held(tyre.height_input),
                                       held(tyre.height_rate_input));
}

TyreForces from_lane(const Tyre&, const FoundInLane& found) noexcept {
  TyreForces forces{};
  TyreContact& at = forces.contact;
  at.deflection = found[0], forces.normal = found[1];
  at.touches = found[8] != 0.0;
  forces.slip = {found[2], found[3], found[4], found[5], found[6], found[7]};
  at.normal = found.six(kWrenchesOfTyre), at.forward = found.six(kWrenchesOfTyre + 6);
  at.sideways = found.six(kWrenchesOfTyre + 12);
  return forces;
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
