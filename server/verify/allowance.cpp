#include "server/verify/allowance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rigstep::server {

namespace {

using offline::Instant;
using offline::kAllQuantities;
using offline::Quantity;
using offline::Values;

constexpr double kSolverError = 1e3;  // error of a reference solver over a run, as a multiple of its tolerance
constexpr double kRest = 1e-8;        // of poses and velocities: what reference solvers cannot tell from rest
constexpr double kNoLoad = 1e-5;      // of weights and loads around: what reference solvers cannot tell from none
constexpr double kSlightAcceleration = 1e-3;  // where there is no gravity [m/s^2]
constexpr double kSlightestRounding = 1e-11;
constexpr double kRoundingInLoads = 64.0;  // which sum up along chains, as a multiple of that of one body

bool is_kinematic(Quantity q) { return q <= Quantity::angular_velocity; }

// Largest arm of a joint on a body; 1 where there is none [m].
double length_of(const Mechanism& mechanism) {
  double length = 0.0;
  for (const Joint& joint : mechanism.joints()) {
    if (joint.first != kGround) length = std::max(length, joint.in_first.point_b.norm());
    if (joint.second != kGround) length = std::max(length, joint.in_second.point_b.norm());
  }
  return length > 0.0 ? length : 1.0;
}

// Against what errors count: magnitudes of what they come from. The reaction of a joint is a difference of weights and
// loads of its bodies, a small acceleration one of gravity and what carries the body.
class Scales {
 public:
  Scales(const Mechanism& mechanism, const Instants& motion, const Values& signal)
      : scale(signal), mechanism_(mechanism), length_(length_of(mechanism)) {
    for (std::size_t i = 0; i < mechanism.bodies().size(); ++i) {
      measure_motion(motion, i);
      measure_body(i);
    }
    for (std::size_t j = 0; j < mechanism.joints().size(); ++j) measure_joint(j);
    std::size_t effort = 0;
    for (const Coupling& coupling : mechanism.couplings()) measure_effort(effort++, coupling.first);
    for (const Driver& driver : mechanism.drivers()) measure_effort(effort++, driver.coordinate);
  }

  Values scale;
  double farthest = 0.0;                                                // 1 plus the distance from the origin [m]
  double least_acceleration = std::numeric_limits<double>::infinity();  // of the bodies' scales [m/s^2]

 private:
  void measure_motion(const Instants& motion, std::size_t i) {
    double& away = scale[Quantity::position][i];
    away = 0.0;
    for (const Instant& instant : motion) away = std::max(away, 1.0 + instant.body[i].r_0.norm());
    farthest = std::max(farthest, away);
    scale[Quantity::orientation][i] = 1.0;
  }

  void measure_body(std::size_t i) {
    const Body& body = mechanism_.bodies()[i];
    const double gyration = std::sqrt(body.inertia_b.diagonal().maxCoeff() / body.mass);
    double &v = scale[Quantity::velocity][i], &omega = scale[Quantity::angular_velocity][i];
    double &a = scale[Quantity::acceleration][i], &alpha = scale[Quantity::angular_acceleration][i];
    double &force = scale[Quantity::body_force][i], &torque = scale[Quantity::body_torque][i];
    const double speed = std::max(v, omega * length_);
    a = std::max({a, alpha * gyration, mechanism_.gravity_0().norm(), speed * speed / length_, force / body.mass,
                  torque / length_ / body.mass, kSlightAcceleration});
    alpha = a / gyration;
    force = body.mass * a;
    torque = force * length_;
    v += 1.0;
    omega += 1.0;
    least_acceleration = std::min(least_acceleration, a);
  }

  double force_of(int body) const {
    return body == kGround ? 0.0 : scale[Quantity::body_force][static_cast<std::size_t>(body)];
  }

  void measure_joint(std::size_t j) {
    const Joint& joint = mechanism_.joints()[j];
    double &force = scale[Quantity::force][j], &torque = scale[Quantity::torque][j];
    force = std::max({force, torque / length_, force_of(joint.first), force_of(joint.second)});
    torque = force * length_;
  }

  void measure_effort(std::size_t effort, int coordinate) {
    const JointCoordinate& along = mechanism_.coordinates()[static_cast<std::size_t>(coordinate)];
    const Quantity load = is_length(along.freedom) ? Quantity::force : Quantity::torque;
    double& value = scale[Quantity::effort][effort];
    value = std::max(value, scale[load][static_cast<std::size_t>(along.joint)]);
  }

  const Mechanism& mechanism_;
  const double length_;  // [m]
};

// What rounding may move of the stepper, in units of the scale. Rates are differences of poses over dt, which the run
// sums up again: in poses it grows with the square of the steps.
double rounding_share(Quantity q, const Scales& scales, double dt, double duration) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  const double steps = duration / dt;
  if (q <= Quantity::orientation) return std::max(kSlightestRounding, kEpsilon * steps * steps);
  if (is_kinematic(q)) return std::max({kSlightestRounding, 4.0 * kEpsilon / dt, kEpsilon * steps / dt});
  return std::max(kSlightestRounding,
                  kRoundingInLoads * kEpsilon / (dt * dt) * scales.farthest / scales.least_acceleration);
}

}  // namespace

Values signals(const Mechanism& mechanism, const Instants& motion, const offline::Determined& determined) {
  Instants rest = motion;
  for (Instant& instant : rest) {
    for (std::size_t i = 0; i < instant.body.size(); ++i)
      instant.body[i] = {motion.front().body[i].r_0, motion.front().body[i].p, Vec3::Zero(), Vec3::Zero()};
    std::fill(instant.acceleration.begin(), instant.acceleration.end(), Vec6(Vec6::Zero()));
    std::fill(instant.reaction.begin(), instant.reaction.end(), offline::Reaction{});
    std::fill(instant.effort.begin(), instant.effort.end(), 0.0);
  }
  return offline::compare(mechanism, motion, rest, determined);
}

Bounds bounds(const Mechanism& mechanism, const Instants& motion, const Values& signal, double tolerance, double dt) {
  const Scales scales(mechanism, motion, signal);
  const double duration = motion.back().time - motion.front().time;
  Bounds b{scales.scale, scales.scale, scales.scale};
  for (const Quantity q : kAllQuantities) {
    // loads follow accelerations, which react to errors of a pose by stiffnesses and squared rates
    const double solver = is_kinematic(q) ? kSolverError * tolerance : std::sqrt(tolerance);
    const double rounding = std::min(solver, rounding_share(q, scales, dt, duration));
    const double slight = std::max(rounding, is_kinematic(q) ? kRest : kNoLoad);
    for (std::size_t i = 0; i < signal[q].size(); ++i) {
      b.solver[q][i] *= solver;
      b.rounding[q][i] *= rounding;
      b.most[q][i] = std::max(kShareOfSignal * signal[q][i], slight * scales.scale[q][i]);
    }
  }
  return b;
}

}  // namespace rigstep::server
