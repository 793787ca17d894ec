#include "core/index3/physics/kinematics.h"

namespace rigstep::index3 {

Mat3 rotation_matrix(const EulerParameters& p) noexcept {
  const double e0 = p[0], e1 = p[1], e2 = p[2], e3 = p[3];
  Mat3 A;
  A << e0 * e0 + e1 * e1 - e2 * e2 - e3 * e3, 2.0 * (e1 * e2 - e0 * e3), 2.0 * (e1 * e3 + e0 * e2),
      2.0 * (e1 * e2 + e0 * e3), e0 * e0 - e1 * e1 + e2 * e2 - e3 * e3, 2.0 * (e2 * e3 - e0 * e1),
      2.0 * (e1 * e3 - e0 * e2), 2.0 * (e2 * e3 + e0 * e1), e0 * e0 - e1 * e1 - e2 * e2 + e3 * e3;
  return A;
}

EulerParameters turned(const EulerParameters& p, const Vec3& theta_0) noexcept {
  const Vec3 e = p.tail<3>();
  EulerParameters q;
  q << p[0] - 0.5 * theta_0.dot(e), e + 0.5 * (p[0] * theta_0 + theta_0.cross(e));
  return q / q.norm();
}

Placement placement_of(const BodyState& body) noexcept {
  const Mat3 A = rotation_matrix(body.p);
  return {body.r, A, body.v, A * body.w_b};
}

}  // namespace rigstep::index3
