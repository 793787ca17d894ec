// What a step knows of each joint type: one row of traits a type. A type without a row does not compile.
// Called in the loop.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
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

  // The only coordinate that it leaves free, if lanes can measure it and have its row with those of the joint
  // (RowFormat::Coordinate).
  std::optional<Freedom> own_coordinate = std::nullopt;
};

namespace rows_of_types {

using namespace axis;
constexpr Row point(unsigned char axis) { return {Row::Form::point, axis, axis}; }
constexpr Row cosine(unsigned char first, unsigned char second) { return {Row::Form::cosine, first, second}; }
constexpr Row along_thread() { return {Row::Form::screw, Z, Z}; }
constexpr Row distance() { return {Row::Form::distance, Z, Z}; }

// parallel axes: the first body's x and y stay perpendicular to the second body's z
inline constexpr std::array kPoint{point(X), point(Y), point(Z)};
inline constexpr std::array kRevolute{point(X), point(Y), point(Z), cosine(X, Z), cosine(Y, Z)};
inline constexpr std::array kPrismatic{line_row(X), line_row(Y), cosine(X, Z), cosine(Y, Z), cosine(X, Y)};
inline constexpr std::array kCylindrical{line_row(X), line_row(Y), cosine(X, Z), cosine(Y, Z)};
inline constexpr std::array kUniversal{point(X), point(Y), point(Z), cosine(Z, Z)};
inline constexpr std::array kFixed{point(X), point(Y), point(Z), cosine(X, Z), cosine(Y, Z), cosine(X, Y)};
inline constexpr std::array kPointOnLine{line_row(X), line_row(Y)};
inline constexpr std::array kPerpendicular{cosine(Z, Z)};
inline constexpr std::array kParallel{cosine(X, Z), cosine(Y, Z)};
inline constexpr std::array kPlanar{line_row(Z), cosine(X, Z), cosine(Y, Z)};
inline constexpr std::array kScrew{line_row(X), line_row(Y), cosine(X, Z), cosine(Y, Z), along_thread()};
inline constexpr std::array kPointOnPlane{line_row(Z)};
inline constexpr std::array kDistance{distance()};

}  // namespace rows_of_types

inline const JointTraits& traits_of(JointType type) noexcept {
  using namespace rows_of_types;
  using Angles = JointTraits::Angles;
  using Parallel = JointTraits::Parallel;
  // clang-format off
  switch (type) {
    case JointType::spherical:          { static constexpr JointTraits row{kPoint}; return row; }
    case JointType::revolute:           { static constexpr JointTraits row{kRevolute, Angles::about_axis, false, Parallel::axes, Freedom::angle}; return row; }
    case JointType::prismatic:          { static constexpr JointTraits row{kPrismatic, Angles::about_axis, false, Parallel::frames, Freedom::displacement}; return row; }
    case JointType::cylindrical:        { static constexpr JointTraits row{kCylindrical, Angles::about_axis, false, Parallel::axes}; return row; }
    case JointType::universal:          { static constexpr JointTraits row{kUniversal, Angles::about_two_axes}; return row; }
    case JointType::fixed:              { static constexpr JointTraits row{kFixed, Angles::about_axis, false, Parallel::frames}; return row; }
    case JointType::point_on_point:     { static constexpr JointTraits row{kPoint}; return row; }
    case JointType::point_on_line:      { static constexpr JointTraits row{kPointOnLine}; return row; }
    case JointType::perpendicular_axes: { static constexpr JointTraits row{kPerpendicular, Angles::about_two_axes}; return row; }
    case JointType::parallel_axes:      { static constexpr JointTraits row{kParallel, Angles::about_axis, false, Parallel::axes}; return row; }
    case JointType::planar:             { static constexpr JointTraits row{kPlanar, Angles::about_axis, false, Parallel::axes}; return row; }
    case JointType::gimbal:             { static constexpr JointTraits row{kPoint, Angles::cardan}; return row; }
    case JointType::screw:              { static constexpr JointTraits row{kScrew, Angles::about_axis, true, Parallel::axes}; return row; }
    case JointType::point_on_plane:     { static constexpr JointTraits row{kPointOnPlane}; return row; }
    case JointType::distance:           { static constexpr JointTraits row{kDistance}; return row; }
    case JointType::floating:           { static constexpr JointTraits row{{}, Angles::cardan}; return row; }
  }
  // clang-format on
  static constexpr JointTraits none;
  return none;
}

inline std::span<const Row> rows_of(JointType type) noexcept { return traits_of(type).rows; }

// The rows are those of a point and then cosines only.
inline bool is_point_with_cosines(std::span<const Row> rows) noexcept {
  const auto is_cosine = [](const Row& row) { return row.form == Row::Form::cosine; };
  return rows.size() >= 3 && rows[0].form == Row::Form::point && rows[1].form == Row::Form::point &&
         rows[2].form == Row::Form::point && std::all_of(rows.begin() + 3, rows.end(), is_cosine);
}

}  // namespace rigstep::index3
