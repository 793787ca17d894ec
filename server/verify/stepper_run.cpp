#include "server/verify/stepper_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/index3/compile/plan.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/stepper_access.h"
#include "core/offline/compare.h"
#include "server/live/session.h"

namespace rigstep::server {

namespace {

using offline::BodyMotion;
using offline::Instant;

constexpr int kInstants = 20;         // at which motions are compared, at most
constexpr int kFewInstants = 5;       // ... of many bodies
constexpr int kMarginInstants = 10;   // between two of them: when poses are looked at first, of many bodies ever
constexpr double kCloserLook = 0.25;  // share of the margin by which bodies move between two looks at the pose
constexpr double kSingular = 1e-3;    // margin below which a pose counts as singular

std::vector<BodyMotion> motions_of(const index3::Stepper& stepper) {
  std::vector<BodyMotion> bodies;
  for (const index3::BodyState& b : stepper.state().body) {
    const Eigen::Quaterniond turn(b.p[0], b.p[1], b.p[2], b.p[3]);
    bodies.push_back({b.r, b.p, b.v, turn * b.w_b});
  }
  return bodies;
}

// Steps between two instants.
std::uint64_t stride(const VerifyCase& a) {
  return std::max<std::uint64_t>(1,
                                 a.steps / static_cast<std::uint64_t>(a.has_many_bodies() ? kFewInstants : kInstants));
}

// Whether motions are compared after this step; more often at first, for reference solvers that do not come far.
bool is_instant(const VerifyCase& a, std::uint64_t step) {
  return step % stride(a) == 0 || (step < stride(a) && std::has_single_bit(step));
}

// What changes between step k and the one after it.
void change_parameters(const VerifyCase& a, index3::Stepper& stepper, std::uint64_t k) {
  for (const VerifyCase::Change& change : a.changes)
    if (change.after == k) stepper.set_parameters(tunable_values(a.described(), change.parameters));
}

// With the inputs of step k.
void advance(const VerifyCase& a, index3::Stepper& stepper, std::uint64_t k) {
  const StepReport report = stepper.step(a.inputs(k));
  if (!failed(report.status)) return;
  throw StepTooLong(
      fmt::format("the stepper fails at {:g} s with --dt {:g}: {}; use a smaller --dt or a shorter --duration",
                  seconds(a.settings.dt_ns) * static_cast<double>(k), seconds(stepper.settings().dt_ns),
                  describe_fault(a.described(), report.status, report.body, report.joint)));
}

// Looks out for singular poses, the more often the nearer one may be: at speed they are passed within a step or two.
class SingularityWatch {
 public:
  SingularityWatch(const VerifyCase& a, const offline::Scenario& scenario)
      : scenario_(scenario),
        pause_(std::max<std::uint64_t>(1, stride(a) / kMarginInstants)),
        many_(a.has_many_bodies()) {}

  // To be asked after every step. Whether the pose is singular, or will be after the next step if it goes on so.
  bool singular(const index3::Stepper& stepper) {
    const double dt = seconds(stepper.settings().dt_ns);
    path_ += dt * speed(stepper);
    ++steps_;
    const bool first = rank_ < 0, may_pause = first || many_;  // many bodies: a look takes long
    if ((may_pause && steps_ < pause_) || path_ < kCloserLook * margin_) return false;
    const std::vector<BodyMotion> now = motions_of(stepper);
    const double before = margin_;
    if (first) rank_ = offline::constraint_rank(scenario_, now);  // not at the start, which may be singular
    margin_ = offline::margin(scenario_, now, rank_);
    const double fall = first ? 0.0 : std::max(0.0, before - margin_) / static_cast<double>(steps_);
    path_ = 0.0;
    steps_ = 0;
    return margin_ - fall < kSingular;
  }

 private:
  // of the fastest body, turning or moving [rad/s, lengths of the mechanism per second]
  static double speed(const index3::Stepper& stepper) {
    double fastest = 0.0;
    for (const index3::BodyState& b : stepper.state().body)
      fastest = std::max({fastest, b.w_b.norm(), b.v.norm() / index3::plan_of(stepper).length});
    return fastest;
  }

  const offline::Scenario& scenario_;
  const std::uint64_t pause_;
  const bool many_;
  int rank_ = -1;                     // until the first look
  double margin_ = 0.0, path_ = 0.0;  // at the last look, since then
  std::uint64_t steps_ = 0;           // since the last look
};

bool can_be_singular(const VerifyCase& a) {
  return index3::make_plan(a.described(), a.settings).has_loops || !a.described().couplings().empty() ||
         !a.described().drivers().empty();
}

}  // namespace

StepperRuns::StepperRuns(const VerifyCase& a)
    : case_(a),
      at_start_(make_stepper(a.mechanism, a.settings)),
      pose_(index3::plan_of(at_start_)),
      reactions_(index3::plan_of(at_start_), at_start_.state(),
                 std::vector<bool>(static_cast<std::size_t>(a.described().constraints()), true)) {}

Instant StepperRuns::read(const index3::Stepper& stepper) {
  const index3::State& x = stepper.state();
  const Mechanism& mechanism = case_.described();
  Instant now;
  now.time = seconds(static_cast<std::int64_t>(x.step) * stepper.settings().dt_ns);
  now.body = motions_of(stepper);
  for (const index3::BodyState& b : x.body) {
    const Eigen::Quaterniond turn(b.p[0], b.p[1], b.p[2], b.p[3]);
    now.acceleration.emplace_back() << b.a, turn * b.alpha_b;
  }
  if (reactions_.redistributes()) index3::evaluate_pose(index3::plan_of(at_start_), x, pose_);
  reactions_.read(x, pose_);
  for (std::size_t j = 0; j < mechanism.joints().size(); ++j) {
    const Vec6 load = reactions_.of_joint(x, static_cast<int>(j));
    now.reaction.push_back({load.head<3>(), load.tail<3>()});
  }
  for (std::size_t i = 0; i < mechanism.couplings().size(); ++i)
    now.effort.push_back(reactions_.of_coupling(static_cast<int>(i)));
  for (std::size_t i = 0; i < mechanism.drivers().size(); ++i)
    now.effort.push_back(reactions_.of_driver(static_cast<int>(i)));
  return now;
}

std::vector<Instant> StepperRuns::run(int divisor, const RunProgress& progress) {
  index3::Settings settings = case_.settings;
  settings.dt_ns /= divisor;
  index3::Stepper stepper = make_stepper(case_.mechanism, settings);
  std::vector<Instant> instants{read(stepper)};
  for (std::uint64_t k = 0; k < case_.steps; ++k) {
    change_parameters(case_, stepper, k);
    for (int part = 0; part < divisor; ++part) advance(case_, stepper, k);
    if (is_instant(case_, k + 1)) instants.push_back(read(stepper));
    progress(static_cast<double>(k + 1) / static_cast<double>(case_.steps));
  }
  return instants;
}

std::uint64_t regular_steps(const VerifyCase& a, const offline::Scenario& scenario, const RunProgress& progress) {
  if (!can_be_singular(a)) return a.steps;
  index3::Stepper stepper = make_stepper(a.mechanism, a.settings);
  SingularityWatch watch(a, scenario);
  for (std::uint64_t k = 0; k < a.steps; ++k) {
    change_parameters(a, stepper, k);
    advance(a, stepper, k);
    if (watch.singular(stepper)) return k;
    progress(static_cast<double>(k + 1) / static_cast<double>(a.steps));
  }
  return a.steps;
}

}  // namespace rigstep::server
