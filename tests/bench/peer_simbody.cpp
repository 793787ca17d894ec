// Simbody: recursive joint coordinates of order n; loops are closed by its Ball constraints, with projection. Drivers
// are its prescribed motions.
#include <exception>
#include <limits>
#include <memory>

#include "tests/bench/peer.h"
#include "tests/bench/simbody_engine.h"

namespace rigstep::bench {

namespace {

static_assert(kSimbodyGround == kGround);

// joint_tree() lets no others through
SimbodyJoint joint_of(JointType type) {
  if (type == JointType::revolute) return SimbodyJoint::pin;
  if (type == JointType::universal) return SimbodyJoint::universal;
  if (type == JointType::prismatic) return SimbodyJoint::slider;
  return type == JointType::floating ? SimbodyJoint::free : SimbodyJoint::ball;
}

SimbodyModel model_of(const Mechanism& m, const JointTree& tree) {
  SimbodyModel model;
  model.gravity = m.gravity_0();
  for (const TreeJoint& j : tree.tree) {
    const Body& body = m.bodies()[static_cast<std::size_t>(j.body)];
    model.links.push_back({joint_of(j.type), j.parent, j.body, j.point_in_parent, j.point_in_body, j.axes_in_parent,
                           j.axes_in_body, j.is_driven, body.mass, body.inertia_b});
  }
  for (const TreeJoint& j : tree.loops) model.loops.push_back({j.parent, j.body, j.point_in_parent, j.point_in_body});
  for (const Spring& s : m.springs())
    if (s.kind == Spring::Kind::between_points)
      model.springs.push_back(
          {s.first, s.second, s.first_point_b, s.second_point_b, s.stiffness, free_length(s), s.damping});
  return model;
}

server::TimedSolver make(const Mechanism& m, double dt, const char* name, SimbodyScheme scheme) {
  const JointTree tree = joint_tree(m);
  const auto engine = std::make_shared<SimbodyEngine>(model_of(m, tree), dt, scheme);
  server::TimedSolver solver;
  solver.name = name;
  solver.differs = tree.left_out.empty() ? "" : "without " + tree.left_out;
  solver.step = [engine] {
    try {
      engine->step();
    } catch (const std::exception& problem) {  // a step that is too large for it
      throw server::StepFailed(problem.what());
    }
  };
  solver.save = [engine] { engine->save(); };
  solver.restore = [engine] { engine->restore(); };
  solver.position_0 = [engine](int body) -> Vec3 {
    try {
      return engine->point_0(body, Vec3::Zero());
    } catch (const std::exception&) {  // it refuses a state that is not finite
      return Vec3::Constant(std::numeric_limits<double>::quiet_NaN());
    }
  };
  solver.gap = [engine, tree] {
    return largest_gap(tree, [&](int body, const Vec3& point_b) { return engine->point_0(body, point_b); });
  };
  return solver;
}

}  // namespace

std::vector<Peer> simbody_peers() {
  return {{"simbody_euler", simbody_version,
           [](const Mechanism& m, double dt, double) {
             return make(m, dt, "simbody_euler", SimbodyScheme::semi_explicit_euler);
           }},
          {"simbody_merson", simbody_version, [](const Mechanism& m, double dt, double) {
             return make(m, dt, "simbody_merson", SimbodyScheme::runge_kutta_merson);
           }}};
}

}  // namespace rigstep::bench
