#include "core/mechanism/shapes.h"

#include "core/mechanism/portable_math.h"

namespace rigstep {
namespace {

// `along` about the axis, `across` about every line perpendicular to it.
Mat3 round_inertia(double along, double across, const Vec3& axis) {
  return across * Mat3::Identity() + (along - across) * (axis * axis.transpose());
}

}  // namespace

Solid solid_box(const Vec3& edges) {
  const Vec3 squares = edges.cwiseProduct(edges);
  const Vec3 moments = (Vec3::Constant(squares.sum()) - squares) / 12.0;
  return {edges.prod(), moments.asDiagonal()};
}

Solid solid_sphere(double radius) {
  return {4.0 / 3.0 * kPi * radius * radius * radius, 0.4 * radius * radius * Mat3::Identity()};
}

Solid solid_cylinder(double radius, double length, const Vec3& axis) { return solid_tube(0.0, radius, length, axis); }

Solid solid_tube(double inner_radius, double outer_radius, double length, const Vec3& axis) {
  const double squares = outer_radius * outer_radius + inner_radius * inner_radius;
  const double section = kPi * (outer_radius - inner_radius) * (outer_radius + inner_radius);
  return {section * length, round_inertia(squares / 2.0, (3.0 * squares + length * length) / 12.0, axis)};
}

}  // namespace rigstep
