#include "server/bench/mechanisms.h"

#include "core/mechanism/builder.h"
#include "proto/config_text.h"
#include "server/live/session.h"

namespace rigstep::server {

Mechanism make_chain(int bodies, JointType type) {
  MechanismBuilder builder(type == JointType::spherical ? "spherical_chain" : "revolute_chain");
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
    joint.axis = Vec3::UnitZ();
    builder.add_joint(joint);
    last = body.name;
  }
  return builder.build();
}

Mechanism make_mechanism(const BenchMechanism& which) {
  if (!which.file.empty()) return load_mechanism_file(which.file).mechanism;
  if (which.bodies < 1) throw config::ConfigError("--bodies: a chain has at least one body");
  if (which.name == "spherical_chain") return make_chain(which.bodies, JointType::spherical);
  if (which.name == "revolute_chain") return make_chain(which.bodies, JointType::revolute);
  throw config::ConfigError("--mechanism: \"" + which.name + "\" is not known here");
}

}  // namespace rigstep::server
