#include "core/index3/physics/elements/stop.h"

namespace rigstep::index3 {

namespace {

// What is left of the spring's push while the depth changes at this rate: it never pulls.
double share_of_push(const Stop& stop, double depth_rate) noexcept {
  return std::max(0.0, 1.0 + stop.damping * depth_rate);
}

// The mean over a step in which x changes at `rate`, on the side where the depth is side (x - limit).
MeanEffort mean_on_side(const Stop& stop, double side, double limit, const OverStep& over, double x,
                        double dt) noexcept {
  const MeanEffort spring = mean_of_spring(stop.stiffness, side * (over.start_x - limit), side * (x - limit));
  const double share = share_of_push(stop, side * (x - over.start_x) / dt);
  const double share_slope = share > 0.0 ? stop.damping / dt : 0.0;
  return {spring.effort * share, spring.slope * share + spring.effort * share_slope};
}

}  // namespace

double depth_beyond(const Stop& stop, double x) noexcept {
  return x > stop.upper ? x - stop.upper : x < stop.lower ? x - stop.lower : 0.0;
}

double stop_effort(const Stop& stop, double x, double v) noexcept {
  const double depth = depth_beyond(stop, x);
  return -stop.stiffness * depth * share_of_push(stop, depth < 0.0 ? -v : v);
}

ScalarEffort stop_effort_over_step(const Stop& stop, const OverStep& over, double x, double dt) noexcept {
  MeanEffort mean{0.0, 0.0};
  if (std::isfinite(stop.upper)) {
    const MeanEffort above = mean_on_side(stop, 1.0, stop.upper, over, x, dt);
    mean = {mean.effort - above.effort, mean.slope + above.slope};
  }
  if (std::isfinite(stop.lower)) {
    const MeanEffort below = mean_on_side(stop, -1.0, stop.lower, over, x, dt);
    mean = {mean.effort + below.effort, mean.slope + below.slope};
  }
  return in_newtons_equations(over, mean);
}

Connectivity connectivity(const Stop& stop, const StopConstants&) {
  Connectivity connects = connectivity_of_scalar(stop, stop.coordinate);
  if (!stop.is_along_freedom()) connects.own_tangent = connects.bodies;  // beyond the upper limit, as a string
  connects.keeps_energy_in_reading = true;
  return connects;
}

EvaluatedStop evaluate(const Stop& stop, const StopConstants&, const Surroundings& at) noexcept {
  if (stop.is_along_freedom()) return {at.coordinate[stop.coordinate], Vec3::Zero(), Vec3::Zero()};
  return {distance_of_points(stop.first, stop.first_point_b, stop.second, stop.second_point_b, nullptr, at),
          at.placement(stop.first).A * stop.first_point_b, at.placement(stop.second).A * stop.second_point_b};
}

OverStep start_step(const Stop& stop, const EvaluatedStop& now) noexcept {
  return at_start(now.x.value, stop_effort(stop, now.x.value, now.x.rate));
}

ElementReading apply(const Stop& stop, const StopConstants&, const EvaluatedStop& now, const Surroundings&,
                     const Loads& loads) noexcept {
  return apply_scalar(stop.first, stop.second, now.x, depth_beyond(stop, now.x.value),
                      stop_effort(stop, now.x.value, now.x.rate), loads);
}

void follow_iterate(const Stop& stop, const StopConstants& constants, const EvaluatedStop& now,
                    OverStep& over) noexcept {
  const auto force = [&](double x) { return stop_effort_over_step(stop, over, x, constants.dt); };
  linearise(now.x.value, force, over);
}

void apply_over_step(const Stop& stop, const OverStep& over, const EvaluatedStop& now, const Surroundings&,
                     const Loads& loads) noexcept {
  apply_scalar(stop.first, stop.second, now.x, 0.0, over.effort_at(now.x.value), loads);
}

void add_tangent(const Stop& stop, const OverStep& over, const EvaluatedStop& now, const Surroundings&,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept {
  if (on_ground(stop)) add_own_blocks(stop, now.x, factors.stiffness * over.stiffness, tangents);
  if (stop.is_along_freedom()) return;
  add_string({stop.first, stop.second, now.arm_first, now.arm_second, now.x.second.head<3>(), now.x.value},
             -over.effort_at(now.x.value), factors.stiffness, tangents);
}

void evaluate_rows(const Stop&, const StopConstants&, const OverStep& over, const EvaluatedStop& now,
                   const Surroundings&, const TangentFactors& factors, ElementRows rows) noexcept {
  set_row(now.x, factors.stiffness * over.stiffness, rows);
}

double energy(const Stop& stop, const ElementReading& reading, const Surroundings&) noexcept {
  return 0.5 * stop.stiffness * reading.deflection * reading.deflection;
}

}  // namespace rigstep::index3
