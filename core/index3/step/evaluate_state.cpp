#include "core/index3/step/evaluate_state.h"

#include "core/index3/step/applied_forces.h"

namespace rigstep::index3 {

void place_bodies(const State& x, Workspace& w) noexcept {
  for (std::size_t i = 0; i < x.body.size(); ++i) w.placement[i] = placement_of(x.body[i]);
}

void evaluate_pose(const Plan& plan, const State& x, Workspace& w) noexcept {
  place_bodies(x, w);
  w.drive = x.drive;
  w.reference = x.coordinate;
  evaluate_constraints(plan, w);
}

void evaluate_state(const Plan& plan, const State& x, Workspace& w) noexcept {
  evaluate_pose(plan, x, w);
  follow_coordinates(plan, x.coordinate, w);
  evaluate_elements(plan, Inputs{}, plan.time_of(x.step), x.coordinate, w);
  apply_forces(plan, Inputs{}, plan.time_of(x.step), w);
  take_inputs(plan, Inputs{}, w);
  start_elements(plan, w);
}

}  // namespace rigstep::index3
