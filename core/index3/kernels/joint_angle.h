// Angles of joints and their rows, several such joints side by side: the same as physics/constraints.h has for one.
// Called in the loop.
//
// Sides have u[0] and u[1], across the axis of the angle, in one body, and h[0] and h[1] in the other. The angle is
// that of h[1] x h[0] about the axis u[0] x u[1], from u[0] on; in a revolute joint that of x of the second body about
// z of the first.
#pragma once

#include <type_traits>

#include "core/index3/kernels/angles.h"
#include "core/index3/kernels/constraints.h"

namespace rigstep::index3::RIGSTEP_ISA {

template <class T>
struct JointAngle {
  V3<T> axis, h;
  T e, per_c2;      // axis . h, zero in a closed joint, and 1 / (1 - e^2)
  V3<T> direction;  // gradient with respect to the rotation of h's body, the opposite of that of the other's
};

template <class Sides>
RIGSTEP_INLINE auto joint_angle(const Sides& at) {
  using T = std::remove_cvref_t<decltype(at.u[0].x)>;
  JointAngle<T> angle;
  angle.axis = cross(at.u[0], at.u[1]), angle.h = cross(at.h[1], at.h[0]);
  angle.e = dot(angle.axis, angle.h);
  angle.per_c2 = T(1.0) / fnma(angle.e, angle.e, T(1.0));
  angle.direction = angle.per_c2 * fnma(angle.e, angle.h, angle.axis);
  return angle;
}

// What the row of the angle is multiplied with: nothing where it is driven.
template <class T>
RIGSTEP_INLINE T factor_of_coordinate(const StepArrays& a, const ConstraintBatch& c) {
  if (c.format.coordinate == RowFormat::Coordinate::driven) return T(1.0);
  return load<T>(a.elasticity + c.row_position + (c.format.rows - 1) * kWidth<T>);
}

// The sides of a constraint with the row of its angle, if it has one.
template <int C, class T>
RIGSTEP_INLINE PointSides<C, T> with_angle_row(const StepArrays& a, const ConstraintBatch& c, PointSides<C, T> at) {
  if constexpr (C == kAngleRow) at.angle_row = -(factor_of_coordinate<T>(a, c) * joint_angle(at).direction);
  return at;
}

// The angle of the joint [rad].
template <class Sides, class T>
RIGSTEP_INLINE T value_of_angle(const Sides& at, const JointAngle<T>& angle) {
  return arctangent(dot(at.u[1], angle.h), dot(at.u[0], angle.h));
}

// How far the joint is from where it is driven [rad]; an elastic row is never open.
template <class T>
RIGSTEP_INLINE T gap_of_angle(const StepArrays& a, const ConstraintBatch& c, const PointSides<kAngleRow, T>& at) {
  if (c.format.coordinate == RowFormat::Coordinate::elastic) return T(0.0);
  const T closed_at = load<T>(a.closed_at + c.row_position + (c.format.rows - 1) * kWidth<T>);
  return unwrapped(value_of_angle(at, joint_angle(at)) - closed_at, T(0.0));
}

// J-dot v of the row; of an elastic one nothing asks for it. w1: of the axis, w2: of h
template <class Sides, class T>
RIGSTEP_INLINE T quadratic_of_angle(const Sides& at, V3<T> w1, V3<T> w2) {
  const JointAngle<T> angle = joint_angle(at);
  const V3<T> axis_rate = cross(w1, angle.axis), h_rate = cross(w2, angle.h);
  const T e_rate = dot(axis_rate, angle.h) + dot(angle.axis, h_rate);
  const V3<T> turning = fma(T(2.0) * angle.e * e_rate, angle.direction, axis_rate - e_rate * angle.h);
  return angle.per_c2 * dot(fnma(angle.e, h_rate, turning), w2 - w1);
}

// twice the geometric stiffness of the row, the same for both bodies
template <class Sides, class T>
RIGSTEP_INLINE S3<T> stiffness_of_angle(const Sides& at, T lambda) {
  const JointAngle<T> angle = joint_angle(at);
  const V3<T> across = fnma(T(2.0) * angle.e, angle.direction, angle.h);
  return outer((lambda * angle.per_c2) * across, cross(angle.axis, angle.h));
}

// ---- the middle one of three Cardan angles, between h and the plane across the axis

template <class T>
struct MiddleAngle {
  JointAngle<T> of;  // but for its direction
  T per_c;           // 1 / root(1 - e^2)
  V3<T> direction;
};

template <class Sides>
RIGSTEP_INLINE auto middle_angle(const Sides& at) {
  const auto of = joint_angle(at);
  const auto per_c = square_root(of.per_c2);
  return MiddleAngle<std::remove_cvref_t<decltype(per_c)>>{of, per_c, per_c * cross(of.axis, of.h)};
}

template <class Sides, class T>
RIGSTEP_INLINE T value_of_angle(const Sides& at, const MiddleAngle<T>& angle) {
  const T x = dot(at.u[0], angle.of.h), y = dot(at.u[1], angle.of.h);
  return arctangent(-angle.of.e, square_root(fma(x, x, y * y)));
}

template <class Sides, class T>
RIGSTEP_INLINE T quadratic_of_middle_angle(const Sides& at, V3<T> w1, V3<T> w2) {
  const MiddleAngle<T> angle = middle_angle(at);
  const V3<T> axis_rate = cross(w1, angle.of.axis), h_rate = cross(w2, angle.of.h);
  const T e_rate = dot(axis_rate, angle.of.h) + dot(angle.of.axis, h_rate);
  const V3<T> turning = angle.per_c * (cross(axis_rate, angle.of.h) + cross(angle.of.axis, h_rate));
  return dot(fma(angle.of.e * e_rate * angle.of.per_c2, angle.direction, turning), w2 - w1);
}

template <class Sides, class T>
RIGSTEP_INLINE S3<T> stiffness_of_middle_angle(const Sides& at, T lambda) {
  const MiddleAngle<T> angle = middle_angle(at);
  const T along = -(lambda * angle.per_c * angle.of.e);
  S3<T> K =
      outer(-(lambda * angle.per_c) * angle.of.axis, angle.of.h) + outer(along * angle.direction, angle.direction);
  const T of_unit = along + along;
  K.xx = K.xx + of_unit, K.yy = K.yy + of_unit, K.zz = K.zz + of_unit;
  return K;
}

}  // namespace rigstep::index3::RIGSTEP_ISA
