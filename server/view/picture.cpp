#include "server/view/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "server/output/markup.h"
#include "server/view/painter.h"

namespace rigstep::server {
namespace {

constexpr double kBorder = 26.0;  // [px]
constexpr double kFoot = 34.0;    // below the picture, for caption and scale [px]
constexpr double kLetter = 6.8;   // width of a letter, about [px]
constexpr std::size_t kMostNames = 12;

// 1, 2 or 5 times a power of ten, at most `length` [m].
double nice_length(double length) {
  const double decade = std::pow(10.0, std::floor(std::log10(length)));
  return decade * (length >= 5.0 * decade ? 5.0 : length >= 2.0 * decade ? 2.0 : 1.0);
}

Vec3 toward_viewer(PictureView view, const Scene& scene) {
  switch (view) {
    case PictureView::automatic:
      if (!scene.plane_normal_0.isZero()) return scene.plane_normal_0;
      break;
    case PictureView::front:
      return -Vec3::UnitY();
    case PictureView::side:
      return Vec3::UnitX();
    case PictureView::top:
      return Vec3::UnitZ();
    case PictureView::oblique:
      break;
  }
  const Vec3 up = scene.up_0, ahead = up.cross(Vec3::UnitX()).norm() > 0.5 ? Vec3::UnitX() : Vec3::UnitY();
  const Vec3 front = (ahead - up * up.dot(ahead)).normalized(), right = front.cross(up);
  return (1.0 * front + 1.35 * right + 0.8 * up).normalized();
}

Vec3 up_of(PictureView view, const Scene& scene) {
  return view == PictureView::top                                  ? Vec3::UnitY()
         : view == PictureView::front || view == PictureView::side ? Vec3::UnitZ()
                                                                   : scene.up_0;
}

// Light lines on the road, as far as the mechanism reaches.
std::string road(const Projection& p, const Mechanism& m, const Scene& scene) {
  const Tyre& tyre = m.tyres().front();
  const double spacing = nice_length(scene.size / 9.0), reach = 0.62 * scene.size;
  const Vec3 n = tyre.road_normal_0, x = n.unitOrthogonal(), y = n.cross(x);
  const Vec3 middle = scene.centre_0 - n * n.dot(scene.centre_0 - tyre.road_point_0);
  std::string svg = "<g stroke=\"#dfe3e8\" stroke-width=\"0.8\">";
  const int count = static_cast<int>(reach / spacing);
  for (int k = -count; k <= count; ++k)
    for (const auto& [u, v] : {std::pair{x, y}, std::pair{y, x}}) {
      const Pixel a = p.at(middle + u * (k * spacing) - v * (count * spacing)),
                  b = p.at(middle + u * (k * spacing) + v * (count * spacing));
      svg += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", a.x, a.y, b.x, b.y);
    }
  return svg + "</g>\n";
}

std::string path_of(const Projection& p, const std::vector<Vec3>& trace) {
  std::string points;
  for (const Vec3& point : trace) {
    const Pixel at = p.at(point);
    points += fmt::format("{:.1f},{:.1f} ", at.x, at.y);
  }
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"#c2410c\" stroke-width=\"1.4\" stroke-linejoin=\"round\"/>\n",
      points);
}

std::string text_at(double x, double y, const std::string& text, const char* attributes) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes, escape_markup(text));
}

struct Label {
  double x = 0.0, y = 0.0;  // where it begins [px]
  std::string text;
};

// Beside the mass centres, on the side to which the body's longest bar does not lead.
std::vector<Label> labels_of(const Projection& p, const Mechanism& m, const Scene& scene, const Poses& poses) {
  std::vector<Label> labels;
  const double aside = 1.3 * scene.thickness * p.scale() + 4.0;
  for (std::size_t i = 0; i < m.bodies().size(); ++i) {
    double longest = 0.0, y = -aside;
    for (const Scene::Solid& solid : scene.solids) {
      if (solid.shape.body != static_cast<int>(i) || solid.role != Scene::Role::link || solid.shape.size[2] <= longest)
        continue;
      longest = solid.shape.size[2];
      const Pixel along = p.direction(rotation_of(poses[i].p) * rotation_of(solid.shape.orientation).col(2));
      y = along.x * along.y < 0.0 ? aside + 9.0 : -aside;
    }
    const Pixel at = p.at(poses[i].r);
    labels.push_back({at.x + aside, at.y + y, m.bodies()[i].name});
  }
  return labels;
}

// Axes of the world in the corner, as they are seen, and a bar of a length.
std::string legend(const Projection& p, double width, double bottom) {
  const char* colours[] = {"#c0392b", "#2e8b57", "#2d6cb5"};
  const char* names[] = {"x", "y", "z"};
  std::string svg;
  const double length = nice_length(0.25 * width / p.scale()), bar = length * p.scale(), right = width - kBorder;
  svg += fmt::format("<path d=\"M{0:.1f},{1:.1f}v5h{2:.1f}v-5\" fill=\"none\" stroke=\"#4a5564\"/>\n", right - bar,
                     bottom - 16.0, bar);
  svg += text_at(right - 0.5 * bar, bottom - 19.0, fmt::format("{:g} m", length), "text-anchor=\"middle\"");
  const double x0 = kBorder + 8.0, y0 = bottom - 14.0;
  for (int k = 0; k < 3; ++k) {
    const Pixel d = p.direction(Vec3::Unit(k));
    const double dx = 20.0 * d.x / p.scale(), dy = 20.0 * d.y / p.scale();
    if (std::hypot(dx, dy) < 3.0) continue;
    svg += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"1.5\"/>", x0, y0,
        x0 + dx, y0 + dy, colours[k]);
    svg += text_at(x0 + 1.35 * dx, y0 + 1.35 * dy + 3.5, names[k], "text-anchor=\"middle\" font-size=\"10\"");
  }
  return svg;
}

void include_all(Projection& p, const Mechanism& m, const Scene& scene, const Poses& poses,
                 const PictureOptions& options) {
  for (const Scene::Solid& solid : scene.solids) {
    const config::DrawnShape& shape = solid.shape;
    const Vec3 half(0.0, 0.0, 0.5 * shape.size[2]);
    const Mat3 turn = rotation_of(shape.orientation);
    if (solid.mesh >= 0) {
      for (const Eigen::Vector3f& vertex : scene.meshes[static_cast<std::size_t>(solid.mesh)].vertices)
        p.include(in_world({shape.body, shape.position_b + turn * (shape.size[0] * vertex.cast<double>())}, poses),
                  0.0);
    } else if (shape.kind == config::DrawnShape::Kind::box) {
      for (int k = 0; k < 8; ++k) {
        const Vec3 corner = 0.5 * shape.size.cwiseProduct(Vec3(k & 1 ? 1 : -1, k & 2 ? 1 : -1, k & 4 ? 1 : -1));
        p.include(in_world({shape.body, shape.position_b + turn * corner}, poses), 0.0);
      }
    } else {
      for (const double side : {-1.0, 1.0})
        p.include(in_world({shape.body, shape.position_b + side * (turn * half)}, poses), shape.size[0]);
    }
  }
  for (const Scene::Line& line : scene.lines)
    for (const Scene::Point& point : line.points) p.include(in_world(point, poses), scene.thickness);
  for (const auto& trace : options.traces)
    for (const Vec3& point : trace) p.include(point, 0.0);
  for (std::size_t i = 0; i < m.bodies().size(); ++i) p.include(poses[i].r, scene.thickness);
}

}  // namespace

std::string draw(const Mechanism& m, const Scene& scene, const Poses& poses, const PictureOptions& options) {
  Projection p(toward_viewer(options.view, scene), up_of(options.view, scene));
  include_all(p, m, scene, poses, options);
  p.fit(options.width, options.height - kFoot, kBorder);
  double width = std::max(p.width(), 320.0);
  const double height = p.height() + kFoot;
  p.centre_in(width);
  std::vector<Label> labels;
  if (options.has_names && m.bodies().size() <= kMostNames) labels = labels_of(p, m, scene, poses);
  for (const Label& label : labels)
    width = std::max(width, label.x + kLetter * static_cast<double>(label.text.size()) + 6.0);
  Painter painter(p, scene);
  const BodyPose ground;
  for (const Scene::Solid& solid : scene.solids)
    painter.add_solid(solid, solid.shape.body == kGround ? ground : poses[static_cast<std::size_t>(solid.shape.body)]);
  for (const Scene::Line& line : scene.lines) painter.add_line(line, poses);
  for (std::size_t i = 0; i < m.bodies().size(); ++i)
    if (scene.is_sketched[i]) painter.add_mass_centre(poses[i].r);

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#1d2530\" role=\"img\">\n<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height, escape_markup(m.name()));
  if (scene.has_road && options.view != PictureView::front && options.view != PictureView::side)
    svg += road(p, m, scene);
  for (const auto& trace : options.traces) svg += path_of(p, trace);
  svg += painter.paint();
  svg += "<g paint-order=\"stroke\" stroke=\"#fff\" stroke-width=\"3\" stroke-linejoin=\"round\">\n";
  for (const Label& label : labels) svg += text_at(label.x, label.y, label.text, "");
  svg += "</g>\n";
  svg += legend(p, width, height);
  svg +=
      text_at(kBorder + 48.0, height - 14.0, options.caption.empty() ? m.name() : options.caption, "fill=\"#4a5564\"");
  return svg + "</svg>\n";
}

std::string draw(const config::LoadedMechanism& loaded, const PictureOptions& options) {
  return draw(loaded.mechanism, make_scene(loaded), poses_of(loaded.mechanism), options);
}

}  // namespace rigstep::server
