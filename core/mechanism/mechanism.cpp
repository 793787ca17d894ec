#include "core/mechanism/mechanism.h"

#include "core/mechanism/checks.h"

namespace rigstep {

using checks::quoted;

MechanismError::MechanismError(std::string field_, std::string problem_, std::string remedy_)
    : Error(field_ + ": " + problem_ + ": " + remedy_),
      field(std::move(field_)),
      problem(std::move(problem_)),
      remedy(std::move(remedy_)) {}

std::string_view Mechanism::body_name(int body) const {
  return body == kGround ? std::string_view("ground") : std::string_view(bodies_[body].name);
}

std::string Mechanism::constraint_name(int constraint) const {
  const int coupling = constraint - static_cast<int>(joints_.size());
  const int driver = coupling - static_cast<int>(couplings_.size());
  if (coupling < 0) return "joint " + quoted(joints_[constraint].name);
  if (driver < 0) return "coupling " + quoted(couplings_[coupling].name);
  return "driver " + quoted(drivers_[driver].name);
}

std::vector<Freedom> freedoms(JointType type) {
  switch (type) {
    case JointType::revolute:
    case JointType::parallel_axes:
      return {Freedom::angle};
    case JointType::prismatic:
    case JointType::point_on_line:
      return {Freedom::displacement};
    case JointType::cylindrical:
      return {Freedom::displacement, Freedom::angle};
    case JointType::universal:
      return {Freedom::first_angle, Freedom::second_angle};
    case JointType::planar:
      return {Freedom::displacement_x, Freedom::displacement_y, Freedom::angle};
    case JointType::gimbal:
      return {Freedom::first_angle, Freedom::second_angle, Freedom::third_angle};
    case JointType::screw:
      return {Freedom::displacement, Freedom::angle};
    case JointType::point_on_plane:
      return {Freedom::displacement_x, Freedom::displacement_y};
    case JointType::floating:
      return {Freedom::displacement_x, Freedom::displacement_y, Freedom::displacement_z,
              Freedom::first_angle,    Freedom::second_angle,   Freedom::third_angle};
    case JointType::spherical:
    case JointType::fixed:
    case JointType::point_on_point:
    case JointType::perpendicular_axes:
    case JointType::distance:
      return {};
  }
  return {};
}

std::string_view to_string(JointType type) {
  switch (type) {
    case JointType::spherical:
      return "spherical";
    case JointType::revolute:
      return "revolute";
    case JointType::prismatic:
      return "prismatic";
    case JointType::cylindrical:
      return "cylindrical";
    case JointType::universal:
      return "universal";
    case JointType::fixed:
      return "fixed";
    case JointType::point_on_point:
      return "point on point";
    case JointType::point_on_line:
      return "point on line";
    case JointType::perpendicular_axes:
      return "perpendicular axes";
    case JointType::parallel_axes:
      return "parallel axes";
    case JointType::planar:
      return "planar";
    case JointType::gimbal:
      return "gimbal";
    case JointType::screw:
      return "screw";
    case JointType::point_on_plane:
      return "point on plane";
    case JointType::distance:
      return "distance";
    case JointType::floating:
      return "floating";
  }
  return "unknown";
}

std::string_view to_string(Freedom freedom) {
  switch (freedom) {
    case Freedom::displacement:
      return "displacement";
    case Freedom::angle:
      return "angle";
    case Freedom::first_angle:
      return "first_angle";
    case Freedom::second_angle:
      return "second_angle";
    case Freedom::third_angle:
      return "third_angle";
    case Freedom::displacement_x:
      return "displacement_x";
    case Freedom::displacement_y:
      return "displacement_y";
    case Freedom::displacement_z:
      return "displacement_z";
  }
  return "unknown";
}

}  // namespace rigstep
