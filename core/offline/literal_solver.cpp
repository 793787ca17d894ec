#include "core/offline/literal_solver.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "core/offline/absolute_system.h"
#include "core/offline/index3_literal.h"

namespace rigstep::offline {

namespace {

using Clock = std::chrono::steady_clock;
using Sample = Eigen::Matrix<double, 19, 1>;  // of a body: r p v omega a alpha

constexpr double kLongestStep = 2e-3;  // of the coarsest run [s]
constexpr int kIterations = 8;         // of Newton's method
constexpr double kPenalty = 1e6;  // alpha dt^2 / 4, as a multiple of the mean mass: 1e-6 of a gap is left by one pass
constexpr double kConverged = 1e-10;  // last increment, relative to the size of the mechanism
constexpr double kAgree = 10.0;       // difference of two extrapolations, as a multiple of the tolerance
constexpr double kSameInstant = 1e-14;
constexpr int kMostRuns = 11;  // each with half the step of the one before

void require_supported(const Mechanism& mechanism) {
  const std::string unsupported_reason = literal_index3_unsupported_reason(mechanism);
  if (!unsupported_reason.empty())
    throw SolverError("index3_literal: cannot simulate " + mechanism.name() + ": " + unsupported_reason);
}

// What acts on the bodies at `now`.
LiteralStepper::Loads loads_of(AbsoluteSystem& system, const double& now) {
  return [&system, &now](std::span<const BodyMotion> at, std::span<Vec6> wrenches) {
    const std::vector<Vec6> loads = system.loads(now, at);
    std::copy(loads.begin(), loads.end(), wrenches.begin());
  };
}

class LiteralRun {
 public:
  LiteralRun(const Scenario& scenario, const Options& options)
      : system_(scenario, "index3_literal"), options_(options) {
    for (const BodyMotion& body : system_.start()) extent_ = std::max(extent_, body.r_0.norm());
    for (const Body& body : scenario.mechanism->bodies())
      mean_mass_ += body.mass / static_cast<double>(scenario.mechanism->bodies().size());
  }

  Trajectory simulate();

 private:
  using Motion = std::vector<Sample>;  // (instants x bodies)
  std::size_t bodies() const { return system_.start().size(); }
  std::optional<Motion> run(int level);
  bool refine(Motion finest);
  bool agree(const Motion& one, const Motion& other) const;
  void sample(const LiteralStepper& stepper, Motion& motion) const;
  Trajectory report() const;

  const AbsoluteSystem system_;
  const Options& options_;
  double extent_ = 1.0;                        // [m]
  double mean_mass_ = 0.0;                     // [kg]
  std::vector<CoordinateFollower> followers_;  // (instants) of the last run
  std::vector<Motion> extrapolated_;  // the last run, then with one order of its error after the other taken away
  bool ended_ = false;                // by Options::progress
  long iterations_ = 0;
  double seconds_in_steps_ = 0.0;
};

void LiteralRun::sample(const LiteralStepper& stepper, Motion& motion) const {
  for (int i = 0; i < static_cast<int>(bodies()); ++i) {
    const BodyMotion at = stepper.motion(i);
    motion.emplace_back() << at.r_0, at.p, at.v_0, at.omega_0, stepper.acceleration_0(i),
        stepper.angular_acceleration_0(i);
  }
}

// All instants with steps of at most kLongestStep / 2^level; nothing where Newton's method does not converge, or where
// the run is to end.
std::optional<LiteralRun::Motion> LiteralRun::run(int level) {
  const Scenario& scenario = system_.scenario();
  const std::vector<double>&instants = scenario.instants, breaks = system_.breaks();
  AbsoluteSystem system = system_;  // as it is at the start
  double now = instants.front();
  LiteralSettings settings;
  settings.iterations = kIterations;
  settings.tuned = true;
  LiteralStepper stepper(*scenario.mechanism, settings, loads_of(system, now));
  stepper.start_afresh(system_.start());
  Motion motion;
  followers_.clear();
  const auto take = [&] {
    sample(stepper, motion);
    followers_.push_back(system.follower());
  };
  take();
  const auto begin = Clock::now();
  const auto advance = [&](double end) {
    const double from = now;
    if (end - from < kSameInstant * end) return true;  // an instant and a jump that differ by rounding
    const int steps = static_cast<int>(std::ceil((end - from) / kLongestStep * (1.0 - 1e-9))) << level;
    const double dt = (end - from) / steps;
    stepper.set_step(dt, options_.alpha > 0.0 ? options_.alpha : 4.0 * kPenalty * mean_mass_ / (dt * dt));
    for (int k = 1; k <= steps; ++k) {
      now = from + (end - from) * k / steps;
      iterations_ += kIterations;
      if (!(stepper.step() <= kConverged * extent_)) return false;
      // each run takes twice as long as the one before
      const double done = instants.front() + (now - instants.front()) * (1.0 - std::ldexp(0.5, -level));
      ended_ = options_.progress && !options_.progress(done);
      if (ended_) return false;
    }
    now = end;
    return true;
  };
  auto next = std::upper_bound(breaks.begin(), breaks.end(), instants.front());
  for (auto instant = instants.begin() + 1; instant != instants.end(); ++instant) {
    for (; next != breaks.end() && *next <= *instant; ++next) {
      if (*next > now && !advance(*next)) return std::nullopt;
      if (*next == *instant) take();
      system.hold(*next);
      std::vector<BodyMotion> bodies_now;
      bodies_now.reserve(bodies());
      for (int i = 0; i < static_cast<int>(bodies()); ++i) bodies_now.push_back(stepper.motion(i));
      stepper.start_afresh(bodies_now);
    }
    if (now == *instant) continue;
    if (!advance(*instant)) return std::nullopt;
    take();
  }
  seconds_in_steps_ += std::chrono::duration<double>(Clock::now() - begin).count();
  return motion;
}

bool LiteralRun::agree(const Motion& one, const Motion& other) const {
  const double allowed = kAgree * options_.absolute_tolerance, relative = kAgree * options_.relative_tolerance;
  for (std::size_t k = 0; k < one.size(); ++k)
    for (int i = 0; i < 13; ++i)
      if (!(std::abs(one[k][i] - other[k][i]) <= allowed + relative * std::abs(one[k][i]))) return false;
  return true;
}

// Richardson's extrapolation of errors dt^2, dt^3, dt^4 ...; returns whether it has converged.
bool LiteralRun::refine(Motion finest) {
  std::vector<Motion> next{std::move(finest)};
  for (std::size_t order = 0; order < extrapolated_.size(); ++order) {
    const Motion &coarse = extrapolated_[order], &fine = next[order];
    const double factor = std::ldexp(4.0, static_cast<int>(order));
    Motion better(fine.size());
    for (std::size_t k = 0; k < fine.size(); ++k) better[k] = (factor * fine[k] - coarse[k]) / (factor - 1.0);
    next.push_back(std::move(better));
  }
  const bool converged = next.size() > 2 && agree(next.back(), next[next.size() - 2]);
  extrapolated_ = std::move(next);
  return converged;
}

Trajectory LiteralRun::report() const {
  Trajectory trajectory;
  AbsoluteSystem system = system_;
  const Motion& motion = extrapolated_.back();
  const std::vector<double>& instants = system_.scenario().instants;
  for (std::size_t k = 0; k < instants.size(); ++k) {
    std::vector<BodyMotion> at;
    std::vector<Vec6> accelerations;
    for (std::size_t i = 0; i < bodies(); ++i) {
      const Sample& s = motion[k * bodies() + i];
      at.push_back({s.head<3>(), s.segment<4>(3).normalized(), s.segment<3>(7), s.segment<3>(10)});
      accelerations.push_back(s.tail<6>());
    }
    system.follower() = followers_[k];
    if (k > 0) system.hold(std::nextafter(instants[k], instants[0]));  // what held up to here
    trajectory.instants.push_back(system.instant(instants[k], at, accelerations));
  }
  return trajectory;
}

Trajectory LiteralRun::simulate() {
  const auto begin = Clock::now();
  bool converged = false;
  for (int level = 0; level < kMostRuns && !converged && !ended_; ++level)
    if (std::optional<Motion> motion = run(level)) converged = refine(std::move(*motion));
  if (ended_) return {};  // no instant is known before the last run
  if (!converged)
    throw SolverError("index3_literal: no convergence with steps down to " +
                      std::to_string(std::ldexp(1e6 * kLongestStep, 1 - kMostRuns)) + " us: " +
                      (options_.alpha > 0.0
                           ? "the penalty factor may be too small: choose a larger one, or leave it to the solver"
                           : "the loads may be stiff or the pose singular; give a coarser tolerance or a shorter "
                             "duration"));
  Trajectory trajectory = report();
  trajectory.right_hand_sides = iterations_;
  trajectory.right_hand_side_seconds = seconds_in_steps_;
  trajectory.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return trajectory;
}

}  // namespace

Trajectory literal_index3(const Scenario& scenario, const Options& options) {
  if (!(options.relative_tolerance > 0.0) || !(options.absolute_tolerance > 0.0))
    throw std::invalid_argument("tolerance: must be positive: give for example 1e-9");
  require_supported(*scenario.mechanism);
  return LiteralRun(scenario, options).simulate();
}

Trajectory literal_index3_at_fixed_step(const Scenario& scenario, const Options& options,
                                        const LiteralSettings& settings) {
  require_supported(*scenario.mechanism);
  const auto begin = Clock::now();
  const double dt = 1e-9 * static_cast<double>(settings.dt_ns);
  AbsoluteSystem system(scenario, "index3_literal");
  double now = scenario.instants.front();
  LiteralStepper stepper(*scenario.mechanism, settings, loads_of(system, now));
  system.hold(now);
  stepper.start_afresh(system.start());
  double extent = 1.0;  // [m] an increment beyond it is no correction
  for (const BodyMotion& body : system.start()) extent = std::max(extent, body.r_0.norm());
  Trajectory trajectory;
  for (const double instant : scenario.instants) {
    const long steps = std::lround((instant - now) / dt);
    if (std::abs(instant - now - static_cast<double>(steps) * dt) > 1e-6 * dt)
      throw SolverError("index3_literal: the instant " + std::to_string(instant) +
                        " s is no whole number of steps after " + std::to_string(now) + " s: choose another step");
    const double from = now;
    for (long k = 1; k <= steps; ++k) {
      system.hold(now);
      now = from + static_cast<double>(k) * dt;
      trajectory.right_hand_sides += settings.iterations;
      if (!(stepper.step() < extent))
        throw SolverError("index3_literal: no convergence at " + std::to_string(now) +
                          " s: choose a larger penalty factor, a shorter step, or leave both to the solver");
      if (options.progress && !options.progress(now)) return trajectory;
    }
    std::vector<BodyMotion> bodies;
    std::vector<Vec6> accelerations;
    for (int i = 0; i < static_cast<int>(system.start().size()); ++i) {
      bodies.push_back(stepper.motion(i));
      bodies.back().p.normalize();
      accelerations.emplace_back() << stepper.acceleration_0(i), stepper.angular_acceleration_0(i);
    }
    trajectory.instants.push_back(system.instant(instant, bodies, accelerations));
  }
  trajectory.seconds = trajectory.right_hand_side_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return trajectory;
}

std::string literal_index3_unsupported_reason(const Mechanism& mechanism) {
  const std::string reason = LiteralStepper::unsupported_reason(mechanism);
  if (reason.empty()) return {};
  return "it takes serial chains and single loops of spherical and revolute joints, and " + reason;
}

}  // namespace rigstep::offline
