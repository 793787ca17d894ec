#include "core/index3/physics/constraints.h"

#include <cmath>

#include "core/mechanism/portable_math.h"

namespace rigstep::index3 {

namespace {

using namespace axis;

Vec6 stacked(const Vec3& force, const Vec3& torque) {
  Vec6 x;
  x << force, torque;
  return x;
}

bool is_cardan(JointType type) { return traits_of(type).angles == JointTraits::Angles::cardan; }

// An angle is either that of a direction h, fixed in one body, about an axis z fixed in the other, or the middle one of
// three Cardan angles, between x of the second body and z of the first.
struct Turning {
  Vec3 axis, h;
  bool axis_in_first;  // else in the second body, and h in the first
};

Turning turning(Freedom freedom, const JointPlacement& at) {
  const auto first = [&at](unsigned char k) { return at.axes_first.col(k); };
  const auto second = [&at](unsigned char k) { return at.axes_second.col(k); };
  if (angle_form(freedom, at.type) == AngleForm::in_second)
    return {second(freedom == Freedom::third_angle ? X : Z), first(Z), false};
  return {first(Z), second(freedom == Freedom::first_angle && !is_cardan(at.type) ? Z : X), true};
}

bool is_middle(Freedom freedom, const JointPlacement& at) { return angle_form(freedom, at.type) == AngleForm::middle; }

// gradient of an angle with respect to the second body's rotation, the opposite of that of the first's
Vec3 direction_of(Freedom freedom, const JointPlacement& at) {
  const Turning t = turning(freedom, at);
  const double e = t.axis.dot(t.h);
  if (is_middle(freedom, at)) return t.axis.cross(t.h) / std::sqrt(1.0 - e * e);
  return (t.axis - e * t.h) / (1.0 - e * e);
}

double angle_of(Freedom freedom, const JointPlacement& at) {
  const auto &a = at.axes_first, &b = at.axes_second;
  const auto cosine = [&a, &b](unsigned char i, unsigned char j) { return a.col(i).dot(b.col(j)); };
  if (is_middle(freedom, at))
    return arctangent(-cosine(Z, X), std::sqrt(cosine(X, X) * cosine(X, X) + cosine(Y, X) * cosine(Y, X)));
  switch (freedom) {
    case Freedom::third_angle:  // of the first body's z in the second body's y-z plane, seen from the second
      return arctangent(cosine(Z, Y), cosine(Z, Z));
    case Freedom::second_angle:  // seen from the second body, the first body's axis turns backwards
      return -arctangent(cosine(Z, Y), cosine(Z, X));
    case Freedom::first_angle:  // of the second body's axis in the first body's x-y plane
      if (!is_cardan(at.type)) return arctangent(cosine(Y, Z), cosine(X, Z));
      break;
    case Freedom::angle:
      break;
    case Freedom::displacement:
    case Freedom::displacement_x:
    case Freedom::displacement_y:
    case Freedom::displacement_z:
      return 0.0;  // no angles
  }
  return arctangent(cosine(Y, X), cosine(X, X));  // of the second body's x in the first body's x-y plane
}

// rate of direction_of
Vec3 direction_rate(Freedom freedom, const JointPlacement& at, const Vec3& w_first, const Vec3& w_second) {
  const Turning t = turning(freedom, at);
  const Vec3 axis_rate = (t.axis_in_first ? w_first : w_second).cross(t.axis);
  const Vec3 h_rate = (t.axis_in_first ? w_second : w_first).cross(t.h);
  const double e = t.axis.dot(t.h), e_rate = axis_rate.dot(t.h) + t.axis.dot(h_rate);
  const double c2 = 1.0 - e * e;
  const Vec3 n = direction_of(freedom, at);
  if (is_middle(freedom, at))
    return (axis_rate.cross(t.h) + t.axis.cross(h_rate)) / std::sqrt(c2) + e * e_rate / c2 * n;
  return (axis_rate - e_rate * t.h - e * h_rate + 2.0 * e * e_rate * n) / c2;
}

// acceleration of a body-fixed vector that is due to the angular velocity alone
Vec3 centripetal(const Vec3& w, const Vec3& s) { return w.cross(w.cross(s)); }

}  // namespace

AngleForm angle_form(Freedom freedom, JointType type) noexcept {
  if (freedom == Freedom::third_angle) return AngleForm::in_second;
  if (freedom != Freedom::second_angle) return AngleForm::in_first;
  return is_cardan(type) ? AngleForm::middle : AngleForm::in_second;
}

// A freedom's direction: the coordinate's rate is that of the second body's point against the first's along this axis
// (lengths), or direction . (w_second - w_first) (angles).
unsigned char axis_of(Freedom freedom) noexcept {
  return freedom == Freedom::displacement_x ? axis::X : freedom == Freedom::displacement_y ? axis::Y : axis::Z;
}

double pitch_of(const Joint& joint) noexcept { return joint.lead / (2.0 * kPi); }

JointPlacement place_joint(const Joint& joint, const Placement& first, const Placement& second) noexcept {
  JointPlacement at;
  at.s_first = first.A * joint.in_first.point_b;
  at.s_second = second.A * joint.in_second.point_b;
  at.axes_first = first.A * joint.in_first.axes_b;
  at.axes_second = second.A * joint.in_second.axes_b;
  at.gap = (first.r - second.r) + (at.s_first - at.s_second);
  at.pitch = pitch_of(joint);
  at.length = joint.length;
  at.type = joint.type;
  return at;
}

RowValue evaluate(const Row& row, const JointPlacement& at) noexcept {
  switch (row.form) {
    case Row::Form::point: {
      const Vec3 e = Vec3::Unit(row.first_axis);
      return {at.gap[row.first_axis], stacked(e, at.s_first.cross(e)), stacked(-e, -at.s_second.cross(e))};
    }
    case Row::Form::line: {
      const Vec3 n = at.axes_first.col(row.first_axis);
      // the reaction acts at the second body's point, also on the first body
      return {n.dot(at.gap), stacked(n, (at.s_first - at.gap).cross(n)), stacked(-n, -at.s_second.cross(n))};
    }
    case Row::Form::cosine: {
      const Vec3 u = at.axes_first.col(row.first_axis), h = at.axes_second.col(row.second_axis);
      const Vec3 n = u.cross(h);
      return {u.dot(h), stacked(Vec3::Zero(), n), stacked(Vec3::Zero(), -n)};
    }
    case Row::Form::screw: {
      Vec6 along_first, along_second, about_first, about_second;
      coordinate_gradient(Freedom::displacement, at, along_first, along_second);
      coordinate_gradient(Freedom::angle, at, about_first, about_second);
      const double displacement = -at.axes_first.col(Z).dot(at.gap);
      const double angle = unwrapped(angle_of(Freedom::angle, at), displacement / at.pitch);
      return {displacement - at.pitch * angle, along_first - at.pitch * about_first,
              along_second - at.pitch * about_second};
    }
    case Row::Form::distance: {
      const Vec3 u = at.gap / at.length;
      return {0.5 * (at.gap.dot(u) - at.length), stacked(u, at.s_first.cross(u)), stacked(-u, -at.s_second.cross(u))};
    }
  }
  return {};
}

double quadratic(const Row& row, const JointPlacement& at, const Placement& first, const Placement& second) noexcept {
  const Vec3 gap_quadratic = centripetal(first.w, at.s_first) - centripetal(second.w, at.s_second);
  switch (row.form) {
    case Row::Form::point:
      return gap_quadratic[row.first_axis];
    case Row::Form::line: {
      const Vec3 n = at.axes_first.col(row.first_axis);
      const Vec3 gap_rate = (first.v + first.w.cross(at.s_first)) - (second.v + second.w.cross(at.s_second));
      return centripetal(first.w, n).dot(at.gap) + 2.0 * first.w.cross(n).dot(gap_rate) + n.dot(gap_quadratic);
    }
    case Row::Form::cosine: {
      const Vec3 u = at.axes_first.col(row.first_axis), h = at.axes_second.col(row.second_axis);
      return centripetal(first.w, u).dot(h) + 2.0 * first.w.cross(u).dot(second.w.cross(h)) +
             u.dot(centripetal(second.w, h));
    }
    case Row::Form::screw:
      return coordinate_quadratic(Freedom::displacement, at, first, second) -
             at.pitch * coordinate_quadratic(Freedom::angle, at, first, second);
    case Row::Form::distance: {
      const Vec3 gap_rate = (first.v + first.w.cross(at.s_first)) - (second.v + second.w.cross(at.s_second));
      return (gap_rate.squaredNorm() + at.gap.dot(gap_quadratic)) / at.length;
    }
  }
  return 0.0;
}

void coordinate_gradient(Freedom freedom, const JointPlacement& at, Vec6& on_first, Vec6& on_second) noexcept {
  if (is_length(freedom)) {
    const Vec3 axis = at.axes_first.col(axis_of(freedom));
    on_first = stacked(-axis, -(at.s_first - at.gap).cross(axis));
    on_second = stacked(axis, at.s_second.cross(axis));
  } else {
    const Vec3 n = direction_of(freedom, at);
    on_first = stacked(Vec3::Zero(), -n);
    on_second = stacked(Vec3::Zero(), n);
  }
}

Coordinate coordinate(Freedom freedom, const JointPlacement& at, const Placement& first,
                      const Placement& second) noexcept {
  Coordinate c;
  coordinate_gradient(freedom, at, c.first, c.second);
  c.rate = c.first.head<3>().dot(first.v) + c.first.tail<3>().dot(first.w) + c.second.head<3>().dot(second.v) +
           c.second.tail<3>().dot(second.w);
  if (is_length(freedom))
    c.value = -at.axes_first.col(axis_of(freedom)).dot(at.gap);
  else
    c.value = angle_of(freedom, at);
  if (freedom == Freedom::angle && traits_of(at.type).angle_follows_displacement)
    c.value = unwrapped(c.value, -at.axes_first.col(Z).dot(at.gap) / at.pitch);
  return c;
}

double coordinate_quadratic(Freedom freedom, const JointPlacement& at, const Placement& first,
                            const Placement& second) noexcept {
  if (is_length(freedom)) {
    const unsigned char axis = axis_of(freedom);
    return -quadratic(line_row(axis), at, first, second);
  }
  return direction_rate(freedom, at, first.w, second.w).dot(second.w - first.w);
}

double followed(Freedom freedom, const JointPlacement& at, double measured, double last) noexcept {
  const bool knows_turns =
      is_length(freedom) || (freedom == Freedom::angle && traits_of(at.type).angle_follows_displacement);
  return knows_turns ? measured : unwrapped(measured, last);
}

double driver_gap(Freedom freedom, double measured, double prescribed) noexcept {
  return is_length(freedom) ? measured - prescribed : unwrapped(measured - prescribed, 0.0);
}

CoupledBodies coupled_bodies(const Joint& first, const Joint& second) noexcept {
  CoupledBodies bodies{first.first, first.second, kGround, kGround};
  if (second.first != first.first && second.first != first.second) bodies[2] = second.first;
  if (second.second != first.first && second.second != first.second) bodies[3] = second.second;
  return bodies;
}

CoupledJacobians coupled_jacobians(const CoupledBodies& bodies, const Joint& first_joint, const Coordinate& first,
                                   const Joint& second_joint, const Coordinate& second, double ratio) noexcept {
  CoupledJacobians J;
  J.fill(Vec6::Zero());
  const auto add = [&](int body, const Vec6& gradient) {
    for (std::size_t k = 0; k < J.size(); ++k)
      if (body != kGround && bodies[k] == body) J[k] += gradient;
  };
  add(first_joint.first, first.first);
  add(first_joint.second, first.second);
  add(second_joint.first, ratio * second.first);
  add(second_joint.second, ratio * second.second);
  return J;
}

double unwrapped(double angle, double reference) noexcept {
  return angle - 2.0 * kPi * std::nearbyint((angle - reference) / (2.0 * kPi));
}

Placement placement_at_start(const Mechanism& mechanism, int body) noexcept {
  if (body == kGround) return {};
  const Body& b = mechanism.bodies()[body];
  const Vec3 w_b = rotation_matrix(b.orientation).transpose() * b.angular_velocity_0;
  return placement_of({b.position_0, b.orientation, b.velocity_0, w_b, Vec3::Zero(), Vec3::Zero()});
}

Coordinate coordinate_at_start(const Mechanism& mechanism, int index) noexcept {
  const auto& [joint_index, freedom, offset] = mechanism.coordinates()[index];
  const Joint& joint = mechanism.joints()[joint_index];
  const Placement first = placement_at_start(mechanism, joint.first);
  const Placement second = placement_at_start(mechanism, joint.second);
  const JointPlacement at = place_joint(joint, first, second);
  Coordinate c = coordinate(freedom, at, first, second);
  c.value = followed(freedom, at, c.value + offset, offset);
  return c;
}

}  // namespace rigstep::index3
