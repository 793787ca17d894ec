#include "core/index3/physics/elements/friction.h"

namespace rigstep::index3 {

namespace {

ScalarTangent tangent(const JointFriction& friction, const Surroundings& at, const TangentFactors& factors) {
  const Coordinate x = followed_coordinate(friction.coordinate, friction.first, friction.second, at);
  return {x, factors.damping * friction_effort(friction, x.rate).damping};
}

}  // namespace

ScalarEffort friction_effort(const JointFriction& friction, double v) noexcept {
  const double v_r = friction.regularisation_speed;
  const double secant = friction.coulomb / std::sqrt(v * v + v_r * v_r) + friction.viscous;
  return {-secant * v, 0.0, secant};
}

Connectivity connectivity(const JointFriction& friction, const NoConstants&) {
  return connectivity_of_scalar(friction, true);
}

bool slopes_change(const JointFriction&) { return true; }

ElementReading apply(const JointFriction& friction, const NoConstants&, const Surroundings& at,
                     const Loads& loads) noexcept {
  const Coordinate x = followed_coordinate(friction.coordinate, friction.first, friction.second, at);
  return apply_scalar(friction.first, friction.second, x, x.value, friction_effort(friction, x.rate).effort, loads);
}

void add_tangent(const JointFriction& friction, const NoConstants&, const Surroundings& at,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept {
  if (on_ground(friction)) add_own_blocks(friction, tangent(friction, at, factors), tangents);
}

void evaluate_rows(const JointFriction& friction, const NoConstants&, const Surroundings& at,
                   const TangentFactors& factors, ElementRows rows) noexcept {
  set_row(tangent(friction, at, factors), rows);
}

}  // namespace rigstep::index3
