#include "proto/load_shapes.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "core/mechanism/checks.h"
#include "core/mechanism/orientation.h"
#include "proto/bounds.h"
#include "proto/load_parts.h"
#include "proto/text_source.h"

namespace rigstep::config {
namespace {

using Kind = DrawnShape::Kind;

constexpr double kDrawnRod = 1e-2;  // radius over length, of a rod without one

double positive(double size, const char* field) {
  checks::require_positive(size, field);
  return size;
}

// The turn that takes z to the axis that a round shape has in the file.
template <class Round>
EulerParameters from_z(const Round& in, const char* field) {
  if (!in.has_axis()) return {1.0, 0.0, 0.0, 0.0};
  const Vec3 z = checks::unit(vector(in.axis()), field);
  const Vec3 x = z.unitOrthogonal();
  Mat3 axes;
  axes << x, z.cross(x), z;
  return from_axes(axes);
}

void set(const wire::Box& in, DrawnShape& shape) {
  shape.kind = Kind::box;
  shape.size = {positive(in.x(), "box.x"), positive(in.y(), "box.y"), positive(in.z(), "box.z")};
}

void set(const wire::Cylinder& in, DrawnShape& shape) {
  shape.kind = Kind::cylinder;
  shape.size = {positive(in.radius(), "cylinder.radius"), 0.0, positive(in.length(), "cylinder.length")};
  shape.orientation = from_z(in, "cylinder.axis");
}

void set(const wire::Sphere& in, DrawnShape& shape) {
  shape.kind = Kind::sphere;
  shape.size = {positive(in.radius(), "sphere.radius"), 0.0, 0.0};
}

void set(const wire::Tube& in, DrawnShape& shape) {
  shape.kind = Kind::tube;
  shape.size = {positive(in.outer_radius(), "tube.outer_radius"), positive(in.inner_radius(), "tube.inner_radius"),
                positive(in.length(), "tube.length")};
  if (!(shape.size[1] < shape.size[0]))
    throw MechanismError("tube.inner_radius", "is not below outer_radius", "give the radii of hole and mantle");
  shape.orientation = from_z(in, "tube.axis");
}

void set(const wire::Rod& in, DrawnShape& shape) {
  shape.kind = Kind::cylinder;
  const double length = positive(in.length(), "rod.length");
  shape.size = {in.has_radius() ? positive(in.radius(), "rod.radius") : kDrawnRod * length, 0.0, length};
  shape.orientation = from_z(in, "rod.axis");
}

void set(const wire::Capsule& in, DrawnShape& shape) {
  shape.kind = Kind::capsule;
  shape.size = {positive(in.radius(), "capsule.radius"), 0.0, positive(in.length(), "capsule.length")};
  shape.orientation = from_z(in, "capsule.axis");
}

// Whoever views a mechanism file of others must not show them other files.
void require_file_below(const std::string& name) {
  const std::filesystem::path path(name);
  const bool leaves = std::any_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
  if (name.empty() || name.find('\0') != name.npos || path.is_absolute() || leaves)
    throw MechanismError("mesh.file", name.empty() ? "is missing" : "is outside the folder of the mechanism file",
                         "put the file beside the mechanism file, or in a folder below, and write its name from there");
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char letter) {
    return static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter | 32 : letter);
  });
  if (ending != ".stl" && ending != ".obj" && ending != ".gltf" && ending != ".glb")
    throw MechanismError("mesh.file", "is of a kind that is not drawn", "convert it to .stl, .obj, .gltf or .glb");
}

void set(const wire::Mesh& in, DrawnShape& shape) {
  require_file_below(in.file());
  shape.kind = Kind::mesh;
  shape.file = in.file();
  shape.size = Vec3::Constant(in.has_scale() ? positive(in.scale(), "mesh.scale") : 1.0);
}

std::array<std::uint8_t, 4> colour(const std::string& written) {
  std::array<std::uint8_t, 4> value{0, 0, 0, 255};
  bool good = (written.size() == 7 || written.size() == 9) && written[0] == '#';
  for (std::size_t k = 0; good && 2 * k + 1 < written.size(); ++k) {
    const char* begin = written.data() + 1 + 2 * k;
    const auto [end, error] = std::from_chars(begin, begin + 2, value[k], 16);
    good = error == std::errc() && end == begin + 2;
  }
  if (!good)
    throw MechanismError("colour", "is no colour", "write \"#rrggbb\" or \"#rrggbbaa\", two hexadecimal digits each");
  return value;
}

DrawnShape drawn(const wire::Shape& in) {
  if (const auto beyond = find_out_of_bounds(in)) throw MechanismError(beyond->field, beyond->problem, beyond->remedy);
  DrawnShape shape;
  switch (in.shape_case()) {
    case wire::Shape::kBox:
      set(in.box(), shape);
      break;
    case wire::Shape::kCylinder:
      set(in.cylinder(), shape);
      break;
    case wire::Shape::kSphere:
      set(in.sphere(), shape);
      break;
    case wire::Shape::kTube:
      set(in.tube(), shape);
      break;
    case wire::Shape::kRod:
      set(in.rod(), shape);
      break;
    case wire::Shape::kCapsule:
      set(in.capsule(), shape);
      break;
    case wire::Shape::kMesh:
      set(in.mesh(), shape);
      break;
    case wire::Shape::SHAPE_NOT_SET:
      throw MechanismError("shape", "has no form", "write box, cylinder, sphere, tube, rod, capsule or mesh");
  }
  shape.position_b = vector(in.position());
  if (in.has_orientation()) {
    const EulerParameters turn = orientation_of(in.orientation());
    if (!(std::abs(turn.norm() - 1.0) < checks::kUnitTolerance))
      throw MechanismError("orientation", "is no unit quaternion",
                           "give Euler parameters of norm 1, or another way of saying it");
    shape.orientation = product(turn, shape.orientation);
  }
  if (!in.colour().empty()) shape.colour = colour(in.colour());
  return shape;
}

// Whose sizes were checked with the mass that they give.
DrawnShape drawn(const wire::ShapeInertia& in) {
  DrawnShape shape;
  if (in.has_box()) set(in.box(), shape);
  if (in.has_cylinder()) set(in.cylinder(), shape);
  if (in.has_sphere()) set(in.sphere(), shape);
  if (in.has_tube()) set(in.tube(), shape);
  if (in.has_rod()) set(in.rod(), shape);
  return shape;
}

}  // namespace

std::vector<DrawnShape> load_shapes(const wire::Mechanism& file, const TextSource& source) {
  std::vector<DrawnShape> all;
  const auto take = [&](const std::string& field, const wire::Shape& in, int body) {
    try {
      all.push_back(drawn(in));
      all.back().body = body;
    } catch (const MechanismError& error) {
      source.fail(file, field + "." + error.field, error.problem, error.remedy);
    }
  };
  for (int i = 0; i < file.body_size(); ++i) {
    const wire::Body& body = file.body(i);
    for (int k = 0; k < body.shape_size(); ++k)
      take("body[" + std::to_string(i) + "].shape[" + std::to_string(k) + "]", body.shape(k), i);
    if (body.shape_size() > 0 || !body.has_shape_inertia()) continue;
    all.push_back(drawn(body.shape_inertia()));
    all.back().body = i;
  }
  for (int k = 0; k < file.ground_shape_size(); ++k)
    take("ground_shape[" + std::to_string(k) + "]", file.ground_shape(k), kGround);
  return all;
}

}  // namespace rigstep::config
