#include "core/index3/forces.h"

#include <cmath>

#include "core/index3/portable_math.h"

namespace rigstep::index3 {

namespace {

void add(Workspace& w, int body, const Vec6& load) {
  if (body != kGround) w.Q[body] += load;
}

Vec6 load_at(const Vec3& force_0, const Vec3& torque_0, const Vec3& arm_0) {
  Vec6 load;
  load << force_0, torque_0 + arm_0.cross(force_0);
  return load;
}

void apply_load(const AppliedLoad& load, double t, Workspace& w) {
  const Placement& at = w.placement[load.body];
  double scale = load.constant;
  if (load.amplitude != 0.0) scale += load.amplitude * sine(load.angular_frequency * t + load.phase);
  const Mat3 to_world = load.frame == Frame::body ? at.A : Mat3(Mat3::Identity());
  w.Q[load.body] += scale * load_at(to_world * load.force, to_world * load.torque, at.A * load.point_b);
}

void apply_input(const Mechanism& m, const Input& input, double value, Workspace& w) {
  if (input.kind == Input::Kind::joint_effort) {
    const Joint& joint = m.joints()[input.joint];
    Vec6 on_first, on_second;
    coordinate_gradient(input.freedom, w.joint[input.joint], on_first, on_second);
    add(w, joint.first, value * on_first);
    add(w, joint.second, value * on_second);
    return;
  }
  const Placement& at = w.placement[input.body];
  const Vec3 direction = input.frame == Frame::body ? Vec3(at.A * input.direction) : input.direction;
  const bool is_force = input.kind == Input::Kind::body_force;
  w.Q[input.body] += is_force ? load_at(value * direction, Vec3::Zero(), at.A * input.point_b)
                              : load_at(Vec3::Zero(), value * direction, Vec3::Zero());
}

}  // namespace

Coordinate spring_coordinate(const Spring& spring, const Workspace& w, const Mechanism& mechanism,
                             const std::vector<double>& coordinate_values) noexcept {
  if (spring.kind == Spring::Kind::in_joint) {
    const JointCoordinate& followed = mechanism.coordinates()[spring.coordinate];
    Coordinate c{};
    coordinate_gradient(followed.freedom, w.joint[followed.joint], c.first, c.second);
    c.value = coordinate_values[spring.coordinate];
    const Placement &a = placement(w, spring.first), &b = placement(w, spring.second);
    c.rate = c.first.head<3>().dot(a.v) + c.first.tail<3>().dot(a.w) + c.second.head<3>().dot(b.v) +
             c.second.tail<3>().dot(b.w);
    return c;
  }
  const Placement &first = placement(w, spring.first), &second = placement(w, spring.second);
  const Vec3 arm_first = first.A * spring.first_point_b, arm_second = second.A * spring.second_point_b;
  const Vec3 d = (second.r + arm_second) - (first.r + arm_first);
  const Vec3 d_rate = (second.v + second.w.cross(arm_second)) - (first.v + first.w.cross(arm_first));
  const double length = d.norm();
  Vec3 direction = spring.direction_0;
  if (spring.kind == Spring::Kind::between_points) direction = length > 0.0 ? Vec3(d / length) : Vec3(Vec3::Zero());
  Coordinate c;
  c.value = spring.kind == Spring::Kind::between_points ? length : direction.dot(d);
  c.rate = direction.dot(d_rate);
  c.first << -direction, -arm_first.cross(direction);
  c.second << direction, arm_second.cross(direction);
  return c;
}

void follow_coordinates(const Plan& plan, const std::vector<double>& last_coordinate, Workspace& w) noexcept {
  const Mechanism& m = plan.mechanism;
  for (std::size_t k = 0; k < m.coordinates().size(); ++k) {
    const JointCoordinate& followed = m.coordinates()[k];
    const Joint& joint = m.joints()[followed.joint];
    const JointPlacement& at = w.joint[followed.joint];
    const double measured =
        coordinate(followed.freedom, at, placement(w, joint.first), placement(w, joint.second)).value + followed.offset;
    w.coordinate[k] = index3::followed(followed.freedom, at, measured, last_coordinate[k]);
  }
}

void apply_forces(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                  Workspace& w) noexcept {
  const Mechanism& m = plan.mechanism;
  for (const int i : plan.observed_bodies) w.Q[i] << m.bodies()[i].mass * m.gravity_0(), Vec3::Zero();
  for (const AppliedLoad& load : m.loads()) apply_load(load, t, w);
  for (std::size_t k = 0; k < m.inputs().size(); ++k) apply_input(m, m.inputs()[k], inputs.value[k], w);
  follow_coordinates(plan, last_coordinate, w);
  for (const Spring& spring : m.springs()) {
    const Coordinate x = spring_coordinate(spring, w, m, w.coordinate);
    const double effort = -spring.stiffness * (x.value - spring.rest) - spring.damping * x.rate;
    add(w, spring.first, effort * x.first);
    add(w, spring.second, effort * x.second);
  }
}

void force_tangent(const Plan& plan, double stiffness_factor, double damping_factor, Workspace& w) noexcept {
  if (plan.mechanism.springs().empty()) return;
  for (const int i : plan.observed_bodies) w.tangent[i].setZero();
  for (const Spring& spring : plan.mechanism.springs()) {
    const Coordinate x = spring_coordinate(spring, w, plan.mechanism, w.coordinate);
    const double factor = stiffness_factor * spring.stiffness + damping_factor * spring.damping;
    if (spring.first != kGround) w.tangent[spring.first] += factor * (x.first * x.first.transpose());
    if (spring.second != kGround) w.tangent[spring.second] += factor * (x.second * x.second.transpose());
  }
}

double potential_energy(const Plan& plan, const State& x, const Workspace& w) noexcept {
  const Mechanism& m = plan.mechanism;
  double energy = 0.0;
  for (std::size_t i = 0; i < m.bodies().size(); ++i) energy -= m.bodies()[i].mass * m.gravity_0().dot(x.body[i].r);
  for (const Spring& spring : m.springs()) {
    const double stretch = spring_coordinate(spring, w, m, w.coordinate).value - spring.rest;
    energy += 0.5 * spring.stiffness * stretch * stretch;
  }
  return energy;
}

}  // namespace rigstep::index3
