// HOW a mechanism is stepped in real time: the index-3 divide-and-conquer algorithm of
//
//   [001] P. Malczyk, J. Fraczek, F. Gonzalez, J. Cuadrado: Index-3 divide-and-conquer algorithm for efficient
//         multibody system dynamics simulations: theory and parallel implementation. Nonlinear Dynamics, 2019.
//
// in its dual form: a compound body stores the compliance between its pending joints only, six increments a body
// (displacement and rotation) replace seven, and normalisation with its multiplier mu is eliminated exactly. Where
// the code and the paper differ:
//
//   (4)-(6)    Psi = (p'p - 1) / 2, so that Psi_q = p' is its derivative
//   below (20) the tangent is M - (dt^2/4) dQ/dq - (dt/2) dQ/dqd: the printed factors are swapped
//   (22) (23) (27)  the right-hand side is -(dt^2/4) (g + Psi_q' alpha Psi): the printed sign diverges
//   (37)       the first Jacobian needs a transpose
//   (21) (34)  lambda is accumulated over iterations and, in trees, carried over steps: in loops a step begins anew,
//              since at a singular pose what rounding leaves in it would add up
//   alpha      not a physical parameter: what acts is the compliance 4 / (alpha dt^2) against Phi_q M^-1 Phi_q',
//              so each joint's compliance is chosen relative to that
//   3.3, 6     the tangent is factorised anew at the converged pose for both projections: re-using the one of the
//              Newton iterations is unstable; the applied forces' partials stay out of it, since a projection in a
//              metric that holds springs to the ground or to other bodies does not keep momentum
//   3.4        the acceleration projection uses the projected velocities in gamma
//   4.4        geometric stiffness enters the tangent with its own-body blocks, made symmetric by a mean that counts
//              the equation of a small moment of inertia more: else a thin rod spins because it swings
//   3.3        modified Newton: one tangent at the predictor, more where that is too far from the end of the step
//
// Owned by a session; construction is load time and may throw, step() belongs to the loop thread.
#pragma once

#include <pthread.h>

#include <memory>
#include <span>

#include "core/index3/settings.h"
#include "core/index3/state.h"
#include "core/mechanism/signals.h"

namespace rigstep::index3 {

struct Plan;       // plan.h: everything that never changes
struct Workspace;  // workspace.h: every byte the step may touch
class Team;        // team.h: the threads that share a step
class Sensors;     // sensors.h: what output channels need beyond the state

class Stepper {
 public:
  // Compiles the elimination, sizes every buffer and makes the start state consistent (3.5 step 1).
  // Throws MechanismError when the start pose or start velocities contradict a joint, with its name and the gap.
  Stepper(const Mechanism& mechanism, const Settings& settings);
  ~Stepper();
  Stepper(Stepper&&) noexcept;

  // Advances by one dt with the inputs held on (t_k, t_k+1]. A step that fails (see failed()) is not
  // committed: the state stays at the last good one and the report names the joint or body.
  StepReport step(const Inputs& inputs) noexcept;
  // The same with every output channel after the step. Where one is not finite, the step is not committed either and
  // the report names the channel. `outputs` changes only where the step is committed.
  StepReport step(const Inputs& inputs, Outputs& outputs) noexcept;

  const State& state() const noexcept;
  const Plan& plan() const noexcept;
  const Workspace& workspace() const noexcept;  // of the last committed step, for sensors and diagnostics

  // StepMeasures at the start; a step whose residuals exceed them is not_converged.
  const ResidualLimits& residual_limits() const noexcept { return limits_; }

  Sensors& sensors() const noexcept { return *sensors_; }  // of read_outputs

  // Memory of a step: workspace, states and sensors. A team has another workspace in reserve.
  std::size_t bytes() const noexcept;

  // Threads that share a step, the caller included; 1 where the mechanism is too small to be divided.
  int threads() const noexcept;
  // Handles of the threads that share a step beside the caller, for whoever sets their priority; empty: alone.
  std::span<const pthread_t> workers() const noexcept;
  // Steps that were made anew alone because a worker was late.
  std::uint64_t late_workers() const noexcept { return late_workers_; }

  // Goes on from a flat state as written by State::flatten; flat.size() must equal state().flat_size().
  void restore(std::span<const double> flat, std::uint64_t step_index) noexcept;

 private:
  StepReport commit(const Inputs& inputs, const StepReport& report) noexcept;
  StepReport reject(const Inputs& inputs, StepReport report) noexcept;
  void take_back() noexcept;
  bool attempt(const Inputs& inputs, Team* team) noexcept;
  void go_on_alone() noexcept;

  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<Workspace> spare_;  // with a team: for steps that a late worker spoils
  std::unique_ptr<Team> team_;        // null: alone
  std::unique_ptr<Sensors> sensors_;
  std::uint64_t late_workers_ = 0;
  mutable State state_;                   // the last committed one
  mutable bool state_is_current_ = true;  // else it is still in the lanes, from where state() fetches it
  ResidualLimits limits_;
  State failed_;  // what a failed step would have committed; before that, what take_back() needs
};

}  // namespace rigstep::index3
