#include "core/index3/physics/elements/effort.h"

namespace rigstep::index3 {

Connectivity connectivity(const AppliedEffort& effort, const Curvatures&) {
  Connectivity connects;
  connects.bodies = {effort.first, effort.second};
  connects.follows_coordinates = true;
  return connects;
}

bool slopes_change(const AppliedEffort&) { return false; }

ElementReading apply(const AppliedEffort& effort, const Curvatures& curvatures, const Surroundings& at,
                     const Loads& loads) noexcept {
  const Coordinate x = followed_coordinate(effort.coordinate, effort.first, effort.second, at);
  return apply_scalar(effort.first, effort.second, x, x.value, evaluate(effort.function, curvatures, at.time).value,
                      loads);
}

}  // namespace rigstep::index3
