// What a mechanism file says about how it looks. Load time only; no solver knows of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/mechanism/types.h"

namespace rigstep::wire {
class Mechanism;
}

namespace rigstep::config {

class TextSource;

struct DrawnShape {
  enum class Kind {
    box,       // size: whole edges
    cylinder,  // size: radius, -, length; along z
    tube,      // size: outer radius, inner radius, length; along z
    sphere,    // size: radius
    capsule,   // size: radius, -, length between the centres of the half spheres; along z
    mesh,      // size: metres per unit of `file`, three times
  };
  int body = kGround;
  Kind kind = Kind::box;
  Vec3 size = Vec3::Zero();                           // [m]
  Vec3 position_b = Vec3::Zero();                     // from the mass centre, body frame; ground: world frame [m]
  EulerParameters orientation{1.0, 0.0, 0.0, 0.0};    // shape -> body, unit norm
  std::optional<std::array<std::uint8_t, 4>> colour;  // red, green, blue, opacity
  std::string file;                                   // mesh: from the mechanism file's folder, and never outside it
};

// In the order of the bodies, those of the ground last. A body with shape_inertia and without shapes has that solid.
// Throws ConfigError with file:line. Does not read the files of meshes.
std::vector<DrawnShape> load_shapes(const wire::Mechanism& file, const TextSource& source);

}  // namespace rigstep::config
