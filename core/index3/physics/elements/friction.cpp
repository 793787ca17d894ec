#include "core/index3/physics/elements/friction.h"

namespace rigstep::index3 {

ScalarEffort friction_effort(const JointFriction& friction, double v) noexcept {
  const double v_r = friction.regularisation_speed;
  const double secant = friction.coulomb / std::sqrt(v * v + v_r * v_r) + friction.viscous;
  return {-secant * v, 0.0, secant};
}

Connectivity connectivity(const JointFriction& friction, const NoConstants&) {
  return connectivity_of_scalar(friction, friction.coordinate);
}

bool slopes_change(const JointFriction&) { return true; }

EvaluatedScalar evaluate(const JointFriction& friction, const NoConstants&, const Surroundings& at) noexcept {
  const Coordinate& x = at.coordinate[friction.coordinate];
  return {x, friction_effort(friction, x.rate)};
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
