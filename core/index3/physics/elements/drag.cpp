#include "core/index3/physics/elements/drag.h"

namespace rigstep::index3 {

Vec3 drag_force(const Drag& drag, const Vec3& u) noexcept {
  return -0.5 * drag.density * drag.drag_area * u.norm() * u;
}

Mat3 drag_damping(const Drag& drag, const Vec3& u) noexcept {
  const double speed = u.norm();
  if (speed == 0.0) return Mat3::Zero();
  return 0.5 * drag.density * drag.drag_area * (speed * Mat3::Identity() + u * u.transpose() / speed);
}

Connectivity connectivity(const Drag& drag, const NoConstants&) {
  Connectivity connects;
  connects.bodies = connects.own_tangent = {drag.body};
  return connects;
}

bool slopes_change(const Drag&) { return false; }

DragPoint evaluate(const Drag& drag, const NoConstants&, const Surroundings& at) noexcept {
  const Placement& body = at.body[drag.body];
  const Vec3 arm = body.A * drag.point_b;
  return {arm, body.v + body.w.cross(arm) - drag.wind_0};
}

DragReading apply(const Drag& drag, const NoConstants&, const DragPoint& now, const Surroundings&,
                  const Loads& loads) noexcept {
  const Vec3 force = drag_force(drag, now.u);
  loads.add(drag.body, load_at(force, Vec3::Zero(), now.arm));
  return {force, now.u.norm()};
}

void add_tangent(const Drag& drag, const NoConstants&, const DragPoint& now, const Surroundings&,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept {
  Eigen::Matrix<double, 3, 6> J;
  J << Mat3::Identity(), -skew(now.arm);
  tangents.of[drag.body] += factors.damping * (J.transpose() * drag_damping(drag, now.u) * J);
}

void write(const DragReading& reading, double* to) noexcept {
  for (int k = 0; k < 3; ++k) to[k] = reading.force[k];
  to[3] = reading.speed;
}

}  // namespace rigstep::index3
