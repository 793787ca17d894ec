// Bodies of a mechanism file.
#include <string>
#include <utility>

#include "core/mechanism/checks.h"
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

}  // namespace

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
  if (in.has_orientation()) {
    const auto& p = in.orientation();
    b.orientation << p.e0(), p.e1(), p.e2(), p.e3();
  }
  b.velocity_0 = vector(in.velocity());
  b.angular_velocity_0 = vector(in.angular_velocity());
  builder.add_body(std::move(b));
}

}  // namespace rigstep::config
