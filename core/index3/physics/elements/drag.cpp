#include "core/index3/physics/elements/drag.h"

namespace rigstep::index3 {

Vec3 drag_force(const Drag& drag, const Vec3& u) noexcept {
  return -0.5 * drag.density * drag.drag_area * u.norm() * u;
}

// J' (speed E + u u' / speed) J with J = (E, -skew(arm))
Mat6 drag_damping(const Drag& drag, const DragPoint& at) noexcept {
  const double speed = at.u.norm(), factor = 0.5 * drag.density * drag.drag_area;
  if (speed == 0.0) return Mat6::Zero();
  const Mat3 S = skew(at.arm);
  Mat6 J_J;
  J_J << Mat3::Identity(), -S, S, at.arm.squaredNorm() * Mat3::Identity() - at.arm * at.arm.transpose();
  const Vec6 along = load_at(at.u, Vec3::Zero(), at.arm);
  return (factor * speed) * J_J + (factor / speed) * (along * along.transpose());
}

LaneNumbersOf<Drag> lane_numbers(const Drag& drag, const double*) noexcept {
  return LaneNumbers<kDragNumbers>::of(drag.point_b, drag.wind_0, 0.5 * drag.density * drag.drag_area);
}

DragPoint from_lane(const Drag&, const FoundInLane& found) noexcept {
  return {found.three(0), found.three(kVelocityOfDrag)};
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
  tangents.of[drag.body] += factors.damping * drag_damping(drag, now);
}

void write(const DragReading& reading, double* to) noexcept {
  for (int k = 0; k < 3; ++k) to[k] = reading.force[k];
  to[3] = reading.speed;
}

}  // namespace rigstep::index3
