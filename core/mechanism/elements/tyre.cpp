#include "core/mechanism/elements/tyre.h"

#include <cmath>

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

namespace {

using checks::number;
using checks::require_finite;
using checks::require_not_negative;
using checks::require_positive;

void check_curve(const SlipCurve& curve, const std::string& field) {
  require_positive(curve.B, (field + ".b").c_str());
  if (!(curve.C > 0.0 && curve.C <= 2.0))
    throw MechanismError(field + ".c", "is " + number(curve.C), "give a shape factor above 0, at most 2");
  if (!(curve.E <= 1.0) || !std::isfinite(curve.E))
    throw MechanismError(field + ".e", "is " + number(curve.E), "give a curvature factor of at most 1");
  require_not_negative(curve.friction, (field + ".friction").c_str());
}

}  // namespace

void check_numbers(const Tyre& tyre) {
  require_finite(tyre.centre_b, "centre");
  require_positive(tyre.radius, "radius");
  require_positive(tyre.stiffness, "stiffness");
  require_not_negative(tyre.damping, "damping");
  require_positive(tyre.low_speed, "low_speed");
  require_finite(tyre.road_point_0, "road_point");
  check_curve(tyre.longitudinal, "longitudinal");
  check_curve(tyre.lateral, "lateral");
}

std::span<const Number<Tyre>> numbers(const Tyre&) {
  static constexpr Number<Tyre> kNumbers[] = {
      {"stiffness", unit_of("N/m"), Changes::tunable, member<Tyre, &Tyre::stiffness>},
      {"damping", unit_of("N s/m"), Changes::tunable, member<Tyre, &Tyre::damping>},
      {"low_speed", unit_of("m/s"), Changes::tunable, member<Tyre, &Tyre::low_speed>},
      {"longitudinal.b", unit_of("-"), Changes::tunable, nested<Tyre, &Tyre::longitudinal, &SlipCurve::B>},
      {"longitudinal.c", unit_of("-"), Changes::tunable, nested<Tyre, &Tyre::longitudinal, &SlipCurve::C>},
      {"longitudinal.e", unit_of("-"), Changes::tunable, nested<Tyre, &Tyre::longitudinal, &SlipCurve::E>},
      {"longitudinal.friction", unit_of("-"), Changes::tunable,
       nested<Tyre, &Tyre::longitudinal, &SlipCurve::friction>},
      {"lateral.b", unit_of("-"), Changes::tunable, nested<Tyre, &Tyre::lateral, &SlipCurve::B>},
      {"lateral.c", unit_of("-"), Changes::tunable, nested<Tyre, &Tyre::lateral, &SlipCurve::C>},
      {"lateral.e", unit_of("-"), Changes::tunable, nested<Tyre, &Tyre::lateral, &SlipCurve::E>},
      {"lateral.friction", unit_of("-"), Changes::tunable, nested<Tyre, &Tyre::lateral, &SlipCurve::friction>},
      {"radius", unit_of("m"), Changes::fixed, member<Tyre, &Tyre::radius>},
      {"centre.x", unit_of("m"), Changes::fixed, component<Tyre, &Tyre::centre_b, 0>},
      {"centre.y", unit_of("m"), Changes::fixed, component<Tyre, &Tyre::centre_b, 1>},
      {"centre.z", unit_of("m"), Changes::fixed, component<Tyre, &Tyre::centre_b, 2>},
      {"road_point.x", unit_of("m"), Changes::fixed, component<Tyre, &Tyre::road_point_0, 0>},
      {"road_point.y", unit_of("m"), Changes::fixed, component<Tyre, &Tyre::road_point_0, 1>},
      {"road_point.z", unit_of("m"), Changes::fixed, component<Tyre, &Tyre::road_point_0, 2>},
  };
  return kNumbers;
}

void connect(Tyre& tyre, MechanismBuilder& builder, const std::string& body, const std::string& height_input,
             const std::string& height_rate_input) {
  tyre.body = require_moving(builder.find_body(body, "body"), "a tyre");
  tyre.axis_b = checks::unit(tyre.axis_b, "axis");
  tyre.road_normal_0 = checks::unit(tyre.road_normal_0, "road_normal");
  check_numbers(tyre);
  tyre.height_input = builder.find_input(height_input, "height_input");
  tyre.height_rate_input = builder.find_input(height_rate_input, "height_rate_input");
}

void add(ContentHash& hash, const Tyre& tyre) {
  hash.add(tyre.name);
  hash.integers({tyre.body, tyre.height_input, tyre.height_rate_input});
  for (const Vec3* v : {&tyre.centre_b, &tyre.axis_b, &tyre.road_point_0, &tyre.road_normal_0}) hash.add(*v);
  hash.numbers({tyre.radius, tyre.stiffness, tyre.damping, tyre.low_speed});
  for (const SlipCurve* c : {&tyre.longitudinal, &tyre.lateral}) hash.numbers({c->B, c->C, c->E, c->friction});
}

std::vector<Channel> channels(const Tyre&, const Mechanism&) {
  return {{".fx", "N"}, {".fy", "N"}, {".fz", "N"}, {".slip", "-"}, {".slip_angle", "rad"}, {".deflection", "m"}};
}

}  // namespace rigstep
