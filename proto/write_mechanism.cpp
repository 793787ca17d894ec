#include "proto/write_mechanism.h"

#include <google/protobuf/message.h>

#include <cmath>
#include <set>

#include "proto/load_parts.h"
#include "proto/text_source.h"

namespace rigstep::config {
namespace {

void set(const Vec3& from, wire::Vector& to) {
  to.set_x(from[0]);
  to.set_y(from[1]);
  to.set_z(from[2]);
}

Vec3 turned_about(const Vec3& axis, const Vec3& normal, double angle) {
  return std::cos(angle) * normal + std::sin(angle) * axis.cross(normal);
}

// The same joint as built into its bodies; what it measured at the start goes into its points and normals.
void build_in(const Joint& joint, wire::Joint& file) {
  if (!file.has_at_start()) return;
  const wire::JointAtStart at = file.at_start();
  file.clear_at_start();
  if (joint.type == JointType::distance) file.set_length(joint.length);
  Vec3 first_point = joint.in_first.point_b;
  Vec3 first_normal = joint.in_first.axes_b.col(0), second_normal = joint.in_second.axes_b.col(0);
  const Vec3 first_axis = joint.in_first.axes_b.col(2), second_axis = joint.in_second.axes_b.col(2);
  const auto open = freedoms(joint.type);
  for (std::size_t k = 0; k < open.size(); ++k) {
    double start = k == 0 ? at.coordinate() : k == 1 ? at.second_coordinate() : 0.0;
    if (joint.type == JointType::screw && k == 1) start = at.coordinate() * (2.0 * M_PI / joint.lead);
    if (open[k] == Freedom::displacement)
      first_point -= start * first_axis;
    else if (is_length(open[k]))
      first_point -= start * joint.in_first.axes_b.col(open[k] == Freedom::displacement_x ? 0 : 1);
    else if (open[k] == Freedom::second_angle)
      second_normal = turned_about(second_axis, second_normal, start);
    else
      first_normal = turned_about(first_axis, first_normal, -start);
  }
  set(first_point, *file.mutable_in_first()->mutable_point());
  set(first_axis, *file.mutable_in_first()->mutable_axis());
  set(first_normal, *file.mutable_in_first()->mutable_normal());
  set(joint.in_second.point_b, *file.mutable_in_second()->mutable_point());
  set(second_axis, *file.mutable_in_second()->mutable_axis());
  set(second_normal, *file.mutable_in_second()->mutable_normal());
}

// A bushing measures nothing at the start: its two frames are all.
void build_in(const Bushing& bushing, wire::Bushing& file) {
  if (!file.has_at_start()) return;
  file.clear_at_start();
  const auto write = [](const JointFrame& frame, wire::JointSide& side) {
    set(frame.point_b, *side.mutable_point());
    set(frame.axes_b.col(2), *side.mutable_axis());
    set(frame.axes_b.col(0), *side.mutable_normal());
  };
  write(bushing.in_first, *file.mutable_in_first());
  write(bushing.in_second, *file.mutable_in_second());
}

// The others keep what at_start does not give.
void build_in(const AppliedLoad& load, wire::Load& file) {
  if (file.at_start().has_point()) set(load.point_b, *file.mutable_point());
  if (file.at_start().has_force()) set(load.force, *file.mutable_force());
  if (file.at_start().has_torque()) set(load.torque, *file.mutable_torque());
  file.clear_at_start();
}

template <class Element, class Ends>
void build_in_ends(const Element& element, Ends& file) {
  if (file.at_start().has_first_point()) set(element.first_point_b, *file.mutable_first_point());
  if (file.at_start().has_second_point()) set(element.second_point_b, *file.mutable_second_point());
  file.clear_at_start();
}

void build_in(const Spring& spring, wire::Spring& file) {
  if (file.has_between_points()) build_in_ends(spring, *file.mutable_between_points());
  if (file.has_along_direction()) build_in_ends(spring, *file.mutable_along_direction());
}

void build_in(const Stop& stop, wire::Stop& file) {
  if (file.has_between_points()) build_in_ends(stop, *file.mutable_between_points());
}

void build_in(const Rope& rope, wire::Rope& file) {
  for (int k = 0; k < file.point_size(); ++k) {
    wire::RopePoint& point = *file.mutable_point(k);
    if (point.at_start().has_point()) set(rope.points[static_cast<std::size_t>(k)].point_b, *point.mutable_point());
    point.clear_at_start();
  }
}

template <class Load>
void build_in_direction(const Input& input, Load& file) {
  if (file.at_start().has_direction()) set(input.direction, *file.mutable_direction());
  file.clear_at_start();
}

void build_in(const Input& input, wire::Input& file) {
  if (file.body_force().at_start().has_point()) set(input.point_b, *file.mutable_body_force()->mutable_point());
  if (file.has_body_force()) build_in_direction(input, *file.mutable_body_force());
  if (file.has_body_torque()) build_in_direction(input, *file.mutable_body_torque());
}

void build_in(const Drag& drag, wire::Drag& file) {
  if (file.at_start().has_point()) set(drag.point_b, *file.mutable_point());
  file.clear_at_start();
}

void build_in(const Tyre& tyre, wire::Tyre& file) {
  if (file.at_start().has_centre()) set(tyre.centre_b, *file.mutable_centre());
  if (file.at_start().has_axis()) set(tyre.axis_b, *file.mutable_axis());
  file.clear_at_start();
}

// These have nothing that is placed in a body.
void build_in(const JointFriction&, wire::JointFriction&) {}
void build_in(const Motor&, wire::Motor&) {}
void build_in(const AppliedEffort&, wire::Effort&) {}

void build_in(const Output& output, wire::Output& file) {
  if (!file.specific_force().at_start().has_point()) return;
  set(output.point_b, *file.mutable_specific_force()->mutable_point());
  file.mutable_specific_force()->clear_at_start();
}

bool names_one_of(const std::set<std::string>& bodies, const google::protobuf::Message& message) {
  const auto& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const auto* field : set) {
    const bool is_list = field->is_repeated();
    const int count = is_list ? reflection.FieldSize(message, field) : 1;
    for (int k = 0; k < count; ++k)
      if (field->message_type() != nullptr) {
        if (names_one_of(bodies, is_list ? reflection.GetRepeatedMessage(message, field, k)
                                         : reflection.GetMessage(message, field)))
          return true;
      } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING && !is_list) {
        if (bodies.contains(reflection.GetString(message, field))) return true;
      }
  }
  return false;
}

// Elements and their messages, which are in the same order: those on bodies that have moved.
template <class Elements, class Messages>
void build_in_all(const Elements& elements, const std::set<std::string>& moved, Messages& messages) {
  for (int k = 0; k < messages.size(); ++k)
    if (names_one_of(moved, messages.Get(k))) build_in(elements[static_cast<std::size_t>(k)], *messages.Mutable(k));
}

// Bodies that have not moved stay as they are written, in whatever way.
void place(const Body& from, const Body& was, const std::set<std::string>& moved, wire::Body& to) {
  if (from.velocity_0 != was.velocity_0) set(from.velocity_0, *to.mutable_velocity());
  if (from.angular_velocity_0 != was.angular_velocity_0) set(from.angular_velocity_0, *to.mutable_angular_velocity());
  const bool was_relative = !to.relative_to().empty();
  if (!moved.contains(from.name) && !moved.contains(to.relative_to())) return;
  to.clear_relative_to();
  set(from.position_0, *to.mutable_position());
  if (from.orientation == was.orientation && !was_relative) return;
  wire::Orientation turned;
  turned.set_e0(from.orientation[0]);
  turned.set_e1(from.orientation[1]);
  turned.set_e2(from.orientation[2]);
  turned.set_e3(from.orientation[3]);
  *to.mutable_orientation() = turned;
}

}  // namespace

EditedText with_start(const LoadedMechanism& loaded, const std::vector<Body>& bodies) {
  wire::Mechanism before;
  const TextSource source(loaded.text, loaded.path, before);
  wire::Mechanism file = before;
  const Mechanism& m = loaded.as_written ? *loaded.as_written : loaded.mechanism;
  std::set<std::string> moved;
  for (std::size_t i = 0; i < bodies.size(); ++i)
    if (bodies[i].position_0 != m.bodies()[i].position_0 || bodies[i].orientation != m.bodies()[i].orientation)
      moved.insert(bodies[i].name);
  for (int i = 0; i < file.body_size(); ++i)
    place(bodies[static_cast<std::size_t>(i)], m.bodies()[static_cast<std::size_t>(i)], moved, *file.mutable_body(i));
  build_in_all(m.joints(), moved, *file.mutable_joint());
  build_in_all(m.loads(), moved, *file.mutable_load());
  build_in_all(m.inputs(), moved, *file.mutable_input());
  for_each_kind([&]<class Kind>() { build_in_all(m.all<Kind>(), moved, ElementsInFile<Kind>::of(file)); });
  build_in_all(m.outputs(), moved, *file.mutable_output());
  return edited(loaded.text, source, before, file);
}

}  // namespace rigstep::config
