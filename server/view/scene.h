// How a mechanism looks: solids that bodies carry, and lines between points of bodies. Made from the shapes of the
// mechanism file and, for bodies without any, from their joints, connections and mass centres, so that a linkage reads
// as one. The picture (picture.h) and the page draw the same scene. Load time, immutable afterwards.
#pragma once

#include <string>
#include <vector>

#include "core/index3/state.h"
#include "proto/load_mechanism.h"
#include "server/view/mesh_file.h"
#include "server/view/palette.h"

namespace rigstep::server {

struct BodyPose {
  Vec3 r = Vec3::Zero();                  // mass centre, world frame [m]
  EulerParameters p{1.0, 0.0, 0.0, 0.0};  // body -> world
};
using Poses = std::vector<BodyPose>;  // of each body

Poses poses_of(const Mechanism& mechanism);  // at the start, as written
Poses poses_of(const index3::State& state);

struct Scene {
  enum class Role { shape, link, joint, support, wheel };
  struct Solid {
    config::DrawnShape shape;
    Role role = Role::shape;
    int joint = -1;  // that a solid of the role joint stands for
    int mesh = -1;   // index into meshes, of the kind mesh
  };
  struct Point {
    int body = kGround;
    Vec3 point_b = Vec3::Zero();  // from the mass centre, body frame; ground: world frame [m]
  };
  struct Line {
    enum class Kind { spring, damper, rope, rod };
    Kind kind = Kind::spring;
    std::string name;  // of the force element or joint
    std::vector<Point> points;
  };

  std::vector<Solid> solids;
  std::vector<Line> lines;
  std::vector<TriangleMesh> meshes;
  std::vector<std::string> problems;  // files of meshes that cannot be drawn, and why: for people
  std::vector<bool> is_sketched;      // bodies without shapes: their mass centres are marked
  double thickness = 0.0;             // radius of the links of sketched bodies [m]
  double size = 0.0;                  // diagonal of what is drawn at the start [m]
  Vec3 centre_0 = Vec3::Zero();       // of what is drawn at the start [m]
  Vec3 up_0 = Vec3::UnitZ();          // against gravity, else the axis that drawings have upwards
  // Across the plane in which everything moves, unit, towards the viewer; zero: nothing moves in one plane.
  Vec3 plane_normal_0 = Vec3::Zero();
  bool has_road = false;
};

// Meshes are read from the folder of the mechanism file; one that cannot be read is left out, see Scene::problems.
Scene make_scene(const config::LoadedMechanism& loaded);

// As the file says, else by role and body.
Colour colour_of(const Scene::Solid& solid);

Mat3 rotation_of(const EulerParameters& p);
// A point that a body carries, in the world.
Vec3 in_world(const Scene::Point& point, const Poses& poses);

}  // namespace rigstep::server
