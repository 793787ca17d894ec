#include "core/index3/outputs/step_report.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/index3/outputs/diagnostics.h"
#include "core/index3/step/lane_access.h"

namespace rigstep::index3 {

namespace {

constexpr double kTornJoint = 1e-2;  // a joint open by more than this, of the largest arm or in radians, is no joint

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

// Newton's iterations once more, by one thread; f is called in each of them.
template <class F>
void iterate_again(const StepProblem& step, const F& f) {
  prepare_step(step);
  PartSweeps sweeps(step.plan, step.w, nullptr, 0);
  newton(step, sweeps, std::ref(f));
}

// The first body whose motion is not finite before the joints spread that over the mechanism, else the first joint or
// body of the result.
void find_not_finite(const StepProblem& step, State& reached, StepReport& report) {
  leave_lanes(step.plan, step.w, Instant::next, reached);
  report.body = report.joint = -1;
  for (std::size_t row = 0; row < reached.lambda.size() && report.joint < 0; ++row)
    if (!std::isfinite(reached.lambda[row])) report.joint = step.plan.joint_of_row[row];
  for (std::size_t i = 0; i < reached.body.size() && report.body < 0; ++i)
    if (!is_finite(reached.body[i])) report.body = static_cast<int>(i);
  int body = -1;
  iterate_again(step, [&] {
    for (int i = 0; i < static_cast<int>(step.last.body.size()) && body < 0; ++i)
      if (!std::isfinite(motion(step.plan, step.w, i).sum())) body = i;
  });
  if (body < 0) return;
  report.body = body;
  report.joint = -1;
}

// What could not be eliminated. The factor of the projections has taken the place of the iterations', so these are made
// once more. What moved most, or is torn, stands in where all pivots can be had.
void find_singular(const StepProblem& step, StepReport& report) {
  const Singular of_projections = what_is_singular(step.plan, step.w);
  Singular first;
  iterate_again(step, [&] {
    if (first.is_none()) first = what_is_singular(step.plan, step.w);
  });
  if (first.is_none()) first = of_projections;
  if (first.is_none()) return;
  report.body = first.body;
  report.joint = first.joint;
}

}  // namespace

StepReport make_report(const StepProblem& step, const ResidualLimits& limits, const PartStatus& status) noexcept {
  const Plan& plan = step.plan;
  const auto [displacement, rotation] = status.measures.increment;
  StepReport report;
  report.last_increment = std::max(displacement, rotation);
  if (std::max(displacement / plan.length, rotation) > plan.settings.increment_tolerance)
    report.status = StepStatus::not_converged;
  measure_residuals(plan, step.w, status.measures.residuals, report);
  if (!limits.hold(report)) report.status = StepStatus::not_converged;
  const bool is_far = rotation > 1.0 || displacement > plan.length;
  if (is_far || report.position_residual > kTornJoint * std::min(1.0, plan.length)) {
    const int torn = torn_joint(plan, step.w);
    if (torn >= 0 || is_far) {
      report.status = StepStatus::diverged;
      report.joint = torn;
      if (torn < 0) report.body = most_moved_body(plan, step.w);
    }
  }
  if (!status.measures.finite) {
    report.status = StepStatus::not_finite;
  } else if (status.failed) {
    report.status = StepStatus::singular;
  }
  return report;
}

void find_origin(const StepProblem& step, State& reached, StepReport& report) noexcept {
  if (report.status == StepStatus::not_finite) find_not_finite(step, reached, report);
  if (report.status == StepStatus::singular) find_singular(step, report);
}

}  // namespace rigstep::index3
