#include "core/index3/step/applied_forces.h"

#include <algorithm>
#include <cmath>

#include "core/index3/physics/portable_math.h"

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
  if (input.kind == Input::Kind::signal) return;
  if (input.kind == Input::Kind::joint_effort) {
    const Joint& joint = m.joints()[input.joint];
    if (turns_about_ground(m, input)) {
      w.Q[joint.second].tail<3>() += value * joint.in_first.axes_b.col(2);
      return;
    }
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

// A followed joint coordinate: its gradients and rate now; its value is what `values` holds.
Coordinate followed_coordinate(const Mechanism& m, int index, int first, int second, const Workspace& w,
                               const std::vector<double>& values) {
  const JointCoordinate& followed = m.coordinates()[index];
  Coordinate c{};
  coordinate_gradient(followed.freedom, w.joint[followed.joint], c.first, c.second);
  c.value = values[index];
  const Placement &a = placement(w, first), &b = placement(w, second);
  c.rate = c.first.head<3>().dot(a.v) + c.first.tail<3>().dot(a.w) + c.second.head<3>().dot(b.v) +
           c.second.tail<3>().dot(b.w);
  return c;
}

double measured_coordinate(const Mechanism& m, std::size_t index, double reference, const Workspace& w) {
  const JointCoordinate& c = m.coordinates()[index];
  const Joint& joint = m.joints()[c.joint];
  const JointPlacement& at = w.joint[c.joint];
  const double measured =
      coordinate(c.freedom, at, placement(w, joint.first), placement(w, joint.second)).value + c.offset;
  return followed(c.freedom, at, measured, reference);
}

// of the iterate, unwrapped from the last instant
double current_coordinate(const Mechanism& m, int index, const Workspace& w) {
  return measured_coordinate(m, static_cast<std::size_t>(index), w.reference[index], w);
}

double input_value(const double* inputs, int channel) { return channel < 0 ? 0.0 : inputs[channel]; }

ElementReading apply_scalar(int first, int second, const Coordinate& x, double deflection, double effort,
                            Workspace& w) {
  add(w, first, effort * x.first);
  add(w, second, effort * x.second);
  return {deflection, x.rate, effort};
}

void apply_springs(const Mechanism& m, Workspace& w) {
  for (std::size_t k = 0; k < m.springs().size(); ++k) {
    const Spring& spring = m.springs()[k];
    const Coordinate x = spring_coordinate(spring, w, m, w.coordinate);
    w.spring[k] = apply_scalar(spring.first, spring.second, x, x.value - spring.rest,
                               spring_effort(spring, x.value, x.rate).effort, w);
  }
}

void apply_efforts(const Plan& plan, double t, Workspace& w) {
  const Mechanism& m = plan.mechanism;
  for (std::size_t k = 0; k < m.efforts().size(); ++k) {
    const AppliedEffort& effort = m.efforts()[k];
    const Coordinate x = followed_coordinate(m, effort.coordinate, effort.first, effort.second, w, w.coordinate);
    w.effort[k] =
        apply_scalar(effort.first, effort.second, x, x.value, evaluate(effort.function, plan.efforts[k], t).value, w);
  }
}

void apply_frictions_and_motors(const Mechanism& m, const double* inputs, Workspace& w) {
  for (std::size_t k = 0; k < m.frictions().size(); ++k) {
    const JointFriction& friction = m.frictions()[k];
    const Coordinate x = followed_coordinate(m, friction.coordinate, friction.first, friction.second, w, w.coordinate);
    w.friction[k] =
        apply_scalar(friction.first, friction.second, x, x.value, friction_effort(friction, x.rate).effort, w);
  }
  for (std::size_t k = 0; k < m.motors().size(); ++k) {
    const Motor& motor = m.motors()[k];
    const Coordinate x = followed_coordinate(m, motor.coordinate, motor.first, motor.second, w, w.coordinate);
    w.motor[k] =
        apply_scalar(motor.first, motor.second, x, x.value, motor_effort(motor, x.value, x.rate, inputs).effort, w);
  }
}

void apply_bushings(const Mechanism& m, Workspace& w) {
  for (std::size_t k = 0; k < m.bushings().size(); ++k) {
    const Bushing& bushing = m.bushings()[k];
    const BushingDeflection at = deflection(bushing, placement(w, bushing.first), placement(w, bushing.second));
    const Vec6 load = -opposing_load(bushing, at);
    add(w, bushing.first, at.J_first.transpose() * load);
    add(w, bushing.second, at.J_second.transpose() * load);
    w.bushing[k] = {at.x, load};
  }
}

Vec3 point_velocity_against_wind(const Drag& drag, const Placement& at) {
  return at.v + at.w.cross(at.A * drag.point_b) - drag.wind_0;
}

void apply_drags_and_tyres(const Mechanism& m, const double* inputs, Workspace& w) {
  for (std::size_t k = 0; k < m.drags().size(); ++k) {
    const Drag& drag = m.drags()[k];
    const Placement& at = w.placement[drag.body];
    const Vec3 u = point_velocity_against_wind(drag, at), force = drag_force(drag, u);
    w.Q[drag.body] += load_at(force, Vec3::Zero(), at.A * drag.point_b);
    w.drag[k] = {force, u.norm()};
  }
  for (std::size_t k = 0; k < m.tyres().size(); ++k) {
    const Tyre& tyre = m.tyres()[k];
    const TyreLoad load = tyre_load(tyre, w.placement[tyre.body], input_value(inputs, tyre.height_input),
                                    input_value(inputs, tyre.height_rate_input));
    w.Q[tyre.body] += load.wrench;
    w.tyre[k] = load.reading;
  }
}

}  // namespace

Coordinate spring_coordinate(const Spring& spring, const Workspace& w, const Mechanism& mechanism,
                             const std::vector<double>& coordinate_values) noexcept {
  if (spring.kind == Spring::Kind::in_joint)
    return followed_coordinate(mechanism, spring.coordinate, spring.first, spring.second, w, coordinate_values);
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
  for (std::size_t k = 0; k < plan.mechanism.coordinates().size(); ++k)
    w.coordinate[k] = measured_coordinate(plan.mechanism, k, last_coordinate[k], w);
}

void take_inputs(const Plan& plan, const Inputs& inputs, Workspace& w) noexcept {
  std::copy_n(inputs.value.begin(), plan.mechanism.inputs().size(), w.input.begin());
}

ScalarEffort spring_effort(const Spring& spring, double x, double v) noexcept {
  const double deflection = x - spring.rest;
  return {spring.preload - spring.stiffness * deflection - spring.stiffness_table.value(deflection) -
              spring.damping * v - spring.damping_table.value(v),
          std::max(0.0, spring.stiffness + spring.stiffness_table.slope(deflection)),
          std::max(0.0, spring.damping + spring.damping_table.slope(v))};
}

ScalarEffort friction_effort(const JointFriction& friction, double v) noexcept {
  const double v_r = friction.regularisation_speed;
  const double secant = friction.coulomb / std::sqrt(v * v + v_r * v_r) + friction.viscous;
  return {-secant * v, 0.0, secant};
}

ScalarEffort motor_effort(const Motor& motor, double x, double v, const double* inputs) noexcept {
  const double command = motor.constant + input_value(inputs, motor.effort_input) +
                         motor.position_gain * (input_value(inputs, motor.position_input) - x) +
                         motor.rate_gain * (input_value(inputs, motor.rate_input) - v);
  if (motor.effort_limit == 0.0) return {command, motor.position_gain, motor.rate_gain};
  const auto room = [&motor](double speed) {
    return motor.no_load_speed > 0.0 ? std::clamp(1.0 - speed / motor.no_load_speed, 0.0, 1.0) : 1.0;
  };
  const auto at_limit = [&motor](double effort, double share) {
    const bool falls = motor.no_load_speed > 0.0 && share > 0.0 && share < 1.0;
    return ScalarEffort{effort, 0.0, falls ? motor.effort_limit / motor.no_load_speed : 0.0};
  };
  const double high = motor.effort_limit * room(v), low = -motor.effort_limit * room(-v);
  if (command > high) return at_limit(high, room(v));
  if (command < low) return at_limit(low, room(-v));
  return {command, motor.position_gain, motor.rate_gain};
}

Vec3 drag_force(const Drag& drag, const Vec3& u) noexcept {
  return -0.5 * drag.density * drag.drag_area * u.norm() * u;
}

Mat3 drag_damping(const Drag& drag, const Vec3& u) noexcept {
  const double speed = u.norm();
  if (speed == 0.0) return Mat3::Zero();
  return 0.5 * drag.density * drag.drag_area * (speed * Mat3::Identity() + u * u.transpose() / speed);
}

bool turns_about_ground(const Mechanism& mechanism, const Input& input) noexcept {
  if (input.kind != Input::Kind::joint_effort) return false;
  const Joint& joint = mechanism.joints()[input.joint];
  return joint.type == JointType::revolute && joint.first == kGround;
}

void apply_forces(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                  Workspace& w) noexcept {
  const Mechanism& m = plan.mechanism;
  for (const int i : plan.loaded_bodies) w.Q[i] << m.bodies()[i].mass * m.gravity_0(), Vec3::Zero();
  for (const AppliedLoad& load : m.loads()) apply_load(load, t, w);
  for (std::size_t k = 0; k < m.inputs().size(); ++k) apply_input(m, m.inputs()[k], inputs.value[k], w);
  if (plan.loads_follow_coordinates) follow_coordinates(plan, last_coordinate, w);
  apply_springs(m, w);
  apply_efforts(plan, t, w);
  apply_frictions_and_motors(m, inputs.value.data(), w);
  apply_bushings(m, w);
  apply_drags_and_tyres(m, inputs.value.data(), w);
}

namespace {

void add_own_body(int body, double factor, const Vec6& gradient, Workspace& w) {
  if (body != kGround) w.tangent[body] += factor * (gradient * gradient.transpose());
}

// a pulled spring resists sideways motion of its ends like a string; a pushed one has the opposite sign and stays out
void add_string(const Spring& spring, double tension, double stiffness_factor, Workspace& w) {
  const Placement &first = placement(w, spring.first), &second = placement(w, spring.second);
  const Vec3 arm_first = first.A * spring.first_point_b, arm_second = second.A * spring.second_point_b;
  const Vec3 d = (second.r + arm_second) - (first.r + arm_first);
  const double length = d.norm();
  if (!(tension > 0.0 && length > 0.0)) return;
  const Mat3 across = stiffness_factor * tension / length * (Mat3::Identity() - d * d.transpose() / (length * length));
  const auto add_to = [&](int body, const Vec3& arm) {
    if (body == kGround) return;
    Eigen::Matrix<double, 3, 6> J;
    J << Mat3::Identity(), -skew(arm);
    w.tangent[body] += J.transpose() * across * J;
  };
  add_to(spring.first, arm_first);
  add_to(spring.second, arm_second);
}

// What an element along one scalar adds to the tangent: factor gradient gradient', over both bodies.
struct ScalarTangent {
  Coordinate x;
  double factor;
};

ScalarTangent spring_tangent(const Mechanism& m, const Spring& spring, double stiffness_factor, double damping_factor,
                             const Workspace& w) {
  Coordinate x = spring_coordinate(spring, w, m, w.coordinate);
  if (spring.kind == Spring::Kind::in_joint && !spring.stiffness_table.empty())
    x.value = current_coordinate(m, spring.coordinate, w);
  const ScalarEffort e = spring_effort(spring, x.value, x.rate);
  return {x, stiffness_factor * e.stiffness + damping_factor * e.damping};
}

ScalarTangent friction_tangent(const Mechanism& m, const JointFriction& friction, double damping_factor,
                               const Workspace& w) {
  const Coordinate x = followed_coordinate(m, friction.coordinate, friction.first, friction.second, w, w.coordinate);
  return {x, damping_factor * friction_effort(friction, x.rate).damping};
}

ScalarTangent motor_tangent(const Mechanism& m, const Motor& motor, double stiffness_factor, double damping_factor,
                            const Workspace& w) {
  Coordinate x = followed_coordinate(m, motor.coordinate, motor.first, motor.second, w, w.coordinate);
  x.value = current_coordinate(m, motor.coordinate, w);
  const ScalarEffort e = motor_effort(motor, x.value, x.rate, w.input.data());
  return {x, stiffness_factor * e.stiffness + damping_factor * e.damping};
}

template <class Element>
bool on_ground(const Element& element) {
  return element.first == kGround || element.second == kGround;
}

template <class Element>
void add_own_body(const Element& element, const ScalarTangent& tangent, Workspace& w) {
  add_own_body(element.first, tangent.factor, tangent.x.first, w);
  add_own_body(element.second, tangent.factor, tangent.x.second, w);
}

void add_drag_and_tyre_tangent(const Mechanism& m, double stiffness_factor, double damping_factor, Workspace& w) {
  for (const Drag& drag : m.drags()) {
    const Placement& at = w.placement[drag.body];
    const Vec3 u = point_velocity_against_wind(drag, at);
    Eigen::Matrix<double, 3, 6> J;
    J << Mat3::Identity(), -skew(at.A * drag.point_b);
    w.tangent[drag.body] += damping_factor * (J.transpose() * drag_damping(drag, u) * J);
  }
  for (const Tyre& tyre : m.tyres())
    add_tyre_tangent(tyre, w.placement[tyre.body], input_value(w.input.data(), tyre.height_input),
                     input_value(w.input.data(), tyre.height_rate_input), stiffness_factor, damping_factor,
                     w.tangent[tyre.body]);
}

}  // namespace

void force_tangent(const Plan& plan, double stiffness_factor, double damping_factor, Workspace& w) noexcept {
  for (const int i : plan.pose_dependent_bodies)
    if (plan.carries_spring[i]) w.tangent[i].setZero();
  const Mechanism& m = plan.mechanism;
  for (const Spring& spring : m.springs()) {
    if (on_ground(spring)) add_own_body(spring, spring_tangent(m, spring, stiffness_factor, damping_factor, w), w);
    if (spring.kind == Spring::Kind::between_points) {
      const Coordinate x = spring_coordinate(spring, w, m, w.coordinate);
      add_string(spring, -spring_effort(spring, x.value, x.rate).effort, stiffness_factor, w);
    }
  }
  for (const JointFriction& friction : m.frictions())
    if (on_ground(friction)) add_own_body(friction, friction_tangent(m, friction, damping_factor, w), w);
  for (const Motor& motor : m.motors())
    if (on_ground(motor)) add_own_body(motor, motor_tangent(m, motor, stiffness_factor, damping_factor, w), w);
  add_drag_and_tyre_tangent(m, stiffness_factor, damping_factor, w);
}

void evaluate_element(const Plan& plan, const Element& element, double stiffness_factor, double damping_factor,
                      const Workspace& w, ElementRows& rows) noexcept {
  const Mechanism& m = plan.mechanism;
  const auto set_row = [&rows](const ScalarTangent& tangent) {
    const double root = std::sqrt(tangent.factor);
    rows.first[0] = root * tangent.x.first;
    rows.second[0] = root * tangent.x.second;
  };
  switch (element.kind) {
    case Element::Kind::bushing: {
      const BushingDeflection at =
          deflection(m.bushings()[element.index], placement(w, element.first), placement(w, element.second));
      for (int i = 0; i < element.rows; ++i) {
        const Vec6 column = std::sqrt(stiffness_factor) * plan.bushing_rows[element.index].L.col(i);
        rows.first[i] = at.J_first.transpose() * column;
        rows.second[i] = at.J_second.transpose() * column;
      }
      return;
    }
    case Element::Kind::spring:
      return set_row(spring_tangent(m, m.springs()[element.index], stiffness_factor, damping_factor, w));
    case Element::Kind::friction:
      return set_row(friction_tangent(m, m.frictions()[element.index], damping_factor, w));
    case Element::Kind::motor:
      return set_row(motor_tangent(m, m.motors()[element.index], stiffness_factor, damping_factor, w));
  }
}

double potential_energy(const Plan& plan, const State& x, const Workspace& w) noexcept {
  const Mechanism& m = plan.mechanism;
  double energy = 0.0;
  for (std::size_t i = 0; i < m.bodies().size(); ++i) energy -= m.bodies()[i].mass * m.gravity_0().dot(x.body[i].r);
  for (const Spring& spring : m.springs()) {
    const double stretch = spring_coordinate(spring, w, m, w.coordinate).value - spring.rest;
    energy += 0.5 * spring.stiffness * stretch * stretch - spring.preload * stretch +
              spring.stiffness_table.integral(stretch);
  }
  for (std::size_t k = 0; k < m.bushings().size(); ++k)
    energy += 0.5 * w.bushing[k].deflection.dot(m.bushings()[k].stiffness * w.bushing[k].deflection);
  for (std::size_t k = 0; k < m.tyres().size(); ++k) {
    const double depth = std::max(0.0, w.tyre[k].deflection);
    energy += 0.5 * m.tyres()[k].stiffness * depth * depth;
  }
  return energy;
}

}  // namespace rigstep::index3
