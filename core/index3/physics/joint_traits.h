// What a step knows of each joint type: one row of traits a type. A type without a row does not compile.
// Called in the loop.
#pragma once

#include <span>

#include "core/mechanism/mechanism.h"

namespace rigstep::index3 {

// A scalar constraint between frames fixed in two bodies; constraints.h has the forms.
struct Row {
  enum class Form : unsigned char { point, line, cosine, screw, distance } form;
  unsigned char first_axis;   // line, cosine: column of the first body's joint frame; point: world axis
  unsigned char second_axis;  // cosine: column of the second body's joint frame
};

// Columns of a joint frame; z is the joint axis.
namespace axis {
inline constexpr unsigned char X = 0, Y = 1, Z = 2;
}
constexpr Row line_row(unsigned char axis) { return {Row::Form::line, axis, axis}; }

struct JointTraits {
  // Its constraints. Where they begin with the three rows of a point and cosines follow, the elimination takes them in
  // lanes with those of other such joints.
  std::span<const Row> rows;

  // What its angles are measured about: its axis; two axes, each fixed in one body; three Cardan angles.
  enum class Angles { about_axis, about_two_axes, cardan } angles = Angles::about_axis;

  // Its angle follows from its displacement, full turns included.
  bool angle_follows_displacement = false;

  // What stays parallel of both joint frames.
  enum class Parallel { nothing, axes, frames } parallel = Parallel::nothing;
};

JointTraits traits_of(JointType type) noexcept;

inline std::span<const Row> rows_of(JointType type) noexcept { return traits_of(type).rows; }

// The rows are those of a point and then cosines only.
bool is_point_with_cosines(std::span<const Row> rows) noexcept;

}  // namespace rigstep::index3
