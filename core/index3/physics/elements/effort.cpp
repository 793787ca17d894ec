#include "core/index3/physics/elements/effort.h"

namespace rigstep::index3 {

Shape shape(const AppliedEffort& effort, const Curvatures&) {
  Shape shape;
  shape.bodies = {effort.first, effort.second};
  shape.follows_coordinates = true;
  return shape;
}

bool slopes_change(const AppliedEffort&) { return false; }

ElementReading apply(const AppliedEffort& effort, const Curvatures& curvatures, const Surroundings& at,
                     const Loads& loads) noexcept {
  const Coordinate x = followed_coordinate(effort.coordinate, effort.first, effort.second, at);
  return apply_scalar(effort.first, effort.second, x, x.value, evaluate(effort.function, curvatures, at.time).value,
                      loads);
}

}  // namespace rigstep::index3
