#include "tests/bench/simbody_engine.h"

#include <Simbody.h>

namespace rigstep::bench {

namespace {

SimTK::Vec3 vector(const Eigen::Vector3d& v) { return {v[0], v[1], v[2]}; }

SimTK::Transform frame(const Eigen::Matrix3d& axes, const Eigen::Vector3d& point) {
  SimTK::Mat33 R;
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) R(i, k) = axes(i, k);
  return {SimTK::Rotation(R), vector(point)};
}

// A slider of Simbody moves along x.
SimTK::Transform slider_frame(const Eigen::Matrix3d& axes, const Eigen::Vector3d& point) {
  Eigen::Matrix3d turned;
  turned << axes.col(2), axes.col(0), axes.col(1);
  return frame(turned, point);
}

SimTK::MobilizedBody hang(const SimbodyLink& link, SimTK::MobilizedBody& parent, const SimTK::Body::Rigid& rigid) {
  const SimTK::Transform in_parent = frame(link.axes_in_parent, link.point_in_parent),
                         in_body = frame(link.axes_in_body, link.point_in_body);
  switch (link.joint) {
    case SimbodyJoint::free:
      return SimTK::MobilizedBody::Free(parent, in_parent, rigid, in_body);
    case SimbodyJoint::ball:
      return SimTK::MobilizedBody::Ball(parent, in_parent, rigid, in_body);
    case SimbodyJoint::universal:
      return SimTK::MobilizedBody::Universal(parent, in_parent, rigid, in_body);
    case SimbodyJoint::pin:
      return SimTK::MobilizedBody::Pin(parent, in_parent, rigid, in_body);
    case SimbodyJoint::slider:
      break;
  }
  return SimTK::MobilizedBody::Slider(parent, slider_frame(link.axes_in_parent, link.point_in_parent), rigid,
                                      slider_frame(link.axes_in_body, link.point_in_body));
}

}  // namespace

struct SimbodyEngine::Simulation {
  SimTK::MultibodySystem system;
  SimTK::SimbodyMatterSubsystem matter{system};
  SimTK::GeneralForceSubsystem forces{system};
  std::vector<SimTK::MobilizedBodyIndex> index_of_body;
  std::unique_ptr<SimTK::Integrator> integrator;
  SimTK::State saved;
  double dt = 0.0;

  SimTK::MobilizedBody& mobilized(int body) {
    return matter.updMobilizedBody(body == kSimbodyGround ? SimTK::MobilizedBodyIndex(SimTK::GroundIndex)
                                                          : index_of_body[static_cast<std::size_t>(body)]);
  }
  void add(const SimbodyLink& link) {
    const Eigen::Matrix3d& J = link.inertia;
    const SimTK::Body::Rigid rigid(SimTK::MassProperties(
        link.mass, SimTK::Vec3(0), SimTK::Inertia(J(0, 0), J(1, 1), J(2, 2), J(0, 1), J(0, 2), J(1, 2))));
    const SimTK::MobilizedBodyIndex index = hang(link, mobilized(link.parent), rigid).getMobilizedBodyIndex();
    index_of_body[static_cast<std::size_t>(link.body)] = index;
    if (link.is_driven)
      SimTK::Constraint::PrescribedMotion(matter, new SimTK::Function::Constant(0.0, 1), index,
                                          SimTK::MobilizerQIndex(0));
  }
  void add(const SimbodySpring& spring) {
    SimTK::MobilizedBody &first = mobilized(spring.first), &second = mobilized(spring.second);
    const SimTK::Vec3 at_first = vector(spring.first_point), at_second = vector(spring.second_point);
    SimTK::Force::TwoPointLinearSpring(forces, first, at_first, second, at_second, spring.stiffness,
                                       spring.free_length);
    SimTK::Force::TwoPointLinearDamper(forces, first, at_first, second, at_second, spring.damping);
  }
};

SimbodyEngine::SimbodyEngine(const SimbodyModel& model, double dt, SimbodyScheme scheme)
    : simulation_(std::make_unique<Simulation>()) {
  Simulation& s = *simulation_;
  s.dt = dt;
  SimTK::Force::UniformGravity(s.forces, s.matter, vector(model.gravity));
  s.index_of_body.resize(model.links.size());
  for (const SimbodyLink& link : model.links) s.add(link);
  for (const SimbodySpring& spring : model.springs) s.add(spring);
  for (const SimbodyLoop& loop : model.loops)
    SimTK::Constraint::Ball(s.mobilized(loop.parent), vector(loop.point_in_parent), s.mobilized(loop.body),
                            vector(loop.point_in_body));
  const SimTK::State start = s.system.realizeTopology();
  if (scheme == SimbodyScheme::semi_explicit_euler) {
    s.integrator = std::make_unique<SimTK::SemiExplicitEulerIntegrator>(s.system, dt);
  } else {
    s.integrator = std::make_unique<SimTK::RungeKuttaMersonIntegrator>(s.system);
    s.integrator->setFixedStepSize(dt);
  }
  s.integrator->initialize(start);
}

SimbodyEngine::~SimbodyEngine() = default;

void SimbodyEngine::step() {
  SimTK::Integrator& integrator = *simulation_->integrator;
  const double target = integrator.getTime() + simulation_->dt;
  while (integrator.getTime() < target - 1e-6 * simulation_->dt)
    integrator.stepTo(target);  // it also stops where it began
}

void SimbodyEngine::save() { simulation_->saved = simulation_->integrator->getState(); }

void SimbodyEngine::restore() {
  SimTK::Integrator& integrator = *simulation_->integrator;
  integrator.initialize(simulation_->saved);
  integrator.stepTo(integrator.getTime());
}

Eigen::Vector3d SimbodyEngine::point_0(int body, const Eigen::Vector3d& point_b) {
  Simulation& s = *simulation_;
  const SimTK::State& state = s.integrator->getState();
  s.system.realize(state, SimTK::Stage::Position);
  const SimTK::Vec3 at = s.mobilized(body).findStationLocationInGround(state, vector(point_b));
  return {at[0], at[1], at[2]};
}

std::string simbody_version() {
  int major = 0, minor = 0, build = 0;
  SimTK_version_simbody(&major, &minor, &build);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(build);
}

}  // namespace rigstep::bench
