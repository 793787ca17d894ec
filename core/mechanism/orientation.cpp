#include "core/mechanism/orientation.h"

#include "core/mechanism/portable_math.h"

namespace rigstep {
namespace {

Eigen::Quaterniond quaternion(const EulerParameters& p) { return {p[0], p[1], p[2], p[3]}; }

EulerParameters parameters(const Eigen::Quaterniond& q) { return {q.w(), q.x(), q.y(), q.z()}; }

}  // namespace

EulerParameters turned_about(const Vec3& axis, double angle) {
  const Vec3 vector = sine(0.5 * angle) * axis;
  return {sine(0.5 * (angle + kPi)), vector.x(), vector.y(), vector.z()};
}

EulerParameters product(const EulerParameters& outer, const EulerParameters& inner) {
  return parameters(quaternion(outer) * quaternion(inner));
}

Mat3 axes_of(const EulerParameters& p) { return quaternion(p).toRotationMatrix(); }

EulerParameters from_axes(const Mat3& axes_0) { return parameters(Eigen::Quaterniond(axes_0)); }

}  // namespace rigstep
