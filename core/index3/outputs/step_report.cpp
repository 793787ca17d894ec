#include "core/index3/outputs/step_report.h"

#include <algorithm>
#include <cmath>

#include "core/index3/outputs/diagnostics.h"
#include "core/index3/step/lane_access.h"

namespace rigstep::index3 {

namespace {

// A joint open by more than this, of the largest arm or in radians, is no joint. Chosen: whether a step is refused
// depends on it.
constexpr double kTornJoint = 1e-2;

// first joint, coupling or driver that the step left open, or -1
int torn_joint(const Plan& plan, const Workspace& w) {
  for (int c = 0; c < plan.mechanism.constraints(); ++c)
    for (int k = 0; k < plan.eliminated_rows[c]; ++k) {
      const double limit = kTornJoint * (plan.is_length[plan.first_row[c] + k] ? plan.length : 1.0);
      if (std::abs(row_value(plan, w.arrays.Phi, c, k)) > limit) return c;
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

}  // namespace

StepReport make_report(const StepProblem& step, const ResidualLimits& limits, const PartStatus& status) noexcept {
  const Plan& plan = step.plan;
  const auto [displacement, rotation] = status.measures.increment;
  StepReport report;
  report.last_increment = std::max(displacement, rotation);
  if (of_largest_arm(plan, status.measures.increment) > plan.settings.increment_tolerance)
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

}  // namespace rigstep::index3
