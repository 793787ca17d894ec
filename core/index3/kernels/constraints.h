// One constraint, or several side by side, as its bodies see it: three rows of a common point P_A - P_B, then cosines
// u_A . h_B, [001] (1) (3). Called in the loop.
#pragma once

#include "core/index3/kernels/body.h"

namespace rigstep::index3::RIGSTEP_ISA {

// C: cosines, or kAngleRow: the two of a revolute joint, then the row of its angle. How many rows are cosines, and how
// many are rows of moments alone.
template <int C>
constexpr int kCosinesOf = C == kAngleRow ? 2 : C;
template <int C>
constexpr int kMomentRows = C == kAngleRow ? 3 : C;

// Which axis of the first and of the second body each cosine row joins.
template <int C>
constexpr int first_axis(int k) {
  return C == 3 && k == 2 ? 0 : k;
}
template <int C>
constexpr int second_axis(int k) {
  return C == 3 && k == 2 ? 1 : 0;
}
template <int C>
constexpr int first_axes() {
  return C < 2 ? C : 2;
}
template <int C>
constexpr int second_axes() {
  return C < 3 ? (C > 0 ? 1 : 0) : 2;
}

// Both sides of a point constraint in the world frame.
template <int C, class T>
struct PointSides {
  V3<T> s_first, s_second, u[2], h[2];
  V3<T> angle_row;  // of kAngleRow: its moment on the first body
  RIGSTEP_INLINE V3<T> axis_first(int k) const { return u[first_axis<C>(k)]; }
  RIGSTEP_INLINE V3<T> axis_second(int k) const { return h[second_axis<C>(k)]; }
  RIGSTEP_INLINE V3<T> normal(int k) const {
    if (C == kAngleRow && k == 2) return angle_row;
    return cross(axis_first(k), axis_second(k));
  }
};

template <int C, class T>
RIGSTEP_INLINE PointSides<C, T> load_sides(const double* p) {
  constexpr int W = kWidth<T>;
  PointSides<C, T> s;
  s.s_first = load3<T>(p), s.s_second = load3<T>(p + 3 * W);
  each<first_axes<C>()>([&](int k) RIGSTEP_INLINED { s.u[k] = load3<T>(p + (6 + 3 * k) * W); });
  each<second_axes<C>()>([&](int k) RIGSTEP_INLINED { s.h[k] = load3<T>(p + (12 + 3 * k) * W); });
  return s;
}

template <int C, class T>
RIGSTEP_INLINE void store_sides(double* p, const PointSides<C, T>& s) {
  constexpr int W = kWidth<T>;
  store3(p, s.s_first), store3(p + 3 * W, s.s_second);
  each<first_axes<C>()>([&](int k) RIGSTEP_INLINED { store3(p + (6 + 3 * k) * W, s.u[k]); });
  each<second_axes<C>()>([&](int k) RIGSTEP_INLINED { store3(p + (12 + 3 * k) * W, s.h[k]); });
}

template <int C, class T>
RIGSTEP_INLINE PointSides<C, T> turned_sides(const double* constants, const M3<T>& A_first, const M3<T>& A_second) {
  PointSides<C, T> s = load_sides<C, T>(constants);
  s.s_first = A_first * s.s_first, s.s_second = A_second * s.s_second;
  each<first_axes<C>()>([&](int k) RIGSTEP_INLINED { s.u[k] = A_first * s.u[k]; });
  each<second_axes<C>()>([&](int k) RIGSTEP_INLINED { s.h[k] = A_second * s.h[k]; });
  return s;
}

// a b' + b a' - 2 (a . b) E: twice the derivative of a x b, where a turns, symmetric part
template <class T>
RIGSTEP_INLINE S3<T> outer(V3<T> a, V3<T> b) {
  const V3<T> minus_2_a = -(a + a);
  const T xx = minus_2_a.x * b.x, yy = minus_2_a.y * b.y, zz = minus_2_a.z * b.z;
  return {yy + zz, xx + zz, xx + yy, fma(a.x, b.y, a.y * b.x), fma(a.x, b.z, a.z * b.x), fma(a.y, b.z, a.z * b.y)};
}

template <class T>
struct Load {
  V3<T> force, torque;
};
template <class T>
RIGSTEP_INLINE Load<T> operator+(const Load<T>& a, const Load<T>& b) {
  return {a.force + b.force, a.torque + b.torque};
}
template <class T>
RIGSTEP_INLINE Load<T> operator*(T s, const Load<T>& a) {
  return {s * a.force, s * a.torque};
}
// c + s a
template <class T>
RIGSTEP_INLINE Load<T> fma(T s, const Load<T>& a, const Load<T>& c) {
  return {fma(s, a.force, c.force), fma(s, a.torque, c.torque)};
}

// Where the numbers of a handle lie in the lanes of its leaf (see Handle); sign: of its Jacobian.
template <class T, class Source>
struct HandleNumbers {
  Source shared, own;
  T sign;
};

// What a constraint does to one of its bodies, J' lambda, and twice its geometric stiffness; C: cosines
template <int C, class T, class Source>
RIGSTEP_INLINE Load<T> load_of(const HandleNumbers<T, Source>& handle) {
  const V3<T> force = three(handle.shared, 0);
  if constexpr (C == RowFormat::kAnyRows) {
    return {force, three(handle.shared, kMomentOfHandle)};
  } else {
    const V3<T> arm = three(handle.own, arm_of_handle(C)), signed_force = flipped(force, handle.sign);
    if constexpr (C == 0)
      return {signed_force, cross(arm, signed_force)};
    else
      return {signed_force, add_cross(flipped(three(handle.shared, kMomentOfHandle), handle.sign), arm, signed_force)};
  }
}
template <int C, class T, class Source>
RIGSTEP_INLINE S3<T> stiffness_of(const HandleNumbers<T, Source>& handle) {
  if constexpr (C == RowFormat::kAnyRows) {
    return symmetric(handle.shared, kStiffnessOfHandle);
  } else {
    const S3<T> of_force = outer(three(handle.own, arm_of_handle(C)), flipped(three(handle.shared, 0), handle.sign));
    if constexpr (C == 0)
      return of_force;
    else
      return of_force + symmetric(handle.shared, kStiffnessOfHandle);
  }
}

// what both sides have in common
template <int C, class T, class Sink>
RIGSTEP_INLINE void put_shared(const Sink& to, const PointSides<C, T>& at, V3<T> force, V3<T> moment) {
  constexpr int M = kMomentRows<C>;
  put3(to, 0, force);
  if constexpr (M > 0) put3(to, kMomentOfHandle, moment);
  each<M>([&](int k) RIGSTEP_INLINED { put3(to, normals_of_handle(M) + 3 * k, at.normal(k)); });
}

// twice the geometric stiffness of the cosines, the same for both bodies
template <int C, class T>
RIGSTEP_INLINE S3<T> stiffness_of_cosines(const PointSides<C, T>& at, const T* lambda) {
  S3<T> K = outer(lambda[0] * at.axis_first(0), at.axis_second(0));
  each<kCosinesOf<C> - 1>(
      [&](int k) RIGSTEP_INLINED { K = K + outer(lambda[k + 1] * at.axis_first(k + 1), at.axis_second(k + 1)); });
  return K;
}

// ---- Jacobians as the leaf of a body sees them

template <int C, class T>
struct PointHandle {
  V3<T> arm;
  const double* normals;
  RIGSTEP_INLINE PointHandle(const StepArrays& a, const Handle& h)
      : arm(load3<T>(a.handles + h.at + arm_of_handle(C) * kWidth<T>)),
        normals(a.handles + h.shared + normals_of_handle(C) * kWidth<T>) {}
  RIGSTEP_INLINE V3<T> normal(int k) const { return load3<T>(normals + 3 * k * kWidth<T>); }
};

template <class T>
struct GeneralHandle {
  const double* rows;
  RIGSTEP_INLINE explicit GeneralHandle(const double* at) : rows(at + kRowsOfHandle * kWidth<T>) {}
  RIGSTEP_INLINE V3<T> force(int k) const { return load3<T>(rows + 6 * k * kWidth<T>); }
  RIGSTEP_INLINE V3<T> torque(int k) const { return load3<T>(rows + (6 * k + 3) * kWidth<T>); }
};

// M^-1 of a unit force at a point, or of a unit moment.
template <class T, class Inverse>
RIGSTEP_INLINE Motion<T> response_to_force(const Inverse& inverse, int axis, V3<T> arm) {
  const T zero(0.0), one(1.0);
  if (axis == 0) return inverse(V3<T>{one, zero, zero}, V3<T>{zero, arm.z, -arm.y});
  if (axis == 1) return inverse(V3<T>{zero, one, zero}, V3<T>{-arm.z, zero, arm.x});
  return inverse(V3<T>{zero, zero, one}, V3<T>{arm.y, -arm.x, zero});
}
template <class T, class Inverse>
RIGSTEP_INLINE Motion<T> response_to_moment(const Inverse& inverse, V3<T> moment) {
  const T zero(0.0);
  return inverse(V3<T>{zero, zero, zero}, moment);
}

// ... of mass and inertia alone, without the products that vanish
template <class T>
RIGSTEP_INLINE Motion<T> response_to_force(const InverseMass<T>& inverse, int axis, V3<T> s) {
  const S3<T>& S = inverse.inertia_inverse;
  const T zero(0.0), m = inverse.inverse_mass;
  if (axis == 0)
    return {{m, zero, zero},
            {fma(S.yx, s.z, -(S.zx * s.y)), fma(S.yy, s.z, -(S.zy * s.y)), fma(S.zy, s.z, -(S.zz * s.y))}};
  if (axis == 1)
    return {{zero, m, zero},
            {fma(S.zx, s.x, -(S.xx * s.z)), fma(S.zy, s.x, -(S.yx * s.z)), fma(S.zz, s.x, -(S.zx * s.z))}};
  return {{zero, zero, m},
          {fma(S.xx, s.y, -(S.yx * s.x)), fma(S.yx, s.y, -(S.yy * s.x)), fma(S.zx, s.y, -(S.zy * s.x))}};
}
template <class T>
RIGSTEP_INLINE Motion<T> response_to_moment(const InverseMass<T>& inverse, V3<T> moment) {
  const T zero(0.0);
  return {{zero, zero, zero}, inverse.inertia_inverse * moment};
}

// response[k] = M^-1 J' of row k, without the sign of the side
template <int C, class T, class Inverse>
RIGSTEP_INLINE void compliance_columns(const PointHandle<C, T>& h, const Inverse& inverse, Motion<T>* response) {
  each<3>([&](int k) RIGSTEP_INLINED { response[k] = response_to_force(inverse, k, h.arm); });
  each<C>([&](int k) RIGSTEP_INLINED { response[3 + k] = response_to_moment(inverse, h.normal(k)); });
}

// J of the handle times a motion: for the response to a row, one column of a block
template <int C, class T>
RIGSTEP_INLINE void block_column(const PointHandle<C, T>& h, const Motion<T>& m, T* column) {
  const V3<T> at_point = add_cross(m.v, m.w, h.arm);
  column[0] = at_point.x, column[1] = at_point.y, column[2] = at_point.z;
  each<C>([&](int k) RIGSTEP_INLINED { column[3 + k] = dot(h.normal(k), m.w); });
}

}  // namespace rigstep::index3::RIGSTEP_ISA
