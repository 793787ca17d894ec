// Draws solids and lines of a scene as SVG, by projection; what is nearer lies above what is farther. Offline.
#pragma once

#include <string>
#include <vector>

#include "server/view/palette.h"
#include "server/view/projection.h"
#include "server/view/scene.h"

namespace rigstep::server {

class Painter {
 public:
  // Both outlive it.
  Painter(const Projection& projection, const Scene& scene) : p_(projection), scene_(scene) {}

  void add_solid(const Scene::Solid& solid, const BodyPose& body);
  void add_line(const Scene::Line& line, const Poses& poses);
  void add_mass_centre(const Vec3& at_0);  // a circle in four quarters
  std::string paint();                     // all that was added

 private:
  struct Piece {
    double depth = 0.0;
    std::string svg;
  };

  std::string style(double light) const;
  double light_of(const Vec3& normal) const;
  void push(const Vec3& at_0, std::string svg) { pieces_.push_back({p_.depth(at_0) + bias_, std::move(svg)}); }
  void add_sphere(const Vec3& centre, double radius);
  void add_capsule(const Vec3& centre, const Vec3& half, double radius);
  void add_cylinder(const Vec3& centre, Vec3 half, double radius, double inner);
  void add_box(const Vec3& centre, const Mat3& A, const Vec3& edges);
  void add_mesh(const TriangleMesh& mesh, const Vec3& centre, const Mat3& A, double scale);
  std::vector<Pixel> coil(const Vec3& from, const Vec3& to) const;
  void add_damper(const Vec3& from, const Vec3& to, double width, double depth);

  const Projection& p_;
  const Scene& scene_;
  Colour colour_{};    // of the solid that is being added
  double bias_ = 0.0;  // of its depth [m]
  std::vector<Piece> pieces_;
};

}  // namespace rigstep::server
