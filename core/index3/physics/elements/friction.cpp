#include "core/index3/physics/elements/friction.h"

namespace rigstep::index3 {

ScalarEffort friction_effort(const JointFriction& friction, double v) noexcept {
  return friction_law<double>({friction.coulomb, friction.viscous, friction.regularisation_speed}, v);
}

Connectivity connectivity(const JointFriction& friction, const NoConstants&) {
  return connectivity_of_scalar(friction, friction.coordinate);
}

bool slopes_change(const JointFriction&) { return true; }

EvaluatedScalar evaluate(const JointFriction& friction, const NoConstants&, const Surroundings& at) noexcept {
  const Coordinate& x = at.coordinate[friction.coordinate];
  return {x, friction_effort(friction, x.rate)};
}

NumbersOfLaw law_numbers(const JointFriction& friction, const double*) noexcept {
  return {friction.coulomb, friction.viscous, friction.regularisation_speed};
}

ElementReading apply(const JointFriction& friction, const NoConstants&, const EvaluatedScalar& now, const Surroundings&,
                     const Loads& loads) noexcept {
  return apply_scalar(friction.first, friction.second, now.x, now.x.value, now.effort.effort, loads);
}

void add_tangent(const JointFriction& friction, const NoConstants&, const EvaluatedScalar& now, const Surroundings&,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept {
  if (on_ground(friction)) add_own_blocks(friction, now.x, now.tangent(factors), tangents);
}

void evaluate_rows(const JointFriction&, const NoConstants&, const EvaluatedScalar& now, const Surroundings&,
                   const TangentFactors& factors, ElementRows rows) noexcept {
  set_row(now.x, now.tangent(factors), rows);
}

}  // namespace rigstep::index3
