#include "server/bench/mechanisms.h"

#include <algorithm>
#include <numbers>

#include "core/mechanism/builder.h"
#include "proto/config_text.h"
#include "server/live/session.h"

namespace rigstep::server {

namespace {

// The axes of its joints take turns, so that no chain of hinges is planar.
void add_chain(int bodies, JointType type, MechanismBuilder& builder) {
  builder.set_gravity({0.0, -9.81, 0.0});
  std::string last = "ground";
  for (int i = 0; i < bodies; ++i) {
    const Vec3 point{static_cast<double>(i), 0.0, 0.0};
    Body body;
    body.name = "B" + std::to_string(i + 1);
    body.mass = 1.0;
    body.inertia_b = Mat3::Identity();
    body.position_0 = point + Vec3(0.5, 0.0, 0.0);
    builder.add_body(body);
    MechanismBuilder::JointAtStart joint;
    joint.name = "joint" + std::to_string(i + 1);
    joint.type = type;
    joint.first = last;
    joint.second = body.name;
    joint.point = point;
    joint.axis = i % 2 == 0 ? Vec3::UnitZ() : Vec3::UnitY();
    builder.add_joint(joint);
    last = body.name;
  }
}

}  // namespace

Mechanism make_chain(int bodies, JointType type) {
  MechanismBuilder builder(type == JointType::spherical ? "spherical_chain" : "revolute_chain");
  add_chain(bodies, type, builder);
  return builder.build();
}

Mechanism make_motor_chain(int bodies) {
  MechanismBuilder builder("motor_chain");
  add_chain(bodies, JointType::revolute, builder);
  for (int i = 1; i <= bodies; ++i) {
    const std::string number = std::to_string(i);
    Motor motor;
    motor.name = "motor" + number;
    motor.position_gain = 3000.0, motor.rate_gain = 300.0, motor.effort_limit = 500.0;
    builder.add_motor(motor, "joint" + number, Freedom::angle, {});
    JointFriction friction;
    friction.name = "friction" + number;
    friction.coulomb = 1.0, friction.viscous = 0.1, friction.regularisation_speed = 0.01;
    builder.add_friction(friction, "joint" + number, Freedom::angle);
  }
  return builder.build();
}

namespace {

// Joints whose coordinate a driver or motor holds.
std::vector<int> held_joints(const Mechanism& m) {
  std::vector<int> joints;
  const auto add = [&](int coordinate) {
    const JointCoordinate& along = m.coordinates()[static_cast<std::size_t>(coordinate)];
    const Joint& joint = m.joints()[static_cast<std::size_t>(along.joint)];
    if (joint.type != JointType::prismatic)
      throw config::ConfigError("--mechanism: joint " + joint.name +
                                " has a driver or motor: only a prismatic joint can have a spring instead");
    joints.push_back(along.joint);
  };
  for (const Driver& driver : m.drivers()) add(driver.coordinate);
  for (const Motor& motor : m.motors()) add(motor.coordinate);
  return joints;
}

void copy_bodies_and_joints(const Mechanism& m, MechanismBuilder& builder) {
  builder.set_gravity(m.gravity_0());
  for (const Body& body : m.bodies()) builder.add_body(body);
  const auto side = [](const JointFrame& frame) {
    return SideInBody{frame.point_b, frame.axes_b.col(2), frame.axes_b.col(0)};
  };
  for (const Joint& joint : m.joints())
    builder.add_joint(joint.name, joint.type, std::string(m.body_name(joint.first)),
                      std::string(m.body_name(joint.second)), side(joint.in_first), side(joint.in_second),
                      joint.type == JointType::screw ? joint.lead : joint.length);
}

void copy_springs_of_points(const Mechanism& m, MechanismBuilder& builder) {
  for (Spring spring : m.springs()) {
    if (spring.kind != Spring::Kind::between_points) continue;
    spring.stiffness = std::max(0.0, spring.stiffness + spring.stiffness_table.slope(0.0));
    spring.damping = std::max(0.0, spring.damping + spring.damping_table.slope(0.0));
    spring.preload -= spring.stiffness_table.value(0.0) + spring.damping_table.value(0.0);
    spring.stiffness_table = spring.damping_table = {};
    builder.add_spring(spring, std::string(m.body_name(spring.first)), std::string(m.body_name(spring.second)));
  }
}

}  // namespace

Mechanism moved_by_gravity(const Mechanism& m) {
  constexpr double kRate =
      2.0 * 2.0 * std::numbers::pi;              // at which the whole mass would swing on the springs [rad/s]: 2 Hz
  constexpr double kUnequal = 0.1;               // of a stiffness, from spring to spring: no motion in one plane
  constexpr double kAlong = 1.0, kAbove = 10.0;  // lengths [m]
  const std::vector<int> held = held_joints(m);
  if (held.empty() && m.tyres().empty()) return m;
  MechanismBuilder builder(m.name());
  copy_bodies_and_joints(m, builder);
  copy_springs_of_points(m, builder);
  double mass = 0.0;
  for (const Body& body : m.bodies()) mass += body.mass;
  int springs = 0;
  const auto add_spring = [&](const std::string& name, const std::string& first, const Vec3& first_point_b,
                              const std::string& second, const Vec3& second_point_b, double length) {
    Spring spring;
    spring.name = name + "_spring";
    spring.first_point_b = first_point_b;
    spring.second_point_b = second_point_b;
    spring.stiffness =
        (1.0 + kUnequal * springs++) * mass * kRate * kRate / static_cast<double>(held.size() + m.tyres().size());
    spring.rest = length;
    builder.add_spring(spring, first, second);
  };
  for (const int j : held) {
    const Joint& joint = m.joints()[static_cast<std::size_t>(j)];
    const std::string first(m.body_name(joint.first)), second(m.body_name(joint.second));
    const Vec3 at = builder.point_in_world(second, joint.in_second.point_b);
    const Vec3 axis = builder.direction_in_world(first, joint.in_first.axes_b.col(2));
    add_spring(joint.name, first, builder.point_in_body(first, at - kAlong * axis), second, joint.in_second.point_b,
               kAlong);
  }
  for (const Tyre& tyre : m.tyres()) {
    const std::string wheel(m.body_name(tyre.body));
    const Vec3 above = builder.point_in_world(wheel, Vec3::Zero()) + kAbove * tyre.road_normal_0;
    add_spring(tyre.name, "ground", above, wheel, Vec3::Zero(), kAbove);
  }
  return builder.build();
}

std::string replaced_by_springs(const Mechanism& m) {
  std::string list;
  const auto add = [&list](bool any, const char* what) {
    if (any) list += (list.empty() ? "" : ", ") + std::string(what);
  };
  add(!m.drivers().empty(), "drivers");
  add(!m.motors().empty(), "motors");
  add(!m.tyres().empty(), "tyres");
  return list;
}

Mechanism make_mechanism(const BenchMechanism& which) {
  if (!which.file.empty()) return load_mechanism_file(which.file).mechanism;
  if (which.bodies < 1) throw config::ConfigError("--bodies: a chain has at least one body");
  if (which.name == "spherical_chain") return make_chain(which.bodies, JointType::spherical);
  if (which.name == "revolute_chain") return make_chain(which.bodies, JointType::revolute);
  if (which.name == "motor_chain") return make_motor_chain(which.bodies);
  throw config::ConfigError("--mechanism: \"" + which.name + "\" is not known here");
}

}  // namespace rigstep::server
