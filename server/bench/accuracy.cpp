#include "server/bench/accuracy.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "core/offline/solver.h"
#include "server/output/quantile.h"

namespace rigstep::server {

namespace {

constexpr double kGravity = 9.81;  // [m/s^2]
using Eigen::VectorXd;

// One step of the classical Runge-Kutta scheme for x'' = f(x, x').
template <class Acceleration>
void runge_kutta(VectorXd& x, VectorXd& v, double dt, const Acceleration& f) {
  const VectorXd a1 = f(x, v);
  const VectorXd v2 = v + 0.5 * dt * a1, a2 = f(x + 0.5 * dt * v, v2);
  const VectorXd v3 = v + 0.5 * dt * a2, a3 = f(x + 0.5 * dt * v2, v3);
  const VectorXd v4 = v + dt * a3, a4 = f(x + dt * v3, v4);
  x += dt / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4);
  v += dt / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4);
}

template <class Acceleration, class Place>
ReferenceMotion integrate(VectorXd x, double duration, const Acceleration& f, const Place& place) {
  constexpr double kStep = 2e-4;  // errors below 1e-9 m in what follows
  ReferenceMotion motion;
  VectorXd v = VectorXd::Zero(x.size());
  const int steps = static_cast<int>(std::lround(motion.interval / kStep));
  for (int k = 1; k * motion.interval <= duration + 1e-9; ++k) {
    for (int i = 0; i < steps; ++i) runge_kutta(x, v, kStep, f);
    motion.bodies.push_back(place(x));
  }
  return motion;
}

constexpr std::int64_t kComparedNs = 5'000'000;  // time between comparisons, where steps end so

std::vector<std::int64_t> ladder_steps_ns() {
  std::vector<std::int64_t> steps;
  for (std::int64_t decade = 100'000'000; decade >= 10'000; decade /= 10)
    for (const int tenths : {100, 80, 60, 50, 40, 30, 25, 20, 15, 12}) steps.push_back(decade * tenths / 10);
  steps.push_back(10'000);
  return steps;
}

}  // namespace

ReferenceMotion chain_motion(int links, double duration) {
  const int n = links;
  // r_i = sum_{j<i} u(theta_j) + u(theta_i) / 2; b_ij = sum over bodies k of (d r_k / d theta_i) (d r_k / d theta_j)
  const auto b = [n](int i, int j) {
    const int high = std::max(i, j);
    return i == j ? 0.25 + (n - 1 - high) : 0.5 + (n - 1 - high);
  };
  const auto acceleration = [n, b](const VectorXd& theta, const VectorXd& rate) {
    Eigen::MatrixXd M(n, n);
    VectorXd rhs(n);
    for (int i = 0; i < n; ++i) {
      rhs[i] = -kGravity * (0.5 + (n - 1 - i)) * std::cos(theta[i]);
      for (int j = 0; j < n; ++j) {
        M(i, j) = b(i, j) * std::cos(theta[i] - theta[j]) + (i == j ? 1.0 : 0.0);
        rhs[i] -= b(i, j) * std::sin(theta[i] - theta[j]) * rate[j] * rate[j];
      }
    }
    return VectorXd(M.llt().solve(rhs));
  };
  const auto place = [n](const VectorXd& theta) {
    std::vector<Vec3> r;
    Vec3 joint = Vec3::Zero();
    for (int i = 0; i < n; ++i) {
      const Vec3 link{std::cos(theta[i]), std::sin(theta[i]), 0.0};
      r.push_back(joint + 0.5 * link);
      joint += link;
    }
    return r;
  };
  return integrate(VectorXd::Zero(n), duration, acceleration, place);
}

ReferenceMotion four_bar_motion(double duration) {
  const auto acceleration = [](const VectorXd& phi, const VectorXd&) {
    return VectorXd(VectorXd::Constant(1, -2.0 * kGravity / 3.5 * std::cos(phi[0])));
  };
  const auto place = [](const VectorXd& phi) {
    const Vec3 link{std::cos(phi[0]), std::sin(phi[0]), 0.0}, up = Vec3::UnitY();
    return std::vector<Vec3>{0.5 * link, link + 0.5 * up, up + 0.5 * link};
  };
  return integrate(VectorXd::Constant(1, std::atan(1.0)), duration, acceleration, place);
}

ReferenceMotion solved_motion(const Mechanism& mechanism, double duration, const std::atomic<bool>& stop) {
  ReferenceMotion motion;
  offline::Scenario scenario;
  scenario.mechanism = &mechanism;
  const int instants = static_cast<int>(std::floor(duration / motion.interval + 1e-9));
  for (int k = 0; k <= instants; ++k) scenario.instants.push_back(k * motion.interval);
  offline::Options options;
  options.progress = [&stop](double) { return !stop; };
  const offline::Trajectory solved = offline::find_solver("ida")->simulate(scenario, options);
  for (std::size_t k = 1; k < solved.instants.size(); ++k) {
    motion.bodies.emplace_back();
    for (const offline::BodyMotion& body : solved.instants[k].body) motion.bodies.back().push_back(body.r_0);
  }
  return motion;
}

ReferenceMotion reference_motion(const BenchMechanism& which, const Mechanism& mechanism, double duration,
                                 const std::atomic<bool>& stop) {
  if (which.name == "four_bar") return four_bar_motion(duration);
  if (which.file.empty()) return chain_motion(which.bodies, duration);
  return solved_motion(mechanism, duration, stop);
}

nlohmann::json to_json(const ReferenceMotion& motion) {
  nlohmann::json bodies = nlohmann::json::array();
  for (const std::vector<Vec3>& at_instant : motion.bodies) {
    bodies.push_back(nlohmann::json::array());
    for (const Vec3& r : at_instant) bodies.back().push_back({r.x(), r.y(), r.z()});
  }
  return {{"interval_s", motion.interval}, {"bodies", bodies}};
}

ReferenceMotion read_reference_motion(const nlohmann::json& document) {
  ReferenceMotion motion;
  motion.interval = document.at("interval_s").get<double>();
  for (const auto& at_instant : document.at("bodies")) {
    motion.bodies.emplace_back();
    for (const auto& r : at_instant)
      motion.bodies.back().emplace_back(r.at(0).get<double>(), r.at(1).get<double>(), r.at(2).get<double>());
  }
  return motion;
}

std::vector<AccuracyPoint> climb_down(const MakeSolver& make, const ReferenceMotion& reference,
                                      const AccuracyLadder& ladder) {
  using Clock = std::chrono::steady_clock;
  std::vector<AccuracyPoint> points;
  double enough_dt = 0.0;  // half of the first step with a small error; 0: none yet
  const double clock_us = clock_cost_us();
  for (const std::int64_t dt_ns : ladder_steps_ns()) {
    const double dt = 1e-9 * static_cast<double>(dt_ns);
    if (dt > 1.01 * ladder.largest_dt) continue;
    if (dt < 0.99 * ladder.smallest_dt) break;
    if (!points.empty() && points.back().us_per_step * 1e-6 * reference.duration() / dt > ladder.longest_run) break;
    const TimedSolver solver = make(dt);
    const std::int64_t interval_ns = std::llround(1e9 * reference.interval), both_ns = std::lcm(dt_ns, interval_ns);
    const std::int64_t compared_ns = both_ns * std::max<std::int64_t>(1, (kComparedNs + both_ns / 2) / both_ns);
    const int steps = static_cast<int>(compared_ns / dt_ns);
    const std::size_t stride = static_cast<std::size_t>(compared_ns / interval_ns);
    if (stride > reference.bodies.size()) continue;
    AccuracyPoint point{dt, 0.0, 0.0, 0.0};
    std::vector<double> us;  // per step, between two instants of both
    for (std::size_t instant = stride - 1; instant < reference.bodies.size(); instant += stride) {
      const std::vector<Vec3>& bodies = reference.bodies[instant];
      const auto begin = Clock::now();
      try {
        for (int k = 0; k < steps; ++k, ++point.steps) solver.step();
      } catch (const StepFailed&) {
        point.error = std::numeric_limits<double>::infinity();
      }
      us.push_back((std::chrono::duration<double, std::micro>(Clock::now() - begin).count() - clock_us) / steps);
      for (std::size_t i = 0; i < bodies.size() && std::isfinite(point.error); ++i) {
        const double distance = (solver.position_0(static_cast<int>(i)) - bodies[i]).norm();
        point.error =
            std::isfinite(distance) ? std::max(point.error, distance) : std::numeric_limits<double>::infinity();
      }
      if (!(point.error < 1e6)) break;
    }
    point.us_per_step = quantile(us, 0.5);  // the median, for other work on the machine shows in some of them
    point.ms_per_second = 1e-3 * point.us_per_step / dt;
    if (solver.not_converged) point.not_converged = solver.not_converged();
    points.push_back(point);
    if (point.error < ladder.smallest_error && enough_dt == 0.0) enough_dt = 0.5 * dt;
    if (dt < 1.001 * enough_dt) break;
  }
  return points;
}

}  // namespace rigstep::server
