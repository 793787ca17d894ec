#include "core/index3/stepper.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/index3/diagnostics.h"
#include "core/index3/forces.h"
#include "core/index3/initial_state.h"
#include "core/index3/lane_access.h"

namespace rigstep::index3 {

namespace {

constexpr double kTornJoint = 1e-2;  // a joint open by more than this, of the largest arm or in radians, is no joint

// the end of the step that starts at `step` [s]
double time_at(const Plan& plan, std::uint64_t step) {
  return 1e-9 * static_cast<double>(static_cast<std::int64_t>(step) * plan.settings.dt_ns);
}

// predictor, (15) (16): every body, then the joints between them
void predict(const Plan& plan, Workspace& w) {
  plan.kernels->predict(w.lanes);
  look_at_iterate(plan, w);
  constrain(plan, w, true);
}

// g of (17) (18) on every body, and the free motion -(dt^2/4) M^-1 g that it causes, (27)
void evaluate_residuals(const Plan& plan, const State& last, const Inputs& u, Workspace& w) {
  load_bodies(plan, u, time_at(plan, last.step + 1), last.coordinate, w);
  plan.kernels->free_motion(w.lanes);
}

// closes the joints and accumulates the multipliers, (24) (25) (34)
Moves update(const Plan& plan, Workspace& w, bool with_stiffness) {
  const Moves moves = plan.kernels->update(w.lanes);
  look_at_iterate(plan, w);
  constrain(plan, w, with_stiffness);
  return moves;
}

// one pass leaves a residual of the order of the compliance, a second one its square
template <class AfterSweep>
void close_in_sweeps(const Plan& plan, Workspace& w, RightHandSide rhs, const AfterSweep& after_sweep) {
  for (int sweep = 0; sweep < plan.settings.sweeps; ++sweep) {
    if (sweep > 0) plan.kernels->project(w.lanes);
    plan.kernels->assemble(w.lanes, rhs);
    plan.kernels->disassemble(w.lanes);
    plan.kernels->close(w.lanes);
    after_sweep(sweep);
  }
}

// (40)-(54): the nearest velocities, in the metric of the tangent, that satisfy J v + Phi_t = 0
void project_velocities(const Plan& plan, Workspace& w) {
  plan.kernels->start_velocities(w.lanes);
  close_in_sweeps(plan, w, RightHandSide::rate, [](int) {});
  plan.kernels->keep_velocities(w.lanes);
  look_at_velocities(plan, w);
  add_quadratic_terms(plan, w);
}

// (55)-(69): the nearest accelerations that satisfy J a = gamma, with gamma of the projected velocities
bool project_accelerations(const Plan& plan, Workspace& w) {
  plan.kernels->start_accelerations(w.lanes);
  close_in_sweeps(plan, w, RightHandSide::quadratic, [&](int sweep) { plan.kernels->add_kappa(w.lanes, sweep == 0); });
  return plan.kernels->keep_accelerations(w.lanes);
}

bool is_finite(const BodyState& b) {
  return std::isfinite(b.r.sum() + b.p.sum() + b.v.sum() + b.w_b.sum() + b.a.sum() + b.alpha_b.sum());
}

// Newton's iterations from the predictor on, with one tangent; returns the front that could not be factorised, or -1
template <class Watch>
int iterate(const Plan& plan, const State& last, const Inputs& inputs, Workspace& w, Moves& moves,
            const Watch& after_free_motion) {
  const Kernels& kernels = *plan.kernels;
  const double h2 = 0.25 * plan.dt() * plan.dt(), half_dt = 0.5 * plan.dt();
  drive(plan, last, inputs, time_at(plan, last.step + 1), w);
  take_inputs(plan, inputs, w);
  predict(plan, w);                                            // 3a, 3b   (15) (16)
  tangent_of_forces(plan, h2, half_dt, w);                     // (8)
  const int failed = kernels.factorise(w.lanes, h2, true, 0);  // 3d, 3e   (26) (36)-(38), tangent at the predictor
  for (int k = 0; k < plan.settings.iterations; ++k) {
    evaluate_residuals(plan, last, inputs, w);  // 3c       (17) (18)
    after_free_motion();
    kernels.assemble(w.lanes, RightHandSide::Phi);               // 3e       (27) (39), leaves to root
    kernels.disassemble(w.lanes);                                // 3f-3h    (34), root to leaves
    moves = update(plan, w, k + 1 == plan.settings.iterations);  // 3h, 3b   (24) (25) (15) (16)
  }
  return failed;
}

// What the phases of one step have noticed.
struct Attempt {
  int failed_front = -1;
  Moves moves{};
  bool finite = true;
};

// first joint, coupling or driver that could not be eliminated
int constraint_of_front(const Plan& plan, int front) {
  const int constraint = plan.elimination.constraint_of_front[front];
  return constraint < static_cast<int>(plan.eliminated.size()) ? plan.eliminated[constraint] : -1;
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
StepReport judge(const Plan& plan, const Workspace& w, const Attempt& attempt) {
  const Moves& last = attempt.moves;
  StepReport report;
  report.last_increment = std::max(last.move, last.turn);
  if (std::max(last.move / plan.length, last.turn) > plan.settings.increment_tolerance)
    report.status = StepStatus::not_converged;
  measure_residuals(plan, w, report);
  if (last.turn > 1.0 || last.move > plan.length ||
      report.position_residual > kTornJoint * std::min(1.0, plan.length)) {
    const int torn = torn_joint(plan, w);
    if (torn >= 0 || last.turn > 1.0 || last.move > plan.length) {
      report.status = StepStatus::diverged;
      report.joint = torn;
      if (torn < 0) report.body = most_moved_body(plan, w);
    }
  }
  if (!attempt.finite) {
    report.status = StepStatus::not_finite;
  } else if (attempt.failed_front >= 0) {
    report.status = StepStatus::singular;
    report.body = -1;
    report.joint = constraint_of_front(plan, attempt.failed_front);
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
  Moves moves;
  iterate(plan, last, inputs, w, moves, [&] {
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
}

Stepper::~Stepper() = default;
Stepper::Stepper(Stepper&&) noexcept = default;

const State& Stepper::state() const noexcept {
  if (!std::exchange(state_is_current_, true)) leave_lanes(*plan_, *workspace_, Instant::last, state_);
  return state_;
}
const Plan& Stepper::plan() const noexcept { return *plan_; }
const Workspace& Stepper::workspace() const noexcept { return *workspace_; }

void Stepper::restore(std::span<const double> flat, std::uint64_t step_index) noexcept {
  state_.restore(flat, step_index);
  state_is_current_ = true;
  evaluate_state(*plan_, state_, *workspace_);
  enter_lanes(*plan_, state_, *workspace_);
}

// [001] 3.5, figure 2: predictor, a fixed number of Newton iterations with one tangent, both projections with the
// tangent of the converged pose.
StepReport Stepper::step(const Inputs& inputs) noexcept {
  const Plan& plan = *plan_;
  Workspace& w = *workspace_;
  Attempt attempt;
  attempt.failed_front = iterate(plan, state_, inputs, w, attempt.moves, [] {});  // 3
  const double h2 = 0.25 * plan.dt() * plan.dt();
  // at the converged pose, without the force elements: a metric that holds springs does not keep momentum
  const int failed_front = plan.kernels->factorise(w.lanes, h2, false, 1);
  if (attempt.failed_front < 0) attempt.failed_front = failed_front;
  project_velocities(plan, w);                      // 4        (40)-(54)
  attempt.finite = project_accelerations(plan, w);  // 5        (55)-(69)
  const StepReport report = judge(plan, w, attempt);
  return failed(report.status) ? reject(inputs, report) : commit(inputs, report);
}

StepReport Stepper::commit(const Inputs& inputs, const StepReport& report) noexcept {
  StepArrays& a = workspace_->lanes;
  std::swap(a.last, a.next);
  std::swap(a.last_lambda, a.lambda);
  std::swap(a.last_kappa, a.kappa);
  if (plan_->shows_forces)
    apply_forces(*plan_, inputs, time_at(*plan_, state_.step + 1), state_.coordinate, *workspace_);
  else
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
