#include "core/offline/absolute_system.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/offline/dense.h"
#include "core/offline/outputs.h"

namespace rigstep::offline {

namespace {

constexpr double kStartGap = 1e-5;        // [m, rad, m/s, rad/s] beyond which a start is a contradiction
constexpr double kRankTolerance = 1e-12;  // of J M^-1 J' and J J', relative to the largest pivot
constexpr double kRounding = 1e-13;       // [m, rad]
constexpr int kNewtonIterations = 20;

using Eigen::MatrixXd;
using Eigen::VectorXd;

VectorXd positions(std::span<const ConstraintRow> rows) {
  VectorXd Phi(rows.size());
  for (std::size_t k = 0; k < rows.size(); ++k) Phi[k] = rows[k].Phi;
  return Phi;
}

VectorXd rates(std::span<const ConstraintRow> rows, std::span<const Vec6> velocity) {
  VectorXd rate(rows.size());
  for (std::size_t k = 0; k < rows.size(); ++k) rate[k] = rows[k].times(velocity) + rows[k].Phi_t;
  return rate;
}

double largest(const VectorXd& v) { return v.size() == 0 ? 0.0 : v.lpNorm<Eigen::Infinity>(); }

// S^+ b of a symmetric positive semidefinite matrix; fast where it is regular.
VectorXd semidefinite_solve(const MatrixXd& S, const VectorXd& b) {
  const Eigen::LDLT<MatrixXd> regular(S);
  if (regular.info() == Eigen::Success && regular.rcond() > kRankTolerance) return regular.solve(b);
  return least_squares(S, b, kRankTolerance).x;
}

// M^-1 of one body times a load.
Vec6 accelerate(const Body& body, const BodyMotion& motion, const Vec6& load) {
  Vec6 a;
  a << load.head<3>() / body.mass, inertia_0(body, motion).inverse() * load.tail<3>();
  return a;
}

std::vector<double> start_values(const Mechanism& mechanism, std::span<const BodyMotion> bodies) {
  std::vector<double> values;
  for (const Jet& coordinate : CoordinateFollower(mechanism).follow(bodies)) values.push_back(coordinate.value);
  return values;
}

}  // namespace

MatrixXd jacobian(std::span<const ConstraintRow> rows, std::size_t bodies) {
  MatrixXd J = MatrixXd::Zero(static_cast<Eigen::Index>(rows.size()), 6 * static_cast<Eigen::Index>(bodies));
  for (std::size_t k = 0; k < rows.size(); ++k)
    for (int i = 0; i < rows[k].parts; ++i)
      J.block<1, 6>(static_cast<Eigen::Index>(k), 6 * rows[k].part[i].body) = rows[k].part[i].J.transpose();
  return J;
}

void displace(std::vector<BodyMotion>& bodies, const VectorXd& delta) {
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Eigen::Index at = 6 * static_cast<Eigen::Index>(i);
    bodies[i].r_0 += delta.segment<3>(at);
    const Vec3 turn = delta.segment<3>(at + 3);
    const double angle = turn.norm();
    if (angle == 0.0) continue;
    const EulerParameters& p = bodies[i].p;
    const Eigen::Quaterniond turned =
        Eigen::AngleAxisd(angle, turn / angle) * Eigen::Quaterniond(p[0], p[1], p[2], p[3]).normalized();
    bodies[i].p << turned.w(), turned.x(), turned.y(), turned.z();
  }
}

std::string absolute_unsupported_reason(const Mechanism& mechanism) { return drive_unsupported_reason(mechanism); }

AbsoluteSystem::AbsoluteSystem(const Scenario& scenario, std::string solver)
    : scenario_(&scenario),
      solver_(std::move(solver)),
      start_(scenario.start.empty() ? start_motion(*scenario.mechanism) : scenario.start),
      follower_(*scenario.mechanism),
      constraints_(*scenario.mechanism),
      drives_(*scenario.mechanism, start_values(*scenario.mechanism, start_), scenario.instants.front()),
      input_(scenario.mechanism->input_channels().size(), 0.0) {
  const std::string unsupported_reason = absolute_unsupported_reason(mechanism());
  if (!unsupported_reason.empty())
    throw SolverError(solver_ + ": cannot simulate " + mechanism().name() + ": " + unsupported_reason);
  hold(scenario.instants.front());
  polish();
}

void AbsoluteSystem::polish() {
  const double t = scenario_->instants.front();
  const auto complain = [&](const char* what, const std::vector<ConstraintRow>& rows, const VectorXd& gap) {
    Eigen::Index worst = 0;
    gap.cwiseAbs().maxCoeff(&worst);
    throw SolverError(solver_ + ": the start " + what + " contradicts " +
                      mechanism().constraint_name(rows[static_cast<std::size_t>(worst)].constraint) + " by " +
                      std::to_string(gap[worst]) +
                      " (SI units): give a start that agrees; rigstep check --assemble finds one");
  };
  for (int k = 0; k < kNewtonIterations; ++k) {
    const AbsoluteEquations now = at(t, start_);
    const VectorXd Phi = positions(now.rows);
    if (k == 0 && largest(Phi) > kStartGap) complain("pose", now.rows, Phi);
    if (largest(Phi) < kRounding) break;
    displace(start_, -least_squares(jacobian(now.rows, start_.size()), Phi).x);
  }
  const AbsoluteEquations now = at(t, start_);
  const VectorXd rate = rates(now.rows, velocities(start_));
  if (largest(rate) > kStartGap) complain("velocity", now.rows, rate);
  if (largest(rate) < kRounding) return;
  const VectorXd change = -least_squares(jacobian(now.rows, start_.size()), rate).x;
  for (std::size_t i = 0; i < start_.size(); ++i) {
    start_[i].v_0 += change.segment<3>(6 * static_cast<Eigen::Index>(i));
    start_[i].omega_0 += change.segment<3>(6 * static_cast<Eigen::Index>(i) + 3);
  }
}

std::vector<double> AbsoluteSystem::breaks() const {
  std::vector<double> times = drives_.jumps();
  for (const double t : load_jumps(mechanism())) times.push_back(t);
  for (const HeldInputs& inputs : scenario_->inputs) times.push_back(inputs.time);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

void AbsoluteSystem::hold(double t) {
  for (const HeldInputs& inputs : scenario_->inputs)
    if (inputs.time <= t) input_ = inputs.value;
  drives_.hold(t, input_);
}

Situation AbsoluteSystem::situation(double t, std::span<const BodyMotion> bodies,
                                    std::span<const Jet> coordinates) const {
  return {t, bodies, coordinates, input_};
}

std::vector<Vec6> AbsoluteSystem::loads(double t, std::span<const BodyMotion> bodies) {
  return wrenches(mechanism(), situation(t, bodies, follower_.follow(bodies, t)));
}

AbsoluteEquations AbsoluteSystem::at(double t, std::span<const BodyMotion> bodies) {
  const std::vector<Jet> coordinates = follower_.follow(bodies, t);
  const Situation now = situation(t, bodies, coordinates);
  AbsoluteEquations equations{wrenches(mechanism(), now), constraints_.rows(now, drives_.at(t))};
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Vec3& omega = bodies[i].omega_0;
    equations.load[i].tail<3>() -= omega.cross(inertia_0(mechanism().bodies()[i], bodies[i]) * omega);
  }
  return equations;
}

std::vector<Vec6> AbsoluteSystem::accelerations(double t, std::span<const BodyMotion> bodies) {
  const AbsoluteEquations now = at(t, bodies);
  const Eigen::Index rows = static_cast<Eigen::Index>(now.rows.size());
  const MatrixXd J = jacobian(now.rows, bodies.size());
  MatrixXd inverse_times_J(J.cols(), rows);  // M^-1 J'
  VectorXd gap(rows);
  std::vector<Vec6> a(bodies.size());
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Body& body = mechanism().bodies()[i];
    const Eigen::Index at = 6 * static_cast<Eigen::Index>(i);
    a[i] = accelerate(body, bodies[i], now.load[i]);
    inverse_times_J.middleRows<3>(at) = J.middleCols<3>(at).transpose() / body.mass;
    inverse_times_J.middleRows<3>(at + 3) = inertia_0(body, bodies[i]).inverse() * J.middleCols<3>(at + 3).transpose();
  }
  for (Eigen::Index k = 0; k < rows; ++k)
    gap[k] = now.rows[static_cast<std::size_t>(k)].times(a) - now.rows[static_cast<std::size_t>(k)].gamma;
  if (rows == 0) return a;
  const VectorXd change = inverse_times_J * semidefinite_solve(J * inverse_times_J, gap);
  for (std::size_t i = 0; i < bodies.size(); ++i) a[i] -= change.segment<6>(6 * static_cast<Eigen::Index>(i));
  return a;
}

Instant AbsoluteSystem::instant(double t, std::span<const BodyMotion> bodies, std::span<const Vec6> accelerations) {
  const AbsoluteEquations now = at(t, bodies);
  Instant report;
  report.time = t;
  report.body.assign(bodies.begin(), bodies.end());
  for (BodyMotion& body : report.body) body.p.normalize();
  const std::vector<Jet> coordinates = follower_.follow(bodies, t);
  report.acceleration.assign(accelerations.begin(), accelerations.end());
  report.kinetic_energy = kinetic_energy(mechanism(), bodies);
  report.energy = report.kinetic_energy + potential_energy(mechanism(), situation(t, bodies, coordinates));
  const std::vector<Vec6> velocity = velocities(bodies);
  VectorXd missing(6 * static_cast<Eigen::Index>(bodies.size()));  // load - M a, which the multipliers balance
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Body& body = mechanism().bodies()[i];
    missing.segment<3>(6 * static_cast<Eigen::Index>(i)) =
        now.load[i].head<3>() - body.mass * accelerations[i].head<3>();
    missing.segment<3>(6 * static_cast<Eigen::Index>(i) + 3) =
        now.load[i].tail<3>() - inertia_0(body, bodies[i]) * accelerations[i].tail<3>();
  }
  VectorXd lambda;
  if (!now.rows.empty()) {
    const MatrixXd J = jacobian(now.rows, bodies.size());
    lambda = semidefinite_solve(J * J.transpose(), J * missing);
  }
  const std::span<const double> multipliers(lambda.data(), static_cast<std::size_t>(lambda.size()));
  report.reaction = reactions(mechanism(), bodies, now.rows, multipliers);
  report.effort = efforts(mechanism(), now.rows, multipliers);
  report.position_residual = largest(positions(now.rows));
  report.velocity_residual = largest(rates(now.rows, velocity));
  for (const ConstraintRow& row : now.rows)
    report.acceleration_residual =
        std::max(report.acceleration_residual, std::abs(row.times(accelerations) - row.gamma));
  for (Eigen::Index k = lambda.size() - static_cast<Eigen::Index>(mechanism().drivers().size()); k < lambda.size(); ++k)
    report.driver_effort.push_back(-lambda[k]);  // the last rows are the drivers', one each
  report.output = output_values(mechanism(), situation(t, report.body, coordinates), report);
  return report;
}

}  // namespace rigstep::offline
