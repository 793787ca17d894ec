// HOW a mechanism is stepped in real time: the index-3 divide-and-conquer algorithm of
//
//   [001] P. Malczyk, J. Fraczek, F. Gonzalez, J. Cuadrado: Index-3 divide-and-conquer algorithm for efficient
//         multibody system dynamics simulations: theory and parallel implementation. Nonlinear Dynamics, 2019.
//
// in its dual form: a compound body stores the compliance between its pending joints only, six increments a body
// (displacement and rotation) replace seven, and normalisation with its multiplier mu is eliminated exactly.
//
// Errata of the paper:
//
//   below (20)  the tangent is M - (dt^2/4) dQ/dq - (dt/2) dQ/dqd: the printed factors are swapped
//   (35) (53) (66)  Phi_q of q_1^B is that of q_B^1
//   (37)        the first Jacobian needs a transpose
// and of what does not exist here, since normalisation is eliminated (core/offline/index3_literal.h has it):
//   (4)-(6)     Psi = (p'p - 1) / 2, so that Psi_q = p' is its derivative
//   (22) (23) (27)  the right-hand side is -(dt^2/4) (g + Psi_q' alpha Psi): the printed sign diverges
//
// What the stepper does differently:
//
//   (2) (3)     drivers add Phi_t and Phi_tt
//   alpha       not a physical parameter: what acts is the compliance 4 / (alpha dt^2) against Phi_q M^-1 Phi_q',
//               so each joint's compliance is chosen relative to that
//   3.2         modified Newton as in the paper, but where the predictor is too far from the end of the step each
//               iteration has a tangent of its own (compile/tangents.h)
//   3.3, 6      the tangent is factorised again at the converged pose for both projections, unless next to nothing has
//               moved since: re-using an older one of the Newton iterations is unstable; derivatives of forces stay out
//               of it, since a projection in a metric that holds springs to the ground or to other bodies does not keep
//               momentum
//   3.3, 3.4    each projection is repeated where loops are closed: one pass leaves a residual in proportion to the
//               compliance
//   3.4         the acceleration projection uses the projected velocities in gamma
//   3.5 3a      lambda is carried over from step to step in trees only: in loops a step begins again, since at a
//               singular pose what rounding leaves in it would add up
//   (40) (55)   sigma and kappa are kept as (dt^2/4) times the paper's
//   4.4         geometric stiffness enters the tangent with its own-body blocks, made symmetric by a mean that counts
//               the equation of a small moment of inertia more: else a thin rod spins because it swings
//   inertia forces  their derivative is the approximation of inertia_tangent() in kernels/body.h, and stays out of the
//               projections
//   stops, ropes  stand in Newton's equations with their mean over the step (physics/elements/one_sided.h)
//
// The step reads as figure 2 of [001] does: step/newton.h (3a-3h), step/projections.h (4, 5). The opening comment of
// kernels/front_elimination.cpp derives the dual form from the paper's blocks. Who comes new reads the form as printed
// first: core/offline/index3_literal.h.
//
// Owned by whoever steps; construction is load time and may throw, the rest belongs to one thread, the loop's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>

#include "core/index3/settings.h"
#include "core/index3/state.h"
#include "core/mechanism/mechanism.h"
#include "core/mechanism/signals.h"

namespace rigstep::index3 {

class Stepper {
 public:
  // Compiles the elimination, sizes every buffer and makes the start state consistent (3.5 step 1).
  // Throws MechanismError where the start pose or start velocities contradict a joint, with its name and the gap, and
  // where the mechanism is too large.
  Stepper(const Mechanism& mechanism, const Settings& settings);
  ~Stepper();
  Stepper(Stepper&&) noexcept;

  // Advances by one dt with the inputs held on (t_k, t_k+1]. A step that fails (see failed()) is not
  // committed: the state stays at the last good one and the report names the joint or body.
  StepReport step(const Inputs& inputs) noexcept;
  // The same with every output channel after the step. Where one is not finite, the step is not committed either and
  // the report names the channel. `outputs` changes only where the step is committed.
  StepReport step(const Inputs& inputs, Outputs& outputs) noexcept;

  // Every output channel after a committed step, or at the start. report: of that step. What force elements do at its
  // end is evaluated at the first call that asks for it, here or by energy().
  void read_outputs(const StepReport& report, Outputs& outputs) const noexcept;
  // Load that joint j exerts on its second body as the solver left it, world frame: force [N] and torque about its
  // joint point on the second body [N m]. Where constraints are redundant, outputs give the load of least norm instead.
  Eigen::Matrix<double, 6, 1> joint_reaction(int j) const noexcept;
  // Generalised force of a driver along its freedom; positive increases the coordinate [N] or [N m].
  double driver_effort(int driver) const noexcept;
  Energy energy() const noexcept;

  // Between two steps: sets tunable parameters of the mechanism (Mechanism::parameters) and all that follows from them,
  // from the next step on, all or none. False, and nothing changes, where one is fixed, out of its range or not finite,
  // or there is none of that index. The state stays, its accelerations and multipliers included, as with an input that
  // jumps: from one state on, the next steps have the bits of a stepper whose mechanism declares these values. Its time
  // is bounded by the size of the mechanism: where a mass changes, that of a few steps.
  bool set_parameters(std::span<const ParameterValue> values) noexcept;
  bool set_parameter(int index, double value) noexcept;
  double parameter(int index) const noexcept;  // what acts now

  const State& state() const noexcept;
  // Goes on from a flat state as written by State::flatten; flat.size() must equal state().flat_size(). Bodies that
  // never leave a plane (compile/planar_motion.h) are put back into it.
  void restore(std::span<const double> flat, std::uint64_t step_index) noexcept;

  const Mechanism& mechanism() const noexcept;
  // With the values that were chosen where the given ones leave the choice.
  const Settings& settings() const noexcept;
  // Found at the start; a step whose residuals exceed them is not_converged.
  const ResidualLimits& residual_limits() const noexcept;

  // Memory of a step: workspace, states and sensors. A team has another workspace in reserve.
  std::size_t bytes() const noexcept;

  // Threads that share a step, the caller included; 1 where the mechanism is too small to be divided.
  int threads() const noexcept;
  // Handles of the threads that share a step beside the caller, for whoever sets their priority; empty: alone.
  std::span<const std::thread::native_handle_type> workers() const noexcept;
  // Steps that were made once more, alone, because a worker was late.
  std::uint64_t late_workers() const noexcept;

 private:
  friend class StepperAccess;  // stepper_access.h
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rigstep::index3
