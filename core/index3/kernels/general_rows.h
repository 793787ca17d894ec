// Rows of joints that slide, of screws, of axes alone, of a distance, of drivers of their own, and of the coordinates
// that couplings hold, several such side by side: the same as physics/constraints.h has for one joint. Called in the
// loop.
//
//   line      n . gap            n an axis fixed in the first body, gap = P_A - P_B
//   cosine    u_A . h_B          axes fixed in the first and in the second body
//   distance  (gap' gap - L^2) / (2 L)
//   screw     displacement - pitch * angle
//   angle     angle - prescribed angle
#pragma once

#include "core/index3/kernels/joint_angle.h"
#include "core/index3/kernels/operands.h"

namespace rigstep::index3::RIGSTEP_ISA {

// Both sides of a constraint in the world frame.
template <class T>
struct GeneralSides {
  V3<T> s_first, s_second, gap, u[2], h[2];
  T length;  // of a distance
  T pitch;   // of a screw
};

// One row. Its Jacobian is (force, torque_first) on the first body and -(force, torque_second) on the second; a and b
// are its factors where it is a cosine.
template <class T>
struct GeneralRow {
  T Phi;
  V3<T> force, torque_first, torque_second;
  V3<T> a, b;
};

// p: what never changes of it; next: where the pose of a body lies in its record
template <class T, class Bodies>
RIGSTEP_INLINE GeneralSides<T> general_sides(const double* p, int next, const Bodies& body) {
  constexpr int W = kWidth<T>;
  const M3<T> A_first = nine(body(kRotationField, 0)), A_second = nine(body(kRotationField, 1));
  GeneralSides<T> at;
  at.s_first = A_first * load3<T>(p), at.s_second = A_second * load3<T>(p + 3 * W);
  at.gap = (three(body(next, 0), kR) - three(body(next, 1), kR)) + (at.s_first - at.s_second);
  at.length = load<T>(p + 6 * W), at.pitch = load<T>(p + 18 * W);
  each<2>([&](int k) RIGSTEP_INLINED {
    at.u[k] = A_first * load3<T>(p + (6 + 3 * k) * W), at.h[k] = A_second * load3<T>(p + (12 + 3 * k) * W);
  });
  return at;
}

// ---- angles that drivers or couplings hold

// What an angle is measured from, and what it is the angle of (joint_angle.h).
template <class T>
struct AngleSides {
  V3<T> u[2], h[2];
};
template <class T>
RIGSTEP_INLINE AngleSides<T> angle_sides(const RowFormat& format, const GeneralSides<T>& at) {
  if (format.lines == RowFormat::kAngleInSecond) return {{at.h[0], at.h[1]}, {at.u[0], at.u[1]}};
  return {{at.u[0], at.u[1]}, {at.h[0], at.h[1]}};
}

// The angle [rad], and what a unit multiplier of its row does: the torque on the first body.
template <class T>
struct DrivenAngle {
  T value;
  V3<T> torque;
};
template <class T>
RIGSTEP_LOOP DrivenAngle<T> driven_angle(const RowFormat& format, const GeneralSides<T>& general) {
  const AngleSides<T> at = angle_sides(format, general);
  if (format.lines == RowFormat::kMiddleAngle) {
    const MiddleAngle<T> angle = middle_angle(at);
    return {value_of_angle(at, angle), -angle.direction};
  }
  const JointAngle<T> angle = joint_angle(at);
  return {value_of_angle(at, angle), format.lines == RowFormat::kAngleInSecond ? angle.direction : -angle.direction};
}

// twice its geometric stiffness, the same for both bodies
template <class T>
RIGSTEP_LOOP S3<T> stiffness_of_angle_row(const RowFormat& format, const GeneralSides<T>& general, T lambda) {
  const AngleSides<T> at = angle_sides(format, general);
  return format.lines == RowFormat::kMiddleAngle ? stiffness_of_middle_angle(at, lambda)
                                                 : stiffness_of_angle(at, lambda);
}

template <class T>
RIGSTEP_LOOP T quadratic_of_angle_row(const RowFormat& format, const GeneralSides<T>& general, V3<T> w1, V3<T> w2) {
  const AngleSides<T> at = angle_sides(format, general);
  if (format.lines == RowFormat::kMiddleAngle) return quadratic_of_middle_angle(at, w1, w2);
  return format.lines == RowFormat::kAngleInSecond ? quadratic_of_angle(at, w2, w1) : quadratic_of_angle(at, w1, w2);
}

// ---- the thread of a screw

// What the angle, known to full turns from the displacement, takes from the row of that, and adds to its torques.
template <class T>
struct Turn {
  T displacement;
  V3<T> torque;
};
template <class T>
RIGSTEP_LOOP Turn<T> turn_of_screw(const GeneralSides<T>& at, T displacement) {
  const JointAngle<T> angle = joint_angle(at);
  return {at.pitch * unwrapped(value_of_angle(at, angle), displacement / at.pitch), at.pitch * angle.direction};
}
template <class T>
RIGSTEP_LOOP S3<T> stiffness_of_turn(const GeneralSides<T>& at, T lambda) {
  return stiffness_of_angle(at, -(at.pitch * lambda));
}
template <class T>
RIGSTEP_LOOP T quadratic_of_turn(const GeneralSides<T>& at, V3<T> w1, V3<T> w2) {
  return -(at.pitch * quadratic_of_angle(at, w1, w2));
}

// ---- any row

// The row of the joint's displacement, along its axis backwards.
constexpr bool is_displacement(const RowFormat& f, int k) { return f.ends_with_coordinate() && k == f.rows - 1; }
constexpr bool is_along_axis(const RowFormat& f, int k) { return k < f.lines || is_displacement(f, k); }

// the axis of a row along one: where there is only one such row, that of a plane or the only axis
template <class T>
RIGSTEP_INLINE V3<T> line_axis(const RowFormat& format, const GeneralSides<T>& at, int k) {
  if (is_displacement(format, k)) return cross(at.u[1], at.u[0]);
  if (format.lines == 1 && format.rows > 1) return cross(at.u[0], at.u[1]);
  return at.u[k];
}

// Cosines and their axes lie as in joints with a point (constraints.h).
template <class T>
RIGSTEP_INLINE GeneralRow<T> general_row(const RowFormat& format, const GeneralSides<T>& at, T closed_at, int k) {
  GeneralRow<T> row;
  if (format.is_angle()) {
    const DrivenAngle<T> angle = driven_angle(format, at);
    row.force = V3<T>{T(0.0), T(0.0), T(0.0)}, row.torque_first = row.torque_second = angle.torque;
    row.Phi = unwrapped(angle.value - closed_at, T(0.0));
  } else if (format.lines == RowFormat::kDistance) {
    row.force = (T(1.0) / at.length) * at.gap;
    row.Phi = T(0.5) * (dot(at.gap, row.force) - at.length);
    row.torque_first = cross(at.s_first, row.force), row.torque_second = cross(at.s_second, row.force);
  } else if (is_along_axis(format, k)) {
    row.force = line_axis(format, at, k);
    row.Phi = dot(row.force, at.gap) - closed_at;
    // the reaction acts at the second body's point, also on the first body
    row.torque_first = cross(at.s_first - at.gap, row.force), row.torque_second = cross(at.s_second, row.force);
    if (format.is_threaded(k)) {
      const Turn<T> turn = turn_of_screw(at, row.Phi);
      row.Phi = row.Phi - turn.displacement;
      row.torque_first = row.torque_first + turn.torque, row.torque_second = row.torque_second + turn.torque;
    }
  } else {
    const bool is_third = k - format.lines == 2;
    row.a = is_third || k == format.lines ? at.u[0] : at.u[1], row.b = is_third ? at.h[1] : at.h[0];
    row.force = V3<T>{T(0.0), T(0.0), T(0.0)};
    row.Phi = dot(row.a, row.b);
    row.torque_first = row.torque_second = cross(row.a, row.b);
  }
  return row;
}

// a row along an axis that is elastic, and so never open
template <class T>
RIGSTEP_INLINE GeneralRow<T> elastic_row(const GeneralRow<T>& row, T elasticity) {
  return {T(0.0), elasticity * row.force, elasticity * row.torque_first, elasticity * row.torque_second, row.a, row.b};
}

// adds twice the geometric stiffness of a row on both bodies
template <class T>
RIGSTEP_INLINE void add_stiffness(const RowFormat& format, const GeneralSides<T>& at, const GeneralRow<T>& row, int k,
                                  T lambda, S3<T>& K_first, S3<T>& K_second) {
  const V3<T> f = lambda * row.force;
  if (format.is_angle()) {
    const S3<T> K = stiffness_of_angle_row(format, at, lambda);
    K_first = K_first + K, K_second = K_second + K;
  } else if (format.lines == RowFormat::kDistance) {
    const T per_length = lambda / at.length;  // the direction of the force turns too, as far as the point moves
    K_first = K_first + outer(at.s_first, f - per_length * at.s_first);
    K_second = K_second + outer(at.s_second, -(f + per_length * at.s_second));
  } else if (is_along_axis(format, k)) {
    K_first = K_first + outer(at.gap - at.s_first, f);  // here the force turns with the body and the arm does not
    K_second = K_second + outer(-at.s_second, f);
    if (format.is_threaded(k)) {
      const S3<T> K = stiffness_of_turn(at, lambda);
      K_first = K_first + K, K_second = K_second + K;
    }
  } else {
    const S3<T> K = outer(lambda * row.a, row.b);
    K_first = K_first + K, K_second = K_second + K;
  }
}

// What the velocities of both bodies add to J a.
template <class T>
struct GeneralRates {
  V3<T> w1, w2, gap_rate, gap_quadratic;
};
template <class T, class Bodies>
RIGSTEP_INLINE GeneralRates<T> general_rates(const GeneralSides<T>& at, const Bodies& body) {
  const auto t1 = body(kTwistField, 0), t2 = body(kTwistField, 1);
  GeneralRates<T> r;
  r.w1 = three(t1, 3), r.w2 = three(t2, 3);
  r.gap_rate = add_cross(three(t1, 0), r.w1, at.s_first) - add_cross(three(t2, 0), r.w2, at.s_second);
  r.gap_quadratic = cross(r.w1, cross(r.w1, at.s_first)) - cross(r.w2, cross(r.w2, at.s_second));
  return r;
}
template <class T>
RIGSTEP_INLINE T general_quadratic(const RowFormat& format, const GeneralSides<T>& at, const GeneralRow<T>& row,
                                   const GeneralRates<T>& r, int k) {
  if (format.is_angle()) return quadratic_of_angle_row(format, at, r.w1, r.w2);
  if (format.lines == RowFormat::kDistance)
    return (dot(r.gap_rate, r.gap_rate) + dot(at.gap, r.gap_quadratic)) / at.length;
  if (is_along_axis(format, k)) {
    const V3<T> n_rate = cross(r.w1, row.force);
    const T along =
        dot(cross(r.w1, n_rate), at.gap) + fma(T(2.0), dot(n_rate, r.gap_rate), dot(row.force, r.gap_quadratic));
    return format.is_threaded(k) ? along + quadratic_of_turn(at, r.w1, r.w2) : along;
  }
  const V3<T> a_rate = cross(r.w1, row.a), b_rate = cross(r.w2, row.b);
  return dot(cross(r.w1, a_rate), row.b) + fma(T(2.0), dot(a_rate, b_rate), dot(row.a, cross(r.w2, b_rate)));
}

// J times the motions of both bodies
template <class T>
RIGSTEP_INLINE T times_motions(const GeneralRow<T>& row, const Motion<T>& first, const Motion<T>& second) {
  return dot(row.force, first.v - second.v) + (dot(row.torque_first, first.w) - dot(row.torque_second, second.w));
}

}  // namespace rigstep::index3::RIGSTEP_ISA
