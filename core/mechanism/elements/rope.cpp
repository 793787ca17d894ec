#include "core/mechanism/elements/rope.h"

#include <algorithm>

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

void connect(Rope& rope, MechanismBuilder& builder, const std::vector<std::string>& bodies,
             const std::string& pay_out_input) {
  if (rope.points.size() < 2)
    throw MechanismError("point", "is given " + std::to_string(rope.points.size()) + " times",
                         "a rope leads through two points at least");
  for (std::size_t k = 0; k < rope.points.size(); ++k) {
    const std::string field = "point[" + std::to_string(k) + "]";
    rope.points[k].body = builder.find_body(bodies[k], (field + ".body").c_str());
    checks::require_finite(rope.points[k].point_b, (field + ".point").c_str());
  }
  const auto is_elsewhere = [&](const Rope::Point& point) { return point.body != rope.points.front().body; };
  if (std::none_of(rope.points.begin(), rope.points.end(), is_elsewhere))
    throw MechanismError("point", "stands on the same body each time", "lead the rope to another body");
  if (!(rope.length >= Rope::kShortest) || !std::isfinite(rope.length))
    throw MechanismError("length", "is " + checks::number(rope.length) + " m",
                         "give a finite length of " + checks::number(Rope::kShortest) + " m at least");
  checks::require_positive(rope.stiffness, "stiffness");
  checks::require_not_negative(rope.damping, "damping");
  rope.pay_out_input = builder.find_input(pay_out_input, "pay_out_input");
}

void add(ContentHash& hash, const Rope& rope) {
  hash.add(rope.name);
  hash.integers({static_cast<int>(rope.points.size()), rope.pay_out_input});
  for (const Rope::Point& point : rope.points) {
    hash.integers({point.body});
    hash.add(point.point_b);
  }
  hash.numbers({rope.length, rope.stiffness, rope.damping});
}

std::vector<Channel> channels(const Rope&, const Mechanism&) { return scalar_channels(true); }

}  // namespace rigstep
