// The own coordinates of revolute and prismatic joints at the iterate, as many such joints side by side as lanes hold:
// the same as physics/constraints.h has for one. Force elements and inputs act along them. Called in the loop.
#pragma once

#include "core/index3/kernels/joint_angle.h"
#include "core/index3/kernels/runs.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

// A body of each joint: its pose at the iterate, and the velocities that the trapezoidal rule gives, (15).
template <class T>
struct BodyOfJoint {
  M3<T> A;
  V3<T> r, v, w;
};

template <class T>
RIGSTEP_INLINE BodyOfJoint<T> body_of_joint(const StepArrays& a, const Place* record) {
  const auto field = [&](int k) RIGSTEP_INLINED {
    return gathered<T>(a.body, [&](int l) { return Place{record[l].base + k * record[l].stride, record[l].stride}; });
  };
  const auto quaternion = [&](int k) RIGSTEP_INLINED {
    const Gathered<T> at = field(k);
    return Quaternion<T>{at(0), three(at, 1)};
  };
  BodyOfJoint<T> body;
  body.A = nine(field(kRotationField)), body.r = three(field(a.next + kR), 0);
  body.v = fma(T(a.step.two_over_dt), three(field(kHistoryField + kBeyond), 0), three(field(a.last + kV), 0));
  body.w = G_world(quaternion(kHistoryField + kMinus2PdHat), quaternion(a.next + kP));
  return body;
}

template <class T>
RIGSTEP_LOOP void measure_batch(const StepArrays& a, const CoordinateBatch& batch, const double* constants,
                                double* to) {
  constexpr int W = kWidth<T>;
  const BodyOfJoint<T> first = body_of_joint<T>(a, batch.first), second = body_of_joint<T>(a, batch.second);
  const PointSides<kAngleRow, T> at = turned_sides<kAngleRow, T>(constants, first.A, second.A);
  const V3<T> zero{T(0.0), T(0.0), T(0.0)};
  T value;
  V3<T> force, torque_first, torque_second;  // of a unit effort, on the second body; on the first the opposite
  if (batch.is_angle) {
    const JointAngle<T> angle = joint_angle(at);
    value = value_of_angle(at, angle);
    force = zero, torque_first = torque_second = angle.direction;
  } else {
    const V3<T> gap = (first.r - second.r) + (at.s_first - at.s_second);
    force = cross(at.u[0], at.u[1]), value = -dot(force, gap);
    torque_first = cross(at.s_first - gap, force), torque_second = cross(at.s_second, force);
  }
  const T rate = dot(force, second.v - first.v) + (dot(torque_second, second.w) - dot(torque_first, first.w));
  store(to, value), store(to + W, rate);
  store3(to + 2 * W, force), store3(to + 5 * W, torque_first), store3(to + 8 * W, torque_second);
}

void measure_coordinates(const StepArrays& a, const CoordinateBatch* batch, int batches, const double* constants,
                         double* to) {
  for (const CoordinateBatch* end = batch + batches; batch < end; ++batch) {
    measure_batch<Lanes<kWidest>>(a, *batch, constants, to);
    constants += kConstraintConstants * kWidest, to += kCoordinateNumbers * kWidest;
  }
}

}  // namespace

}  // namespace rigstep::index3::RIGSTEP_ISA
