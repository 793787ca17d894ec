#include "core/mechanism/elements/drag.h"

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

namespace {

using checks::require_finite;
using checks::require_not_negative;

}  // namespace

void check_numbers(const Drag& drag) {
  require_finite(drag.point_b, "point");
  require_not_negative(drag.density, "density");
  require_not_negative(drag.drag_area, "drag_area");
  require_finite(drag.wind_0, "wind");
}

std::span<const Number<Drag>> numbers(const Drag&) {
  static constexpr Number<Drag> kNumbers[] = {
      {"drag_area", unit_of("m^2"), Changes::tunable, member<Drag, &Drag::drag_area>},
      {"density", unit_of("kg/m^3"), Changes::tunable, member<Drag, &Drag::density>},
      {"wind.x", unit_of("m/s"), Changes::tunable, component<Drag, &Drag::wind_0, 0>},
      {"wind.y", unit_of("m/s"), Changes::tunable, component<Drag, &Drag::wind_0, 1>},
      {"wind.z", unit_of("m/s"), Changes::tunable, component<Drag, &Drag::wind_0, 2>},
      {"point.x", unit_of("m"), Changes::fixed, component<Drag, &Drag::point_b, 0>},
      {"point.y", unit_of("m"), Changes::fixed, component<Drag, &Drag::point_b, 1>},
      {"point.z", unit_of("m"), Changes::fixed, component<Drag, &Drag::point_b, 2>},
  };
  return kNumbers;
}

void connect(Drag& drag, MechanismBuilder& builder, const std::string& body) {
  drag.body = require_moving(builder.find_body(body, "body"), "drag");
  check_numbers(drag);
}

void add(ContentHash& hash, const Drag& drag) {
  hash.add(drag.name);
  hash.integers({drag.body});
  hash.add(drag.point_b);
  hash.numbers({drag.density, drag.drag_area});
  hash.add(drag.wind_0);
}

std::vector<Channel> channels(const Drag&, const Mechanism&) {
  return {{".fx", "N"}, {".fy", "N"}, {".fz", "N"}, {".speed", "m/s"}};
}

}  // namespace rigstep
