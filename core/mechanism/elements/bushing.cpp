#include "core/mechanism/elements/bushing.h"

#include <Eigen/Cholesky>
#include <cmath>

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

namespace {

using checks::number;
using checks::quoted;
using checks::require_finite;

// Symmetric and positive semidefinite up to rounding, judged after scaling the diagonal to 1: rows have different
// units.
void require_positive_semidefinite(const Mat6& matrix, const char* field) {
  require_finite(matrix, field);
  Eigen::Matrix<double, 6, 1> scale;
  for (int i = 0; i < 6; ++i) {
    if (matrix(i, i) < 0.0)
      throw MechanismError(field, "has the diagonal element " + number(matrix(i, i)), "give zero or above");
    scale[i] = matrix(i, i) > 0.0 ? 1.0 / std::sqrt(matrix(i, i)) : 1.0;
  }
  const Eigen::Matrix<double, 6, 6> scaled = scale.asDiagonal() * matrix * scale.asDiagonal();
  Eigen::Index row = 0, column = 0;
  if ((scaled - scaled.transpose()).cwiseAbs().maxCoeff(&row, &column) > 1e-9)
    throw MechanismError(field,
                         "is not symmetric: element (" + std::to_string(row + 1) + ", " + std::to_string(column + 1) +
                             ") is " + number(matrix(row, column)) + ", its mirror " + number(matrix(column, row)),
                         "give a symmetric matrix");
  const Eigen::Matrix<double, 6, 6> lifted =
      0.5 * (scaled + scaled.transpose()) + 1e-9 * Eigen::Matrix<double, 6, 6>::Identity();
  if (!lifted.ldlt().isPositive())
    throw MechanismError(field, "would release energy along some deflection",
                         "give a positive semidefinite matrix; check the signs of the couplings");
}

// Right-handed unit axes with z along `axis` and x along `normal`; both zero: those of the world or body.
Mat3 frame_axes(const Vec3& axis, const Vec3& normal, const std::string& field) {
  if (axis.isZero(0.0) && normal.isZero(0.0)) return Mat3::Identity();
  const Vec3 z = checks::unit(axis, (field + ".axis").c_str()), x = checks::unit(normal, (field + ".normal").c_str());
  if (std::abs(z.dot(x)) > 1e-6)
    throw MechanismError(field + ".normal", "is not perpendicular to axis (cosine " + number(z.dot(x)) + ")",
                         "give a direction perpendicular to axis");
  Mat3 axes;
  axes.col(2) = z;
  axes.col(0) = (x - z * z.dot(x)).normalized();
  axes.col(1) = z.cross(axes.col(0));
  return axes;
}

void check(Bushing& bushing, const MechanismBuilder& builder) {
  if (bushing.first == bushing.second)
    throw MechanismError("second", "a bushing stands between two different bodies",
                         "name another body than " + quoted(builder.body_name(bushing.first)));
  check_numbers(bushing);
  for (Mat6* matrix : {&bushing.stiffness, &bushing.damping}) *matrix = Mat6(0.5 * (*matrix + matrix->transpose()));
}

}  // namespace

void check_numbers(const Bushing& bushing) {
  require_positive_semidefinite(bushing.stiffness, "stiffness");
  require_positive_semidefinite(bushing.damping, "damping");
  require_finite(bushing.in_first.point_b, "in_first.point");
  require_finite(bushing.in_second.point_b, "in_second.point");
}

std::span<const Number<Bushing>> numbers(const Bushing&) {
  static constexpr Number<Bushing> kNumbers[] = {
      {"stiffness.x", unit_of("N/m"), Changes::tunable, diagonal<Bushing, &Bushing::stiffness, 0>},
      {"stiffness.y", unit_of("N/m"), Changes::tunable, diagonal<Bushing, &Bushing::stiffness, 1>},
      {"stiffness.z", unit_of("N/m"), Changes::tunable, diagonal<Bushing, &Bushing::stiffness, 2>},
      {"stiffness.rx", unit_of("N m/rad"), Changes::tunable, diagonal<Bushing, &Bushing::stiffness, 3>},
      {"stiffness.ry", unit_of("N m/rad"), Changes::tunable, diagonal<Bushing, &Bushing::stiffness, 4>},
      {"stiffness.rz", unit_of("N m/rad"), Changes::tunable, diagonal<Bushing, &Bushing::stiffness, 5>},
      {"damping.x", unit_of("N s/m"), Changes::tunable, diagonal<Bushing, &Bushing::damping, 0>},
      {"damping.y", unit_of("N s/m"), Changes::tunable, diagonal<Bushing, &Bushing::damping, 1>},
      {"damping.z", unit_of("N s/m"), Changes::tunable, diagonal<Bushing, &Bushing::damping, 2>},
      {"damping.rx", unit_of("N m s/rad"), Changes::tunable, diagonal<Bushing, &Bushing::damping, 3>},
      {"damping.ry", unit_of("N m s/rad"), Changes::tunable, diagonal<Bushing, &Bushing::damping, 4>},
      {"damping.rz", unit_of("N m s/rad"), Changes::tunable, diagonal<Bushing, &Bushing::damping, 5>},
      {"in_first.point.x", unit_of("m"), Changes::fixed,
       nested_component<Bushing, &Bushing::in_first, &JointFrame::point_b, 0>},
      {"in_first.point.y", unit_of("m"), Changes::fixed,
       nested_component<Bushing, &Bushing::in_first, &JointFrame::point_b, 1>},
      {"in_first.point.z", unit_of("m"), Changes::fixed,
       nested_component<Bushing, &Bushing::in_first, &JointFrame::point_b, 2>},
      {"in_second.point.x", unit_of("m"), Changes::fixed,
       nested_component<Bushing, &Bushing::in_second, &JointFrame::point_b, 0>},
      {"in_second.point.y", unit_of("m"), Changes::fixed,
       nested_component<Bushing, &Bushing::in_second, &JointFrame::point_b, 1>},
      {"in_second.point.z", unit_of("m"), Changes::fixed,
       nested_component<Bushing, &Bushing::in_second, &JointFrame::point_b, 2>},
  };
  return kNumbers;
}

void connect(Bushing& bushing, MechanismBuilder& builder, const std::string& first, const std::string& second,
             const SideInBody& at_start) {
  bushing.first = builder.find_body(first, "first");
  bushing.second = builder.find_body(second, "second");
  require_finite(at_start.point, "at_start.point");
  const Mat3 axes = frame_axes(at_start.axis, at_start.normal, "at_start");
  bushing.in_first = builder.frame_in_body(bushing.first, at_start.point, axes);
  bushing.in_second = builder.frame_in_body(bushing.second, at_start.point, axes);
  check(bushing, builder);
}

void connect(Bushing& bushing, MechanismBuilder& builder, const std::string& first, const std::string& second,
             const SideInBody& in_first, const SideInBody& in_second) {
  bushing.first = builder.find_body(first, "first");
  bushing.second = builder.find_body(second, "second");
  require_finite(in_first.point, "in_first.point");
  require_finite(in_second.point, "in_second.point");
  bushing.in_first = {in_first.point, frame_axes(in_first.axis, in_first.normal, "in_first")};
  bushing.in_second = {in_second.point, frame_axes(in_second.axis, in_second.normal, "in_second")};
  check(bushing, builder);
}

void add(ContentHash& hash, const Bushing& bushing) {
  hash.add(bushing.name);
  hash.integers({bushing.first, bushing.second});
  hash.add(bushing.in_first);
  hash.add(bushing.in_second);
  hash.add(bushing.stiffness);
  hash.add(bushing.damping);
}

std::vector<Channel> channels(const Bushing&, const Mechanism&) {
  return {{".x", "m"},  {".y", "m"},  {".z", "m"},  {".rx", "rad"}, {".ry", "rad"}, {".rz", "rad"},
          {".fx", "N"}, {".fy", "N"}, {".fz", "N"}, {".tx", "N m"}, {".ty", "N m"}, {".tz", "N m"}};
}

}  // namespace rigstep
