// Placements of bodies, moved a little: what derivatives are differenced over.
#pragma once

#include "core/index3/physics/kinematics.h"
#include "tests/support/random.h"

namespace rigstep::test {

using index3::Placement;

// error of a central difference with step 1e-5 on functions of size 1 to 10: 1e-10 truncation, 1e-10 rounding
inline constexpr double kStep = 1e-5;
inline constexpr double kError = 2e-9;

inline Placement moved(const Placement& at, const Vec3& dr, const Vec3& dtheta) {
  Placement to = at;
  to.r += dr;
  if (dtheta.norm() > 0.0) to.A = Eigen::AngleAxisd(dtheta.norm(), dtheta.normalized()) * at.A;
  return to;
}

inline Placement moved(const Placement& at, int component, double step) {
  const Vec3 d = step * Vec3::Unit(component % 3);
  return component < 3 ? moved(at, d, Vec3::Zero()) : moved(at, Vec3::Zero(), d);
}

inline Placement random_placement(Random& random) {
  return {random.vector(), random.rotation().toRotationMatrix(), random.vector(), random.vector()};
}

}  // namespace rigstep::test
