#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/numbers.h"
#include "core/mechanism/orientation.h"

// Joints, their freedoms, and points and directions given at the start pose.
namespace rigstep {

namespace {

using checks::kUnitTolerance;
using checks::number;
using checks::quoted;
using checks::require_finite;
using checks::require_new_name;
using checks::unit;

// Any unit vector perpendicular to a unit vector: crosses it with the world axis that is farthest from it.
Vec3 any_normal(const Vec3& axis) {
  Eigen::Index smallest = 0;
  axis.cwiseAbs().minCoeff(&smallest);
  return axis.cross(Vec3::Unit(smallest)).normalized();
}

// `normal` as a unit vector, which must be perpendicular to a unit `axis`.
Vec3 normal_to(const Vec3& axis, const Vec3& normal, const std::string& field) {
  const Vec3 n = unit(normal, (field + ".normal").c_str());
  if (std::abs(axis.dot(n)) > kUnitTolerance)
    throw MechanismError(field + ".normal", "is not perpendicular to axis (cosine " + number(axis.dot(n)) + ")",
                         "give a direction perpendicular to axis");
  return (n - axis * axis.dot(n)).normalized();
}

Mat3 axes_from(const Vec3& axis, const Vec3& normal) {
  Mat3 axes;
  axes << normal, axis.cross(normal), axis;
  return axes;
}

bool has_axis(JointType type) {
  return type != JointType::spherical && type != JointType::point_on_point && type != JointType::distance;
}

// Three freedoms or more: too many for a coordinate at the start.
bool measures_from_start(JointType type) { return freedoms(type).size() > 2; }

bool has_second_axis(JointType type) { return type == JointType::universal || type == JointType::perpendicular_axes; }

Mat3 body_rotation(const Mechanism& m, int body) {
  return body == kGround ? Mat3::Identity() : axes_of(m.bodies()[body].orientation);
}

// A joint frame given in the world at the start pose, in body coordinates.
JointFrame into_body(const Mechanism& m, int body, const Vec3& point_0, const Mat3& axes_0) {
  const Mat3 A = body_rotation(m, body);
  const Vec3 r = body == kGround ? Vec3::Zero() : m.bodies()[body].position_0;
  return {A.transpose() * (point_0 - r), A.transpose() * axes_0};
}

}  // namespace

void MechanismBuilder::push_joint(Joint joint, double offset, double second_offset) {
  check_numbers(joint);
  if (joint.first == joint.second)
    throw MechanismError("second", "a joint stands between two different bodies",
                         "name another body than " + quoted(mechanism_.body_name(joint.first)));
  mechanism_.joints_.push_back(std::move(joint));
  coordinate_offsets_.emplace_back(offset, second_offset);
}

void MechanismBuilder::add_joint(const JointAtStart& joint) {
  check_name(joint.name, "joint");
  require_new_name(mechanism_.joints_, joint.name, "joint");
  const int first = find_body(joint.first, "first");
  const int second = find_body(joint.second, "second");
  require_finite(joint.point, "at_start.point");
  require_finite(joint.coordinate_at_start, "at_start.coordinate");
  require_finite(joint.second_coordinate_at_start, "at_start.second_coordinate");
  require_finite(joint.second_point, "at_start.second_point");
  if (measures_from_start(joint.type) && (joint.coordinate_at_start != 0.0 || joint.second_coordinate_at_start != 0.0))
    throw MechanismError("at_start.coordinate",
                         "is not zero, but a " + std::string(to_string(joint.type)) + " joint measures from the start",
                         "leave it out, or place the joint by in_first and in_second");
  if (joint.type == JointType::screw && joint.second_coordinate_at_start != 0.0)
    throw MechanismError("at_start.second_coordinate", "is the angle of a screw, which follows from its displacement",
                         "leave it out");
  Mat3 first_axes = Mat3::Identity(), second_axes = Mat3::Identity();
  if (has_second_axis(joint.type)) {
    const Vec3 axis = unit(joint.axis, "at_start.axis");
    const Vec3 second_axis = unit(joint.second_axis, "at_start.second_axis");
    if (std::abs(axis.dot(second_axis)) > kUnitTolerance)
      throw MechanismError("at_start.second_axis",
                           "is not perpendicular to axis (cosine " + number(axis.dot(second_axis)) + ")",
                           "the two axes of this joint are perpendicular");
    first_axes = axes_from(axis, second_axis);  // the second axis is the zero direction of the first angle
    second_axes = axes_from(second_axis, axis);
  } else if (has_axis(joint.type) && joint.type != JointType::fixed) {
    const Vec3 axis = unit(joint.axis, "at_start.axis");
    require_finite(joint.normal, "at_start.normal");
    first_axes = second_axes =
        axes_from(axis, joint.normal.isZero(0.0) ? any_normal(axis) : normal_to(axis, joint.normal, "at_start"));
  }
  Joint made{
      joint.name,
      joint.type,
      first,
      second,
      into_body(mechanism_, first, joint.point, first_axes),
      into_body(mechanism_, second, joint.type == JointType::distance ? joint.second_point : joint.point, second_axes)};
  double second_offset = joint.second_coordinate_at_start;
  if (joint.type == JointType::distance) made.length = (joint.second_point - joint.point).norm();
  if (joint.type == JointType::screw) {
    made.lead = joint.lead;
    second_offset = joint.coordinate_at_start * (2.0 * 3.14159265358979323846 / joint.lead);
  }
  push_joint(std::move(made), joint.coordinate_at_start, second_offset);
}

void MechanismBuilder::add_joint(std::string name, JointType type, const std::string& first, const std::string& second,
                                 const SideInBody& in_first, const SideInBody& in_second, double size) {
  check_name(name, "joint");
  require_new_name(mechanism_.joints_, name, "joint");
  Joint joint{std::move(name), type, find_body(first, "first"), find_body(second, "second"), {}, {}};
  joint.lead = type == JointType::screw ? size : 0.0;
  joint.length = type == JointType::distance ? size : 0.0;
  const bool measures_angle =
      !freedoms(type).empty() && type != JointType::point_on_line && type != JointType::point_on_plane;
  const bool needs_normal = measures_angle || type == JointType::fixed;
  const auto side = [&](const SideInBody& in, const std::string& field) {
    require_finite(in.point, (field + ".point").c_str());
    JointFrame frame{in.point, Mat3::Identity()};
    if (!has_axis(type)) return frame;
    const Vec3 axis = unit(in.axis, (field + ".axis").c_str());
    require_finite(in.normal, (field + ".normal").c_str());
    if (in.normal.isZero(0.0)) {
      if (needs_normal || (type == JointType::point_on_plane && field == "in_first"))
        throw MechanismError(field + ".normal", "is missing", "give the direction from which the angle is measured");
      frame.axes_b = axes_from(axis, any_normal(axis));
      return frame;
    }
    frame.axes_b = axes_from(axis, normal_to(axis, in.normal, field));
    return frame;
  };
  joint.in_first = side(in_first, "in_first");
  joint.in_second = side(in_second, "in_second");
  push_joint(std::move(joint), 0.0, 0.0);  // coordinates are what the frames measure
}

int MechanismBuilder::require_freedom(int joint, Freedom freedom, const char* field) const {
  const Joint& j = mechanism_.joints_[joint];
  const std::vector<Freedom> open = freedoms(j.type);
  const auto found = std::find(open.begin(), open.end(), freedom);
  if (found == open.end()) {
    std::string list;
    for (const Freedom f : open) list += (list.empty() ? "" : ", ") + std::string(to_string(f));
    throw MechanismError(
        field, "a " + std::string(to_string(j.type)) + " joint has no freedom " + std::string(to_string(freedom)),
        open.empty() ? "use a joint with a scalar freedom, or act on its bodies" : "use: " + list);
  }
  return static_cast<int>(found - open.begin());
}

int MechanismBuilder::follow_coordinate(int joint, Freedom freedom) {
  const int place = require_freedom(joint, freedom, "freedom");
  for (std::size_t i = 0; i < mechanism_.coordinates_.size(); ++i)
    if (mechanism_.coordinates_[i].joint == joint && mechanism_.coordinates_[i].freedom == freedom)
      return static_cast<int>(i);
  const auto& [first_offset, second_offset] = coordinate_offsets_[joint];
  mechanism_.coordinates_.push_back({joint, freedom, place == 0 ? first_offset : place == 1 ? second_offset : 0.0});
  return static_cast<int>(mechanism_.coordinates_.size()) - 1;
}

Vec3 MechanismBuilder::point_in_body(const std::string& body, const Vec3& point_0, const char* field) const {
  return into_body(mechanism_, find_body(body, field), point_0, Mat3::Identity()).point_b;
}

Vec3 MechanismBuilder::direction_in_body(const std::string& body, const Vec3& direction_0, const char* field) const {
  return body_rotation(mechanism_, find_body(body, field)).transpose() * direction_0;
}

Vec3 MechanismBuilder::point_in_world(const std::string& body, const Vec3& point_b, const char* field) const {
  const int i = find_body(body, field);
  return i == kGround ? point_b : mechanism_.bodies_[i].position_0 + body_rotation(mechanism_, i) * point_b;
}

Vec3 MechanismBuilder::direction_in_world(const std::string& body, const Vec3& direction_b, const char* field) const {
  return body_rotation(mechanism_, find_body(body, field)) * direction_b;
}

EulerParameters MechanismBuilder::orientation_in_world(const std::string& body, const char* field) const {
  const int i = find_body(body, field);
  return i == kGround ? EulerParameters{1.0, 0.0, 0.0, 0.0} : mechanism_.bodies_[i].orientation;
}

JointFrame MechanismBuilder::frame_in_body(int body, const Vec3& point_0, const Mat3& axes_0) const {
  return into_body(mechanism_, body, point_0, axes_0);
}

}  // namespace rigstep
