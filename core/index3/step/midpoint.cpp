#include "core/index3/step/midpoint.h"

#include <algorithm>

#include "core/index3/step/applied_forces.h"
#include "core/index3/step/couplings.h"
#include "core/index3/step/forces_in_lanes.h"
#include "core/index3/step/iterate_forces.h"
#include "core/index3/step/lane_access.h"
#include "core/index3/step/newton.h"

namespace rigstep::index3 {

namespace {

using Rows = AssemblySweep::Rows;

ForceProblem forces_of(const MidpointProblem& step) noexcept {
  const StepSize& size = step.w.arrays.step;  // size.dt: half the step
  return {step.plan, step.inputs, step.middle, step.last_coordinate, {size.quarter_dt2, size.dt}};
}

// renew_tangent: asked for, and in the end, where force elements may ask, too, whether it is so
void evaluate_middle(const MidpointProblem& step, const IterateMoves& moves, bool& renew_tangent) noexcept {
  const Plan& plan = step.plan;
  plan.kernels->pass_midpoint(step.w.arrays, MidpointPass::show_middle);
  if (!plan.depends_on_pose()) return;
  gather_poses(plan, step.w);
  renew_tangent = load_iterate(forces_of(step), renewal_of(plan, renew_tangent, moves), step.w);
  constrain_couplings(plan, step.w, renew_tangent, Gaps::kept);
}

bool find_middle(const MidpointProblem& step, StepMeasures& measures) noexcept {
  const Plan& plan = step.plan;
  const StepArrays& a = step.w.arrays;
  IterateMoves moves;
  Increment increment{};
  bool eliminated = true, renew_tangent = true;
  for (int k = 0; k < plan.settings.iterations; ++k) {
    plan.kernels->pass_midpoint(a, MidpointPass::show_end);
    measure_gaps(plan, Rows::half_gaps, step.w);
    evaluate_middle(step, moves, renew_tangent);
    eliminated = plan.kernels->assemble(a, midpoint_sweep(renew_tangent, a.step.quarter_dt2)) && eliminated;
    increment = plan.kernels->disassemble(a, newton_update(k + 1 == plan.settings.iterations)).increment;
    moves.add(of_largest_arm(plan, increment), renew_tangent);
    renew_tangent = plan.tangents.renews(k + 1, moves);
  }
  measures.increment = {std::max(measures.increment.displacement, increment.displacement),
                        std::max(measures.increment.rotation, increment.rotation)};
  return eliminated;
}

}  // namespace

bool midpoint_step(const MidpointProblem& step, StepMeasures& measures) noexcept {
  const Plan& plan = step.plan;
  const Kernels& kernels = *plan.kernels;
  const StepArrays& a = step.w.arrays;
  std::fill_n(a.lambda, a.rows, 0.0);
  take_inputs(plan, step.inputs, step.w);
  hold_forces_in_lanes(plan, step.inputs, step.middle, step.last_coordinate, step.w);
  kernels.pass_midpoint(a, MidpointPass::predict);
  if (!plan.depends_on_pose()) load_bodies(plan, step.inputs, step.middle, step.w);
  bool eliminated = find_middle(step, measures);
  kernels.pass_midpoint(a, MidpointPass::end_velocities);
  constrain_couplings(plan, step.w, false, Gaps::kept);
  eliminated =
      kernels.assemble(a, projection_factor(Rows::without_gaps, ComplianceOf::midpoint_projection)) && eliminated;
  for (int pass = 0; pass < 2; ++pass) {
    kernels.pass_midpoint(a, MidpointPass::show_end);
    measure_velocities(plan, step.w);
    kernels.pass_midpoint(a, MidpointPass::show_middle);
    correct_velocities(plan, step.w);
  }
  kernels.pass_midpoint(a, MidpointPass::reach_end);
  return eliminated;
}

void measure_gaps(const Plan& plan, Rows gaps, Workspace& w) noexcept {
  plan.kernels->assemble(w.arrays, rows_alone(gaps));
  measure_gaps_of_couplings(plan, gaps == Rows::half_gaps ? 0.5 : 1.0, w);
}

void measure_velocities(const Plan& plan, Workspace& w) noexcept {
  plan.kernels->disassemble(w.arrays, {false, Multiplier::sigma, DisassemblySweep::Finish::twists});
  plan.kernels->assemble(w.arrays, rows_alone(Rows::velocities));
  measure_velocities_of_couplings(plan, w);
}

void correct_velocities(const Plan& plan, Workspace& w) noexcept {
  plan.kernels->assemble(w.arrays, correction_sweep(RightHandSide::quadratic));
  plan.kernels->disassemble(w.arrays, {true, Multiplier::sigma, DisassemblySweep::Finish::corrected_velocities});
}

}  // namespace rigstep::index3
