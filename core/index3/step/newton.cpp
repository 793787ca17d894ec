#include "core/index3/step/newton.h"

#include <algorithm>

#include "core/index3/step/applied_forces.h"
#include "core/index3/step/couplings.h"
#include "core/index3/step/forces_in_lanes.h"
#include "core/index3/step/iterate_forces.h"
#include "core/index3/step/lane_access.h"

namespace rigstep::index3 {

namespace {

ForceProblem forces_of(const StepProblem& step) {
  return {step.plan, step.inputs, step.end_time(), step.last.coordinate, {step.quarter_dt2(), 0.5 * step.plan.dt()}};
}

// In trees lambda is carried over from step to step. In loops it begins again with each step: at a singular pose some
// combinations of multipliers move nothing, and rounding errors carried over in them would add up. The first iteration
// then finds lambda with the error of one penalty pass, and the next ones remove that.
RightHandSide right_hand_side_of(const Plan& plan, int iteration) {
  return plan.has_loops && iteration == 0 ? RightHandSide::Phi_restarted : RightHandSide::Phi;
}

// Loads, couplings and the tangent of force elements at the iterate before iteration k: one by one, by the
// first thread. After the last iteration only the couplings, which the projections need. renew_tangent: asked for,
// and in the end, where force elements may ask, too, whether it is so.
bool evaluate_iterate(const StepProblem& step, PartSweeps& sweeps, int k, const IterateMoves& moves,
                      bool& renew_tangent) {
  const Plan& plan = step.plan;
  Workspace& w = step.w;
  if (!plan.depends_on_pose()) return true;
  if (!sweeps.fetch_poses()) return false;
  const auto evaluate = [&] {
    gather_poses(plan, w);
    if (k == plan.settings.iterations) return constrain_couplings(plan, w, true);
    // below (20); (1) (3) (14)
    w.renews_tangent = load_iterate(forces_of(step), renewal_of(plan, renew_tangent, moves), w);
    constrain_couplings(plan, w, w.renews_tangent);
  };
  if (!sweeps.one_by_one(evaluate)) return false;
  renew_tangent = w.renews_tangent;
  return true;
}

// The first tangent is that of the projections where these may use it: what derivatives of inertia forces add is of
// second order in the angle of half a step, and further iterations make up for it, which therefore have them.
AssemblySweep sweep_of_iteration(const StepProblem& step, int k, bool renew_tangent) {
  AssemblySweep sweep = newton_sweep(renew_tangent, right_hand_side_of(step.plan, k), step.quarter_dt2());
  if (k == 0 && step.plan.tangents.near_projections >= 0.0) sweep.tangent.with_force_derivatives = false;
  return sweep;
}

// Whether iteration k has a tangent of its own, where that depends on how far bodies have moved.
bool choose_tangent(const Plan& plan, PartSweeps& sweeps, int k, IterateMoves& moves, bool& renew_tangent) {
  if (plan.tangents.near >= 0.0 && (k < plan.settings.iterations || plan.tangents.near_projections >= 0.0)) {
    Increment increment;
    if (!sweeps.find_increment(increment)) return false;
    moves.add(of_largest_arm(plan, increment), renew_tangent);
  }
  renew_tangent = plan.tangents.renews(k, moves);
  return true;
}

}  // namespace

double of_largest_arm(const Plan& plan, const Increment& increment) noexcept {
  return std::max(increment.displacement / plan.length, increment.rotation);
}

double StepProblem::end_time() const noexcept { return plan.time_of(last.step + 1); }

void prepare_step(const StepProblem& step) noexcept {
  evaluate_drivers(step.plan, step.last, step.inputs, step.end_time(), step.w);
  take_inputs(step.plan, step.inputs, step.w);
  hold_forces_in_lanes(step.plan, step.inputs, step.end_time(), step.last.coordinate, step.w);
  if (step.plan.acts_over_step()) {
    gather_last_instant(step.plan, step.w);
    start_elements(step.plan, step.w);
  }
  if (!step.plan.depends_on_pose()) load_bodies(step.plan, step.inputs, step.end_time(), step.w);
}

bool newton(const StepProblem& step, PartSweeps& sweeps, bool& serves_projections,
            const std::function<void()>& after_assembly) {
  const Plan& plan = step.plan;
  IterateMoves moves;
  bool renew_tangent = true;
  sweeps.predict();                                                            // 3a, 3b  (15) (16)
  if (!evaluate_iterate(step, sweeps, 0, moves, renew_tangent)) return false;  // 3c      (1) (3) (8)
  for (int k = 0; k < plan.settings.iterations; ++k) {
    // 3c-3f   constraints (1) (3), kernels/constraint_rows.h;
    //         leaves: tangent (26), free motion (27), kernels/leaf_compliance.h and leaf_motion.h;
    //         fronts: elimination (36)-(38), kernels/front_elimination.cpp; right-hand sides (39) and the solve at the
    //         root, solve_as_root() of kernels/front_solution.cpp
    if (!sweeps.assemble(sweep_of_iteration(step, k, renew_tangent))) return false;
    if (after_assembly) after_assembly();
    // 3g, 3h  multipliers from the root to the leaves (35), kernels/front_solution.cpp; displacements (24) (25),
    //         kernels/leaf_motion.h
    sweeps.disassemble(newton_update(k + 1 == plan.settings.iterations));
    if (renew_tangent) serves_projections = k == 0;
    if (!choose_tangent(plan, sweeps, k + 1, moves, renew_tangent)) return false;
    if (!evaluate_iterate(step, sweeps, k + 1, moves, renew_tangent)) return false;  // 3c
  }
  serves_projections = serves_projections && moves.since_tangent <= plan.tangents.near_projections;
  return true;
}

}  // namespace rigstep::index3
