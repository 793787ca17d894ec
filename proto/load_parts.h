// What the loaders of a mechanism's elements have in common: one add() per message of proto/mechanism.proto, and what
// several of them read. A MechanismError names the field that is wrong; the caller knows the line. Load time only.
#pragma once

#include <optional>
#include <string>

#include "core/mechanism/builder.h"
#include "proto/mechanism.pb.h"

namespace rigstep::config {

// Each adds the element that its message describes. file: that the message stands in, for the joints it names.
void add(const wire::Body& in, const wire::Mechanism& file, MechanismBuilder& builder);   // load_bodies.cpp
void add(const wire::Joint& in, const wire::Mechanism& file, MechanismBuilder& builder);  // load_joints.cpp
void add(const wire::Coupling& in, const wire::Mechanism& file, MechanismBuilder& builder);
void add(const wire::Driver& in, const wire::Mechanism& file, MechanismBuilder& builder);
void add(const wire::Load& in, const wire::Mechanism& file, MechanismBuilder& builder);  // load_force_elements.cpp
void add(const wire::Spring& in, const wire::Mechanism& file, MechanismBuilder& builder);
void add(const wire::Bushing& in, const wire::Mechanism& file, MechanismBuilder& builder);
void add(const wire::JointFriction& in, const wire::Mechanism& file, MechanismBuilder& builder);
void add(const wire::Motor& in, const wire::Mechanism& file, MechanismBuilder& builder);
void add(const wire::Effort& in, const wire::Mechanism& file, MechanismBuilder& builder);
void add(const wire::Drag& in, const wire::Mechanism& file, MechanismBuilder& builder);
void add(const wire::Tyre& in, const wire::Mechanism& file, MechanismBuilder& builder);
void add(const wire::Stop& in, const wire::Mechanism& file, MechanismBuilder& builder);
void add(const wire::Rope& in, const wire::Mechanism& file, MechanismBuilder& builder);
void add(const wire::Input& in, const wire::Mechanism& file, MechanismBuilder& builder);  // load_signals.cpp
void add(const wire::Output& in, const wire::Mechanism& file, MechanismBuilder& builder);
void add(const wire::HeldAtStart& in, const wire::Mechanism& file, MechanismBuilder& builder);  // load_start.cpp
void add(const wire::Parameter& in, const wire::Mechanism& file, MechanismBuilder& builder);

// The force elements of a kind in a file: of(file). A kind without its line here does not compile.
template <class Kind>
struct ElementsInFile;
template <>
struct ElementsInFile<Spring> {
  static auto& of(wire::Mechanism& file) { return *file.mutable_spring(); }
};
template <>
struct ElementsInFile<Bushing> {
  static auto& of(wire::Mechanism& file) { return *file.mutable_bushing(); }
};
template <>
struct ElementsInFile<JointFriction> {
  static auto& of(wire::Mechanism& file) { return *file.mutable_joint_friction(); }
};
template <>
struct ElementsInFile<Motor> {
  static auto& of(wire::Mechanism& file) { return *file.mutable_motor(); }
};
template <>
struct ElementsInFile<AppliedEffort> {
  static auto& of(wire::Mechanism& file) { return *file.mutable_effort(); }
};
template <>
struct ElementsInFile<Drag> {
  static auto& of(wire::Mechanism& file) { return *file.mutable_drag(); }
};
template <>
struct ElementsInFile<Tyre> {
  static auto& of(wire::Mechanism& file) { return *file.mutable_tyre(); }
};
template <>
struct ElementsInFile<Stop> {
  static auto& of(wire::Mechanism& file) { return *file.mutable_stop(); }
};
template <>
struct ElementsInFile<Rope> {
  static auto& of(wire::Mechanism& file) { return *file.mutable_rope(); }
};

inline Vec3 vector(const wire::Vector& v) { return {v.x(), v.y(), v.z()}; }
inline MechanismBuilder::SideInBody joint_side(const wire::JointSide& side) {
  return {vector(side.point()), vector(side.axis()), vector(side.normal())};
}
inline Frame frame(wire::FrameOfReference frame) { return frame == wire::BODY ? Frame::body : Frame::world; }
JointType joint_type(wire::JointType type);
EulerParameters orientation_of(const wire::Orientation& in);  // load_bodies.cpp; unit norm where the file's has it

// Of a `start`; absent: it holds all of its joint, or a body.
std::optional<Freedom> held_freedom(const wire::HeldAtStart& in, const wire::Mechanism& file);

// The freedom meant, where the file may leave it out if the joint has only one.
Freedom freedom(wire::Freedom written, const std::string& joint, const wire::Mechanism& file,
                const char* field = "freedom");

TimeFunction time_function(const wire::Harmonic& in);
TimeFunction time_function(const wire::Polynomial& in);
TimeFunction time_function(const wire::Table& in);

// DriverSum or EffortSum, less its input.
template <class Sum>
TimeFunction sum_of(const Sum& in) {
  TimeFunction sum;
  for (const auto& term : in.harmonic()) sum = sum + time_function(term);
  for (const auto& term : in.polynomial()) sum = sum + time_function(term);
  for (const auto& term : in.table()) sum = sum + time_function(term);
  return sum;
}

// A vector of `in` that stands either in its own field or in at_start, in the world at the start pose.
template <class Convert>
Vec3 here_or_at_start(bool has_here, const wire::Vector& here, bool has_at_start, const wire::Vector& at_start,
                      const char* field, const Convert& convert) {
  if (!has_at_start) return vector(here);
  if (has_here)
    throw MechanismError(std::string("at_start.") + field, std::string("stands beside ") + field, "give one of them");
  return convert(vector(at_start));
}

// The converters of here_or_at_start for what one body carries.
struct InBody {
  const MechanismBuilder& builder;
  const std::string& body;
  const char* field = "body";  // that names it
  auto point() const {
    return [this](const Vec3& point_0) { return builder.point_in_body(body, point_0, field); };
  }
  auto direction() const {
    return [this](const Vec3& direction_0) { return builder.direction_in_body(body, direction_0, field); };
  }
};

// Directions of the world that do not turn with a body are the same at the start as ever.
void require_body_frame(wire::FrameOfReference frame, bool turns, const char* field);

}  // namespace rigstep::config
