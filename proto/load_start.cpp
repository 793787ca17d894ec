// What a mechanism file holds at the start.
#include "proto/load_parts.h"

namespace rigstep::config {
namespace {

struct Coordinate {
  Freedom freedom;
  double value;
};

std::optional<Coordinate> coordinate(const wire::HeldAtStart& in) {
  using Start = wire::HeldAtStart;
  switch (in.coordinate_case()) {
    case Start::kDisplacement:
      return Coordinate{Freedom::displacement, in.displacement()};
    case Start::kAngle:
      return Coordinate{Freedom::angle, in.angle()};
    case Start::kFirstAngle:
      return Coordinate{Freedom::first_angle, in.first_angle()};
    case Start::kSecondAngle:
      return Coordinate{Freedom::second_angle, in.second_angle()};
    case Start::kThirdAngle:
      return Coordinate{Freedom::third_angle, in.third_angle()};
    case Start::kDisplacementX:
      return Coordinate{Freedom::displacement_x, in.displacement_x()};
    case Start::kDisplacementY:
      return Coordinate{Freedom::displacement_y, in.displacement_y()};
    case Start::kDisplacementZ:
      return Coordinate{Freedom::displacement_z, in.displacement_z()};
    case Start::kFreedom:
    case Start::COORDINATE_NOT_SET:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Freedom> held_freedom(const wire::HeldAtStart& in, const wire::Mechanism& file) {
  if (const auto held = coordinate(in)) return held->freedom;
  if (in.has_rate() || in.has_freedom()) return freedom(in.freedom(), in.joint(), file);
  return std::nullopt;
}

void add(const wire::HeldAtStart& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  const bool has_more = in.has_rate() || in.coordinate_case() != wire::HeldAtStart::COORDINATE_NOT_SET;
  if (in.holds_case() == wire::HeldAtStart::HOLDS_NOT_SET)
    throw MechanismError("joint", "is missing", "name the joint or the body that is held");
  if (in.has_body() && has_more)
    throw MechanismError("body", "is held beside a coordinate", "write one `start` for the body and one for the joint");
  if (in.has_body()) return builder.hold_body(in.body());
  if (in.has_freedom() && !in.has_rate())
    throw MechanismError("freedom", "stands without a value", "write the coordinate, e.g. `angle: 0.1`, or a rate");
  MechanismBuilder::Start start;
  start.joint = in.joint();
  start.freedom = held_freedom(in, file);
  if (const auto held = coordinate(in)) start.value = held->value;
  if (in.has_rate()) start.rate = in.rate();
  for (int k = 0; k < file.start_size(); ++k)
    if (&file.start(k) == &in) start.place = "start[" + std::to_string(k) + "]";
  builder.hold_joint(start);
}

}  // namespace rigstep::config
