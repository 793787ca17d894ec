// Bodies of a mechanism file.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "core/mechanism/checks.h"
#include "core/mechanism/orientation.h"
#include "core/mechanism/portable_math.h"
#include "core/mechanism/shapes.h"
#include "proto/bounds.h"
#include "proto/load_parts.h"

namespace rigstep::config {
namespace {

// A thin rod has a moment about its axis, too: bodies without one have no inverse inertia. This radius leaves the
// moments across the axis within 3e-6 of those of a line.
constexpr double kThinRod = 1e-3;  // radius over length

// Before anything is computed from them.
void require_bounds(const google::protobuf::Message& part, const std::string& field) {
  if (const auto beyond = find_out_of_bounds(part))
    throw MechanismError(field + "." + beyond->field, beyond->problem, beyond->remedy);
}

double positive(double size, const std::string& field) {
  checks::require_positive(size, field.c_str());
  return size;
}

// Of a round shape, in the body frame; z where the file gives none.
template <class Shape>
Vec3 axis_of(const Shape& in, const std::string& field) {
  return in.has_axis() ? checks::unit(vector(in.axis()), (field + ".axis").c_str()) : Vec3::UnitZ();
}

Solid solid(const wire::Box& in, const std::string& field) {
  return solid_box({positive(in.x(), field + ".x"), positive(in.y(), field + ".y"), positive(in.z(), field + ".z")});
}

Solid solid(const wire::Cylinder& in, const std::string& field) {
  return solid_cylinder(positive(in.radius(), field + ".radius"), positive(in.length(), field + ".length"),
                        axis_of(in, field));
}

Solid solid(const wire::Sphere& in, const std::string& field) {
  return solid_sphere(positive(in.radius(), field + ".radius"));
}

Solid solid(const wire::Tube& in, const std::string& field) {
  const double inner = positive(in.inner_radius(), field + ".inner_radius");
  const double outer = positive(in.outer_radius(), field + ".outer_radius");
  if (!(inner < outer))
    throw MechanismError(field + ".inner_radius", "is not below outer_radius", "give the radii of hole and mantle");
  return solid_tube(inner, outer, positive(in.length(), field + ".length"), axis_of(in, field));
}

Solid solid(const wire::Rod& in, const std::string& field) {
  const double length = positive(in.length(), field + ".length");
  const double radius = in.has_radius() ? positive(in.radius(), field + ".radius") : kThinRod * length;
  return solid_cylinder(radius, length, axis_of(in, field));
}

Solid solid(const wire::ShapeInertia& in) {
  using Shape = wire::ShapeInertia;
  switch (in.shape_case()) {
    case Shape::kBox:
      return solid(in.box(), "shape_inertia.box");
    case Shape::kCylinder:
      return solid(in.cylinder(), "shape_inertia.cylinder");
    case Shape::kSphere:
      return solid(in.sphere(), "shape_inertia.sphere");
    case Shape::kTube:
      return solid(in.tube(), "shape_inertia.tube");
    case Shape::kRod:
      return solid(in.rod(), "shape_inertia.rod");
    case Shape::SHAPE_NOT_SET:
      break;
  }
  throw MechanismError("shape_inertia", "has no shape", "write box, cylinder, sphere, tube or rod");
}

// Mass and inertia of a body with a shape.
void fill_with_shape(const wire::Body& in, Body& body) {
  const wire::ShapeInertia& shape = in.shape_inertia();
  if (in.has_inertia()) throw MechanismError("shape_inertia", "stands beside inertia", "give one of them");
  require_bounds(shape, "shape_inertia");
  const Solid filled = solid(shape);
  if (shape.has_density()) {
    if (in.mass() != 0.0)
      throw MechanismError("shape_inertia.density", "stands beside mass", "give one of them: each gives the other");
    if (shape.has_rod() && !shape.rod().has_radius())
      throw MechanismError("shape_inertia.density", "gives no mass to a rod without a radius",
                           "give the rod's radius, or the mass instead of density");
    body.mass = positive(shape.density(), "shape_inertia.density") * filled.volume;
  } else if (in.mass() == 0.0) {
    throw MechanismError("mass", "is missing", "give the mass, or density in shape_inertia");
  }
  body.inertia_b = body.mass * filled.inertia_per_mass;
}

Mat3 matrix(const wire::Inertia& in) {
  Mat3 inertia;
  inertia << in.xx(), in.xy(), in.xz(), in.xy(), in.yy(), in.yz(), in.xz(), in.yz(), in.zz();
  return inertia;
}

constexpr double kMostAngle = 1e4;  // beyond some turns an angle is in another unit [rad]

double angle(double written, const char* field) {
  if (!(std::abs(written) <= kMostAngle))
    throw MechanismError(field, "is " + checks::number(written) + " rad", "give an angle of a few turns at most");
  return written;
}

bool is_sequence(std::string_view letters) {
  const bool is_intrinsic = letters.find_first_not_of("xyz") == letters.npos;
  const bool is_extrinsic = letters.find_first_not_of("XYZ") == letters.npos;
  return letters.size() == 3 && (is_intrinsic || is_extrinsic) && letters[0] != letters[1] && letters[1] != letters[2];
}

EulerParameters orientation(const wire::EulerAngles& in) {
  const std::string& letters = in.sequence();
  if (!is_sequence(letters))
    throw MechanismError("orientation.euler.sequence", letters.empty() ? "is missing" : "is no sequence of rotations",
                         "write three letters of x, y, z, or of X, Y, Z, none twice in a row: \"zyx\"");
  if (in.angle_size() != 3)
    throw MechanismError("orientation.euler.angle", "has " + std::to_string(in.angle_size()) + " values", "give 3");
  EulerParameters p{1.0, 0.0, 0.0, 0.0};
  for (int k = 0; k < 3; ++k) {
    const char letter = letters[static_cast<std::size_t>(k)];
    const bool is_intrinsic = letter >= 'x';
    const EulerParameters turn =
        turned_about(Vec3::Unit(letter - (is_intrinsic ? 'x' : 'X')), angle(in.angle(k), "orientation.euler.angle"));
    p = is_intrinsic ? product(p, turn) : product(turn, p);
  }
  return p;
}

EulerParameters orientation(const wire::AxisAngle& in) {
  return turned_about(checks::unit(vector(in.axis()), "orientation.axis_angle.axis"),
                      angle(in.angle(), "orientation.axis_angle.angle"));
}

EulerParameters orientation(const wire::TwoAxes& in) {
  const std::string field = "orientation.two_axes";
  const std::array<bool, 3> is_given{in.has_x(), in.has_y(), in.has_z()};
  if (const auto count = std::count(is_given.begin(), is_given.end(), true); count != 2)
    throw MechanismError(field, "has " + std::to_string(count) + " axes", "give two of x, y and z: the third follows");
  const std::array<const wire::Vector*, 3> written{&in.x(), &in.y(), &in.z()};
  const auto third = static_cast<std::size_t>(std::find(is_given.begin(), is_given.end(), false) - is_given.begin());
  const std::size_t i = (third + 1) % 3, j = (third + 2) % 3;  // right-handed: axis i x axis j is the third
  const Vec3 a = checks::unit(vector(*written[i]), (field + "." + "xyz"[i]).c_str());
  const Vec3 b = checks::unit(vector(*written[j]), (field + "." + "xyz"[j]).c_str());
  if (std::abs(a.dot(b)) > checks::kUnitTolerance)
    throw MechanismError(field, "stand at " + checks::number(std::acos(a.dot(b)) * 180.0 / kPi) + " degrees",
                         "give axes that are perpendicular within 1e-6");
  Mat3 axes;
  axes.col(static_cast<Eigen::Index>(i)) = a;
  axes.col(static_cast<Eigen::Index>(j)) = (b - a * a.dot(b)).normalized();
  axes.col(static_cast<Eigen::Index>(third)) = a.cross(axes.col(static_cast<Eigen::Index>(j)));
  return from_axes(axes);
}

// The start pose of a body that the file gives in the frame of one before it.
void place_in_world(Body& body, const std::string& reference, const MechanismBuilder& builder) {
  try {
    body.position_0 = builder.point_in_world(reference, body.position_0, "relative_to");
    body.orientation = product(builder.orientation_in_world(reference, "relative_to"), body.orientation);
  } catch (const MechanismError& error) {
    throw MechanismError(error.field, error.problem + " before this one", error.remedy);
  }
}

}  // namespace

EulerParameters orientation_of(const wire::Orientation& in) {
  const bool has_parameters = in.e0() != 0.0 || in.e1() != 0.0 || in.e2() != 0.0 || in.e3() != 0.0;
  if (has_parameters && in.instead_case() != wire::Orientation::INSTEAD_NOT_SET)
    throw MechanismError("orientation", "has Euler parameters beside another way of saying it", "give one of them");
  switch (in.instead_case()) {
    case wire::Orientation::kEuler:
      return orientation(in.euler());
    case wire::Orientation::kAxisAngle:
      return orientation(in.axis_angle());
    case wire::Orientation::kTwoAxes:
      return orientation(in.two_axes());
    case wire::Orientation::INSTEAD_NOT_SET:
      break;
  }
  return {in.e0(), in.e1(), in.e2(), in.e3()};
}

void add(const wire::Body& in, const wire::Mechanism&, MechanismBuilder& builder) {
  Body b;
  b.name = in.name();
  b.mass = in.mass();
  if (in.has_shape_inertia())
    fill_with_shape(in, b);
  else if (in.has_inertia())
    b.inertia_b = matrix(in.inertia());
  else
    throw MechanismError("inertia", "is missing",
                         "write inertia, or shape_inertia with a box, cylinder, sphere, tube or rod");
  b.position_0 = vector(in.position());
  if (in.has_orientation()) b.orientation = orientation_of(in.orientation());
  if (!in.relative_to().empty()) place_in_world(b, in.relative_to(), builder);
  b.velocity_0 = vector(in.velocity());
  b.angular_velocity_0 = vector(in.angular_velocity());
  builder.add_body(std::move(b));
}

}  // namespace rigstep::config
