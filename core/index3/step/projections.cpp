#include "core/index3/step/projections.h"

#include "core/index3/step/couplings.h"
#include "core/index3/step/lane_access.h"

namespace rigstep::index3 {

namespace {

// One pass leaves a residual of the order of the compliance, a second one its square.
bool project_again(PartSweeps& sweeps, RightHandSide rhs, Multiplier kind) {
  sweeps.disassemble(motion_update(kind));
  return sweeps.assemble(further_pass(rhs));
}

}  // namespace

bool project_velocities(const StepProblem& step, PartSweeps& sweeps, bool renew_tangent) {
  if (!sweeps.assemble(velocity_sweep(renew_tangent, step.quarter_dt2()))) return false;  // (45) (54)
  for (int pass = 1; pass < step.plan.settings.projection_passes; ++pass)
    if (!project_again(sweeps, RightHandSide::rate, Multiplier::sigma)) return false;
  sweeps.disassemble(velocity_update());  // (53) (43)
  if (step.plan.mechanism.couplings().empty() && !step.plan.acts_over_step()) return true;
  return sweeps.one_by_one([&] {  // gamma of the couplings, velocities of what acts over a step
    if (step.plan.acts_over_step()) gather_over_step(step.plan, step.w);
    find_quadratic_terms_of_couplings(step.plan, step.w);
  });
}

bool project_accelerations(const StepProblem& step, PartSweeps& sweeps) {
  if (!sweeps.assemble(acceleration_sweep(), kTwists)) return false;  // (60) (69)
  Multiplier kind = Multiplier::kappa;
  if (step.plan.acts_over_step()) {
    sweeps.disassemble(motion_update(kind));
    if (!sweeps.one_by_one([&] { correct_accelerations(step.plan, step.w); })) return false;
    if (!sweeps.assemble(further_pass(RightHandSide::quadratic))) return false;
    kind = Multiplier::more_kappa;
  }
  for (int pass = 1; pass < step.plan.settings.projection_passes; ++pass, kind = Multiplier::more_kappa)
    if (!project_again(sweeps, RightHandSide::quadratic, kind)) return false;
  sweeps.disassemble(acceleration_update(kind));  // (66) (58)
  return sweeps.measure_top(acceleration_update(kind));
}

}  // namespace rigstep::index3
