#include "server/view/painter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/index3/physics/kinematics.h"

namespace rigstep::server {
namespace {

using Kind = config::DrawnShape::Kind;
using Role = Scene::Role;

std::string hex(const Colour& c, double light) {
  const auto shade = [light](std::uint8_t part) {
    const double x = light <= 1.0 ? part * light : part + (255.0 - part) * (light - 1.0);
    return static_cast<int>(std::clamp(x, 0.0, 255.0));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", shade(c[0]), shade(c[1]), shade(c[2]));
}

std::string points_text(const std::vector<Pixel>& points) {
  std::string text;
  for (const Pixel& p : points) text += fmt::format("{:.1f},{:.1f} ", p.x, p.y);
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace

void Painter::add_solid(const Scene::Solid& solid, const BodyPose& body) {
  const Mat3 A = index3::rotation_matrix(body.p) * index3::rotation_matrix(solid.shape.orientation);
  const Vec3 centre = body.r + index3::rotation_matrix(body.p) * solid.shape.position_b;
  colour_ = colour_of(solid);
  // what stands for a joint lies on what it joins
  bias_ = solid.role == Role::joint     ? 3.0 * scene_.thickness
          : solid.role == Role::support ? -3.0 * scene_.thickness
                                        : 0.0;
  const Vec3& size = solid.shape.size;
  switch (solid.shape.kind) {
    case Kind::box:
      return add_box(centre, A, size);
    case Kind::sphere:
      return add_sphere(centre, size[0]);
    case Kind::capsule:
      return add_capsule(centre, A.col(2) * (0.5 * size[2]), size[0]);
    case Kind::cylinder:
      return add_cylinder(centre, A.col(2) * (0.5 * size[2]), size[0], 0.0);
    case Kind::tube:
      return add_cylinder(centre, A.col(2) * (0.5 * size[2]), size[0], size[1]);
    case Kind::mesh:
      return add_mesh(scene_.meshes[static_cast<std::size_t>(solid.mesh)], centre, A, size[0]);
  }
}

void Painter::add_line(const Scene::Line& line, const Poses& poses) {
  std::vector<Vec3> points;
  for (const Scene::Point& point : line.points) points.push_back(in_world(point, poses));
  const double width = std::max(1.2, 0.5 * scene_.thickness * p_.scale());
  double depth = 0.0;
  for (const Vec3& point : points) depth += p_.depth(point) / static_cast<double>(points.size());
  std::vector<Pixel> path;
  const char* stroke = "#4a5564";
  if (line.kind == Scene::Line::Kind::spring) {
    path = coil(points.front(), points.back());
    stroke = "#2f6f4f";
  } else if (line.kind == Scene::Line::Kind::damper) {
    return add_damper(points.front(), points.back(), width, depth);
  } else {
    for (const Vec3& point : points) path.push_back(p_.at(point));
  }
  const double factor = line.kind == Scene::Line::Kind::rod ? 1.8 : 1.0;
  pieces_.push_back({depth + 2.0 * scene_.thickness,
                     fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"/>",
                                 points_text(path), stroke, factor * width)});
}

// The mark of a mass centre: a circle in four quarters.
void Painter::add_mass_centre(const Vec3& at_0) {
  const Pixel c = p_.at(at_0);
  const double r = std::clamp(1.3 * scene_.thickness * p_.scale(), 2.5, 9.0);
  pieces_.push_back(
      {p_.depth(at_0) + 8.0 * scene_.thickness,
       fmt::format("<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"{2:.1f}\" fill=\"#fff\" stroke=\"#1d2530\" "
                   "stroke-width=\"0.9\"/><path d=\"M{0:.1f},{1:.1f}v{3:.1f}a{2:.1f},{2:.1f} 0 0 1 {2:.1f},{2:.1f}z"
                   "M{0:.1f},{1:.1f}v{2:.1f}a{2:.1f},{2:.1f} 0 0 1 {3:.1f},{3:.1f}z\" fill=\"#1d2530\"/>",
                   c.x, c.y, r, -r)});
}

std::string Painter::paint() {
  std::stable_sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) { return a.depth < b.depth; });
  std::string svg;
  for (const Piece& piece : pieces_) svg += piece.svg + "\n";
  return svg;
}

std::string Painter::style(double light) const {
  std::string text = fmt::format("fill=\"{}\" stroke=\"{}\"", hex(colour_, light), hex(colour_, 0.62));
  if (colour_[3] < 255) text += fmt::format(" opacity=\"{:.2f}\"", colour_[3] / 255.0);
  return text;
}

// Lit from the viewer's upper left.
double Painter::light_of(const Vec3& normal) const {
  const Vec3 lamp = (p_.toward() + 0.7 * scene_.up_0).normalized();
  return 0.78 + 0.42 * std::max(0.0, normal.dot(lamp));
}

void Painter::add_sphere(const Vec3& centre, double radius) {
  const Pixel c = p_.at(centre);
  const double r = radius * p_.scale();
  push(centre, fmt::format("<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"{2:.1f}\" {3} stroke-width=\"0.8\"/>"
                           "<circle cx=\"{4:.1f}\" cy=\"{5:.1f}\" r=\"{6:.1f}\" fill=\"#fff\" opacity=\"0.35\"/>",
                           c.x, c.y, r, style(1.0), c.x - 0.3 * r, c.y - 0.3 * r, 0.35 * r));
}

// A stroke with round ends, its edge and a line of light; long ones in pieces, so that each has its depth.
void Painter::add_capsule(const Vec3& centre, const Vec3& half, double radius) {
  const Pixel a = p_.at(centre - half), b = p_.at(centre + half);
  const double width = std::max(2.0 * radius * p_.scale(), 1.6);
  const auto stroke = [&](const Pixel& from, const Pixel& to, const std::string& colour, double w) {
    return fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{:.1f}\"/>", from.x,
        from.y, to.x, to.y, colour, w);
  };
  const double length = std::hypot(b.x - a.x, b.y - a.y);
  const double aside = length > 1e-9 ? 0.18 * width / length : 0.0;
  const Pixel shift{(b.y - a.y) * aside, (a.x - b.x) * aside};
  const double sign = shift.y > 0.0 ? -1.0 : 1.0;
  const auto lit = [&](const Pixel& p) { return Pixel{p.x + sign * shift.x, p.y + sign * shift.y}; };
  std::string open = "<g stroke-linecap=\"round\"";
  if (colour_[3] < 255) open += fmt::format(" opacity=\"{:.2f}\"", colour_[3] / 255.0);
  std::string svg = open + ">" + stroke(a, b, hex(colour_, 0.62), width) +
                    stroke(a, b, hex(colour_, 1.0), std::max(width - 1.6, 0.6));
  if (width > 5.0) svg += stroke(lit(a), lit(b), hex(colour_, 1.45), 0.18 * width);
  push(centre, svg + "</g>");
}

// half: from the centre to the middle of one end; inner: radius of a hole, 0: none.
void Painter::add_cylinder(const Vec3& centre, Vec3 half, double radius, double inner) {
  if (half.dot(p_.toward()) < 0.0) half = -half;  // to the end that is seen
  const Vec3 axis = half.normalized();
  const Pixel near = p_.at(centre + half), far = p_.at(centre - half), slant = p_.direction(axis);
  const double r = radius * p_.scale(), squash = std::abs(axis.dot(p_.toward()));
  const double angle = std::hypot(slant.x, slant.y) > 1e-6 * p_.scale() ? std::atan2(slant.y, slant.x) : 0.0;
  const Pixel across{-std::sin(angle) * r, std::cos(angle) * r};
  const double degrees = angle * 180.0 / std::numbers::pi;
  // mantle: half of the far ellipse, then back along the near one
  std::string svg = fmt::format(
      "<path d=\"M{:.1f},{:.1f}L{:.1f},{:.1f}A{:.1f},{:.1f} {:.0f} 0 1 {:.1f},{:.1f}L{:.1f},{:.1f}z\" {} "
      "stroke-width=\"0.8\"/>",
      near.x + across.x, near.y + across.y, far.x + across.x, far.y + across.y, r * squash, r, degrees,
      far.x - across.x, far.y - across.y, near.x - across.x, near.y - across.y, style(0.86));
  const auto ring = [&](double k, bool clockwise) {
    return fmt::format(
        "M{0:.1f},{1:.1f}A{2:.1f},{3:.1f} {4:.0f} 1 {7} {5:.1f},{6:.1f}A{2:.1f},{3:.1f} {4:.0f} 1 {7} {0:.1f},{1:.1f}z",
        near.x + k * across.x, near.y + k * across.y, k * r * squash, k * r, degrees, near.x - k * across.x,
        near.y - k * across.y, clockwise ? 1 : 0);
  };
  // seen obliquely, a hole shows its wall
  const bool shows_wall = inner > 0.0 && squash < 0.97;
  std::string face = ring(1.0, true);
  if (inner > 0.0 && !shows_wall) face += ring(inner / radius, false);
  svg += fmt::format("<path d=\"{}\" {} fill-rule=\"evenodd\" stroke-width=\"0.8\"/>", face, style(light_of(axis)));
  if (shows_wall)
    svg += fmt::format("<path d=\"{}\" {} stroke-width=\"0.8\"/>", ring(inner / radius, true), style(0.62));
  if (inner > 0.0) bias_ -= half.norm();  // what stands in the hole is seen
  push(centre, svg);
}

void Painter::add_box(const Vec3& centre, const Mat3& A, const Vec3& edges) {
  std::string svg;
  for (int k = 0; k < 3; ++k)
    for (const double side : {-1.0, 1.0}) {
      const Vec3 normal = side * A.col(k);
      if (normal.dot(p_.toward()) <= 1e-9) continue;
      const Vec3 middle = centre + normal * (0.5 * edges[k]);
      const Vec3 u = A.col((k + 1) % 3) * (0.5 * edges[(k + 1) % 3]),
                 v = A.col((k + 2) % 3) * (0.5 * edges[(k + 2) % 3]);
      svg += fmt::format(
          "<polygon points=\"{}\" {} stroke-width=\"0.8\"/>",
          points_text({p_.at(middle + u + v), p_.at(middle + u - v), p_.at(middle - u - v), p_.at(middle - u + v)}),
          style(light_of(normal)));
    }
  push(centre, svg);
}

void Painter::add_mesh(const TriangleMesh& mesh, const Vec3& centre, const Mat3& A, double scale) {
  for (const auto& triangle : mesh.triangles) {
    std::array<Vec3, 3> corner;
    for (std::size_t k = 0; k < 3; ++k) corner[k] = centre + A * (scale * mesh.vertices[triangle[k]].cast<double>());
    const Vec3 normal = (corner[1] - corner[0]).cross(corner[2] - corner[0]);
    if (normal.dot(p_.toward()) <= 0.0) continue;
    const std::string fill = hex(colour_, light_of(normal.normalized()));
    push((corner[0] + corner[1] + corner[2]) / 3.0,
         fmt::format("<polygon points=\"{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"0.3\"/>",
                     points_text({p_.at(corner[0]), p_.at(corner[1]), p_.at(corner[2])}), fill, fill));
  }
}

// As drawn on paper: straight ends, and a zigzag whose number of turns stays when it stretches.
std::vector<Pixel> Painter::coil(const Vec3& from, const Vec3& to) const {
  constexpr int kTurns = 9;
  const Pixel a = p_.at(from), b = p_.at(to);
  const double length = std::max(std::hypot(b.x - a.x, b.y - a.y), 1e-9);
  const double half = std::min(2.2 * scene_.thickness * p_.scale(), 0.25 * length);
  const Pixel across{-(b.y - a.y) / length * half, (b.x - a.x) / length * half};
  std::vector<Pixel> path{a};
  const auto at = [&](double part, double side) {
    return Pixel{a.x + part * (b.x - a.x) + side * across.x, a.y + part * (b.y - a.y) + side * across.y};
  };
  path.push_back(at(0.12, 0.0));
  for (int k = 0; k < 2 * kTurns; ++k)
    path.push_back(at(0.12 + 0.76 * (k + 0.5) / (2.0 * kTurns), k % 2 == 0 ? 1.0 : -1.0));
  path.push_back(at(0.88, 0.0));
  path.push_back(b);
  return path;
}

// A piston in a cup.
void Painter::add_damper(const Vec3& from, const Vec3& to, double width, double depth) {
  const Pixel a = p_.at(from), b = p_.at(to);
  const double length = std::max(std::hypot(b.x - a.x, b.y - a.y), 1e-9);
  const double half = std::min(2.0 * scene_.thickness * p_.scale(), 0.2 * length);
  const Pixel n{-(b.y - a.y) / length * half, (b.x - a.x) / length * half};
  const auto at = [&](double part, double side) {
    return Pixel{a.x + part * (b.x - a.x) + side * n.x, a.y + part * (b.y - a.y) + side * n.y};
  };
  std::string svg;
  for (const auto& path : {std::vector<Pixel>{a, at(0.35, 0.0)},
                           {at(0.65, 1.0), at(0.35, 1.0), at(0.35, -1.0), at(0.65, -1.0)},
                           {at(0.52, 0.8), at(0.52, -0.8)},
                           {at(0.52, 0.0), b}})
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#4a5564\" stroke-width=\"{:.1f}\"/>",
                       points_text(path), width);
  pieces_.push_back({depth + 2.0 * scene_.thickness, svg});
}

}  // namespace rigstep::server
