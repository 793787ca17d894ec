#include "core/offline/tree_hamiltonian.h"

#include <algorithm>
#include <chrono>

#include "core/offline/absolute_system.h"
#include "core/offline/forces.h"
#include "core/offline/integrate.h"

namespace rigstep::offline {

namespace {

std::vector<double> values_of(const std::vector<Jet>& coordinates) {
  std::vector<double> values;
  values.reserve(coordinates.size());
  for (const Jet& coordinate : coordinates) values.push_back(coordinate.value);
  return values;
}

std::vector<double> driven_values(const Mechanism& m, const std::vector<Jet>& coordinates) {
  std::vector<double> values;
  for (const Driver& driver : m.drivers())
    values.push_back(coordinates[static_cast<std::size_t>(driver.coordinate)].value);
  return values;
}

Six<double> in_axes(const Mat3& axes_0, const Vec3& linear_0, const Vec3& angular_0) {
  return spatial<double>(axes_0.transpose() * linear_0, axes_0.transpose() * angular_0);
}

}  // namespace

TreeEquations::TreeEquations(const Mechanism& mechanism, std::span<const BodyMotion> bodies, double time,
                             TreeMethod method)
    : mechanism_(&mechanism),
      method_(method),
      kinematics_(mechanism),
      system_(kinematics_.system()),
      solver_(method.matrix),
      follower_(mechanism),
      bodies_(bodies.begin(), bodies.end()),
      drives_(mechanism, values_of(follower_.follow(bodies_, time)), time),
      input_(mechanism.input_channels().size(), 0.0),
      wrench_(bodies.size()) {
  start_ = kinematics_.start(bodies, driven_values(mechanism, follower_.follow(bodies_, time)));
  const std::vector<Prescribed> drives = drives_.at(time);
  kinematics_.place(start_, drives, system_);
  take_start();
}

// Rates or momenta from the motions of the bodies
void TreeEquations::take_start() {
  for (std::size_t i = 0; i < system_.body.size(); ++i) {
    const TreeBody<double>& body = system_.body[i];
    const TreePose& at = kinematics_.poses()[i];
    const BodyMotion& motion = bodies_[static_cast<std::size_t>(kinematics_.hinges()[i].body)];
    system_.v[i] = in_axes(at.axes_0, motion.v_0 + motion.omega_0.cross(at.origin_0 - motion.r_0), motion.omega_0);
    Six<double> relative = system_.v[i] - system_.bias[i];
    if (body.inner >= 0) relative -= outwards<double>(body, system_.v[static_cast<std::size_t>(body.inner)]);
    for (int c = 0; c < body.freedoms; ++c) start_.push_back(body.A_plus[static_cast<std::size_t>(c)].dot(relative));
  }
  if (method_.state == TreeState::momenta)
    find_momenta(std::span(start_).subspan(static_cast<std::size_t>(kinematics_.coordinates())));
}

// (27) from the motions
void TreeEquations::find_momenta(std::span<double> p) const {
  std::vector<Six<double>> mu(system_.body.size(), Six<double>::Zero());
  for (std::size_t i = mu.size(); i-- > 0;) {
    const TreeBody<double>& body = system_.body[i];
    mu[i] += momentum<double>(body, system_.v[i]);
    if (body.inner >= 0) mu[static_cast<std::size_t>(body.inner)] += inwards<double>(body, mu[i]);
    for (int c = 0; c < body.freedoms; ++c)
      p[static_cast<std::size_t>(body.rate + c)] = body.A[static_cast<std::size_t>(c)].dot(mu[i]);
  }
}

void TreeEquations::hold(double t, std::span<const double> inputs) {
  input_.assign(inputs.begin(), inputs.end());
  drives_.hold(t, inputs);
}

void TreeEquations::describe_bodies() {
  for (std::size_t i = 0; i < system_.body.size(); ++i) {
    const TreeHinge& hinge = kinematics_.hinges()[i];
    const TreePose& at = kinematics_.poses()[i];
    const Vec3 linear = system_.v[i].head<3>(), angular = system_.v[i].tail<3>();
    const Eigen::Quaterniond turn(at.axes_0);
    BodyMotion& body = bodies_[static_cast<std::size_t>(hinge.body)];
    body.r_0 = at.origin_0 + at.axes_0 * hinge.mass_centre;
    body.p << turn.w(), turn.x(), turn.y(), turn.z();
    body.v_0 = at.axes_0 * (linear + angular.cross(hinge.mass_centre));
    body.omega_0 = at.axes_0 * angular;
  }
}

void TreeEquations::load(double t) {
  coordinate_ = follower_.follow(bodies_, t);
  const std::vector<Vec6> wrenches_0 = offline::wrenches(*mechanism_, {t, bodies_, coordinate_, input_});
  for (std::size_t i = 0; i < wrench_.size(); ++i) {
    const TreeHinge& hinge = kinematics_.hinges()[i];
    const Vec6& wrench = wrenches_0[static_cast<std::size_t>(hinge.body)];
    wrench_[i] = in_axes(kinematics_.poses()[i].axes_0, wrench.head<3>(), wrench.tail<3>());
    wrench_[i].tail<3>() += hinge.mass_centre.cross(wrench_[i].head<3>());
  }
}

// Right-hand sides of (33) in a system whose v are velocities
void TreeEquations::set_accelerations(TreeSystem<double>& system) const {
  for (std::size_t i = 0; i < system.body.size(); ++i) {
    const TreeBody<double>& body = system.body[i];
    const Vec3 omega = system.v[i].tail<3>();
    const Vec3 force = omega.cross(omega.cross(body.moment)), torque = omega.cross(body.inertia * omega);
    system.load[i] = wrench_[i] - spatial<double>(force, torque);  // F + F^c
    system.bias[i] = kinematics_.acceleration_bias()[i];           // w^r
  }
  std::fill(system.p.begin(), system.p.end(), 0.0);
}

void TreeEquations::evaluate(double t, std::span<const double> y, std::span<double> yd) {
  const std::size_t coordinates = static_cast<std::size_t>(kinematics_.coordinates());
  const std::vector<Prescribed> drives = drives_.at(t);
  const std::span<const double> q = y.first(coordinates), rest = y.subspan(coordinates);
  kinematics_.place(q, drives, system_);
  if (method_.state == TreeState::momenta) {
    system_.p.assign(rest.begin(), rest.end());
    solver_.solve(system_);  // (22), (30) or (37)
  } else {
    for (std::size_t i = 0; i < system_.body.size(); ++i) {  // (10)
      const TreeBody<double>& body = system_.body[i];
      system_.v[i] = system_.bias[i];
      if (body.inner >= 0) system_.v[i] += outwards<double>(body, system_.v[static_cast<std::size_t>(body.inner)]);
      for (int c = 0; c < body.freedoms; ++c)
        system_.v[i] += rest[static_cast<std::size_t>(body.rate + c)] * body.A[static_cast<std::size_t>(c)];
    }
  }
  const std::span<const double> rates = method_.state == TreeState::momenta ? std::span<const double>(system_.u) : rest;
  kinematics_.move(rates, drives, system_);
  kinematics_.differentiate(q, rates, yd.first(coordinates));
  describe_bodies();
  load(t);
  if (method_.state == TreeState::momenta) {
    summed_ = wrench_;
    momentum_rates<double>(system_, kinematics_.A_rate(), summed_, yd.data() + coordinates);  // (23)
  } else {
    set_accelerations(system_);
    solver_.solve(system_);  // (33), (35) or (36)
    std::copy(system_.u.begin(), system_.u.end(), yd.begin() + static_cast<std::ptrdiff_t>(coordinates));
  }
}

std::vector<Vec6> TreeEquations::accelerations() {
  TreeSystem<double> moving = system_;
  if (method_.state == TreeState::momenta) {
    set_accelerations(moving);
    solver_.solve(moving);
  }
  std::vector<Vec6> accelerations(bodies_.size());
  for (std::size_t i = 0; i < moving.body.size(); ++i) {
    const TreeHinge& hinge = kinematics_.hinges()[i];
    const Mat3& axes_0 = kinematics_.poses()[i].axes_0;
    const BodyMotion& body = bodies_[static_cast<std::size_t>(hinge.body)];
    const Vec3 arm = axes_0 * hinge.mass_centre, angular = axes_0 * moving.v[i].tail<3>();
    const Vec3 linear =
        axes_0 * moving.v[i].head<3>() + angular.cross(arm) + body.omega_0.cross(body.omega_0.cross(arm));
    accelerations[static_cast<std::size_t>(hinge.body)] = spatial<double>(linear, angular);
  }
  return accelerations;
}

Trajectory simulate_tree(const Scenario& scenario, const Options& options, TreeMethod method, std::string_view solver) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string name(solver);
  const Mechanism& mechanism = *scenario.mechanism;
  const std::string unsupported_reason = tree_unsupported_reason(mechanism);
  if (!unsupported_reason.empty())
    throw SolverError(name + ": cannot simulate " + mechanism.name() + ": " + unsupported_reason);
  AbsoluteSystem absolute(scenario, name);  // polishes the start, and reports
  TreeEquations equations(mechanism, absolute.start(), scenario.instants.front(), method);
  const auto hold = [&](double t) {
    absolute.hold(t);
    std::vector<double> input(mechanism.input_channels().size(), 0.0);
    for (const HeldInputs& inputs : scenario.inputs)
      if (inputs.time <= t) input = inputs.value;
    equations.hold(t, input);
  };
  hold(scenario.instants.front());
  Problem problem;
  problem.size = equations.start().size();
  problem.f = [&](double t, std::span<const double> y, std::span<double> yd) { equations.evaluate(t, y, yd); };
  problem.breaks = absolute.breaks();
  problem.at_break = [&](double t, std::span<double>) { hold(t); };
  Trajectory trajectory;
  std::vector<double> scratch(problem.size);
  const auto deliver = [&](double t, std::span<const double> y) {
    equations.evaluate(t, y, scratch);
    absolute.follower() = equations.follower();
    trajectory.instants.push_back(absolute.instant(t, equations.bodies(), equations.accelerations()));
  };
  try {
    const Effort effort = integrate(problem, equations.start(), scenario.instants, options, deliver);
    trajectory.right_hand_sides = effort.right_hand_sides;
    trajectory.right_hand_side_seconds = effort.right_hand_side_seconds;
  } catch (const SolverError& error) {
    throw SolverError(name + ": " + error.what());
  }
  trajectory.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return trajectory;
}

}  // namespace rigstep::offline
