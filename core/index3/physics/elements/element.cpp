#include "core/index3/physics/elements/element.h"

namespace rigstep::index3 {

Coordinate follow_coordinate(int index, double reference, const Surroundings& at) noexcept {
  const JointCoordinate& c = at.mechanism.coordinates()[index];
  const Joint& joint = at.mechanism.joints()[c.joint];
  const JointPlacement& placed = at.joint[c.joint];
  Coordinate x = coordinate(c.freedom, placed, at.placement(joint.first), at.placement(joint.second));
  x.value = followed(c.freedom, placed, x.value + c.offset, reference);
  return x;
}

Coordinate distance_of_points(int first_body, const Vec3& first_point_b, int second_body, const Vec3& second_point_b,
                              const Vec3* direction_0, const Surroundings& at) noexcept {
  const Placement &first = at.placement(first_body), &second = at.placement(second_body);
  const Vec3 arm_first = first.A * first_point_b, arm_second = second.A * second_point_b;
  const Vec3 d = (second.r + arm_second) - (first.r + arm_first);
  const Vec3 d_rate = (second.v + second.w.cross(arm_second)) - (first.v + first.w.cross(arm_first));
  const double length = d.norm();
  const Vec3 direction = direction_0 ? *direction_0 : length > 0.0 ? Vec3(d / length) : Vec3(Vec3::Zero());
  Coordinate c;
  c.value = direction_0 ? direction.dot(d) : length;
  c.rate = direction.dot(d_rate);
  c.first << -direction, -arm_first.cross(direction);
  c.second << direction, arm_second.cross(direction);
  return c;
}

void add_string(const Span& span, double tension, double stiffness_factor, const OwnTangents& tangents) noexcept {
  if (!(tension > 0.0 && span.length > 0.0)) return;
  const Mat3 across =
      stiffness_factor * tension / span.length * (Mat3::Identity() - span.direction * span.direction.transpose());
  const auto add_to = [&](int body, const Vec3& arm) {
    if (body == kGround) return;
    Eigen::Matrix<double, 3, 6> J;
    J << Mat3::Identity(), -skew(arm);
    tangents.of[body] += J.transpose() * across * J;
  };
  add_to(span.first, span.arm_first);
  add_to(span.second, span.arm_second);
}

}  // namespace rigstep::index3
