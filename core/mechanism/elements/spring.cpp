#include "core/mechanism/elements/spring.h"

#include <cmath>

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

namespace {

using checks::number;
using checks::require_finite;

}  // namespace

void check_numbers(const Spring& spring) {
  if (!(spring.stiffness >= 0.0) || !std::isfinite(spring.stiffness))
    throw MechanismError("stiffness", "is " + number(spring.stiffness), "give a finite number, zero or above");
  if (!(spring.damping >= 0.0) || !std::isfinite(spring.damping))
    throw MechanismError("damping", "is " + number(spring.damping), "give a finite number, zero or above");
  require_finite(spring.rest, "rest");
  require_finite(spring.preload, "preload");
  require_finite(spring.first_point_b, "first_point");
  require_finite(spring.second_point_b, "second_point");
  checks::check_characteristic(spring.stiffness_table, "stiffness_table", "deflection");
  checks::check_characteristic(spring.damping_table, "damping_table", "rate");
}

std::span<const Number<Spring>> numbers(const Spring&) {
  static constexpr Number<Spring> kNumbers[] = {
      {"stiffness", kStiffness, Changes::tunable, member<Spring, &Spring::stiffness>},
      {"damping", kDamping, Changes::tunable, member<Spring, &Spring::damping>},
      {"rest", kLengthOrAngle, Changes::tunable, member<Spring, &Spring::rest>},
      {"preload", kEffort, Changes::tunable, member<Spring, &Spring::preload>},
      {"first_point.x", unit_of("m"), Changes::fixed, component<Spring, &Spring::first_point_b, 0>},
      {"first_point.y", unit_of("m"), Changes::fixed, component<Spring, &Spring::first_point_b, 1>},
      {"first_point.z", unit_of("m"), Changes::fixed, component<Spring, &Spring::first_point_b, 2>},
      {"second_point.x", unit_of("m"), Changes::fixed, component<Spring, &Spring::second_point_b, 0>},
      {"second_point.y", unit_of("m"), Changes::fixed, component<Spring, &Spring::second_point_b, 1>},
      {"second_point.z", unit_of("m"), Changes::fixed, component<Spring, &Spring::second_point_b, 2>},
  };
  return kNumbers;
}

void connect(Spring& spring, MechanismBuilder& builder, const std::string& first, const std::string& second) {
  check_numbers(spring);
  spring.first = builder.find_body(first, "first");
  spring.second = builder.find_body(second, "second");
  if (spring.first == spring.second)
    throw MechanismError("second", "a spring stands between two different bodies", "name another body");
  if (spring.kind == Spring::Kind::along_direction) spring.direction_0 = checks::unit(spring.direction_0, "direction");
}

void connect(Spring& spring, MechanismBuilder& builder, const std::string& joint, Freedom freedom) {
  check_numbers(spring);
  spring.kind = Spring::Kind::in_joint;
  const AlongFreedom along = builder.along(joint, freedom);
  spring.coordinate = along.coordinate;
  spring.first = along.first;
  spring.second = along.second;
}

void add(ContentHash& hash, const Spring& spring) {
  hash.add(spring.name);
  hash.add(spring.kind);
  hash.integers({spring.first, spring.second, spring.coordinate});
  for (const Vec3* v : {&spring.first_point_b, &spring.second_point_b, &spring.direction_0}) hash.add(*v);
  hash.numbers({spring.stiffness, spring.damping, spring.rest, spring.preload});
  add_characteristic(hash, spring.stiffness_table);
  add_characteristic(hash, spring.damping_table);
}

std::vector<Channel> channels(const Spring& spring, const Mechanism& mechanism) {
  return spring.kind == Spring::Kind::in_joint ? scalar_channels(mechanism, spring.coordinate) : scalar_channels(true);
}

}  // namespace rigstep
