#include "core/offline/natural_complement.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/offline/absolute_system.h"
#include "core/offline/complement_methods.h"
#include "core/offline/integrate.h"
#include "core/offline/joint_tree.h"

namespace rigstep::offline {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kChartEnds = 0.35;     // sin(theta) below which angles are counted again
constexpr double kWorsePartition = 20;  // growth of |Phi_u^-1 Phi_v| at which a partition is no longer valid
constexpr std::size_t kMostBodies = 60;
constexpr int kMostRows = 600;
constexpr int kClosingIterations = 10;

// Euler angles z-x-z of one body: A = chart Rz(phi) Rx(theta) Rz(psi).
struct EulerAngles {
  Mat3 B;      // omega_0 = B (phi, theta, psi)'
  Vec3 Bd_ed;  // dB/dt times the rates of the angles
  Mat3 A;
};

EulerAngles euler_angles(const Mat3& chart, const Vec3& angles, const Vec3& rates) {
  const auto turn = [](double angle, const Vec3& axis) { return Eigen::AngleAxisd(angle, axis).toRotationMatrix(); };
  const Mat3 first = chart * turn(angles[0], Vec3::UnitZ()), second = first * turn(angles[1], Vec3::UnitX());
  EulerAngles at;
  at.A = second * turn(angles[2], Vec3::UnitZ());
  at.B << chart.col(2), first.col(0), second.col(2);
  const Vec3 precession = rates[0] * at.B.col(0), nutation = rates[1] * at.B.col(1);
  at.Bd_ed = precession.cross(nutation) + rates[2] * (precession + nutation).cross(at.B.col(2));
  return at;
}

// One run: y = (q, qd).
class ComplementMotion {
 public:
  ComplementMotion(const Scenario& scenario, const Options& options, const ComplementSettings& settings)
      : system_(scenario, "natural complement"),
        options_(options),
        settings_(settings),
        bodies_(system_.start().size()),
        chart_(bodies_) {}

  ComplementRun simulate();

 private:
  Index size() const { return 6 * static_cast<Index>(bodies_); }
  void rechart(std::size_t body, const BodyMotion& motion, std::span<double> y);
  std::vector<BodyMotion> motion(std::span<const double> y, std::vector<EulerAngles>* angles = nullptr) const;
  Equations equations(double t, std::span<const double> y);
  VectorXd qdd(double t, std::span<const double> y);
  bool after_step(double t, std::span<double> y);
  bool renew_charts(std::span<double> y);
  bool correct(double t, std::span<double> y);
  bool correct_velocities(double t, std::span<double> y);
  void choose(const MatrixXd& Phi_q) {
    chosen_ = select(Phi_q);
    growth_ = growth(Phi_q, chosen_);
  }
  Instant report(double t, std::span<const double> y);

  AbsoluteSystem system_;
  const Options& options_;
  const ComplementSettings& settings_;
  std::size_t bodies_;
  std::vector<Mat3> chart_;
  Selection chosen_;
  double growth_ = 0.0;  // when it was chosen
  ComplementRun run_;
};

// Counts the angles of a body from where theta is a right angle and the others are zero.
void ComplementMotion::rechart(std::size_t body, const BodyMotion& motion, std::span<double> y) {
  const double right_angle = 0.5 * std::acos(-1.0);
  const Vec3 angles(0.0, right_angle, 0.0);
  chart_[body] = rotation(motion.p) * Eigen::AngleAxisd(-right_angle, Vec3::UnitX()).toRotationMatrix();
  const Vec3 rates = euler_angles(chart_[body], angles, Vec3::Zero()).B.inverse() * motion.omega_0;
  Eigen::Map<Vec6> q(y.data() + 6 * body), qd(y.data() + size() + 6 * static_cast<Index>(body));
  q << motion.r_0, angles;
  qd << motion.v_0, rates;
}

std::vector<BodyMotion> ComplementMotion::motion(std::span<const double> y, std::vector<EulerAngles>* angles) const {
  std::vector<BodyMotion> bodies(bodies_);
  for (std::size_t i = 0; i < bodies_; ++i) {
    const Eigen::Map<const Vec6> q(y.data() + 6 * i), qd(y.data() + size() + 6 * static_cast<Index>(i));
    const EulerAngles at = euler_angles(chart_[i], q.tail<3>(), qd.tail<3>());
    const Eigen::Quaterniond p(at.A);
    bodies[i] = {q.head<3>(), {p.w(), p.x(), p.y(), p.z()}, qd.head<3>(), at.B * qd.tail<3>()};
    if (angles) angles->push_back(at);
  }
  return bodies;
}

// From velocities (v_0, omega_0) to those of the coordinates: omega_0 = B ed.
Equations ComplementMotion::equations(double t, std::span<const double> y) {
  std::vector<EulerAngles> angles;
  const std::vector<BodyMotion> bodies = motion(y, &angles);
  const AbsoluteEquations absolute = system_.at(t, bodies);
  const Index rows = static_cast<Index>(absolute.rows.size());
  Equations at{MatrixXd::Zero(size(), size()), MatrixXd::Zero(rows, size()), VectorXd(size()), VectorXd(rows)};
  for (std::size_t i = 0; i < bodies_; ++i) {
    const Body& body = system_.mechanism().bodies()[i];
    const Index r = 6 * static_cast<Index>(i), e = r + 3;
    const Mat3 &B = angles[i].B, I = inertia_0(body, bodies[i]);
    at.M.block<3, 3>(r, r) = body.mass * Mat3::Identity();
    at.M.block<3, 3>(e, e) = B.transpose() * I * B;
    at.Q.segment<3>(r) = absolute.load[i].head<3>();
    at.Q.segment<3>(e) = B.transpose() * (absolute.load[i].tail<3>() - I * angles[i].Bd_ed);
  }
  const std::vector<Vec6> velocity = velocities(bodies);
  for (Index k = 0; k < rows; ++k) {
    const ConstraintRow& row = absolute.rows[static_cast<std::size_t>(k)];
    at.Gamma[k] = row.gamma;
    for (int i = 0; i < row.parts; ++i) {
      const EulerAngles& turn = angles[static_cast<std::size_t>(row.part[i].body)];
      const Index r = 6 * static_cast<Index>(row.part[i].body);
      const Vec6& J = row.part[i].J;
      at.Phi_q.block<1, 3>(k, r) = J.head<3>().transpose();
      at.Phi_q.block<1, 3>(k, r + 3) = J.tail<3>().transpose() * turn.B;
      at.Gamma[k] -= J.tail<3>().dot(turn.Bd_ed);
    }
    if (settings_.stabilisation == Stabilisation::baumgarte)
      at.Gamma[k] -=
          2.0 * settings_.alpha * (row.times(velocity) + row.Phi_t) + settings_.beta * settings_.beta * row.Phi;
  }
  return at;
}

VectorXd ComplementMotion::qdd(double t, std::span<const double> y) {
  Accelerations found = accelerations(settings_.method, equations(t, y), chosen_);
  run_.lowest_rank = std::min<long>(run_.lowest_rank, found.rank);
  run_.highest_rank = std::max<long>(run_.highest_rank, found.rank);
  return std::move(found.qdd);
}

bool ComplementMotion::renew_charts(std::span<double> y) {
  bool changed = false;
  for (std::size_t i = 0; i < bodies_; ++i) {
    if (std::abs(std::sin(y[6 * i + 4])) > kChartEnds) continue;
    rechart(i, motion(y)[i], y);
    ++run_.charts;
    changed = true;
  }
  return changed;
}

// Newton-Raphson on positions; velocities keep their values in space.
bool ComplementMotion::correct(double t, std::span<double> y) {
  for (int k = 0; k < kClosingIterations; ++k) {
    const std::vector<BodyMotion> bodies = motion(y);
    const AbsoluteEquations absolute = system_.at(t, bodies);
    VectorXd Phi(absolute.rows.size());
    for (Index i = 0; i < Phi.size(); ++i) Phi[i] = absolute.rows[static_cast<std::size_t>(i)].Phi;
    if (Phi.size() == 0 || Phi.lpNorm<Eigen::Infinity>() <= (k == 0 ? 1.0 : 0.1) * settings_.position_tolerance)
      return k > 0;
    const VectorXd change = -pseudo_inverse_times(equations(t, y).Phi_q, Phi);
    for (Index i = 0; i < size(); ++i) y[static_cast<std::size_t>(i)] += change[i];
  }
  throw SolverError("natural complement: the constraints do not close at " + std::to_string(t) +
                    " s: the pose may be singular there; stabilise by Baumgarte's method or stop earlier");
}

// Where the paper leaves velocities as they are: they drift in joints that hold rates far apart, as a thread does.
bool ComplementMotion::correct_velocities(double t, std::span<double> y) {
  const std::vector<BodyMotion> bodies = motion(y);
  const AbsoluteEquations absolute = system_.at(t, bodies);
  const std::vector<Vec6> velocity = velocities(bodies);
  VectorXd rate(absolute.rows.size());
  for (Index i = 0; i < rate.size(); ++i) {
    const ConstraintRow& row = absolute.rows[static_cast<std::size_t>(i)];
    rate[i] = row.times(velocity) + row.Phi_t;
  }
  if (rate.size() == 0 || rate.lpNorm<Eigen::Infinity>() <= settings_.velocity_tolerance) return false;
  const VectorXd change = -pseudo_inverse_times(equations(t, y).Phi_q, rate);
  for (Index i = 0; i < size(); ++i) y[static_cast<std::size_t>(size() + i)] += change[i];
  return true;
}

bool ComplementMotion::after_step(double t, std::span<double> y) {
  bool changed = renew_charts(y);
  if (settings_.stabilisation == Stabilisation::newton_raphson) {
    const bool moved = correct(t, y), turned = correct_velocities(t, y);
    run_.corrections += moved || turned ? 1 : 0;
    changed = changed || moved || turned;
  }
  if (!uses_selection(settings_.method)) return changed;
  const MatrixXd Phi_q = equations(t, y).Phi_q;
  if (growth(Phi_q, chosen_) <= kWorsePartition * (1.0 + growth_)) return changed;
  choose(Phi_q);
  ++run_.selections;
  return changed;
}

Instant ComplementMotion::report(double t, std::span<const double> y) {
  std::vector<EulerAngles> angles;
  const std::vector<BodyMotion> bodies = motion(y, &angles);
  const VectorXd rates = qdd(t, y);
  std::vector<Vec6> a(bodies_);
  for (std::size_t i = 0; i < bodies_; ++i) {
    const Vec6 of_body = rates.segment<6>(6 * static_cast<Index>(i));
    a[i] << of_body.head<3>(), angles[i].B * of_body.tail<3>() + angles[i].Bd_ed;
  }
  return system_.instant(t, bodies, a);
}

ComplementRun ComplementMotion::simulate() {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<double> y(2 * static_cast<std::size_t>(size()));
  for (std::size_t i = 0; i < bodies_; ++i) rechart(i, system_.start()[i], y);
  const std::vector<double>& instants = system_.scenario().instants;
  const MatrixXd Phi_q = equations(instants.front(), y).Phi_q;
  choose(Phi_q);
  run_.rows = Phi_q.rows();
  run_.lowest_rank = size();

  Problem problem;
  problem.size = y.size();
  problem.f = [this](double t, std::span<const double> at, std::span<double> rate) {
    const std::size_t n = static_cast<std::size_t>(size());
    std::copy(at.begin() + n, at.end(), rate.begin());
    Eigen::Map<VectorXd>(rate.data() + n, size()) = qdd(t, at);
  };
  problem.after_step = [this](double t, std::span<double> at) { return after_step(t, at); };
  problem.at_break = [this](double t, std::span<double>) { system_.hold(t); };
  problem.breaks = system_.breaks();
  Trajectory& trajectory = run_.trajectory;
  const Effort effort = integrate(problem, y, instants, options_, [&](double t, std::span<const double> at) {
    std::vector<double> delivered(at.begin(), at.end());  // between two steps interpolation opens the constraints too
    if (settings_.stabilisation == Stabilisation::newton_raphson) correct(t, delivered);
    trajectory.instants.push_back(report(t, delivered));
  });
  trajectory.right_hand_sides = effort.right_hand_sides;
  trajectory.right_hand_side_seconds = effort.right_hand_side_seconds;
  trajectory.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return run_;
}

}  // namespace

std::string complement_unsupported_reason(const Mechanism& mechanism) {
  if (mechanism.bodies().size() > kMostBodies)
    return std::to_string(mechanism.bodies().size()) +
           " bodies: it decomposes dense matrices of six coordinates a body in " +
           "every right-hand side, and stops at " + std::to_string(kMostBodies) + " bodies";
  int rows = 0;
  const JointTree tree(mechanism);
  for (const Link& link : tree.links()) rows += link.constraints;
  if (rows > kMostRows)
    return std::to_string(rows) + " constraint rows of joints: it decomposes dense matrices of them in every " +
           "right-hand side, and stops at " + std::to_string(kMostRows);
  return absolute_unsupported_reason(mechanism);
}

ComplementRun natural_complement(const Scenario& scenario, const Options& options, const ComplementSettings& settings) {
  const std::string unsupported_reason = complement_unsupported_reason(*scenario.mechanism);
  if (!unsupported_reason.empty())
    throw SolverError("natural complement: cannot simulate " + scenario.mechanism->name() + ": " + unsupported_reason);
  return ComplementMotion(scenario, options, settings).simulate();
}

}  // namespace rigstep::offline
