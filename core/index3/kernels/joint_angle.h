// The angle of a revolute joint and its row, several such joints side by side: the same as physics/constraints.h has
// for one. Called in the loop.
#pragma once

#include "core/index3/kernels/angles.h"
#include "core/index3/kernels/constraints.h"

namespace rigstep::index3::RIGSTEP_ISA {

template <class T>
struct JointAngle {
  V3<T> axis, h;    // z of the first body, x of the second
  T e, per_c2;      // axis . h, zero in a closed joint, and 1 / (1 - e^2)
  V3<T> direction;  // gradient with respect to the second body's rotation, the opposite of that of the first's
};

template <int C, class T>
RIGSTEP_INLINE JointAngle<T> joint_angle(const PointSides<C, T>& at) {
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
template <int C, class T>
RIGSTEP_INLINE T value_of_angle(const PointSides<C, T>& at, const JointAngle<T>& angle) {
  return arctangent(dot(at.u[1], angle.h), dot(at.u[0], angle.h));
}

// How far the joint is from where it is driven [rad]; an elastic row is never open.
template <class T>
RIGSTEP_INLINE T gap_of_angle(const StepArrays& a, const ConstraintBatch& c, const PointSides<kAngleRow, T>& at) {
  if (c.format.coordinate == RowFormat::Coordinate::elastic) return T(0.0);
  const T closed_at = load<T>(a.closed_at + c.row_position + (c.format.rows - 1) * kWidth<T>);
  return unwrapped(value_of_angle(at, joint_angle(at)) - closed_at, T(0.0));
}

// J-dot v of the row; of an elastic one nothing asks for it
template <class T>
RIGSTEP_INLINE T quadratic_of_angle(const PointSides<kAngleRow, T>& at, V3<T> w1, V3<T> w2) {
  const JointAngle<T> angle = joint_angle(at);
  const V3<T> axis_rate = cross(w1, angle.axis), h_rate = cross(w2, angle.h);
  const T e_rate = dot(axis_rate, angle.h) + dot(angle.axis, h_rate);
  const V3<T> turning = fma(T(2.0) * angle.e * e_rate, angle.direction, axis_rate - e_rate * angle.h);
  return angle.per_c2 * dot(fnma(angle.e, h_rate, turning), w2 - w1);
}

// twice the geometric stiffness of the row, the same for both bodies
template <class T>
RIGSTEP_INLINE S3<T> stiffness_of_angle(const PointSides<kAngleRow, T>& at, T lambda) {
  const JointAngle<T> angle = joint_angle(at);
  const V3<T> across = fnma(T(2.0) * angle.e, angle.direction, angle.h);
  return outer((lambda * angle.per_c2) * across, cross(angle.axis, angle.h));
}

}  // namespace rigstep::index3::RIGSTEP_ISA
