#include "core/offline/forces.h"

#include <algorithm>
#include <cmath>

namespace rigstep::offline {

namespace {

constexpr double kDampingRamp = 0.01;  // of the tyre's radius: depth over which its damping fades in

// The wrenches so far, and where everything is.
struct Sum {
  const Mechanism& mechanism;
  const Situation& at;
  std::vector<Vec6> wrench;

  const BodyMotion& body(int index) const { return at.body[static_cast<std::size_t>(index)]; }
  double input(int channel) const { return channel < 0 ? 0.0 : at.input[static_cast<std::size_t>(channel)]; }

  // `arm` from the mass centre to where the force acts
  void add(int index, const Vec3& force_0, const Vec3& torque_0, const Vec3& arm_0) {
    if (index == kGround) return;
    wrench[index].head<3>() += force_0;
    wrench[index].tail<3>() += torque_0 + arm_0.cross(force_0);
  }

  // an effort that does work along a scalar of two bodies, positive work where the scalar grows
  void add_along(const Jet& scalar, double effort, int first, int second) {
    if (first != kGround) wrench[first] += effort * scalar.on_first();
    if (second != kGround) wrench[second] += effort * scalar.on_second();
  }
};

void add_gravity(Sum& sum) {
  for (std::size_t i = 0; i < sum.wrench.size(); ++i)
    sum.wrench[i].head<3>() += sum.mechanism.bodies()[i].mass * sum.mechanism.gravity_0();
}

void add_loads(Sum& sum) {
  for (const AppliedLoad& load : sum.mechanism.loads()) {
    const double scale = load.constant + load.amplitude * std::sin(load.angular_frequency * sum.at.time + load.phase);
    const Mat3 A = rotation(sum.body(load.body).p);
    const Mat3 turn = load.frame == Frame::body ? A : Mat3::Identity();
    sum.add(load.body, scale * (turn * load.force), scale * (turn * load.torque), A * load.point_b);
  }
}

Jet measured_at(const Sum& sum, int joint, Freedom freedom) {
  const Joint& described = sum.mechanism.joints()[joint];
  return measured(described, freedom, joint_motion(described, sum.at.body));
}

void add_inputs(Sum& sum) {
  for (std::size_t i = 0; i < sum.mechanism.inputs().size(); ++i) {
    const Input& input = sum.mechanism.inputs()[i];
    const double value = sum.input(static_cast<int>(i));
    if (input.kind == Input::Kind::signal) continue;
    if (input.kind == Input::Kind::joint_effort) {
      const Joint& joint = sum.mechanism.joints()[input.joint];
      sum.add_along(measured_at(sum, input.joint, input.freedom), value, joint.first, joint.second);
      continue;
    }
    const Mat3 A = rotation(sum.body(input.body).p);
    const Vec3 load = value * (input.frame == Frame::body ? Vec3(A * input.direction) : input.direction);
    if (input.kind == Input::Kind::body_force) sum.add(input.body, load, Vec3::Zero(), A * input.point_b);
    if (input.kind == Input::Kind::body_torque) sum.add(input.body, Vec3::Zero(), load, Vec3::Zero());
  }
}

// What a spring's effort is a function of.
Jet extension(const Spring& spring, const Situation& at) {
  if (spring.kind == Spring::Kind::in_joint) return at.coordinate[static_cast<std::size_t>(spring.coordinate)];
  JointFrame in_first, in_second;
  in_first.point_b = spring.first_point_b;
  in_second.point_b = spring.second_point_b;
  const JetVec3 gap = joint_motion(spring.first, in_first, spring.second, in_second, at.body).gap;
  if (spring.kind == Spring::Kind::between_points) return norm(gap);
  JetVec3 direction;
  direction.value = spring.direction_0;
  return dot(gap, direction);
}

void add_springs(Sum& sum) {
  for (const Spring& spring : sum.mechanism.springs()) {
    const Jet x = extension(spring, sum.at);
    const double deflection = x.value - spring.rest;
    const double effort = spring.preload - spring.stiffness * deflection - spring.stiffness_table.value(deflection) -
                          spring.damping * x.rate - spring.damping_table.value(x.rate);
    sum.add_along(x, effort, spring.first, spring.second);
  }
}

// x of a bushing, one quantity after the other.
std::array<Jet, 6> deflection(const Bushing& bushing, const Situation& at) {
  const JointMotion motion = joint_motion(bushing.first, bushing.in_first, bushing.second, bushing.in_second, at.body);
  const auto& a = motion.first_axes;
  const auto& b = motion.second_axes;
  std::array<Jet, 6> x;
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    x[i] = dot(a[i], motion.gap);
    x[3 + i] = 0.5 * (dot(a[k], b[j]) - dot(a[j], b[k]));  // a_i . 1/2 sum a x b
  }
  return x;
}

void add_bushings(Sum& sum) {
  for (const Bushing& bushing : sum.mechanism.bushings()) {
    const std::array<Jet, 6> x = deflection(bushing, sum.at);
    Vec6 value, rate;
    for (int i = 0; i < 6; ++i) {
      value[i] = x[i].value;
      rate[i] = x[i].rate;
    }
    const Vec6 opposing = bushing.stiffness * value + bushing.damping * rate;
    for (int i = 0; i < 6; ++i) sum.add_along(x[i], -opposing[i], bushing.first, bushing.second);
  }
}

void add_friction(Sum& sum) {
  for (const JointFriction& friction : sum.mechanism.frictions()) {
    const Jet& x = sum.at.coordinate[static_cast<std::size_t>(friction.coordinate)];
    const double effort =
        -friction.coulomb * x.rate / std::hypot(x.rate, friction.regularisation_speed) - friction.viscous * x.rate;
    sum.add_along(x, effort, friction.first, friction.second);
  }
}

double limit_at(const Motor& motor, double rate) {
  if (motor.no_load_speed == 0.0) return motor.effort_limit;
  return motor.effort_limit * std::clamp(1.0 - rate / motor.no_load_speed, 0.0, 1.0);
}

void add_motors(Sum& sum) {
  for (const Motor& motor : sum.mechanism.motors()) {
    const Jet& x = sum.at.coordinate[static_cast<std::size_t>(motor.coordinate)];
    double effort = motor.constant + sum.input(motor.effort_input) +
                    motor.position_gain * (sum.input(motor.position_input) - x.value) +
                    motor.rate_gain * (sum.input(motor.rate_input) - x.rate);
    if (motor.effort_limit > 0.0) effort = std::clamp(effort, -limit_at(motor, -x.rate), limit_at(motor, x.rate));
    sum.add_along(x, effort, motor.first, motor.second);
  }
}

void add_drag(Sum& sum) {
  for (const Drag& drag : sum.mechanism.drags()) {
    const BodyMotion& body = sum.body(drag.body);
    const Vec3 arm = rotation(body.p) * drag.point_b;
    const Vec3 u = body.v_0 + body.omega_0.cross(arm) - drag.wind_0;
    sum.add(drag.body, -0.5 * drag.density * drag.drag_area * u.norm() * u, Vec3::Zero(), arm);
  }
}

// The wheel as a thin disc on the road.
struct Contact {
  double depth = 0.0;      // of the undeflected disc's lowest point below the road, negative in the air [m]
  Vec3 centre, lowest;     // from the mass centre [m]
  Vec3 road;               // where the wheel's plane and the road meet, below the centre, from the mass centre [m]
  Vec3 forward, sideways;  // unit, in the road
};

Contact contact(const Tyre& tyre, const BodyMotion& wheel, double road_height) {
  const Mat3 A = rotation(wheel.p);
  const Vec3 &n = tyre.road_normal_0, axis = A * tyre.axis_b, across = n - axis * axis.dot(n);
  const double cosine = across.norm();
  const Vec3 down = -across / cosine;
  Contact at;
  at.centre = A * tyre.centre_b;
  const double height = n.dot(wheel.r_0 + at.centre - tyre.road_point_0) - road_height;
  at.depth = tyre.radius * cosine - height;
  at.lowest = at.centre + tyre.radius * down;
  at.road = at.centre + std::max(0.0, height / cosine) * down;  // loaded radius
  at.forward = axis.cross(n).normalized();
  at.sideways = n.cross(at.forward);
  return at;
}

// f(q) of the magic formula, over q: C B-scaled slip near zero.
double magic_over_slip(const SlipCurve& curve, double q) {
  if (q < 1e-9) return curve.C;
  return std::sin(curve.C * std::atan(q - curve.E * (q - std::atan(q)))) / q;
}

void add_tyres(Sum& sum) {
  for (const Tyre& tyre : sum.mechanism.tyres()) {
    const BodyMotion& wheel = sum.body(tyre.body);
    const Contact at = contact(tyre, wheel, sum.input(tyre.height_input));
    if (!(at.depth > 0.0)) continue;
    const auto velocity = [&wheel](const Vec3& arm) { return Vec3(wheel.v_0 + wheel.omega_0.cross(arm)); };
    const Vec3& n = tyre.road_normal_0;
    const double closing = sum.input(tyre.height_rate_input) - n.dot(velocity(at.lowest));
    const double fading = std::min(1.0, at.depth / (kDampingRamp * tyre.radius));
    const double normal = std::max(0.0, tyre.stiffness * at.depth + tyre.damping * fading * closing);
    const double speed = std::hypot(at.forward.dot(velocity(at.centre)), tyre.low_speed);
    const Vec3 slip = velocity(at.road);
    const double x = -tyre.longitudinal.B * at.forward.dot(slip) / speed;
    const double y = -tyre.lateral.B * at.sideways.dot(slip) / speed;
    const double q = std::hypot(x, y);
    const double along = tyre.longitudinal.friction * normal * magic_over_slip(tyre.longitudinal, q) * x;
    const double across = tyre.lateral.friction * normal * magic_over_slip(tyre.lateral, q) * y;
    sum.add(tyre.body, normal * n, Vec3::Zero(), at.lowest);
    sum.add(tyre.body, along * at.forward + across * at.sideways, Vec3::Zero(), at.road);
  }
}

}  // namespace

std::vector<Vec6> wrenches(const Mechanism& mechanism, const Situation& at) {
  Sum sum{mechanism, at, std::vector<Vec6>(mechanism.bodies().size(), Vec6::Zero())};
  add_gravity(sum);
  add_loads(sum);
  add_inputs(sum);
  add_springs(sum);
  add_bushings(sum);
  add_friction(sum);
  add_motors(sum);
  add_drag(sum);
  add_tyres(sum);
  return std::move(sum.wrench);
}

double potential_energy(const Mechanism& mechanism, const Situation& at) {
  double energy = 0.0;
  for (std::size_t i = 0; i < mechanism.bodies().size(); ++i)
    energy -= mechanism.bodies()[i].mass * mechanism.gravity_0().dot(at.body[i].r_0);
  for (const Spring& spring : mechanism.springs()) {
    const double x = extension(spring, at).value - spring.rest;
    energy += 0.5 * spring.stiffness * x * x + spring.stiffness_table.integral(x) - spring.preload * x;
  }
  for (const Bushing& bushing : mechanism.bushings()) {
    const std::array<Jet, 6> x = deflection(bushing, at);
    Vec6 value;
    for (int i = 0; i < 6; ++i) value[i] = x[i].value;
    energy += 0.5 * value.dot(bushing.stiffness * value);
  }
  for (const Tyre& tyre : mechanism.tyres()) {
    const double height = tyre.height_input < 0 ? 0.0 : at.input[static_cast<std::size_t>(tyre.height_input)];
    const double depth = std::max(0.0, contact(tyre, at.body[static_cast<std::size_t>(tyre.body)], height).depth);
    energy += 0.5 * tyre.stiffness * depth * depth;
  }
  return energy;
}

Mat3 inertia_0(const Body& body, const BodyMotion& motion) {
  const Mat3 A = rotation(motion.p);
  return A * body.inertia_b * A.transpose();
}

double kinetic_energy(const Mechanism& mechanism, std::span<const BodyMotion> bodies) {
  double energy = 0.0;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Body& body = mechanism.bodies()[i];
    energy += 0.5 * body.mass * bodies[i].v_0.squaredNorm() +
              0.5 * bodies[i].omega_0.dot(inertia_0(body, bodies[i]) * bodies[i].omega_0);
  }
  return energy;
}

}  // namespace rigstep::offline
