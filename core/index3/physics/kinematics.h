// Where a body is and how it moves, in the world frame, and the Euler parameter identities of [001] (4)-(8).
// Called in the loop.
#pragma once

#include <Eigen/Geometry>

#include "core/index3/state.h"

namespace rigstep::index3 {

// Position and motion of one body; the ground is a Placement that never changes.
struct Placement {
  Vec3 r = Vec3::Zero();      // mass centre, world frame [m]
  Mat3 A = Mat3::Identity();  // body -> world
  Vec3 v = Vec3::Zero();      // world frame [m/s]
  Vec3 w = Vec3::Zero();      // angular velocity, world frame [rad/s]
};

inline const Placement kGroundPlacement{};

inline Mat3 skew(const Vec3& x) {
  Mat3 m;
  m << 0.0, -x[2], x[1], x[2], 0.0, -x[0], -x[1], x[0], 0.0;
  return m;
}

// A(p) for unit p.
Mat3 rotation_matrix(const EulerParameters& p) noexcept;

// 2 G(p) x: turns rates of p into body-frame angular velocity, w_b = 2 G(p) pd. G(p) p = 0.
inline Vec3 twice_G(const EulerParameters& p, const EulerParameters& x) {
  const Vec3 e = p.tail<3>(), y = x.tail<3>();
  return 2.0 * (p[0] * y - x[0] * e - e.cross(y));
}

// G(p)' w / 2: the rate of p of a body that turns with w_b.
inline EulerParameters half_G_transposed(const EulerParameters& p, const Vec3& w_b) {
  const Vec3 e = p.tail<3>();
  EulerParameters rate;
  rate << -0.5 * e.dot(w_b), 0.5 * (p[0] * w_b + e.cross(w_b));
  return rate;
}

// p turned by the small rotation vector theta (world frame), first order, normalised: what Newton's update needs.
EulerParameters turned(const EulerParameters& p, const Vec3& theta_0) noexcept;

Placement placement_of(const BodyState& body) noexcept;

}  // namespace rigstep::index3
