// Output channels from the state. Called in the loop.
#pragma once

#include <memory>

#include "core/index3/outputs/loop_closure.h"
#include "core/index3/outputs/reactions.h"

namespace rigstep::index3 {

// What outputs need beyond the state, made at load time where one asks for it.
class Sensors {
 public:
  // start: a consistent state
  Sensors(const Plan& plan, const State& start);

  // Every output channel of the committed state x (or of the start). w: of its step; report: of that step.
  void read(const Plan& plan, const Workspace& w, const State& x, const StepReport& report, Outputs& outputs) noexcept;
  std::size_t bytes() const noexcept;

 private:
  std::unique_ptr<Workspace> pose_;  // constraints, for the two below
  std::unique_ptr<LoopClosure> closure_;
  std::unique_ptr<Reactions> reactions_;
};

// Load that joint j exerts on its second body as the solver left it, world frame: force [N] and torque about its joint
// point on the second body [N m]. Where constraints are redundant, what is unique of it is right and the rest is one
// possible distribution; outputs give that of least norm (reactions.h).
Vec6 joint_reaction(const Plan& plan, const State& x, int j) noexcept;

// Generalised force of a driver along its freedom; positive increases the coordinate [N] or [N m].
double driver_effort(const Plan& plan, const State& x, int driver) noexcept;

}  // namespace rigstep::index3
