#include "core/mechanism/elements/rope.h"

#include <algorithm>

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

void check_numbers(const Rope& rope) {
  if (!(rope.length >= Rope::kShortest) || !std::isfinite(rope.length))
    throw MechanismError("length", "is " + checks::number(rope.length) + " m",
                         "give a finite length of " + checks::number(Rope::kShortest) + " m at least");
  checks::require_positive(rope.stiffness, "stiffness");
  checks::require_not_negative(rope.damping, "damping");
  for (std::size_t k = 0; k < rope.points.size(); ++k)
    checks::require_finite(rope.points[k].point_b, ("point[" + std::to_string(k) + "].point").c_str());
}

namespace {

template <int kComponent>
double* point_component(Rope& rope, int index) {
  return &rope.points[static_cast<std::size_t>(index)].point_b[kComponent];
}
int points(const Rope& rope) { return static_cast<int>(rope.points.size()); }

}  // namespace

std::span<const Number<Rope>> numbers(const Rope&) {
  static constexpr Number<Rope> kNumbers[] = {
      {"length", unit_of("m"), Changes::tunable, member<Rope, &Rope::length>},
      {"stiffness", unit_of("N"), Changes::tunable, member<Rope, &Rope::stiffness>},
      {"damping", unit_of("N s"), Changes::tunable, member<Rope, &Rope::damping>},
      {"point[].x", unit_of("m"), Changes::fixed, point_component<0>, points},
      {"point[].y", unit_of("m"), Changes::fixed, point_component<1>, points},
      {"point[].z", unit_of("m"), Changes::fixed, point_component<2>, points},
  };
  return kNumbers;
}

void connect(Rope& rope, MechanismBuilder& builder, const std::vector<std::string>& bodies,
             const std::string& pay_out_input) {
  if (rope.points.size() < 2)
    throw MechanismError("point", "is given " + std::to_string(rope.points.size()) + " times",
                         "a rope leads through two points at least");
  for (std::size_t k = 0; k < rope.points.size(); ++k) {
    const std::string field = "point[" + std::to_string(k) + "]";
    rope.points[k].body = builder.find_body(bodies[k], (field + ".body").c_str());
  }
  const auto is_elsewhere = [&](const Rope::Point& point) { return point.body != rope.points.front().body; };
  if (std::none_of(rope.points.begin(), rope.points.end(), is_elsewhere))
    throw MechanismError("point", "stands on the same body each time", "lead the rope to another body");
  check_numbers(rope);
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
