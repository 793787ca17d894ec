// Simbody: recursive joint coordinates of order n; loops are closed by its Ball constraints, with projection. Drivers
// are its prescribed motions.
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

// Its mobilised bodies have axes of their own: a slider moves along x.
SimTK::Transform slider_frame(const Mat3& axes, const Vec3& point) {
  Mat3 turned;
  turned << axes.col(2), axes.col(0), axes.col(1);
  return frame(turned, point);
}

SimTK::MobilizedBody hang(const TreeJoint& j, SimTK::MobilizedBody& parent, const SimTK::Body::Rigid& rigid) {
  const SimTK::Transform in_parent = frame(j.axes_in_parent, j.point_in_parent),
                         in_body = frame(j.axes_in_body, j.point_in_body);
  if (j.type == JointType::floating) return SimTK::MobilizedBody::Free(parent, in_parent, rigid, in_body);
  if (j.type == JointType::spherical) return SimTK::MobilizedBody::Ball(parent, in_parent, rigid, in_body);
  if (j.type == JointType::universal) return SimTK::MobilizedBody::Universal(parent, in_parent, rigid, in_body);
  if (j.type == JointType::revolute) return SimTK::MobilizedBody::Pin(parent, in_parent, rigid, in_body);
  return SimTK::MobilizedBody::Slider(parent, slider_frame(j.axes_in_parent, j.point_in_parent), rigid,
                                      slider_frame(j.axes_in_body, j.point_in_body));
}

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
    const SimTK::MobilizedBodyIndex index = hang(j, mobilized(j.parent), rigid).getMobilizedBodyIndex();
    s->index_of_body[static_cast<std::size_t>(j.body)] = index;
    if (j.is_driven)
      SimTK::Constraint::PrescribedMotion(s->matter, new SimTK::Function::Constant(0.0, 1), index,
                                          SimTK::MobilizerQIndex(0));
  }
  for (const Spring& spring : m.springs()) {
    if (spring.kind != Spring::Kind::between_points) continue;
    SimTK::MobilizedBody &first = mobilized(spring.first), &second = mobilized(spring.second);
    const SimTK::Vec3 at_first = vector(spring.first_point_b), at_second = vector(spring.second_point_b);
    SimTK::Force::TwoPointLinearSpring(s->forces, first, at_first, second, at_second, spring.stiffness,
                                       free_length(spring));
    SimTK::Force::TwoPointLinearDamper(s->forces, first, at_first, second, at_second, spring.damping);
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
  solver.differs = tree.left_out.empty() ? "" : "without " + tree.left_out;
  const auto point_0 = [s](int body, const Vec3& point_b) {
    const SimTK::State& state = s->integrator->getState();
    s->system.realize(state, SimTK::Stage::Position);
    const SimTK::Vec3 at = s->matter.getMobilizedBody(s->index_of_body[static_cast<std::size_t>(body)])
                               .findStationLocationInGround(state, vector(point_b));
    return Vec3(at[0], at[1], at[2]);
  };
  solver.position_0 = [point_0](int body) { return point_0(body, Vec3::Zero()); };
  solver.gap = [tree, point_0] { return largest_gap(tree, point_0); };
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
