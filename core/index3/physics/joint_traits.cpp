#include "core/index3/physics/joint_traits.h"

#include <algorithm>
#include <array>

namespace rigstep::index3 {

namespace {

using namespace axis;
constexpr Row point(unsigned char axis) { return {Row::Form::point, axis, axis}; }
constexpr Row cosine(unsigned char first, unsigned char second) { return {Row::Form::cosine, first, second}; }
constexpr Row along_thread() { return {Row::Form::screw, Z, Z}; }
constexpr Row distance() { return {Row::Form::distance, Z, Z}; }

// parallel axes: the first body's x and y stay perpendicular to the second body's z
constexpr std::array kPoint{point(X), point(Y), point(Z)};
constexpr std::array kRevolute{point(X), point(Y), point(Z), cosine(X, Z), cosine(Y, Z)};
constexpr std::array kPrismatic{line_row(X), line_row(Y), cosine(X, Z), cosine(Y, Z), cosine(X, Y)};
constexpr std::array kCylindrical{line_row(X), line_row(Y), cosine(X, Z), cosine(Y, Z)};
constexpr std::array kUniversal{point(X), point(Y), point(Z), cosine(Z, Z)};
constexpr std::array kFixed{point(X), point(Y), point(Z), cosine(X, Z), cosine(Y, Z), cosine(X, Y)};
constexpr std::array kPointOnLine{line_row(X), line_row(Y)};
constexpr std::array kPerpendicular{cosine(Z, Z)};
constexpr std::array kParallel{cosine(X, Z), cosine(Y, Z)};
constexpr std::array kPlanar{line_row(Z), cosine(X, Z), cosine(Y, Z)};
constexpr std::array kScrew{line_row(X), line_row(Y), cosine(X, Z), cosine(Y, Z), along_thread()};
constexpr std::array kPointOnPlane{line_row(Z)};
constexpr std::array kDistance{distance()};

}  // namespace

JointTraits traits_of(JointType type) noexcept {
  using Angles = JointTraits::Angles;
  using Parallel = JointTraits::Parallel;
  // clang-format off
  switch (type) {
    case JointType::spherical:          return {kPoint};
    case JointType::revolute:           return {kRevolute, Angles::about_axis, false, Parallel::axes};
    case JointType::prismatic:          return {kPrismatic, Angles::about_axis, false, Parallel::frames};
    case JointType::cylindrical:        return {kCylindrical, Angles::about_axis, false, Parallel::axes};
    case JointType::universal:          return {kUniversal, Angles::about_two_axes};
    case JointType::fixed:              return {kFixed, Angles::about_axis, false, Parallel::frames};
    case JointType::point_on_point:     return {kPoint};
    case JointType::point_on_line:      return {kPointOnLine};
    case JointType::perpendicular_axes: return {kPerpendicular, Angles::about_two_axes};
    case JointType::parallel_axes:      return {kParallel, Angles::about_axis, false, Parallel::axes};
    case JointType::planar:             return {kPlanar, Angles::about_axis, false, Parallel::axes};
    case JointType::gimbal:             return {kPoint, Angles::cardan};
    case JointType::screw:              return {kScrew, Angles::about_axis, true, Parallel::axes};
    case JointType::point_on_plane:     return {kPointOnPlane};
    case JointType::distance:           return {kDistance};
    case JointType::floating:           return {{}, Angles::cardan};
  }
  // clang-format on
  return {};
}

bool is_point_with_cosines(std::span<const Row> rows) noexcept {
  const auto is_cosine = [](const Row& row) { return row.form == Row::Form::cosine; };
  return rows.size() >= 3 && rows[0].form == Row::Form::point && rows[1].form == Row::Form::point &&
         rows[2].form == Row::Form::point && std::all_of(rows.begin() + 3, rows.end(), is_cosine);
}

}  // namespace rigstep::index3
