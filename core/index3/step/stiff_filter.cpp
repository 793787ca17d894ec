#include "core/index3/step/stiff_filter.h"

#include <algorithm>

#include "core/index3/step/applied_forces.h"
#include "core/index3/step/couplings.h"
#include "core/index3/step/iterate_forces.h"
#include "core/index3/step/lane_access.h"
#include "core/index3/step/midpoint.h"

namespace rigstep::index3 {

StiffFilter::StiffFilter(const Plan& plan)
    : w_q_(plan.mechanism.bodies().size(), Vec6::Zero()),
      w_v_(w_q_),
      placement_(plan.mechanism.bodies().size()),
      Q_(w_q_),
      Q_changed_(w_q_) {}

std::size_t StiffFilter::bytes() const noexcept { return w_q_.size() * (4 * sizeof(Vec6) + sizeof(Placement)); }

// Of the state at the end of the half steps, changed by these multiples of w.
void StiffFilter::evaluate_forces(const StepProblem& step, double displaced_by_w_q, double displaced_by_w_v,
                                  double twisted_by_w_v) noexcept {
  Workspace& w = step.w;
  for (const int i : step.plan.bodies_of_forces) {
    const Vec6 displacement = displaced_by_w_q * w_q_[i] + displaced_by_w_v * w_v_[i];
    const Vec6 twist = twisted_by_w_v * w_v_[i];
    Placement& at = w.placement[i] = placement_[i];
    at.r += displacement.head<3>();
    at.A += skew(displacement.tail<3>()) * at.A;
    at.v += twist.head<3>();
    at.w += twist.tail<3>();
  }
  place_joints_of_forces(step.plan, w);
  evaluate_elements(step.plan, step.inputs, step.end_time(), step.last.coordinate, w);
  apply_forces(step.plan, step.inputs, step.end_time(), w);
}

// h/2 (K w_q + C w_v) + h^2/4 K w_v
void StiffFilter::enter_right_hand_side(const StepProblem& step) noexcept {
  const Plan& plan = step.plan;
  const double half_dt = 0.5 * plan.dt();
  evaluate_forces(step, 1.0, 0.0, 1.0);
  for (const int i : plan.loaded_bodies) Q_changed_[i] = step.w.Q[i];
  evaluate_forces(step, 0.0, half_dt, 0.0);
  for (const int i : plan.loaded_bodies)
    enter_load(plan, i, half_dt * (2.0 * Q_[i] - Q_changed_[i] - step.w.Q[i]), step.w);
}

bool StiffFilter::find_stiff_part(const StepProblem& step, const Workspace& whole_step) noexcept {
  const Plan& plan = step.plan;
  const StepArrays& a = step.w.arrays;
  const Kernels& kernels = *plan.kernels;
  const int bodies = static_cast<int>(w_q_.size());
  const double half_dt = 0.5 * plan.dt();
  for (int i = 0; i < bodies; ++i) {
    state_difference(plan, i, step.w, whole_step, w_q_[i], w_v_[i]);
    w_q_[i] /= 3.0, w_v_[i] /= 3.0;
    enter_load(plan, i, Vec6::Zero(), step.w);
  }
  kernels.disassemble(a, {false, Multiplier::sigma, DisassemblySweep::Finish::twists});
  gather_reached_by_forces(plan, step.w);
  for (const int i : plan.bodies_of_forces) placement_[i] = step.w.placement[i];
  constrain_couplings(plan, step.w, false);
  evaluate_elements(plan, step.inputs, step.end_time(), step.last.coordinate, step.w);
  tangent_of_forces(plan, {half_dt * half_dt, half_dt}, step.w);
  apply_forces(plan, step.inputs, step.end_time(), step.w);
  for (const int i : plan.loaded_bodies) Q_[i] = step.w.Q[i];
  const bool eliminated = kernels.assemble(a, force_factor());
  std::fill_n(a.quadratic, a.rows, 0.0);
  for (int sweep = 0; sweep < 2; ++sweep) {
    enter_right_hand_side(step);
    kernels.assemble(a, response_to_loads());
    kernels.disassemble(a, motion_update(Multiplier::sigma));
    for (int i = 0; i < bodies; ++i) {
      const Vec6 x = motion(plan, step.w, i);
      w_q_[i] = -half_dt * (w_v_[i] - x);
      w_v_[i] = x;
    }
  }
  for (int i = 0; i < bodies; ++i) enter_weight(plan, i, step.w);  // of loaded bodies, until they are loaded again
  return eliminated;
}

void StiffFilter::take_out_stiff_part(const StepProblem& step) noexcept {
  for (std::size_t i = 0; i < w_q_.size(); ++i)
    change_state(step.plan, static_cast<int>(i), -w_q_[i], -w_v_[i], step.w);
  step.plan.kernels->update_rotations(step.w.arrays);
}

}  // namespace rigstep::index3
