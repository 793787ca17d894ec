#include "core/index3/stepper.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/index3/diagnostics.h"
#include "core/index3/forces.h"
#include "core/index3/initial_state.h"
#include "core/index3/lane_access.h"
#include "core/index3/sensors.h"
#include "core/index3/team.h"

namespace rigstep::index3 {

namespace {

constexpr double kTornJoint = 1e-2;  // a joint open by more than this, of the largest arm or in radians, is no joint

// the end of the step that starts at `step` [s]
double time_at(const Plan& plan, std::uint64_t step) {
  return 1e-9 * static_cast<double>(static_cast<std::int64_t>(step) * plan.settings.dt_ns);
}

void add(const Notice& part, Notice& all) {
  if (all.failed_front < 0) all.failed_front = part.failed_front;
  const Found& found = part.found;
  Found& sum = all.found;
  sum.moves = {std::max(sum.moves.move, found.moves.move), std::max(sum.moves.turn, found.moves.turn)};
  sum.finite = sum.finite && found.finite;
  sum.residuals = {std::max(sum.residuals.position, found.residuals.position),
                   std::max(sum.residuals.velocity, found.residuals.velocity),
                   std::max(sum.residuals.acceleration, found.residuals.acceleration)};
}

// One attempt at a step, by a team or alone. The parts of the mechanism are worked on side by side; what joins them
// (the top of the elimination, hubs, force elements, general constraints) is the caller's. Every phase ends with all
// threads together; false: a partner was late, and the attempt is void.
class Attempt {
 public:
  Attempt(const Plan& plan, const State& last, const Inputs& inputs, Workspace& w, Team* team)
      : plan_(plan), kernels_(*plan.kernels), last_(last), inputs_(inputs), w_(w), team_(team) {
    for (Notice& notice : w.notices) notice = {};
  }

  const Notice& notice() const { return all_; }

  // Newton's iterations from the predictor on
  template <class Watch>
  bool iterate(const Watch& after_free_motion) {
    drive(plan_, last_, inputs_, time(), w_);
    take_inputs(plan_, inputs_, w_);
    if (!predict()) return false;  // 3a, 3b   (15) (16)
    for (int k = 0; k < plan_.settings.iterations; ++k) {
      if (loads_vary() && needs_tangent(k)) tangent_of_forces(plan_, h2(), 0.5 * plan_.dt(), w_);  // (8)
      if (loads_vary() || k == 0) load_bodies(plan_, inputs_, time(), last_.coordinate, w_);
      LeavesToRoot up = solve(LeavesToRoot::Start::free_motion, closing(k));
      up.constrain = true;
      if (needs_tangent(k)) up.with_stiffness = true, up.factorise = {true, h2(), true, 0};
      if (!assemble(up)) return false;  // 3c-3e   (17) (18) (26) (27) (36)-(39), leaves to root
      after_free_motion();
      if (!disassemble(Multiplier::lambda,
                       RootToLeaves::Finish::displacements))  // 3f-3h, 3b   (34) (24) (25) (15) (16)
        return false;
      constrain_between(needs_tangent(k + 1) || k + 1 == plan_.settings.iterations);
    }
    return true;
  }

  // (40)-(54): the nearest velocities, in the metric of the tangent, that satisfy J v + Phi_t = 0. The tangent is that
  // of the converged pose, without the force elements: a metric that holds springs does not keep momentum.
  bool project_velocities() {
    LeavesToRoot up = solve(LeavesToRoot::Start::velocities, RightHandSide::rate);
    up.constrain = up.with_stiffness = true;
    up.factorise = {true, h2(), false, 1};
    if (!assemble(up)) return false;
    for (int sweep = 1; sweep < plan_.settings.sweeps; ++sweep)
      if (!sweep_again(RightHandSide::rate, Multiplier::sigma)) return false;
    if (!disassemble(Multiplier::sigma, RootToLeaves::Finish::velocities)) return false;
    look_at_velocities(plan_, w_);
    add_quadratic_terms(plan_, w_);
    return true;
  }

  // (55)-(69): the nearest accelerations that satisfy J a = gamma, with gamma of the projected velocities
  bool project_accelerations() {
    if (!assemble(solve(LeavesToRoot::Start::accelerations, RightHandSide::quadratic))) return false;
    Multiplier kind = Multiplier::kappa;
    for (int sweep = 1; sweep < plan_.settings.sweeps; ++sweep, kind = Multiplier::more_kappa)
      if (!sweep_again(RightHandSide::quadratic, kind)) return false;
    if (!disassemble(kind, RootToLeaves::Finish::accelerations)) return false;
    for (const Notice& part : w_.notices) add(part, all_);  // of those who had no part: nothing
    return true;
  }

 private:
  // with the pose; else they are those of the step
  bool loads_vary() const { return !plan_.observed_bodies.empty(); }
  bool needs_tangent(int iteration) const { return iteration < plan_.tangents.count; }

  // At a singular pose loops hold nothing in one direction. What rounding leaves open there, multipliers that were
  // carried over would add up step by step; anew they are as small as the first iteration makes them, and the next one
  // mends what that leaves open elsewhere. In trees every direction is held, and carrying over rounds less.
  RightHandSide closing(int iteration) const {
    return plan_.has_loops && iteration == 0 ? RightHandSide::Phi_anew : RightHandSide::Phi;
  }

  double h2() const { return 0.25 * plan_.dt() * plan_.dt(); }
  double time() const { return time_at(plan_, last_.step + 1); }
  const StepArrays& top() const { return team_ ? w_.top : w_.nothing; }

  // f(part, notice) on all parts; it outlives this call where a partner is late, so it may hold only what stays
  template <class F>
  bool split(const F& f) {
    if (!team_) {
      f(w_.lanes, w_.notices[0]);
      return true;
    }
    return team_->split([f, &w = w_](int part) { f(w.parts[part], w.notices[part]); });
  }

  bool predict() {
    if (!split([&k = kernels_](const StepArrays& part, Notice&) { k.predict(part); })) return false;
    kernels_.predict(top());
    constrain_between(true);
    return true;
  }

  // what stands between the parts, and what must be looked at one by one
  void constrain_between(bool with_stiffness) {
    look_at_iterate(plan_, w_);
    LeavesToRoot constraints;
    constraints.constrain = true;
    constraints.with_stiffness = with_stiffness;
    kernels_.assemble(top(), constraints);
    constrain_general(plan_, w_, with_stiffness);
  }

  static LeavesToRoot solve(LeavesToRoot::Start start, RightHandSide rhs) {
    LeavesToRoot up;
    up.start = start;
    up.assemble = true;
    up.rhs = rhs;
    return up;
  }

  // the parts, then what joins them
  bool assemble(LeavesToRoot up) {
    if (!split([up, &k = kernels_](const StepArrays& part, Notice& notice) { rise(k, part, up, notice); }))
      return false;
    up.constrain = false;  // known already
    rise(kernels_, top(), up, all_);
    return true;
  }

  static void rise(const Kernels& kernels, const StepArrays& part, const LeavesToRoot& up, Notice& notice) {
    const int failed = kernels.assemble(part, up);
    if (notice.failed_front < 0) notice.failed_front = failed;
  }

  // what joins the parts, then these
  bool disassemble(Multiplier kind, RootToLeaves::Finish finish) {
    const Found above = kernels_.disassemble(top(), {true, kind, finish});  // hubs: constraints of the parts need them
    if (!split([kind, finish, &k = kernels_](const StepArrays& part, Notice& notice) {
          const Found found = k.disassemble(part, {true, kind, finish});
          finish == RootToLeaves::Finish::displacements ? void(notice.found.moves = found.moves) : note(found, notice);
        }))
      return false;
    if (finish == RootToLeaves::Finish::displacements)
      all_.found.moves = above.moves;
    else
      note(kernels_.disassemble(top(), {false, kind, finish}), all_);  // constraints between the parts
    return true;
  }

  static void note(const Found& found, Notice& notice) {
    notice.found.finite = found.finite;
    notice.found.residuals = found.residuals;
  }

  // one pass leaves a residual of the order of the compliance, a second one its square
  bool sweep_again(RightHandSide rhs, Multiplier kind) {
    return disassemble(kind, RootToLeaves::Finish::motion) && assemble(solve(LeavesToRoot::Start::same_motion, rhs));
  }

  const Plan& plan_;
  const Kernels& kernels_;
  const State& last_;
  const Inputs& inputs_;
  Workspace& w_;
  Team* team_;  // null: alone
  Notice all_;
};

bool is_finite(const BodyState& b) {
  return std::isfinite(b.r.sum() + b.p.sum() + b.v.sum() + b.w_b.sum() + b.a.sum() + b.alpha_b.sum());
}

// first joint, coupling or driver that the step left open, or -1
int torn_joint(const Plan& plan, const Workspace& w) {
  for (int row = 0; row < plan.rows(); ++row) {
    const int c = plan.joint_of_row[row];
    const double Phi = row_value(plan, w.lanes.Phi, c, row - plan.first_row[c]);
    if (std::abs(Phi) > kTornJoint * (plan.is_length[row] ? plan.length : 1.0)) return c;
  }
  return -1;
}

int most_moved_body(const Plan& plan, const Workspace& w) {
  int most = -1;
  double largest = 0.0;
  for (int i = 0; i < static_cast<int>(plan.mechanism.bodies().size()); ++i) {
    const Vec6 d = motion(plan, w, i);
    const double size = std::max(d.head<3>().norm() / plan.length, d.tail<3>().norm());
    if (size > largest) largest = size, most = i;
  }
  return most;
}

// what the step says about itself
StepReport judge(const Plan& plan, const Workspace& w, const Notice& notice) {
  const Moves& last = notice.found.moves;
  StepReport report;
  report.last_increment = std::max(last.move, last.turn);
  if (std::max(last.move / plan.length, last.turn) > plan.settings.increment_tolerance)
    report.status = StepStatus::not_converged;
  measure_residuals(plan, w, notice.found.residuals, report);
  if (last.turn > 1.0 || last.move > plan.length ||
      report.position_residual > kTornJoint * std::min(1.0, plan.length)) {
    const int torn = torn_joint(plan, w);
    if (torn >= 0 || last.turn > 1.0 || last.move > plan.length) {
      report.status = StepStatus::diverged;
      report.joint = torn;
      if (torn < 0) report.body = most_moved_body(plan, w);
    }
  }
  if (!notice.found.finite) {
    report.status = StepStatus::not_finite;
  } else if (notice.failed_front >= 0) {
    report.status = StepStatus::singular;
    report.body = -1;
    report.joint = singular_constraint(plan, w, notice.failed_front);
  }
  return report;
}

// Goes through a step that failed once more, slowly: the first body whose motion is not finite before the joints spread
// that over the mechanism, else the first joint or body of the result.
void find_origin(const Plan& plan, const State& last, const Inputs& inputs, Workspace& w, State& reached,
                 StepReport& report) {
  leave_lanes(plan, w, Instant::next, reached);
  report.body = report.joint = -1;
  for (std::size_t row = 0; row < reached.lambda.size() && report.joint < 0; ++row)
    if (!std::isfinite(reached.lambda[row])) report.joint = plan.joint_of_row[row];
  for (std::size_t i = 0; i < reached.body.size() && report.body < 0; ++i)
    if (!is_finite(reached.body[i])) report.body = static_cast<int>(i);
  int body = -1;
  Attempt(plan, last, inputs, w, nullptr).iterate([&] {
    for (int i = 0; i < static_cast<int>(last.body.size()) && body < 0; ++i)
      if (!std::isfinite(motion(plan, w, i).sum())) body = i;
  });
  if (body < 0) return;
  report.body = body;
  report.joint = -1;
}

}  // namespace

Stepper::Stepper(const Mechanism& mechanism, const Settings& settings)
    : plan_(std::make_unique<Plan>(mechanism, settings)),
      workspace_(std::make_unique<Workspace>(*plan_)),
      state_(initial_state(*plan_, *workspace_)),
      failed_(state_) {
  enter_lanes(*plan_, state_, *workspace_);
  sensors_ = std::make_unique<Sensors>(*plan_, state_);
  const int threads = static_cast<int>(plan_->partition.parts.size());
  if (threads == 1) return;
  spare_ = std::make_unique<Workspace>(*plan_);
  team_ = std::make_unique<Team>(threads);
}

Stepper::~Stepper() = default;
Stepper::Stepper(Stepper&&) noexcept = default;

const State& Stepper::state() const noexcept {
  if (!std::exchange(state_is_current_, true)) leave_lanes(*plan_, *workspace_, Instant::last, state_);
  return state_;
}
const Plan& Stepper::plan() const noexcept { return *plan_; }
std::size_t Stepper::bytes() const noexcept {
  return workspace_->bytes() + sensors_->bytes() + 2 * sizeof(double) * state_.flat_size();
}
int Stepper::threads() const noexcept { return team_ ? team_->threads() : 1; }

std::span<const pthread_t> Stepper::partners() const noexcept {
  return team_ ? team_->partners() : std::span<const pthread_t>();
}
const Workspace& Stepper::workspace() const noexcept { return *workspace_; }

void Stepper::restore(std::span<const double> flat, std::uint64_t step_index) noexcept {
  state_.restore(flat, step_index);
  state_is_current_ = true;
  evaluate_state(*plan_, state_, *workspace_);
  enter_lanes(*plan_, state_, *workspace_);
}

// [001] 3.5, figure 2: predictor, a fixed number of Newton iterations, the first of them with a tangent of their own,
// both projections with the tangent of the converged pose.
StepReport Stepper::step(const Inputs& inputs) noexcept {
  Team* team = team_ && team_->is_ready() ? team_.get() : nullptr;
  for (;;) {
    Attempt attempt(*plan_, state_, inputs, *workspace_, team);
    if (attempt.iterate([] {})              // 3
        && attempt.project_velocities()     // 4        (40)-(54)
        && attempt.project_accelerations()  // 5        (55)-(69)
    ) {
      const StepReport report = judge(*plan_, *workspace_, attempt.notice());
      return failed(report.status) ? reject(inputs, report) : commit(inputs, report);
    }
    go_on_alone();
    team = nullptr;
  }
}

// a late partner may still write: the step is made anew in memory that it does not know
void Stepper::go_on_alone() noexcept {
  enter_lanes(*plan_, state(), *spare_);
  evaluate_state(*plan_, state_, *spare_);
  std::swap(workspace_, spare_);
  ++late_partners_;
}

StepReport Stepper::commit(const Inputs& inputs, const StepReport& report) noexcept {
  look_at_followed(*plan_, *workspace_);
  workspace_->advance();
  if (plan_->shows_forces)
    apply_forces(*plan_, inputs, time_at(*plan_, state_.step + 1), state_.coordinate, *workspace_);
  follow_coordinates(*plan_, state_.coordinate, *workspace_);
  std::copy(workspace_->coordinate.begin(), workspace_->coordinate.end(), state_.coordinate.begin());
  std::copy(workspace_->drive.begin(), workspace_->drive.end(), state_.drive.begin());
  ++state_.step;
  state_is_current_ = false;
  return report;
}

// the state stays; what sensors read belongs to it again
StepReport Stepper::reject(const Inputs& inputs, StepReport report) noexcept {
  if (report.status == StepStatus::not_finite) find_origin(*plan_, state_, inputs, *workspace_, failed_, report);
  evaluate_state(*plan_, state(), *workspace_);
  return report;
}

}  // namespace rigstep::index3
