#include "core/index3/physics/elements/effort.h"

namespace rigstep::index3 {

Connectivity connectivity(const AppliedEffort& effort, const Curvatures&) {
  Connectivity connects;
  connects.bodies = {effort.first, effort.second};
  connects.coordinate = effort.coordinate;
  return connects;
}

bool slopes_change(const AppliedEffort&) { return false; }

EvaluatedScalar evaluate(const AppliedEffort& effort, const Curvatures& curvatures, const Surroundings& at) noexcept {
  return {at.coordinate[effort.coordinate], {evaluate(effort.function, curvatures, at.time).value, 0.0, 0.0}};
}

ElementReading apply(const AppliedEffort& effort, const Curvatures&, const EvaluatedScalar& now, const Surroundings&,
                     const Loads& loads) noexcept {
  return apply_scalar(effort.first, effort.second, now.x, now.x.value, now.effort.effort, loads);
}

}  // namespace rigstep::index3
