// Simbody: recursive joint coordinates of order n; loops are closed by its Ball constraints, with projection.
#include <Simbody.h>

#include <memory>

#include "tests/bench/peer.h"

namespace rigstep::bench {

namespace {

SimTK::Vec3 vector(const Vec3& v) { return {v[0], v[1], v[2]}; }

SimTK::Transform frame(const Mat3& axes, const Vec3& point) {
  SimTK::Mat33 R;
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) R(i, k) = axes(i, k);
  return {SimTK::Rotation(R), vector(point)};
}

struct Simulation {
  SimTK::MultibodySystem system;
  SimTK::SimbodyMatterSubsystem matter{system};
  SimTK::GeneralForceSubsystem forces{system};
  std::vector<SimTK::MobilizedBodyIndex> index_of_body;
  std::unique_ptr<SimTK::Integrator> integrator;
  SimTK::State saved;
};

enum class Scheme { semi_explicit_euler, runge_kutta_merson };

server::TimedSolver make(const Mechanism& m, double dt, const char* name, Scheme scheme) {
  const JointTree tree = joint_tree(m);
  const auto s = std::make_shared<Simulation>();
  SimTK::Force::UniformGravity(s->forces, s->matter, vector(m.gravity_0()));
  s->index_of_body.resize(m.bodies().size());
  const auto mobilized = [&](int body) -> SimTK::MobilizedBody& {
    return s->matter.updMobilizedBody(body == kGround ? SimTK::GroundIndex
                                                      : s->index_of_body[static_cast<std::size_t>(body)]);
  };
  for (const TreeJoint& j : tree.tree) {
    const Body& body = m.bodies()[static_cast<std::size_t>(j.body)];
    const Mat3& J = body.inertia_b;
    const SimTK::Body::Rigid rigid(SimTK::MassProperties(
        body.mass, SimTK::Vec3(0), SimTK::Inertia(J(0, 0), J(1, 1), J(2, 2), J(0, 1), J(0, 2), J(1, 2))));
    const SimTK::Transform in_parent = frame(j.axes_in_parent, j.point_in_parent),
                           in_body = frame(j.axes_in_body, j.point_in_body);
    SimTK::MobilizedBody& parent = mobilized(j.parent);
    s->index_of_body[static_cast<std::size_t>(j.body)] =
        j.type == JointType::spherical
            ? SimTK::MobilizedBody::Ball(parent, in_parent, rigid, in_body).getMobilizedBodyIndex()
            : SimTK::MobilizedBody::Pin(parent, in_parent, rigid, in_body).getMobilizedBodyIndex();
  }
  for (const TreeJoint& j : tree.loops)
    SimTK::Constraint::Ball(mobilized(j.parent), vector(j.point_in_parent), mobilized(j.body), vector(j.point_in_body));
  const SimTK::State start = s->system.realizeTopology();
  if (scheme == Scheme::semi_explicit_euler) {
    s->integrator = std::make_unique<SimTK::SemiExplicitEulerIntegrator>(s->system, dt);
  } else {
    s->integrator = std::make_unique<SimTK::RungeKuttaMersonIntegrator>(s->system);
    s->integrator->setFixedStepSize(dt);
  }
  s->integrator->initialize(start);
  server::TimedSolver solver;
  solver.name = name;
  solver.step = [s, dt] {
    const double target = s->integrator->getTime() + dt;
    while (s->integrator->getTime() < target - 1e-6 * dt)
      s->integrator->stepTo(target);  // it also stops where it began
  };
  solver.save = [s] { s->saved = s->integrator->getState(); };
  solver.restore = [s] {
    s->integrator->initialize(s->saved);
    s->integrator->stepTo(s->integrator->getTime());
  };
  solver.position_0 = [s](int body) {
    const SimTK::State& state = s->integrator->getState();
    s->system.realize(state, SimTK::Stage::Position);
    const SimTK::Vec3 at =
        s->matter.getMobilizedBody(s->index_of_body[static_cast<std::size_t>(body)]).getBodyOriginLocation(state);
    return Vec3(at[0], at[1], at[2]);
  };
  return solver;
}

std::string version() {
  int major = 0, minor = 0, build = 0;
  SimTK_version_simbody(&major, &minor, &build);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(build);
}

}  // namespace

std::vector<Peer> simbody_peers() {
  return {{"simbody_euler", version,
           [](const Mechanism& m, double dt) { return make(m, dt, "simbody_euler", Scheme::semi_explicit_euler); }},
          {"simbody_merson", version,
           [](const Mechanism& m, double dt) { return make(m, dt, "simbody_merson", Scheme::runge_kutta_merson); }}};
}

}  // namespace rigstep::bench
