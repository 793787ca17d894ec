#include "server/view/scene.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/index3/physics/kinematics.h"
#include "core/mechanism/orientation.h"

namespace rigstep::server {
namespace {

using config::DrawnShape;
using Kind = DrawnShape::Kind;
using Role = Scene::Role;

constexpr double kThickness = 0.009;      // of a link, per size of the scene
constexpr double kMostThickness = 0.055;  // per length of a usual link
constexpr double kTyreWidth = 0.55;       // per radius
constexpr double kMostStar = 2.2;         // length of a star of bars, per length of the shortest frame
constexpr double kRim = 0.62;             // per radius

EulerParameters turn_of_z(const Vec3& direction) {
  const Vec3 z = direction.normalized(), x = z.unitOrthogonal();
  Mat3 axes;
  axes << x, z.cross(x), z;
  return from_axes(axes);
}

DrawnShape solid(Kind kind, int body, const Vec3& size, const Vec3& at_b, const EulerParameters& turn) {
  DrawnShape shape;
  shape.kind = kind;
  shape.body = body;
  shape.size = size;
  shape.position_b = at_b;
  shape.orientation = turn;
  return shape;
}

// Of a mesh from its origin [m].
double reach_of(const TriangleMesh& mesh, const DrawnShape& shape) {
  float reach = 0.0f;
  for (const Eigen::Vector3f& vertex : mesh.vertices) reach = std::max(reach, vertex.norm());
  return static_cast<double>(reach) * shape.size[0];
}

// What makes the scene of a mechanism, in the order of its functions.
class SceneMaker {
 public:
  SceneMaker(const config::LoadedMechanism& loaded, Scene& scene)
      : m_(loaded.mechanism), scene_(scene), start_(poses_of(m_)), points_(m_.bodies().size()) {
    scene_.is_sketched.assign(m_.bodies().size(), true);
    add_shapes(loaded);
    collect_points();
    find_plane();
    measure();
    for (int i = 0; i < static_cast<int>(m_.bodies().size()); ++i)
      if (scene_.is_sketched[static_cast<std::size_t>(i)]) sketch(i);
    for (std::size_t j = 0; j < m_.joints().size(); ++j) add_joint(static_cast<int>(j));
    for (const Tyre& tyre : m_.tyres()) add_tyre(tyre);
    add_supports();
    add_lines();
  }

 private:
  void attach(int body, const Vec3& point_b) {
    if (body == kGround)
      ground_points_.push_back(point_b);
    else
      points_[static_cast<std::size_t>(body)].push_back(point_b);
  }

  void add_shapes(const config::LoadedMechanism& loaded) {
    const std::filesystem::path folder = std::filesystem::path(loaded.path).parent_path();
    for (const DrawnShape& shape : loaded.shapes) {
      Scene::Solid solid{shape};
      if (shape.kind == Kind::mesh) {
        try {
          scene_.meshes.push_back(read_mesh((folder / shape.file).string()));
        } catch (const MeshError& error) {
          scene_.problems.emplace_back(error.what());
          continue;
        }
        solid.mesh = static_cast<int>(scene_.meshes.size()) - 1;
      }
      if (shape.body != kGround) scene_.is_sketched[static_cast<std::size_t>(shape.body)] = false;
      scene_.solids.push_back(solid);
    }
  }

  // Where bodies are held, pushed and pulled.
  void collect_points() {
    for (const Joint& j : m_.joints()) {
      if (j.type == JointType::floating || j.type == JointType::parallel_axes ||
          j.type == JointType::perpendicular_axes)
        continue;
      attach(j.first, j.in_first.point_b);
      attach(j.second, j.in_second.point_b);
    }
    for (const Spring& s : m_.springs())
      if (s.kind != Spring::Kind::in_joint) attach(s.first, s.first_point_b), attach(s.second, s.second_point_b);
    for (const Bushing& b : m_.bushings()) attach(b.first, b.in_first.point_b), attach(b.second, b.in_second.point_b);
    for (const Rope& rope : m_.all<Rope>())
      for (const Rope::Point& p : rope.points) attach(p.body, p.point_b);
    for (const Tyre& tyre : m_.tyres()) attach(tyre.body, tyre.centre_b);
    scene_.has_road = !m_.tyres().empty();
  }

  Vec3 world(int body, const Vec3& point_b) const { return in_world({body, point_b}, start_); }

  Vec3 direction(int body, const Vec3& direction_b) const {
    return body == kGround
               ? direction_b
               : Vec3(index3::rotation_matrix(m_.bodies()[static_cast<std::size_t>(body)].orientation) * direction_b);
  }

  // All joints turn about one direction, and what slides does so across it.
  void find_plane() {
    Vec3 normal = Vec3::Zero();
    bool is_plane = true;
    std::vector<Vec3> slides;
    for (const Joint& j : m_.joints()) {
      const Vec3 axis = direction(j.first, j.in_first.axes_b.col(2));
      if (j.type == JointType::prismatic) {
        slides.push_back(axis);
      } else if (j.type == JointType::revolute || j.type == JointType::planar) {
        if (normal.isZero()) normal = axis;
        is_plane = is_plane && normal.cross(axis).norm() < 1e-6;
      } else if (j.type != JointType::fixed) {
        is_plane = false;
      }
    }
    for (const Vec3& slide : slides) is_plane = is_plane && std::abs(normal.dot(slide)) < 1e-6;
    is_plane = is_plane && !normal.isZero();
    const double g = m_.gravity_0().norm();
    if (g > 0.0) scene_.up_0 = -m_.gravity_0() / g;
    if (is_plane && scene_.up_0.cross(normal).norm() < 1e-3)
      scene_.up_0 = normal.cross(Vec3::UnitY()).norm() > 0.5 ? Vec3::UnitY() : Vec3::UnitZ();
    if (!is_plane || std::abs(scene_.up_0.dot(normal)) > 1e-3) return;
    const Vec3 right = scene_.up_0.cross(normal);
    Eigen::Index largest = 0;
    right.cwiseAbs().maxCoeff(&largest);
    scene_.plane_normal_0 = right[largest] > 0.0 ? normal : Vec3(-normal);
  }

  // Sizes that suit all of it.
  void measure() {
    Vec3 low = Vec3::Constant(1e300), high = Vec3::Constant(-1e300);
    const auto include = [&](const Vec3& point_0, double margin) {
      low = low.cwiseMin(Vec3(point_0.array() - margin));
      high = high.cwiseMax(Vec3(point_0.array() + margin));
    };
    std::vector<double> lengths;
    for (std::size_t i = 0; i < m_.bodies().size(); ++i) {
      include(start_[i].r, 0.0);
      double length = 0.0;
      for (const Vec3& a : points_[i]) {
        include(world(static_cast<int>(i), a), 0.0);
        length = std::max(length, 2.0 * a.norm());
        for (const Vec3& b : points_[i]) length = std::max(length, (a - b).norm());
      }
      if (length > 0.0) lengths.push_back(length);
    }
    for (const Vec3& point : ground_points_) include(point, 0.0);
    for (const Tyre& tyre : m_.tyres()) include(world(tyre.body, tyre.centre_b), tyre.radius);
    for (const Scene::Solid& drawn : scene_.solids) {
      const double reach = drawn.mesh >= 0 ? reach_of(scene_.meshes[static_cast<std::size_t>(drawn.mesh)], drawn.shape)
                           : drawn.shape.kind == Kind::box ? 0.4 * drawn.shape.size.norm()
                                                           : std::max(drawn.shape.size[0], 0.5 * drawn.shape.size[2]);
      include(world(drawn.shape.body, drawn.shape.position_b), reach);
    }
    scene_.size = std::max((high - low).norm(), 1e-9);
    scene_.centre_0 = 0.5 * (low + high);
    if (scene_.size <= 1e-9) scene_.size = 1.0;
    scene_.thickness = kThickness * scene_.size;
    if (lengths.empty()) return;
    std::nth_element(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2), lengths.end());
    scene_.thickness = std::min(scene_.thickness, kMostThickness * lengths[lengths.size() / 2]);
  }

  void add(const DrawnShape& shape, Role role, int joint = -1) { scene_.solids.push_back({shape, role, joint, -1}); }

  void add_bar(int body, const Vec3& from, const Vec3& to, double radius, Role role, int joint = -1) {
    const double length = (to - from).norm();
    if (length < 1e-3 * scene_.thickness) return;
    add(solid(Kind::capsule, body, {radius, 0.0, length}, 0.5 * (from + to), turn_of_z(to - from)), role, joint);
  }

  std::vector<Vec3> distinct(const std::vector<Vec3>& points) const {
    std::vector<Vec3> all;
    for (const Vec3& p : points)
      if (std::none_of(all.begin(), all.end(), [&](const Vec3& q) { return (p - q).norm() < scene_.thickness; }))
        all.push_back(p);
    return all;
  }

  // The bars of least length that join the points and the mass centre (R. C. Prim, 1957).
  static std::vector<std::pair<Vec3, Vec3>> shortest_frame(std::vector<Vec3> points) {
    std::vector<std::pair<Vec3, Vec3>> bars;
    std::vector<Vec3> joined{Vec3::Zero()};
    while (!points.empty()) {
      std::pair<std::size_t, Vec3> best{0, joined[0]};
      double least = (points[0] - joined[0]).norm();
      for (std::size_t k = 0; k < points.size(); ++k)
        for (const Vec3& from : joined)
          if (const double length = (points[k] - from).norm(); length < least) least = length, best = {k, from};
      bars.emplace_back(best.second, points[best.first]);
      joined.push_back(points[best.first]);
      points.erase(points.begin() + static_cast<std::ptrdiff_t>(best.first));
    }
    return bars;
  }

  // A body without shapes: bars between the points where it is held.
  void sketch(int body) {
    const double r = scene_.thickness;
    const std::vector<Vec3> points = distinct(points_[static_cast<std::size_t>(body)]);
    const bool is_at_mass_centre = points.size() == 1 && points[0].norm() < r;
    if (points.empty() || is_at_mass_centre) return has_tyre(body) ? void() : add_inertia_box(body);
    if (points.size() == 2) {
      const Vec3 along = points[1] - points[0];
      const double aside = points[0].cross(along).norm() / along.norm();
      const bool is_between = points[0].dot(along) < 0.0 && points[1].dot(along) > 0.0;
      if (is_between && aside < 0.15 * along.norm()) return add_bar(body, points[0], points[1], r, Role::link);
    }
    const auto frame = shortest_frame(points);
    double star = 0.0, framed = 0.0;  // [m]
    for (const Vec3& p : points) star += p.norm();
    for (const auto& [from, to] : frame) framed += (to - from).norm();
    if (star < kMostStar * framed)
      for (const Vec3& p : points) add_bar(body, Vec3::Zero(), p, r, Role::link);
    else
      for (const auto& [from, to] : frame) add_bar(body, from, to, r, Role::link);
    if (points.size() == 1) add(solid(Kind::sphere, body, {2.4 * r, 0.0, 0.0}, Vec3::Zero(), {1, 0, 0, 0}), Role::link);
  }

  bool has_tyre(int body) const {
    return std::any_of(m_.tyres().begin(), m_.tyres().end(), [body](const Tyre& tyre) { return tyre.body == body; });
  }

  // The box that has the body's moments of inertia.
  void add_inertia_box(int body) {
    const Body& b = m_.bodies()[static_cast<std::size_t>(body)];
    const Vec3 moments = b.inertia_b.diagonal() / b.mass;
    Vec3 edges;
    for (int k = 0; k < 3; ++k) edges[k] = std::sqrt(std::max(0.0, 6.0 * (moments.sum() - 2.0 * moments[k])));
    edges = edges.cwiseMax(2.0 * scene_.thickness).cwiseMin(7.0 * scene_.thickness);
    add(solid(Kind::box, body, edges, Vec3::Zero(), {1, 0, 0, 0}), Role::link);
  }

  void add_joint(int j) {
    const Joint& joint = m_.joints()[static_cast<std::size_t>(j)];
    const double r = scene_.thickness;
    const Vec3 first = joint.in_first.point_b, second = joint.in_second.point_b;
    const EulerParameters turn = from_axes(joint.in_first.axes_b), second_turn = from_axes(joint.in_second.axes_b);
    const Vec3 axis = joint.in_first.axes_b.col(2);
    const auto rail = [&] {
      add_bar(joint.first, first - 9.0 * r * axis, first + 9.0 * r * axis, 0.55 * r, Role::joint, j);
    };
    switch (joint.type) {
      case JointType::revolute:
        return add(solid(Kind::cylinder, joint.first, {1.7 * r, 0.0, 3.6 * r}, first, turn), Role::joint, j);
      case JointType::spherical:
      case JointType::point_on_point:
      case JointType::gimbal:
        return add(solid(Kind::sphere, joint.first, {1.8 * r, 0.0, 0.0}, first, turn), Role::joint, j);
      case JointType::universal:
        add(solid(Kind::cylinder, joint.first, {0.8 * r, 0.0, 5.0 * r}, first, turn), Role::joint, j);
        return add(solid(Kind::cylinder, joint.second, {0.8 * r, 0.0, 5.0 * r}, second, second_turn), Role::joint, j);
      case JointType::prismatic:
        rail();
        return add(solid(Kind::box, joint.second, {3.4 * r, 3.4 * r, 5.0 * r}, second, second_turn), Role::joint, j);
      case JointType::cylindrical:
      case JointType::screw:
        rail();
        return add(solid(Kind::cylinder, joint.second, {1.7 * r, 0.0, 5.0 * r}, second, second_turn), Role::joint, j);
      case JointType::point_on_line:
        rail();
        return add(solid(Kind::sphere, joint.second, {1.8 * r, 0.0, 0.0}, second, second_turn), Role::joint, j);
      case JointType::planar:
      case JointType::point_on_plane:
        add(solid(Kind::box, joint.first, {12.0 * r, 12.0 * r, 0.4 * r}, first, turn), Role::joint, j);
        return add(solid(Kind::sphere, joint.second, {1.8 * r, 0.0, 0.0}, second, second_turn), Role::joint, j);
      case JointType::fixed:
        return add(solid(Kind::box, joint.first, {2.6 * r, 2.6 * r, 2.6 * r}, first, turn), Role::joint, j);
      case JointType::distance:
        scene_.lines.push_back({Scene::Line::Kind::rod, joint.name, {{joint.first, first}, {joint.second, second}}});
        add(solid(Kind::sphere, joint.first, {1.4 * r, 0.0, 0.0}, first, turn), Role::joint, j);
        return add(solid(Kind::sphere, joint.second, {1.4 * r, 0.0, 0.0}, second, second_turn), Role::joint, j);
      case JointType::perpendicular_axes:
      case JointType::parallel_axes:
      case JointType::floating:
        return;
    }
  }

  void add_tyre(const Tyre& tyre) {
    const Vec3 size(tyre.radius, kRim * tyre.radius, kTyreWidth * tyre.radius);
    add(solid(Kind::tube, tyre.body, size, tyre.centre_b, turn_of_z(tyre.axis_b)), Role::wheel);
    const Vec3 hub(kRim * tyre.radius, 0.0, 0.3 * kTyreWidth * tyre.radius);
    add(solid(Kind::cylinder, tyre.body, hub, tyre.centre_b, turn_of_z(tyre.axis_b)), Role::link);
  }

  // What holds to the ground stands on a small block.
  void add_supports() {
    const double r = scene_.thickness;
    const EulerParameters turn = turn_of_z(scene_.up_0);
    for (const Vec3& point : distinct(ground_points_)) {
      const Vec3 foot = point - 4.2 * r * scene_.up_0;
      add_bar(kGround, point, foot, 0.9 * r, Role::support);
      add(solid(Kind::box, kGround, {7.0 * r, 7.0 * r, 1.4 * r}, foot, turn), Role::support);
    }
  }

  void add_lines() {
    for (const Spring& s : m_.springs()) {
      if (s.kind == Spring::Kind::in_joint) continue;
      const bool is_elastic = s.stiffness != 0.0 || !s.stiffness_table.empty();
      scene_.lines.push_back({is_elastic ? Scene::Line::Kind::spring : Scene::Line::Kind::damper,
                              s.name,
                              {{s.first, s.first_point_b}, {s.second, s.second_point_b}}});
    }
    for (const Rope& rope : m_.all<Rope>()) {
      scene_.lines.push_back({Scene::Line::Kind::rope, rope.name, {}});
      for (const Rope::Point& p : rope.points) scene_.lines.back().points.push_back({p.body, p.point_b});
    }
  }

  const Mechanism& m_;
  Scene& scene_;
  const Poses start_;
  std::vector<std::vector<Vec3>> points_;  // of each body, body frame [m]
  std::vector<Vec3> ground_points_;        // world frame [m]
};

}  // namespace

Poses poses_of(const Mechanism& mechanism) {
  Poses poses;
  for (const Body& b : mechanism.bodies()) poses.push_back({b.position_0, b.orientation});
  return poses;
}

Poses poses_of(const index3::State& state) {
  Poses poses;
  for (const index3::BodyState& b : state.body) poses.push_back({b.r, b.p});
  return poses;
}

Scene make_scene(const config::LoadedMechanism& loaded) {
  Scene scene;
  SceneMaker(loaded, scene);
  return scene;
}

Colour colour_of(const Scene::Solid& solid) {
  if (solid.shape.colour) return *solid.shape.colour;
  switch (solid.role) {
    case Scene::Role::joint:
      return kJointColour;
    case Scene::Role::support:
      return kSupportColour;
    case Scene::Role::wheel:
      return kWheelColour;
    case Scene::Role::shape:
    case Scene::Role::link:
      break;
  }
  return body_colour(solid.shape.body);
}

Mat3 rotation_of(const EulerParameters& p) { return index3::rotation_matrix(p); }

Vec3 in_world(const Scene::Point& point, const Poses& poses) {
  if (point.body == kGround) return point.point_b;
  const BodyPose& pose = poses[static_cast<std::size_t>(point.body)];
  return pose.r + rotation_of(pose.p) * point.point_b;
}

}  // namespace rigstep::server
