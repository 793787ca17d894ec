#include "core/index3/step/newton.h"

#include "core/index3/step/applied_forces.h"
#include "core/index3/step/lane_access.h"

namespace rigstep::index3 {

namespace {

// else all loads are those of the step
bool depends_on_pose(const Plan& plan) { return !plan.pose_dependent_bodies.empty(); }

bool renews_tangent(const Plan& plan, int iteration) { return iteration < plan.tangents.count; }

void apply_loads(const StepProblem& step) {
  load_bodies(step.plan, step.inputs, step.end_time(), step.last.coordinate, step.w);
}

// At a singular pose loops hold nothing in one direction. What rounding leaves open there, multipliers that were
// carried over would add up step by step; restarted they are as small as the first iteration makes them, and the next
// one closes what that leaves open elsewhere. In trees every direction is held, and carrying over rounds less.
RightHandSide closing(const Plan& plan, int iteration) {
  return plan.has_loops && iteration == 0 ? RightHandSide::Phi_restarted : RightHandSide::Phi;
}

// Loads, general constraints and the tangent of force elements at the iterate before iteration k: one by one, by the
// first thread. After the last iteration only the constraints, which the projections need.
bool evaluate_iterate(const StepProblem& step, PartSweeps& sweeps, int k) {
  const Plan& plan = step.plan;
  if (!depends_on_pose(plan)) return true;
  if (!sweeps.fetch_poses()) return false;
  const bool is_done = k == plan.settings.iterations, renew_tangent = renews_tangent(plan, k);
  return sweeps.one_by_one([&] {
    gather_poses(plan, step.w);
    constrain_general(plan, step.w, renew_tangent || is_done);  // (17) (18)
    if (is_done) return;
    follow_iterate(plan, step.w);
    if (renew_tangent) tangent_of_forces(plan, step.quarter_dt2(), 0.5 * plan.dt(), step.w);  // (8)
    apply_loads(step);
  });
}

}  // namespace

double StepProblem::end_time() const noexcept {
  return 1e-9 * static_cast<double>(static_cast<std::int64_t>(last.step + 1) * plan.settings.dt_ns);
}

void prepare_step(const StepProblem& step) noexcept {
  evaluate_drivers(step.plan, step.last, step.inputs, step.end_time(), step.w);
  take_inputs(step.plan, step.inputs, step.w);
  if (step.plan.acts_over_step) {
    gather_last_instant(step.plan, step.w);
    start_elements(step.plan, step.w);
  }
  if (!depends_on_pose(step.plan)) apply_loads(step);
}

bool newton(const StepProblem& step, PartSweeps& sweeps, const std::function<void()>& after_assembly) {
  const Plan& plan = step.plan;
  sweeps.predict();                                      // 3a      (15) (16)
  if (!evaluate_iterate(step, sweeps, 0)) return false;  // 3b      (1) (3) (8)
  for (int k = 0; k < plan.settings.iterations; ++k) {
    // 3c-3f   leaves: tangent (26), free motion (27), kernels/leaf_compliance.h and leaf_motion.h;
    //         fronts: elimination (36)-(38), kernels/front_elimination.cpp; right-hand sides (39) and the solve at the
    //         root, solve_as_root() of kernels/front_solution.cpp
    if (!sweeps.assemble(newton_sweep(renews_tangent(plan, k), closing(plan, k), step.quarter_dt2()))) return false;
    if (after_assembly) after_assembly();
    // 3g, 3h  multipliers from the root to the leaves (34), kernels/front_solution.cpp; displacements (24) (25),
    //         kernels/leaf_motion.h
    sweeps.disassemble(newton_update(k + 1 == plan.settings.iterations));
    if (!evaluate_iterate(step, sweeps, k + 1)) return false;  // 3b
  }
  return true;
}

}  // namespace rigstep::index3
