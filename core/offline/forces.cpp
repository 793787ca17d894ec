#include "core/offline/forces.h"

#include <algorithm>
#include <cmath>

#include "core/offline/drives.h"

namespace rigstep::offline {

namespace {

constexpr double kDampingRamp = 0.01;  // of the tyre's radius: depth over which its damping fades in

// The wrenches so far, and where everything is.
struct Sum {
  const Mechanism& mechanism;
  const Situation& at;
  std::vector<Vec6> wrench;

  const BodyMotion& body(int index) const { return at.body[static_cast<std::size_t>(index)]; }

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
    const double value = sum.at.held(static_cast<int>(i));
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

// What a stop's effort is a function of.
Jet extension(const Stop& stop, const Situation& at) {
  if (stop.is_along_freedom()) return at.coordinate[static_cast<std::size_t>(stop.coordinate)];
  JointFrame in_first, in_second;
  in_first.point_b = stop.first_point_b;
  in_second.point_b = stop.second_point_b;
  return norm(joint_motion(stop.first, in_first, stop.second, in_second, at.body).gap);
}

// Length of a rope between two of its points.
Jet length_of_part(const Rope& rope, std::size_t part, const Situation& at) {
  const Rope::Point &from = rope.points[part], &to = rope.points[part + 1];
  JointFrame in_first, in_second;
  in_first.point_b = from.point_b;
  in_second.point_b = to.point_b;
  return norm(joint_motion(from.body, in_first, to.body, in_second, at.body).gap);
}

double limit_at(const Motor& motor, double rate) {
  if (motor.no_load_speed == 0.0) return motor.effort_limit;
  return motor.effort_limit * std::clamp(1.0 - rate / motor.no_load_speed, 0.0, 1.0);
}

TyreReading contact(const Tyre& tyre, const BodyMotion& wheel, double road_height) {
  const Mat3 A = rotation(wheel.p);
  const Vec3 &n = tyre.road_normal_0, axis = A * tyre.axis_b, across = n - axis * axis.dot(n);
  const double cosine = across.norm();
  const Vec3 down = -across / cosine;
  TyreReading at;
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

// Spring, friction, motor or effort: something that acts along one scalar between two bodies.
template <class Element>
requires Element::kIsScalar void add_element(const Element& element, Sum& sum) {
  const ScalarReading reading = read(element, sum.at);
  sum.add_along(reading.along, reading.effort, element.first, element.second);
}

void add_element(const Bushing& bushing, Sum& sum) {
  const BushingReading reading = read(bushing, sum.at);
  for (int i = 0; i < 6; ++i) sum.add_along(reading.deflection[i], reading.load[i], bushing.first, bushing.second);
}

void add_element(const Drag& drag, Sum& sum) {
  const DragReading reading = read(drag, sum.at);
  sum.add(drag.body, reading.force_0, Vec3::Zero(), reading.arm_0);
}

void add_element(const Tyre& tyre, Sum& sum) {
  const TyreReading at = read(tyre, sum.at);
  sum.add(tyre.body, at.force[2] * tyre.road_normal_0, Vec3::Zero(), at.lowest);
  sum.add(tyre.body, at.force[0] * at.forward + at.force[1] * at.sideways, Vec3::Zero(), at.road);
}

void add_element(const Rope& rope, Sum& sum) {
  const RopeReading reading = read(rope, sum.at);
  if (reading.effort == 0.0) return;
  for (std::size_t part = 0; part + 1 < rope.points.size(); ++part)
    if (rope.points[part].body != rope.points[part + 1].body)
      sum.add_along(length_of_part(rope, part, sum.at), reading.effort, rope.points[part].body,
                    rope.points[part + 1].body);
}

// ---- energy that an element stores

double energy(const Spring& spring, const Situation& at) {
  const double x = extension(spring, at).value - spring.rest;
  return 0.5 * spring.stiffness * x * x + spring.stiffness_table.integral(x) - spring.preload * x;
}

double energy(const Bushing& bushing, const Situation& at) {
  const std::array<Jet, 6> x = read(bushing, at).deflection;
  Vec6 value;
  for (int i = 0; i < 6; ++i) value[i] = x[i].value;
  return 0.5 * value.dot(bushing.stiffness * value);
}

double energy(const Tyre& tyre, const Situation& at) {
  const double depth = std::max(0.0, read(tyre, at).depth);
  return 0.5 * tyre.stiffness * depth * depth;
}

double energy(const Stop& stop, const Situation& at) {
  const double depth = read(stop, at).deflection;
  return 0.5 * stop.stiffness * depth * depth;
}

double energy(const Rope& rope, const Situation& at) {
  const RopeReading reading = read(rope, at);
  const double stretch = std::max(0.0, reading.deflection);
  return 0.5 * rope.stiffness / reading.unstretched * stretch * stretch;
}

double energy(const JointFriction&, const Situation&) { return 0.0; }
double energy(const Motor&, const Situation&) { return 0.0; }
double energy(const AppliedEffort&, const Situation&) { return 0.0; }
double energy(const Drag&, const Situation&) { return 0.0; }

}  // namespace

ScalarReading read(const Spring& spring, const Situation& at) {
  const Jet x = extension(spring, at);
  const double deflection = x.value - spring.rest;
  return {x, deflection,
          spring.preload - spring.stiffness * deflection - spring.stiffness_table.value(deflection) -
              spring.damping * x.rate - spring.damping_table.value(x.rate)};
}

ScalarReading read(const JointFriction& friction, const Situation& at) {
  const Jet& x = at.coordinate[static_cast<std::size_t>(friction.coordinate)];
  return {x, x.value,
          -friction.coulomb * x.rate / std::hypot(x.rate, friction.regularisation_speed) - friction.viscous * x.rate};
}

ScalarReading read(const Motor& motor, const Situation& at) {
  const Jet& x = at.coordinate[static_cast<std::size_t>(motor.coordinate)];
  double effort = motor.constant + at.held(motor.effort_input) +
                  motor.position_gain * (at.held(motor.position_input) - x.value) +
                  motor.rate_gain * (at.held(motor.rate_input) - x.rate);
  if (motor.effort_limit > 0.0) effort = std::clamp(effort, -limit_at(motor, -x.rate), limit_at(motor, x.rate));
  return {x, x.value, effort};
}

ScalarReading read(const AppliedEffort& effort, const Situation& at) {
  const Jet& x = at.coordinate[static_cast<std::size_t>(effort.coordinate)];
  return {x, x.value, TimeFunctionAt(effort.function).at(at.time).value};
}

ScalarReading read(const Stop& stop, const Situation& at) {
  const Jet x = extension(stop, at);
  const double beyond = std::max(0.0, x.value - stop.upper), below = std::max(0.0, stop.lower - x.value);
  const double push_down = stop.stiffness * beyond * std::max(0.0, 1.0 + stop.damping * x.rate);
  const double push_up = stop.stiffness * below * std::max(0.0, 1.0 - stop.damping * x.rate);
  return {x, beyond - below, push_up - push_down};
}

RopeReading read(const Rope& rope, const Situation& at) {
  RopeReading reading;
  double length = 0.0;
  for (std::size_t part = 0; part + 1 < rope.points.size(); ++part) {
    const Jet of_part = length_of_part(rope, part, at);
    length += of_part.value;
    if (of_part.value > 0.0) reading.rate += of_part.rate;
  }
  reading.unstretched = std::max(Rope::kShortest, rope.length + at.held(rope.pay_out_input));
  reading.deflection = length - reading.unstretched;
  if (!(reading.deflection > 0.0)) return reading;
  const double tension = (rope.stiffness * reading.deflection + rope.damping * reading.rate) / reading.unstretched;
  reading.effort = -std::max(0.0, tension);
  return reading;
}

BushingReading read(const Bushing& bushing, const Situation& at) {
  const JointMotion motion = joint_motion(bushing.first, bushing.in_first, bushing.second, bushing.in_second, at.body);
  const auto& a = motion.first_axes;
  const auto& b = motion.second_axes;
  BushingReading reading;
  Vec6 value, rate;
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    reading.deflection[i] = dot(a[i], motion.gap);
    reading.deflection[3 + i] = 0.5 * (dot(a[k], b[j]) - dot(a[j], b[k]));  // a_i . 1/2 sum a x b
  }
  for (int i = 0; i < 6; ++i) {
    value[i] = reading.deflection[i].value;
    rate[i] = reading.deflection[i].rate;
  }
  reading.load = -(bushing.stiffness * value + bushing.damping * rate);
  return reading;
}

DragReading read(const Drag& drag, const Situation& at) {
  const BodyMotion& body = at.body[static_cast<std::size_t>(drag.body)];
  const Vec3 arm = rotation(body.p) * drag.point_b;
  const Vec3 u = body.v_0 + body.omega_0.cross(arm) - drag.wind_0;
  return {arm, -0.5 * drag.density * drag.drag_area * u.norm() * u, u.norm()};
}

TyreReading read(const Tyre& tyre, const Situation& situation) {
  const BodyMotion& wheel = situation.body[static_cast<std::size_t>(tyre.body)];
  TyreReading at = contact(tyre, wheel, situation.held(tyre.height_input));
  if (!(at.depth > 0.0)) return at;
  const auto velocity = [&wheel](const Vec3& arm) { return Vec3(wheel.v_0 + wheel.omega_0.cross(arm)); };
  const double closing = situation.held(tyre.height_rate_input) - tyre.road_normal_0.dot(velocity(at.lowest));
  const double fading = std::min(1.0, at.depth / (kDampingRamp * tyre.radius));
  const double normal = std::max(0.0, tyre.stiffness * at.depth + tyre.damping * fading * closing);
  const double speed = std::hypot(at.forward.dot(velocity(at.centre)), tyre.low_speed);
  const Vec3 slip = velocity(at.road);
  at.slip = -at.forward.dot(slip) / speed;
  at.tangent_of_slip = -at.sideways.dot(slip) / speed;
  const double x = tyre.longitudinal.B * at.slip, y = tyre.lateral.B * at.tangent_of_slip, q = std::hypot(x, y);
  at.force << tyre.longitudinal.friction * normal * magic_over_slip(tyre.longitudinal, q) * x,
      tyre.lateral.friction * normal * magic_over_slip(tyre.lateral, q) * y, normal;
  return at;
}

std::vector<Vec6> wrenches(const Mechanism& mechanism, const Situation& at) {
  Sum sum{mechanism, at, std::vector<Vec6>(mechanism.bodies().size(), Vec6::Zero())};
  add_gravity(sum);
  add_loads(sum);
  add_inputs(sum);
  for_each_kind([&]<class Element>() {
    for (const Element& element : mechanism.all<Element>()) add_element(element, sum);
  });
  return std::move(sum.wrench);
}

std::vector<double> load_jumps(const Mechanism& mechanism) {
  std::vector<double> times;
  for (const AppliedEffort& effort : mechanism.efforts()) {
    const std::vector<double> jumps = effort.function.jumps();
    times.insert(times.end(), jumps.begin(), jumps.end());
  }
  return times;
}

double potential_energy(const Mechanism& mechanism, const Situation& at) {
  double sum = 0.0;
  for (std::size_t i = 0; i < mechanism.bodies().size(); ++i)
    sum -= mechanism.bodies()[i].mass * mechanism.gravity_0().dot(at.body[i].r_0);
  for_each_kind([&]<class Element>() {
    for (const Element& element : mechanism.all<Element>()) sum += energy(element, at);
  });
  return sum;
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
