#include "core/mechanism/elements/stop.h"

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

namespace {

using checks::number;
using checks::require_finite;

void check_limits(const Stop& stop) {
  checks::require_positive(stop.stiffness, "stiffness");
  checks::require_not_negative(stop.damping, "damping");
  if (std::isnan(stop.lower) || std::isnan(stop.upper) || (std::isinf(stop.lower) && std::isinf(stop.upper)))
    throw MechanismError("lower", "and upper are both missing", "give one of the limits at least");
  if (!(stop.lower < stop.upper))
    throw MechanismError("upper", "is " + number(stop.upper) + ", not above lower, " + number(stop.lower),
                         "give the larger limit as upper");
}

}  // namespace

void check_numbers(const Stop& stop) {
  check_limits(stop);
  require_finite(stop.first_point_b, "first_point");
  require_finite(stop.second_point_b, "second_point");
  if (stop.upper <= 0.0 && !stop.is_along_freedom())
    throw MechanismError("upper", "is " + number(stop.upper) + " m", "a distance is above 0");
}

std::span<const Number<Stop>> numbers(const Stop&) {
  static constexpr Number<Stop> kNumbers[] = {
      {"lower", kLengthOrAngle, Changes::tunable, member<Stop, &Stop::lower>},
      {"upper", kLengthOrAngle, Changes::tunable, member<Stop, &Stop::upper>},
      {"stiffness", kStiffness, Changes::tunable, member<Stop, &Stop::stiffness>},
      {"damping", UnitPair{"s/m", "s/rad"}, Changes::tunable, member<Stop, &Stop::damping>},
      {"first_point.x", unit_of("m"), Changes::fixed, component<Stop, &Stop::first_point_b, 0>},
      {"first_point.y", unit_of("m"), Changes::fixed, component<Stop, &Stop::first_point_b, 1>},
      {"first_point.z", unit_of("m"), Changes::fixed, component<Stop, &Stop::first_point_b, 2>},
      {"second_point.x", unit_of("m"), Changes::fixed, component<Stop, &Stop::second_point_b, 0>},
      {"second_point.y", unit_of("m"), Changes::fixed, component<Stop, &Stop::second_point_b, 1>},
      {"second_point.z", unit_of("m"), Changes::fixed, component<Stop, &Stop::second_point_b, 2>},
  };
  return kNumbers;
}

double hunt_crossley_damping(double restitution, double speed) {
  checks::require_positive(restitution, "restitution.coefficient");
  if (restitution > 1.0)
    throw MechanismError("restitution.coefficient", "is " + number(restitution), "give a number above 0, at most 1");
  checks::require_positive(speed, "restitution.at_speed");
  if (restitution == 1.0) return 0.0;
  double low = 0.0, high = 1.0 / restitution;  // what is left over is below 0 up to the root, above 0 beyond it
  for (double u = 0.5 * high; low < u && u < high; u = 0.5 * (low + high)) {
    const double left = std::log1p(u) - std::log1p(-u * restitution) - u * (1.0 + restitution);
    (left < 0.0 ? low : high) = u;
  }
  return 0.5 * (low + high) / speed;
}

void connect(Stop& stop, MechanismBuilder& builder, const std::string& first, const std::string& second) {
  check_numbers(stop);
  stop.first = builder.find_body(first, "first");
  stop.second = builder.find_body(second, "second");
  if (stop.first == stop.second)
    throw MechanismError("second", "a stop stands between two different bodies", "name another body");
}

void connect(Stop& stop, MechanismBuilder& builder, const std::string& joint, Freedom freedom) {
  check_limits(stop);
  const AlongFreedom along = builder.along(joint, freedom);
  stop.coordinate = along.coordinate;
  stop.first = along.first;
  stop.second = along.second;
}

void add(ContentHash& hash, const Stop& stop) {
  hash.add(stop.name);
  hash.integers({stop.coordinate, stop.first, stop.second});
  for (const Vec3* point : {&stop.first_point_b, &stop.second_point_b}) hash.add(*point);
  hash.numbers({stop.lower, stop.upper, stop.stiffness, stop.damping});
}

std::vector<Channel> channels(const Stop& stop, const Mechanism& mechanism) {
  return stop.is_along_freedom() ? scalar_channels(mechanism, stop.coordinate) : scalar_channels(true);
}

}  // namespace rigstep
