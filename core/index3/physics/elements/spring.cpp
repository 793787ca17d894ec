#include "core/index3/physics/elements/spring.h"

namespace rigstep::index3 {

Coordinate spring_coordinate(const Spring& spring, const Surroundings& at) noexcept {
  if (spring.kind == Spring::Kind::in_joint) return at.coordinate[spring.coordinate];
  return distance_of_points(spring.first, spring.first_point_b, spring.second, spring.second_point_b,
                            spring.kind == Spring::Kind::along_direction ? &spring.direction_0 : nullptr, at);
}

ScalarEffort spring_effort(const Spring& spring, double x, double v) noexcept {
  const double deflection = x - spring.rest;
  return spring_law<double>({spring.preload, spring.stiffness, spring.damping, spring.rest}, deflection, v,
                            {spring.stiffness_table.value(deflection), spring.stiffness_table.slope(deflection)},
                            {spring.damping_table.value(v), spring.damping_table.slope(v)});
}

NumbersOfLaw law_numbers(const Spring& spring, const double*) noexcept {
  return {spring.preload, spring.stiffness, spring.damping, spring.rest};
}

Connectivity connectivity(const Spring& spring, const NoConstants&) {
  Connectivity connects = connectivity_of_scalar(spring, coordinate_of_tangent(spring));
  if (spring.kind == Spring::Kind::between_points) connects.own_tangent = connects.bodies;  // as a string
  connects.keeps_energy_in_reading = spring.kind != Spring::Kind::in_joint;
  return connects;
}

bool slopes_change(const Spring& spring) { return !spring.stiffness_table.empty() || !spring.damping_table.empty(); }

EvaluatedSpring evaluate(const Spring& spring, const NoConstants&, const Surroundings& at) noexcept {
  const Coordinate x = spring_coordinate(spring, at);
  EvaluatedSpring now{{x, spring_effort(spring, x.value, x.rate)}, Vec3::Zero(), Vec3::Zero()};
  if (spring.kind == Spring::Kind::in_joint) return now;
  now.arm_first = at.placement(spring.first).A * spring.first_point_b;
  now.arm_second = at.placement(spring.second).A * spring.second_point_b;
  return now;
}

ElementReading apply(const Spring& spring, const NoConstants&, const EvaluatedSpring& now, const Surroundings&,
                     const Loads& loads) noexcept {
  return apply_scalar(spring.first, spring.second, now.x, now.x.value - spring.rest, now.effort.effort, loads);
}

void add_tangent(const Spring& spring, const NoConstants&, const EvaluatedSpring& now, const Surroundings&,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept {
  if (on_ground(spring)) add_own_blocks(spring, now.x, now.tangent(factors), tangents);
  if (spring.kind == Spring::Kind::between_points)
    add_string({spring.first, spring.second, now.arm_first, now.arm_second, now.x.second.head<3>(), now.x.value},
               -now.effort.effort, factors.stiffness, tangents);
}

void evaluate_rows(const Spring&, const NoConstants&, const EvaluatedSpring& now, const Surroundings&,
                   const TangentFactors& factors, ElementRows rows) noexcept {
  set_row(now.x, now.tangent(factors), rows);
}

double energy(const Spring& spring, const ElementReading& reading, const Surroundings& at) noexcept {
  const bool is_in_joint = spring.kind == Spring::Kind::in_joint;
  const double stretch = is_in_joint ? at.coordinate[spring.coordinate].value - spring.rest : reading.deflection;
  return 0.5 * spring.stiffness * stretch * stretch - spring.preload * stretch +
         spring.stiffness_table.integral(stretch);
}

}  // namespace rigstep::index3
