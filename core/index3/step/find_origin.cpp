#include "core/index3/step/find_origin.h"

#include <cmath>
#include <functional>

#include "core/index3/step/lane_access.h"

namespace rigstep::index3 {

namespace {

bool is_finite(const BodyState& b) {
  return std::isfinite(b.r.sum() + b.p.sum() + b.v.sum() + b.w_b.sum() + b.a.sum() + b.alpha_b.sum());
}

// Newton's iterations once more, by one thread; f is called in each of them.
template <class F>
void iterate_again(const StepProblem& step, const F& f) {
  prepare_step(step);
  PartSweeps sweeps(step.plan, step.w, nullptr, 0);
  bool serves_projections = false;
  newton(step, sweeps, serves_projections, std::ref(f));
}

// The first body whose motion is not finite before the joints spread that over the mechanism, else the first joint or
// body of the result.
void find_not_finite(const StepProblem& step, State& reached, StepReport& report) {
  leave_lanes(step.plan, step.w, Instant::next, reached);
  report.body = report.joint = -1;
  for (std::size_t row = 0; row < reached.lambda.size() && report.joint < 0; ++row)
    if (!std::isfinite(reached.lambda[row])) report.joint = step.plan.constraint_of_row[row];
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

void find_origin(const StepProblem& step, State& reached, StepReport& report) noexcept {
  if (report.status == StepStatus::not_finite) find_not_finite(step, reached, report);
  if (report.status == StepStatus::singular) find_singular(step, report);
}

}  // namespace rigstep::index3
