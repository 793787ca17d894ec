#include "core/index3/constraints.h"

#include <cmath>

#include "core/index3/portable_math.h"

namespace rigstep::index3 {

namespace {

constexpr unsigned char X = 0, Y = 1, Z = 2;
constexpr Row point(unsigned char axis) { return {Row::Form::point, axis, axis}; }
constexpr Row line(unsigned char axis) { return {Row::Form::line, axis, axis}; }
constexpr Row cosine(unsigned char first, unsigned char second) { return {Row::Form::cosine, first, second}; }

// the joint axis is z; parallel axes: the first body's x and y stay perpendicular to the second body's z
constexpr std::array kSpherical{point(X), point(Y), point(Z)};
constexpr std::array kRevolute{point(X), point(Y), point(Z), cosine(X, Z), cosine(Y, Z)};
constexpr std::array kPrismatic{line(X), line(Y), cosine(X, Z), cosine(Y, Z), cosine(X, Y)};
constexpr std::array kCylindrical{line(X), line(Y), cosine(X, Z), cosine(Y, Z)};
constexpr std::array kUniversal{point(X), point(Y), point(Z), cosine(Z, Z)};
constexpr std::array kFixed{point(X), point(Y), point(Z), cosine(X, Z), cosine(Y, Z), cosine(X, Y)};
constexpr std::array kPointOnLine{line(X), line(Y)};
constexpr std::array kPerpendicular{cosine(Z, Z)};
constexpr std::array kParallel{cosine(X, Z), cosine(Y, Z)};

Vec6 stacked(const Vec3& force, const Vec3& torque) {
  Vec6 x;
  x << force, torque;
  return x;
}

// acceleration of a body-fixed vector that is due to the angular velocity alone
Vec3 centripetal(const Vec3& w, const Vec3& s) { return w.cross(w.cross(s)); }

}  // namespace

std::span<const Row> rows_of(JointType type) noexcept {
  switch (type) {
    case JointType::spherical:
    case JointType::point_on_point:
      return kSpherical;
    case JointType::revolute:
      return kRevolute;
    case JointType::prismatic:
      return kPrismatic;
    case JointType::cylindrical:
      return kCylindrical;
    case JointType::universal:
      return kUniversal;
    case JointType::fixed:
      return kFixed;
    case JointType::point_on_line:
      return kPointOnLine;
    case JointType::perpendicular_axes:
      return kPerpendicular;
    case JointType::parallel_axes:
      return kParallel;
  }
  return {};
}

JointPlacement place(const Joint& joint, const Placement& first, const Placement& second) noexcept {
  JointPlacement at;
  at.s_first = first.A * joint.in_first.point_b;
  at.s_second = second.A * joint.in_second.point_b;
  at.axes_first = first.A * joint.in_first.axes_b;
  at.axes_second = second.A * joint.in_second.axes_b;
  at.gap = (first.r - second.r) + (at.s_first - at.s_second);
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
  }
  return 0.0;
}

void add_geometric_stiffness(const Row& row, double lambda, const JointPlacement& at, Mat3& K_first,
                             Mat3& K_second) noexcept {
  // derivative of arm x force, symmetric part: sign (1/2 (arm f' + f arm') - (arm . f) E)
  const auto add = [lambda](Mat3& K, const Vec3& arm, const Vec3& f, double sign) {
    const Mat3 outer = arm * f.transpose();
    K += (sign * lambda) * (0.5 * (outer + outer.transpose()) - arm.dot(f) * Mat3::Identity());
  };
  switch (row.form) {
    case Row::Form::point: {
      const Vec3 e = Vec3::Unit(row.first_axis);
      add(K_first, at.s_first, e, 1.0);
      add(K_second, at.s_second, e, -1.0);
      return;
    }
    case Row::Form::line: {
      const Vec3 n = at.axes_first.col(row.first_axis);
      add(K_first, at.s_first - at.gap, n, -1.0);  // here the force turns with the body and the arm does not
      add(K_second, at.s_second, n, -1.0);
      return;
    }
    case Row::Form::cosine: {
      const Vec3 u = at.axes_first.col(row.first_axis), h = at.axes_second.col(row.second_axis);
      add(K_first, u, h, 1.0);
      add(K_second, u, h, 1.0);
      return;
    }
  }
}

void coordinate_gradient(Freedom freedom, const JointPlacement& at, Vec6& on_first, Vec6& on_second) noexcept {
  const Vec3 axis = freedom == Freedom::second_angle ? at.axes_second.col(Z) : at.axes_first.col(Z);
  if (freedom == Freedom::displacement) {
    on_first = stacked(-axis, -(at.s_first - at.gap).cross(axis));
    on_second = stacked(axis, at.s_second.cross(axis));
  } else {
    on_first = stacked(Vec3::Zero(), -axis);
    on_second = stacked(Vec3::Zero(), axis);
  }
}

Coordinate coordinate(Freedom freedom, const JointPlacement& at, const Placement& first,
                      const Placement& second) noexcept {
  Coordinate c;
  coordinate_gradient(freedom, at, c.first, c.second);
  c.rate = c.first.head<3>().dot(first.v) + c.first.tail<3>().dot(first.w) + c.second.head<3>().dot(second.v) +
           c.second.tail<3>().dot(second.w);
  switch (freedom) {
    case Freedom::displacement:
      c.value = -at.axes_first.col(Z).dot(at.gap);
      break;
    case Freedom::angle:  // of the second body's x in the first body's x-y plane
      c.value =
          arctangent(at.axes_second.col(X).dot(at.axes_first.col(Y)), at.axes_second.col(X).dot(at.axes_first.col(X)));
      break;
    case Freedom::first_angle:  // of the second body's axis in the first body's x-y plane
      c.value =
          arctangent(at.axes_second.col(Z).dot(at.axes_first.col(Y)), at.axes_second.col(Z).dot(at.axes_first.col(X)));
      break;
    case Freedom::second_angle:  // seen from the second body, the first body's axis turns backwards
      c.value =
          -arctangent(at.axes_first.col(Z).dot(at.axes_second.col(Y)), at.axes_first.col(Z).dot(at.axes_second.col(X)));
      break;
  }
  return c;
}

double unwrapped(double angle, double reference) noexcept {
  return angle - 2.0 * kPi * std::nearbyint((angle - reference) / (2.0 * kPi));
}

}  // namespace rigstep::index3
