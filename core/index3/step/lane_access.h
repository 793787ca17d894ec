// Between lanes and the things of the model: what must be seen one by one (force elements, sensors) looks through here.
// Called in the loop.
#pragma once

#include "core/index3/step/applied_forces.h"

namespace rigstep::index3 {

// A committed state into the lanes, as the instant that the next step starts from.
void enter_lanes(const Plan& plan, const State& x, Workspace& w) noexcept;

// The bodies and multipliers of the committed state, or those that the step has reached.
enum class Instant { last, next };
void leave_lanes(const Plan& plan, const Workspace& w, Instant instant, State& x) noexcept;

// The loads of these that no force element, input or load acts on: their weight, which Workspace::follow_body has made.
void enter_weight(const Plan& plan, int body, Workspace& w) noexcept;

// The last instant as the iterate, with its multipliers. Load time.
void iterate_from_last(const Plan& plan, Workspace& w) noexcept;

// The last instant of another workspace of this plan.
void copy_last_instant(const Plan& plan, const Workspace& from, Workspace& to) noexcept;

// w.placement of the pose-dependent bodies and w.joint of the pose-dependent joints, of the iterate; its velocities are
// those that the trapezoidal rule gives, (15).
void gather_poses(const Plan& plan, Workspace& w) noexcept;

// w.placement and w.joint of all that forces act on or look at, with the projected velocities.
void gather_reached_by_forces(const Plan& plan, Workspace& w) noexcept;
// w.joint of these joints, from w.placement.
void place_joints_of_forces(const Plan& plan, Workspace& w) noexcept;

// For elements that act over a step, the same of their bodies and joints at the last instant, with its velocities; and
// of the iterate, with the projected velocities.
void gather_last_instant(const Plan& plan, Workspace& w) noexcept;
void gather_over_step(const Plan& plan, Workspace& w) noexcept;

// At the end of a step the same of the bodies and joints that nothing before has needed, and the projected velocities
// of all.
void gather_reached(const Plan& plan, Workspace& w) noexcept;

// What the drivers prescribe for the end of the step, at time t [s], and from where angles are unwrapped; the others in
// two steps: from what w.drive holds to the end of the plan's step.
void evaluate_drivers(const Plan& plan, const State& last, const Inputs& inputs, double t, Workspace& w) noexcept;
void start_drivers(const State& last, Workspace& w) noexcept;
void set_drive(const Plan& plan, int driver, const Prescribed& motion, Workspace& w) noexcept;
void advance_drivers(const Plan& plan, const Inputs& inputs, double t, Workspace& w) noexcept;

// All loads at an instant, time t [s], as apply_forces sums them; after the force elements have been evaluated.
void load_bodies(const Plan& plan, const Inputs& inputs, double t, Workspace& w) noexcept;

// The own-body block of a body in the tangent of force elements, of which the lower half counts.
void write_own_block(const Plan& plan, int body, const Mat6& block, Workspace& w) noexcept;

// In the lanes alone: what enters the equations of a body until its loads or its weight are entered again.
void enter_load(const Plan& plan, int body, const Vec6& load, Workspace& w) noexcept;

// Moves a body of the next instant by a displacement and a turn, and changes its velocities, world frame; its rotation
// follows with Kernels::update_rotations.
void change_state(const Plan& plan, int body, const Vec6& displacement, const Vec6& twist, Workspace& w) noexcept;
// The next instant of a body, less that in another workspace of this plan, as such a change.
void state_difference(const Plan& plan, int body, const Workspace& w, const Workspace& other, Vec6& displacement,
                      Vec6& twist) noexcept;

// Replaces the loads over the step by those of the instant in the accelerations, M^-1 (Q - Q_over_step) on each body
// alone; the next projection pass restores the joints. For elements that act over a step.
void correct_accelerations(const Plan& plan, Workspace& w) noexcept;

// Into one row of a constraint that has rows, wherever an array of rows has it.
void write_row(const Plan& plan, int constraint, int row, double value, double* rows) noexcept;

// One row of a constraint that has rows, in an array of rows.
inline double row_value(const Plan& plan, const double* rows, int constraint, int row) noexcept {
  const Place& at = plan.elimination.constraint_place[plan.eliminated_as[constraint]].rows;
  return rows[at.base + (plan.first_row_there[constraint] + row) * at.stride];
}

// What the last factorisation could not eliminate: a joint, coupling or driver, or the body of a primal body or force
// element; both -1: nothing.
struct Singular {
  int body = -1, joint = -1;
  bool is_none() const { return body < 0 && joint < 0; }
};
// The nearest to the leaves.
Singular what_is_singular(const Plan& plan, const Workspace& w) noexcept;

// Displacement | velocity | acceleration of a body and the like for its rotation, world frame.
Vec6 motion(const Plan& plan, const Workspace& w, int body) noexcept;
void set_motion(const Plan& plan, int body, const Vec6& motion, Workspace& w) noexcept;

}  // namespace rigstep::index3
