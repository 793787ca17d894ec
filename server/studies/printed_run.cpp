#include "server/studies/printed_run.h"

#include <algorithm>
#include <cmath>

#include "core/offline/constraints.h"

namespace rigstep::server {

namespace {

constexpr double kBlownUp = 1.0;  // of the energy that all masses release by falling through the extent

class Observer {
 public:
  Observer(const Mechanism& mechanism, int watched)
      : mechanism_(mechanism),
        constraints_(mechanism),
        input_(mechanism.input_channels().size(), 0.0),
        watched_(watched),
        bodies_(mechanism.bodies().size()),
        acceleration_(mechanism.bodies().size()) {}

  PrintedSample read(const offline::LiteralStepper& stepper, double time) {
    PrintedSample sample;
    sample.time = time;
    for (std::size_t b = 0; b < bodies_.size(); ++b) {
      const int body = static_cast<int>(b);
      bodies_[b] = stepper.motion(body);
      acceleration_[b] << stepper.acceleration_0(body), stepper.angular_acceleration_0(body);
      add_energy(b, sample);
      sample.r_0.push_back(bodies_[b].r_0);
    }
    const auto& watched = bodies_[static_cast<std::size_t>(watched_)];
    sample.v_0 = watched.v_0;
    sample.a_0 = stepper.acceleration_0(watched_);
    const auto& lambda = stepper.state().lambda;
    sample.force_0 = Vec3(lambda[0], lambda[1], lambda[2]);  // (12): -Phi_q' lambda, Phi_q = -1 of the outer body
    add_violations(stepper.state(), sample);
    return sample;
  }

 private:
  void add_energy(std::size_t b, PrintedSample& sample) const {
    const Body& body = mechanism_.bodies()[b];
    const offline::BodyMotion& at = bodies_[b];
    const Eigen::Quaterniond turn(at.p[0], at.p[1], at.p[2], at.p[3]);
    const Vec3 omega_b = turn.conjugate() * at.omega_0;
    sample.kinetic += 0.5 * (body.mass * at.v_0.squaredNorm() + omega_b.dot(body.inertia_b * omega_b));
    sample.potential -= body.mass * mechanism_.gravity_0().dot(at.r_0 - body.position_0);
  }

  void add_violations(const offline::LiteralState& state, PrintedSample& sample) const {
    std::array<double, 3> squared{};
    const std::vector<Vec6> velocity = offline::velocities(bodies_);
    for (const offline::ConstraintRow& row : constraints_.rows({sample.time, bodies_, {}, input_}, {})) {
      squared[0] += std::pow(row.Phi, 2);
      squared[1] += std::pow(row.times(velocity) + row.Phi_t, 2);
      squared[2] += std::pow(row.times(acceleration_) - row.gamma, 2);
    }
    for (std::size_t i = 0; i < state.q.size(); ++i) {
      const auto p = state.q[i].tail<4>(), pd = state.qd[i].tail<4>(), pdd = state.qdd[i].tail<4>();
      squared[0] += std::pow(0.5 * (p.squaredNorm() - 1.0), 2);
      squared[1] += std::pow(p.dot(pd), 2);
      squared[2] += std::pow(p.dot(pdd) + pd.squaredNorm(), 2);
    }
    for (std::size_t level = 0; level < squared.size(); ++level) sample.violation[level] = std::sqrt(squared[level]);
  }

  const Mechanism& mechanism_;
  const offline::Constraints constraints_;
  const std::vector<double> input_;
  const int watched_;
  std::vector<offline::BodyMotion> bodies_;
  std::vector<Vec6> acceleration_;
};

double energy_scale(const Mechanism& mechanism) {
  double mass = 0.0, extent = 0.0;
  for (const Body& body : mechanism.bodies()) {
    mass += body.mass;
    extent = std::max(extent, body.position_0.norm());
  }
  return mass * mechanism.gravity_0().norm() * extent;
}

}  // namespace

const PrintedSample& PrintedRun::lowest_energy() const {
  return *std::ranges::min_element(samples, {}, &PrintedSample::energy);
}

const PrintedSample& PrintedRun::highest_kinetic() const {
  return *std::ranges::max_element(samples, {}, &PrintedSample::kinetic);
}

double PrintedRun::largest_energy_error() const {
  double largest = 0.0;
  for (const PrintedSample& at : samples) largest = std::max(largest, std::abs(at.energy() - samples.front().energy()));
  return largest;
}

double PrintedRun::largest_violation(std::size_t level) const {
  double largest = 0.0;
  for (const PrintedSample& at : samples) largest = std::max(largest, at.violation[level]);
  return largest;
}

PrintedRun run_printed(const Mechanism& mechanism, const offline::LiteralSettings& settings, double duration,
                       int watched) {
  offline::LiteralStepper stepper(mechanism, settings);
  Observer observer(mechanism, watched);
  const double dt = 1e-9 * static_cast<double>(settings.dt_ns), scale = energy_scale(mechanism);
  PrintedRun run;
  run.samples.push_back(observer.read(stepper, 0.0));
  const long steps = std::lround(duration / dt);
  for (long k = 1; k <= steps; ++k) {
    const double increment = stepper.step();
    PrintedSample now = observer.read(stepper, static_cast<double>(k) * dt);
    if (!std::isfinite(increment) || !(std::abs(now.energy() - run.samples.front().energy()) < kBlownUp * scale)) {
      run.blown_up_at = k;
      break;
    }
    run.last_increment = std::max(run.last_increment, increment);
    run.samples.push_back(std::move(now));
  }
  return run;
}

}  // namespace rigstep::server
