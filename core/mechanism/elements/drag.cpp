#include "core/mechanism/elements/drag.h"

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

namespace {

using checks::require_finite;
using checks::require_not_negative;

}  // namespace

void connect(Drag& drag, MechanismBuilder& builder, const std::string& body) {
  drag.body = require_moving(builder.find_body(body, "body"), "drag");
  require_finite(drag.point_b, "point");
  require_not_negative(drag.density, "density");
  require_not_negative(drag.drag_area, "drag_area");
  require_finite(drag.wind_0, "wind");
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
