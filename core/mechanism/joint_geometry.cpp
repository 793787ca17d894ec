#include "core/mechanism/joint_geometry.h"

#include <algorithm>
#include <cmath>

#include "core/mechanism/portable_math.h"

namespace rigstep {

namespace {

enum class Turn { none, about_axis, about_two_axes, cardan, any };

// What a joint leaves free: shifts along the first frame's axes, and turns.
struct Freeness {
  std::array<bool, 3> shift{false, false, false};
  Turn turn = Turn::none;
};

Freeness freeness(JointType type) {
  switch (type) {
    case JointType::spherical:
    case JointType::point_on_point:
      return {{false, false, false}, Turn::any};
    case JointType::gimbal:
      return {{false, false, false}, Turn::cardan};
    case JointType::revolute:
      return {{false, false, false}, Turn::about_axis};
    case JointType::prismatic:
      return {{false, false, true}, Turn::none};
    case JointType::cylindrical:
    case JointType::screw:
      return {{false, false, true}, Turn::about_axis};
    case JointType::universal:
      return {{false, false, false}, Turn::about_two_axes};
    case JointType::fixed:
      return {{false, false, false}, Turn::none};
    case JointType::point_on_line:
      return {{false, false, true}, Turn::any};
    case JointType::perpendicular_axes:
      return {{true, true, true}, Turn::about_two_axes};
    case JointType::parallel_axes:
      return {{true, true, true}, Turn::about_axis};
    case JointType::planar:
      return {{true, true, false}, Turn::about_axis};
    case JointType::point_on_plane:
      return {{true, true, false}, Turn::any};
    case JointType::distance:
      return {{true, true, true}, Turn::any};
    case JointType::floating:
      return {{true, true, true}, Turn::cardan};
  }
  return {};
}

// gap . a_k
JointScalar shift(const JointAt& at, int k) {
  const Vec3 a = at.a.col(k);
  JointScalar s;
  s.value = a.dot(at.gap);
  s.first << -a, -(at.first_arm + at.gap).cross(a);
  s.second << a, at.second_arm.cross(a);
  return s;
}

// a_i . b_k
JointScalar cosine(const JointAt& at, int i, int k) {
  const Vec3 a = at.a.col(i), b = at.b.col(k), turn = a.cross(b);
  JointScalar s;
  s.value = a.dot(b);
  s.first << Vec3::Zero(), turn;
  s.second << Vec3::Zero(), -turn;
  return s;
}

// The angle whose sine and cosine are in the proportion of y and x.
JointScalar angle_of(const JointScalar& y, const JointScalar& x) {
  const double square = x.value * x.value + y.value * y.value;
  JointScalar angle = y.scaled(square > 0.0 ? x.value / square : 0.0);
  angle += x.scaled(square > 0.0 ? -y.value / square : 0.0);
  angle.value = arctangent(y.value, x.value);
  return angle;
}

JointScalar angle_about_axis(const Joint& joint, const JointAt& at) {
  JointScalar angle = angle_of(cosine(at, 1, 0), cosine(at, 0, 0));
  if (joint.type == JointType::screw) {
    const double wanted = 2.0 * kPi / joint.lead * at.a.col(2).dot(at.gap);
    angle.value += 2.0 * kPi * std::nearbyint((wanted - angle.value) / (2.0 * kPi));
  }
  return angle;
}

// A_second = A_first Rz(first) Ry(second) Rx(third)
JointScalar cardan_angle(Freedom freedom, const JointAt& at) {
  if (freedom == Freedom::first_angle) return angle_of(cosine(at, 1, 0), cosine(at, 0, 0));
  if (freedom == Freedom::third_angle) return angle_of(cosine(at, 2, 1), cosine(at, 2, 2));
  const JointScalar sine_of = cosine(at, 2, 0).scaled(-1.0);
  const double other = std::sqrt(std::max(0.0, 1.0 - sine_of.value * sine_of.value));
  JointScalar angle = sine_of.scaled(other > 0.0 ? 1.0 / other : 0.0);
  angle.value = arctangent(sine_of.value, other);
  return angle;
}

JointScalar universal_angle(Freedom freedom, const JointAt& at) {
  if (freedom == Freedom::first_angle) return angle_of(cosine(at, 1, 2), cosine(at, 0, 2));
  return angle_of(cosine(at, 2, 1), cosine(at, 2, 0)).scaled(-1.0);
}

JointScalar distance(const Joint& joint, const JointAt& at) {
  const double length = at.gap.norm();
  const Vec3 u = length > 0.0 ? Vec3(at.gap / length) : Vec3::UnitX();
  JointScalar s;
  s.value = length - joint.length;
  s.first << -u, -at.first_arm.cross(u);
  s.second << u, at.second_arm.cross(u);
  return s;
}

// Rotation about an axis of the frame.
Mat3 turned(int axis, double angle) {
  const double c = sine(angle + 0.5 * kPi), s = sine(angle);
  const int j = (axis + 1) % 3, k = (axis + 2) % 3;
  Mat3 R = Mat3::Identity();
  R(j, j) = R(k, k) = c;
  R(k, j) = s;
  R(j, k) = -s;
  return R;
}

// The second frame's axes in the first one where both angles of a universal joint are zero: its z is the first one's x.
Mat3 universal_zero() {
  Mat3 R;
  R << 0, 0, 1, 0, -1, 0, 1, 0, 0;
  return R;
}

Mat3 closed_turn(const Joint& joint, const std::vector<double>& value, const JointAt& at) {
  const std::vector<Freedom> open = freedoms(joint.type);
  const auto of = [&](Freedom freedom) {
    const auto found = std::find(open.begin(), open.end(), freedom);
    return found != open.end() ? value[static_cast<std::size_t>(found - open.begin())]
                               : joint_freedom(joint, freedom, at).value;
  };
  switch (freeness(joint.type).turn) {
    case Turn::none:
      return Mat3::Identity();
    case Turn::about_axis:
      return turned(2, of(Freedom::angle));
    case Turn::about_two_axes:
      return turned(2, of(Freedom::first_angle)) * universal_zero() * turned(2, of(Freedom::second_angle));
    case Turn::cardan:
      return turned(2, of(Freedom::first_angle)) * turned(1, of(Freedom::second_angle)) *
             turned(0, of(Freedom::third_angle));
    case Turn::any:
      break;
  }
  return at.a.transpose() * at.b;
}

}  // namespace

JointScalar& JointScalar::operator+=(const JointScalar& other) {
  value += other.value;
  first += other.first;
  second += other.second;
  return *this;
}

JointScalar JointScalar::scaled(double factor) const { return {factor * value, factor * first, factor * second}; }

JointAt joint_at(const Joint& joint, const Pose& first, const Pose& second) {
  JointAt at;
  at.first_arm = first.A * joint.in_first.point_b;
  at.second_arm = second.A * joint.in_second.point_b;
  at.gap = second.r_0 + at.second_arm - first.r_0 - at.first_arm;
  at.a = first.A * joint.in_first.axes_b;
  at.b = second.A * joint.in_second.axes_b;
  return at;
}

std::vector<JointScalar> joint_constraints(const Joint& joint, const JointAt& at) {
  if (joint.type == JointType::distance) return {distance(joint, at)};
  const Freeness free = freeness(joint.type);
  std::vector<JointScalar> rows;
  for (int k = 0; k < 3; ++k)
    if (!free.shift[static_cast<std::size_t>(k)]) rows.push_back(shift(at, k));
  if (free.turn == Turn::none || free.turn == Turn::about_axis) {
    rows.push_back(cosine(at, 0, 2));
    rows.push_back(cosine(at, 1, 2));
  }
  if (free.turn == Turn::none) rows.push_back(angle_of(cosine(at, 1, 0), cosine(at, 0, 0)));
  if (free.turn == Turn::about_two_axes) rows.push_back(cosine(at, 2, 2));
  if (joint.type == JointType::screw) {
    rows.push_back(shift(at, 2));
    rows.back() += angle_about_axis(joint, at).scaled(-joint.lead / (2.0 * kPi));
  }
  return rows;
}

JointScalar joint_freedom(const Joint& joint, Freedom freedom, const JointAt& at) {
  switch (freedom) {
    case Freedom::displacement:
    case Freedom::displacement_z:
      return shift(at, 2);
    case Freedom::displacement_x:
      return shift(at, 0);
    case Freedom::displacement_y:
      return shift(at, 1);
    case Freedom::angle:
      return angle_about_axis(joint, at);
    case Freedom::first_angle:
    case Freedom::second_angle:
    case Freedom::third_angle:
      break;
  }
  return freeness(joint.type).turn == Turn::about_two_axes ? universal_angle(freedom, at) : cardan_angle(freedom, at);
}

RelativePose closed_joint(const Joint& joint, const std::vector<double>& value, const JointAt& at) {
  RelativePose closed{at.a.transpose() * at.gap, closed_turn(joint, value, at)};
  const Freeness free = freeness(joint.type);
  const std::vector<Freedom> open = freedoms(joint.type);
  for (std::size_t k = 0; k < open.size(); ++k)
    if (is_length(open[k]))
      closed.shift[open[k] == Freedom::displacement_x ? 0 : open[k] == Freedom::displacement_y ? 1 : 2] = value[k];
  for (std::size_t k = 0; k < 3; ++k)
    if (!free.shift[k]) closed.shift[static_cast<Eigen::Index>(k)] = 0.0;
  if (joint.type == JointType::distance && closed.shift.norm() > 0.0)
    closed.shift *= joint.length / closed.shift.norm();
  return closed;
}

}  // namespace rigstep
