// Joints, couplings and drivers of a mechanism file.
#include <string>
#include <utility>

#include "proto/load_parts.h"

namespace rigstep::config {

JointType joint_type(wire::JointType type) {
  switch (type) {
    case wire::SPHERICAL:
      return JointType::spherical;
    case wire::REVOLUTE:
      return JointType::revolute;
    case wire::PRISMATIC:
      return JointType::prismatic;
    case wire::CYLINDRICAL:
      return JointType::cylindrical;
    case wire::UNIVERSAL:
      return JointType::universal;
    case wire::FIXED:
      return JointType::fixed;
    case wire::POINT_ON_POINT:
      return JointType::point_on_point;
    case wire::POINT_ON_LINE:
      return JointType::point_on_line;
    case wire::PERPENDICULAR_AXES:
      return JointType::perpendicular_axes;
    case wire::PARALLEL_AXES:
      return JointType::parallel_axes;
    case wire::PLANAR:
      return JointType::planar;
    case wire::GIMBAL:
      return JointType::gimbal;
    case wire::SCREW:
      return JointType::screw;
    case wire::POINT_ON_PLANE:
      return JointType::point_on_plane;
    case wire::DISTANCE:
      return JointType::distance;
    case wire::FLOATING:
      return JointType::floating;
    default:
      throw MechanismError("type", "is missing", "write e.g. `type: REVOLUTE`");
  }
}

namespace {

std::string in_capitals(Freedom freedom) {
  std::string text(to_string(freedom));
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

}  // namespace

Freedom freedom(wire::Freedom written, const std::string& joint, const wire::Mechanism& file, const char* field) {
  switch (written) {
    case wire::DISPLACEMENT:
      return Freedom::displacement;
    case wire::ANGLE:
      return Freedom::angle;
    case wire::FIRST_ANGLE:
      return Freedom::first_angle;
    case wire::SECOND_ANGLE:
      return Freedom::second_angle;
    case wire::THIRD_ANGLE:
      return Freedom::third_angle;
    case wire::DISPLACEMENT_X:
      return Freedom::displacement_x;
    case wire::DISPLACEMENT_Y:
      return Freedom::displacement_y;
    case wire::DISPLACEMENT_Z:
      return Freedom::displacement_z;
    default:
      break;
  }
  for (const wire::Joint& candidate : file.joint()) {
    if (candidate.name() != joint) continue;
    const auto open = freedoms(joint_type(candidate.type()));
    if (open.size() > 1)
      throw MechanismError(
          field,
          "is missing and joint \"" + joint + "\" has " + (open.size() == 2 ? "two" : std::to_string(open.size())),
          "write `" + std::string(field) + ": " + in_capitals(open[0]) + "` or another of them");
    if (!open.empty()) return open[0];
  }
  return Freedom::angle;  // the builder says what is wrong with the joint
}

namespace {

void require_own_fields(const wire::Joint& in, JointType type) {
  if (in.lead() != 0.0 && type != JointType::screw)
    throw MechanismError("lead", "belongs to a screw", "leave it out, or write `type: SCREW`");
  if (in.length() == 0.0) return;
  if (type != JointType::distance)
    throw MechanismError("length", "belongs to a distance", "leave it out, or write `type: DISTANCE`");
  if (in.has_at_start())
    throw MechanismError("length", "is that of the start pose beside at_start",
                         "leave it out, or place the joint by in_first and in_second");
}

MechanismBuilder::JointAtStart at_start(const wire::Joint& in, JointType type) {
  const wire::JointAtStart& at = in.at_start();
  return {in.name(),
          type,
          in.first(),
          in.second(),
          vector(at.point()),
          vector(at.axis()),
          vector(at.second_axis()),
          at.coordinate(),
          at.second_coordinate(),
          vector(at.normal()),
          vector(at.second_point()),
          in.lead()};
}

// A joint that the file gives in the frame of a body.
void place_in_world(MechanismBuilder::JointAtStart& joint, const std::string& body, const MechanismBuilder& builder) {
  for (Vec3* point : {&joint.point, &joint.second_point})
    *point = builder.point_in_world(body, *point, "at_start.relative_to");
  for (Vec3* direction : {&joint.axis, &joint.second_axis, &joint.normal})
    *direction = builder.direction_in_world(body, *direction, "at_start.relative_to");
}

}  // namespace

void add(const wire::Joint& in, const wire::Mechanism&, MechanismBuilder& builder) {
  const JointType type = joint_type(in.type());
  require_own_fields(in, type);
  const bool in_bodies = in.has_in_first() || in.has_in_second();
  if (in.has_at_start() == in_bodies)
    throw MechanismError("at_start", in_bodies ? "stands beside in_first or in_second" : "is missing",
                         "place the joint by at_start alone, or by in_first and in_second");
  if (in.has_at_start()) {
    MechanismBuilder::JointAtStart joint = at_start(in, type);
    if (!in.at_start().relative_to().empty()) place_in_world(joint, in.at_start().relative_to(), builder);
    builder.add_joint(joint);
    return;
  }
  if (!in.has_in_first() || !in.has_in_second())
    throw MechanismError(in.has_in_first() ? "in_second" : "in_first", "is missing", "describe both sides");
  builder.add_joint(in.name(), type, in.first(), in.second(), joint_side(in.in_first()), joint_side(in.in_second()),
                    type == JointType::screw ? in.lead() : in.length());
}

void add(const wire::Coupling& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  Coupling coupling;
  coupling.name = in.name();
  coupling.ratio = in.ratio();
  builder.add_coupling(coupling, in.first_joint(), freedom(in.first_freedom(), in.first_joint(), file, "first_freedom"),
                       in.second_joint(), freedom(in.second_freedom(), in.second_joint(), file, "second_freedom"));
}

TimeFunction time_function(const wire::Harmonic& in) {
  return harmonic(in.constant(), in.amplitude(), in.angular_frequency(), in.phase());
}

TimeFunction time_function(const wire::Polynomial& in) {
  return polynomial({in.coefficient().begin(), in.coefficient().end()});
}

TimeFunction time_function(const wire::Table& in) {
  return table({in.time().begin(), in.time().end()}, {in.value().begin(), in.value().end()});
}

namespace {

void follow_input(const wire::FromInput& in, Driver& driver) {
  using From = Driver::FromInput;
  driver.from_input = in.has_position_only() ? From::filtered : From::motion;
  driver.time_constant = in.position_only().time_constant();
}

}  // namespace

void add(const wire::Driver& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  Driver driver;
  driver.name = in.name();
  switch (in.motion_case()) {
    case wire::Driver::kHarmonic:
      driver.function = time_function(in.harmonic());
      break;
    case wire::Driver::kPolynomial:
      driver.function = time_function(in.polynomial());
      break;
    case wire::Driver::kTable:
      driver.function = time_function(in.table());
      break;
    case wire::Driver::kInput:
      follow_input(in.input(), driver);
      break;
    case wire::Driver::kSum:
      driver.function = sum_of(in.sum());
      if (in.sum().has_input()) follow_input(in.sum().input(), driver);
      break;
    default:
      throw MechanismError("polynomial", "is missing", "write harmonic, polynomial, table, input or sum");
  }
  builder.add_driver(std::move(driver), in.joint(), freedom(in.freedom(), in.joint(), file));
}

}  // namespace rigstep::config
