#include "core/index3/step/extrapolated_step.h"

#include <algorithm>
#include <utility>

#include "core/index3/step/applied_forces.h"
#include "core/index3/step/couplings.h"
#include "core/index3/step/lane_access.h"
#include "core/index3/step/midpoint.h"

namespace rigstep::index3 {

namespace {

using Finish = DisassemblySweep::Finish;

// Corrections of the pose that leave its factor and its Jacobians as good as new for the velocities [largest arm, rad].
constexpr double kNearEnd = 1e-9;

// The polynomial of degree 5 between the begin and the end of the step.
Prescribed half_way(const Prescribed& begin, const Prescribed& end, double dt) noexcept {
  return {0.5 * (begin.value + end.value) + 5.0 / 32.0 * dt * (begin.rate - end.rate) +
              dt * dt / 64.0 * (begin.acceleration + end.acceleration),
          15.0 / 8.0 / dt * (end.value - begin.value) - 7.0 / 16.0 * (begin.rate + end.rate) +
              dt / 32.0 * (end.acceleration - begin.acceleration),
          1.5 / dt * (end.rate - begin.rate) - 0.25 * (begin.acceleration + end.acceleration)};
}

// Drivers to the middle of the step; end: what they prescribe for its end. Where inputs prescribe a motion, it is
// smooth between the ends of steps.
void drive_half_way(const StepProblem& step, const Plan& half_step, const std::vector<Prescribed>& end) noexcept {
  start_drivers(step.last, step.w);
  advance_drivers(half_step, step.inputs, step.end_time() - half_step.dt(), step.w);
  for (std::size_t k = 0; k < end.size(); ++k)
    if (half_step.mechanism.drivers()[k].from_input == Driver::FromInput::motion)
      set_drive(half_step, static_cast<int>(k), half_way(step.last.drive[k], end[k], step.plan.dt()), step.w);
}

// Gaps, Jacobians and the factor of the masses at the pose that the lanes show.
bool factorise_at_end(const StepProblem& step) noexcept {
  constrain_couplings(step.plan, step.w, false);
  return step.plan.kernels->assemble(step.w.arrays,
                                     projection_factor(AssemblySweep::Rows::all, ComplianceOf::projections));
}

// Two corrections of the pose, with the gaps, Jacobians and factor that the lanes hold, and the gaps that are left.
// Returned: how far they have moved bodies, of the largest arm or in radians.
double correct_poses(const StepProblem& step) noexcept {
  const Kernels& kernels = *step.plan.kernels;
  const StepArrays& a = step.w.arrays;
  double moved = 0.0;
  for (int pass = 0; pass < 2; ++pass) {
    kernels.assemble(a, correction_sweep(RightHandSide::Phi));
    const StepMeasures found = kernels.disassemble(a, {true, Multiplier::sigma, Finish::corrected_poses});
    moved += of_largest_arm(step.plan, found.increment);
    measure_gaps(step.plan, AssemblySweep::Rows::gaps, step.w);
  }
  return moved;
}

// The body that half steps and the whole step have moved most differently, or -1.
int most_different_body(const StepProblem& step, const Workspace& whole_step) noexcept {
  int body = -1;
  double most = 0.0;
  for (int i = 0; i < static_cast<int>(step.plan.mechanism.bodies().size()); ++i) {
    Vec6 displacement, twist;
    state_difference(step.plan, i, step.w, whole_step, displacement, twist);
    const double size = of_largest_arm(step.plan, {displacement.head<3>().norm(), displacement.tail<3>().norm()});
    if (size > most) most = size, body = i;
  }
  return body;
}

// Quadratic terms and loads at the state that is reached.
void evaluate_end(const StepProblem& step) noexcept {
  const Plan& plan = step.plan;
  const StepArrays& a = step.w.arrays;
  std::fill_n(a.lambda, a.rows, 0.0);  // all of a joint's load is in kappa
  plan.kernels->disassemble(a, {false, Multiplier::kappa, Finish::quadratic_terms});
  if (plan.depends_on_pose()) {
    gather_reached_by_forces(plan, step.w);
    find_quadratic_terms_of_couplings(plan, step.w);
  }
  evaluate_elements(plan, step.inputs, step.end_time(), step.last.coordinate, step.w);
  load_bodies(plan, step.inputs, step.end_time(), step.w);
}

// (12) (13) and J a = gamma
StepMeasures solve_accelerations(const StepProblem& step) noexcept {
  const Kernels& kernels = *step.plan.kernels;
  const StepArrays& a = step.w.arrays;
  evaluate_end(step);
  kernels.assemble(a, equations_of_motion());
  Multiplier kind = Multiplier::kappa;
  // all of the load is found here, so that one pass leaves the compliance times that, in trees, too
  for (int pass = 1; pass < std::max(2, step.plan.settings.projection_passes); ++pass, kind = Multiplier::more_kappa) {
    kernels.disassemble(a, motion_update(kind));
    kernels.assemble(a, further_pass(RightHandSide::quadratic));
  }
  return kernels.disassemble(a, acceleration_update(kind));
}

}  // namespace

Extrapolation::Extrapolation(const Plan& plan, Plan half_step_plan)
    : half_step(std::move(half_step_plan)), whole_step(plan), filter(plan) {}

void extrapolated_step(const StepProblem& step, Extrapolation& extrapolation) noexcept {
  const Plan &plan = step.plan, &half_step = extrapolation.half_step;
  Workspace &w = step.w, &whole_step = extrapolation.whole_step;
  const double half_dt = half_step.dt(), end = step.end_time();
  PartStatus& status = w.part_status[0];
  status = {};
  const auto eliminate = [&](bool eliminated) { status.failed = status.failed || !eliminated; };
  evaluate_drivers(plan, step.last, step.inputs, end, whole_step);
  eliminate(midpoint_step({plan, step.inputs, step.last.coordinate, end - half_dt, whole_step}, status.measures));

  drive_half_way(step, half_step, whole_step.drive);
  eliminate(midpoint_step({half_step, step.inputs, step.last.coordinate, end - 1.5 * half_dt, w}, status.measures));
  w.advance();
  for (std::size_t k = 0; k < w.drive.size(); ++k) set_drive(plan, static_cast<int>(k), whole_step.drive[k], w);
  eliminate(midpoint_step({half_step, step.inputs, step.last.coordinate, end - 0.5 * half_dt, w}, status.measures));

  const bool may_be_stiff = plan.has_force_elements;
  if (may_be_stiff) eliminate(extrapolation.filter.find_stiff_part(step, whole_step));
  extrapolation.error_body = most_different_body(step, whole_step);
  const Increment difference = plan.kernels->extrapolate(w.arrays, whole_step.arrays);
  extrapolation.error = {kExtrapolated * difference.displacement, kExtrapolated * difference.rotation};
  if (may_be_stiff) extrapolation.filter.take_out_stiff_part(step);
  eliminate(factorise_at_end(step));
  if (correct_poses(step) > kNearEnd) eliminate(factorise_at_end(step));
  for (int pass = 0; pass < plan.settings.projection_passes; ++pass) {
    measure_velocities(plan, w);
    correct_velocities(plan, w);
  }
  const StepMeasures at_end = solve_accelerations(step);
  status.measures.finite = at_end.finite, status.measures.residuals = at_end.residuals;
  status.complete = true;
}

}  // namespace rigstep::index3
