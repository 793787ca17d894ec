#include "core/offline/joint_motion.h"

#include <cmath>
#include <numbers>

namespace rigstep::offline {

namespace {

Mat3 skew(const Vec3& a) {
  Mat3 matrix;
  matrix << 0.0, -a.z(), a.y(), a.z(), 0.0, -a.x(), -a.y(), a.x(), 0.0;
  return matrix;
}

// A vector that turns with a body; side: 0 first, 1 second.
JetVec3 turning(const Vec3& vector_0, const Vec3& omega, int side) {
  JetVec3 jet;
  jet.value = vector_0;
  jet.gradient.block<3, 3>(0, 6 * side + 3) = -skew(vector_0);
  jet.rate = omega.cross(vector_0);
  jet.curvature = omega.cross(jet.rate);
  return jet;
}

struct Side {
  JetVec3 point;
  std::array<JetVec3, 3> axes;
  Vec3 arm = Vec3::Zero();
};

Side on_ground(const JointFrame& frame) {
  Side side;
  side.point.value = frame.point_b;
  for (int i = 0; i < 3; ++i) side.axes[i].value = frame.axes_b.col(i);
  return side;
}

Side on_body(const JointFrame& frame, const BodyMotion& body, int which) {
  Side side;
  const Mat3 A = rotation(body.p);
  side.arm = A * frame.point_b;
  side.point = turning(side.arm, body.omega_0, which);
  side.point.value += body.r_0;
  side.point.rate += body.v_0;
  side.point.gradient.block<3, 3>(0, 6 * which).setIdentity();
  for (int i = 0; i < 3; ++i) side.axes[i] = turning(A * frame.axes_b.col(i), body.omega_0, which);
  return side;
}

double nearest_turn(double angle, double reference) {
  return angle + 2.0 * std::numbers::pi * std::round((reference - angle) / (2.0 * std::numbers::pi));
}

// Cardan angles of A_second = A_first Rz Ry Rx.
Jet cardan_angle(Freedom freedom, const JointMotion& at) {
  const auto& a = at.first_axes;
  const auto& b = at.second_axes;
  const Jet Rxx = dot(a[0], b[0]), Ryx = dot(a[1], b[0]), Rzx = dot(a[2], b[0]);
  if (freedom == Freedom::first_angle) return atan2(Ryx, Rxx);
  if (freedom == Freedom::third_angle) return atan2(dot(a[2], b[1]), dot(a[2], b[2]));
  const double sine = -Rzx.value, cosine = std::sqrt(1.0 - sine * sine);
  return chain(Rzx, std::asin(sine), -1.0 / cosine, sine / (cosine * cosine * cosine));
}

Jet universal_angle(Freedom freedom, const JointMotion& at) {
  const auto& a = at.first_axes;
  const auto& b = at.second_axes;
  if (freedom == Freedom::first_angle) return atan2(dot(a[1], b[2]), dot(a[0], b[2]));
  return -1.0 * atan2(dot(b[1], a[2]), dot(b[0], a[2]));
}

}  // namespace

Mat3 rotation(const EulerParameters& p) {
  const Eigen::Quaterniond quaternion(p[0], p[1], p[2], p[3]);
  return quaternion.normalized().toRotationMatrix();
}

std::vector<BodyMotion> start_motion(const Mechanism& mechanism) {
  std::vector<BodyMotion> start;
  for (const Body& body : mechanism.bodies())
    start.push_back({body.position_0, body.orientation, body.velocity_0, body.angular_velocity_0});
  return start;
}

JointMotion joint_motion(int first, const JointFrame& in_first, int second, const JointFrame& in_second,
                         std::span<const BodyMotion> bodies) {
  const Side one = first == kGround ? on_ground(in_first) : on_body(in_first, bodies[first], 0);
  const Side two = second == kGround ? on_ground(in_second) : on_body(in_second, bodies[second], 1);
  return {two.point - one.point, one.axes, two.axes, two.arm};
}

JointMotion joint_motion(const Joint& joint, std::span<const BodyMotion> bodies) {
  return joint_motion(joint.first, joint.in_first, joint.second, joint.in_second, bodies);
}

Jet measured(const Joint& joint, Freedom freedom, const JointMotion& at) {
  const auto& a = at.first_axes;
  const auto& b = at.second_axes;
  switch (freedom) {
    case Freedom::displacement:
    case Freedom::displacement_z:
      return dot(a[2], at.gap);
    case Freedom::displacement_x:
      return dot(a[0], at.gap);
    case Freedom::displacement_y:
      return dot(a[1], at.gap);
    case Freedom::angle: {
      Jet angle = atan2(dot(a[1], b[0]), dot(a[0], b[0]));
      if (joint.type == JointType::screw)
        angle.value = nearest_turn(angle.value, 2.0 * std::numbers::pi / joint.lead * dot(a[2], at.gap).value);
      return angle;
    }
    case Freedom::first_angle:
    case Freedom::second_angle:
    case Freedom::third_angle:
      return joint.type == JointType::universal ? universal_angle(freedom, at) : cardan_angle(freedom, at);
  }
  return {};
}

CoordinateFollower::CoordinateFollower(const Mechanism& mechanism)
    : mechanism_(&mechanism), last_(mechanism.coordinates().size(), 0.0), last_rate_(last_.size(), 0.0) {}

std::vector<Jet> CoordinateFollower::follow(std::span<const BodyMotion> bodies, double t) {
  std::vector<Jet> values(last_.size());
  const double half = has_begun_ ? 0.5 * (t - last_time_) : 0.0;
  for (std::size_t i = 0; i < last_.size(); ++i) {
    const JointCoordinate& coordinate = mechanism_->coordinates()[i];
    const Joint& joint = mechanism_->joints()[coordinate.joint];
    values[i] = measured(joint, coordinate.freedom, joint_motion(joint, bodies));
    if (!is_length(coordinate.freedom) && joint.type != JointType::screw)
      values[i].value = nearest_turn(values[i].value, last_[i] + half * (last_rate_[i] + values[i].rate));
    last_[i] = values[i].value;
    last_rate_[i] = values[i].rate;
    values[i].value += coordinate.offset;
  }
  last_time_ = t;
  has_begun_ = true;
  return values;
}

}  // namespace rigstep::offline
