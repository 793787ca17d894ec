// The algebra of ONE operation, for one mechanism part or several side by side: a body, a constraint, a leaf or a front
// of the elimination. T is double or Lanes; arrays are strided by its width. Symmetric matrices are packed by rows,
// lower half. Called in the loop.
#pragma once

#include "core/index3/compile/schedule.h"
#include "core/index3/kernels/lanes.h"

namespace rigstep::index3::RIGSTEP_ISA {

constexpr int packed(int row) { return row * (row + 1) / 2; }

// ---- where operands lie: element k of an array, in the lanes of an operation

// In its own lanes.
template <class T>
struct InOrder {
  double* p;
  RIGSTEP_INLINE T operator()(int k) const { return load<T>(p + k * kWidth<T>); }
  RIGSTEP_INLINE void put(int k, T value) const { store(p + k * kWidth<T>, value); }
};

// In neighbouring lanes of a batch.
template <class T>
struct Beside {
  double* p;
  int stride;
  RIGSTEP_INLINE T operator()(int k) const { return load<T>(p + k * stride); }
  RIGSTEP_INLINE void put(int k, T value) const { store(p + k * stride, value); }
};

// Anywhere.
template <class T>
struct Gathered {
  static constexpr int W = kWidth<T>;
  double* p[W];
  int stride[W];
  RIGSTEP_INLINE T operator()(int k) const {
    typename T::Vector v;
    each<W>([&](int l) RIGSTEP_INLINED { v[l] = p[l][k * stride[l]]; });
    return v;
  }
  RIGSTEP_INLINE void put(int k, T value) const {
    each<W>([&](int l) RIGSTEP_INLINED { p[l][k * stride[l]] = lane(value, l); });
  }
};

// In any lanes of two batches as wide as its own.
template <class T>
struct Chosen {
  const double* p[2];
  Selection<kWidth<T>> select;
  RIGSTEP_INLINE Chosen(const double* array, const int (&base)[2], const LaneChoice& choice)
      : p{array + base[0], array + base[1]}, select(choice.of_lane) {}
  RIGSTEP_INLINE T operator()(int k) const {
    return select(load<T>(p[0] + k * kWidth<T>), load<T>(p[1] + k * kWidth<T>));
  }
};

// Handles in any lanes of two batches as wide as the constraint's, whose other lanes are kept.
template <class T>
struct KeptHandles {
  int handles;
  double* p[2];
  Selection<kWidth<T>> select[2];
  RIGSTEP_INLINE KeptHandles(double* array, const ChosenSide& side)
      : handles(side.handles),
        p{array + side.handle[0], array + side.handle[1]},
        select{Selection<kWidth<T>>(side.kept[0].of_lane), Selection<kWidth<T>>(side.kept[1].of_lane)} {}
  RIGSTEP_INLINE void put(int k, T value) const {
    for (int h = 0; h < handles; ++h) {
      double* const at = p[h] + k * kWidth<T>;
      store(at, select[h](load<T>(at), value));
    }
  }
};

template <class T, class Get>
RIGSTEP_INLINE Gathered<T> gathered(double* array, const Get& place_of_lane) {
  Gathered<T> g;
  for (int l = 0; l < kWidth<T>; ++l) {
    const Place at = place_of_lane(l);
    g.p[l] = array + at.base, g.stride[l] = at.stride;
  }
  return g;
}

template <class Source>
RIGSTEP_INLINE auto three(const Source& s, int k) -> V3<decltype(s(0))> {
  return {s(k), s(k + 1), s(k + 2)};
}
template <class Sink, class T>
RIGSTEP_INLINE void put3(const Sink& s, int k, V3<T> v) {
  s.put(k, v.x), s.put(k + 1, v.y), s.put(k + 2, v.z);
}
template <class Sink, class T>
RIGSTEP_INLINE void put_symmetric(const Sink& s, int k, const S3<T>& S) {
  put3(s, k, V3<T>{S.xx, S.yy, S.zz}), put3(s, k + 3, V3<T>{S.yx, S.zx, S.zy});
}
template <class Source>
RIGSTEP_INLINE auto symmetric(const Source& s, int k) -> S3<decltype(s(0))> {
  return {s(k), s(k + 1), s(k + 2), s(k + 3), s(k + 4), s(k + 5)};
}
template <class Source>
RIGSTEP_INLINE auto nine(const Source& s) -> M3<decltype(s(0))> {
  return {three(s, 0), three(s, 3), three(s, 6)};
}

// ---- bodies

template <class T>
struct Quaternion {
  T w;
  V3<T> e;
};
template <class T>
RIGSTEP_INLINE Quaternion<T> load_quaternion(const double* p) {
  constexpr int W = kWidth<T>;
  return {load<T>(p), load3<T>(p + W)};
}
template <class T>
RIGSTEP_INLINE void store_quaternion(double* p, Quaternion<T> q) {
  store(p, q.w), store3(p + kWidth<T>, q.e);
}

// G(p) x, which is -G(x) p: what was kept as -2 h gives 2 G(p) h = G(-2 h) p, the angular velocity by h1 and the
// angular acceleration by h2, in the body's axes
template <class T>
RIGSTEP_INLINE V3<T> G(Quaternion<T> p, Quaternion<T> x) {
  return add_cross(fnma(x.w, p.e, p.w * x.e), x.e, p.e);
}

// the same in the world frame, A(x) G(p) x, where x is of length 1
template <class T>
RIGSTEP_INLINE V3<T> G_world(Quaternion<T> p, Quaternion<T> x) {
  return add_cross(fnma(x.w, p.e, p.w * x.e), p.e, x.e);
}

// scale: 2 over the square of p's length
template <class T>
RIGSTEP_INLINE M3<T> rotation(Quaternion<T> p, T scale) {
  const V3<T> d = scale * p.e;
  const T xx = d.x * p.e.x, yy = d.y * p.e.y, zz = d.z * p.e.z;
  const T wx = d.x * p.w, wy = d.y * p.w, wz = d.z * p.w;
  const T one(1.0);
  return {{one - (yy + zz), fma(d.x, p.e.y, -wz), fma(d.x, p.e.z, wy)},
          {fma(d.x, p.e.y, wz), one - (xx + zz), fma(d.y, p.e.z, -wx)},
          {fma(d.x, p.e.z, -wy), fma(d.y, p.e.z, wx), one - (xx + yy)}};
}

// fields of a body's state
constexpr int kR = 0, kP = 3, kV = 7, kOmega = 10, kA = 13, kAlpha = 16, kLow = 19;
// ... and of its history: -2 h1, -2 h2 and the displacement beyond that of uniform motion
constexpr int kMinus2h1 = 0, kMinus2h2 = 4, kBeyond = 8;

template <class T>
struct BodyArrays {
  static constexpr int W = kWidth<T>;
  double *last, *next, *history, *rotation, *twist, *load, *motion, *inertia_inverse, *constants, *turning;
  RIGSTEP_INLINE BodyArrays(const StepArrays& a, double* record)
      : last(record + W * a.last),
        next(record + W * a.next),
        history(record + W * kHistoryField),
        rotation(record + W * kRotationField),
        twist(record + W * kTwistField),
        load(record + W * kLoadField),
        motion(record + W * kMotionField),
        inertia_inverse(record + W * kInertiaInverseField),
        constants(record + W * kConstantsField),
        turning(record + W * kTurningField) {}
};

// p: of any length. The rotation waits for no square root, and is rounded once less.
template <class T>
RIGSTEP_INLINE void turn_body(const BodyArrays<T>& b, Quaternion<T> p) {
  constexpr int W = kWidth<T>;
  const T scale = T(2.0) / fma(p.w, p.w, dot(p.e, p.e));
  const M3<T> A = rotation(p, scale);
  store3(b.rotation, A.x), store3(b.rotation + 3 * W, A.y), store3(b.rotation + 6 * W, A.z);
  const T one_over_length = square_root(T(0.5) * scale);
  store_quaternion<T>(b.next + kP * W, {one_over_length * p.w, one_over_length * p.e});
}

// The displacement of the step: that of uniform motion, and what comes on top of it. Velocity and acceleration follow
// from the latter alone, so that no rounding of r reaches them.
template <class T>
RIGSTEP_INLINE V3<T> displacement(const BodyArrays<T>& b, V3<T> beyond, const StepSize& step) {
  constexpr int W = kWidth<T>;
  return load3<T>(b.last + kLow * W) + fma(T(step.dt), load3<T>(b.last + kV * W), beyond);
}
template <class T>
RIGSTEP_INLINE void move_body(const BodyArrays<T>& b, V3<T> beyond, const StepSize& step) {
  constexpr int W = kWidth<T>;
  store3(b.history + kBeyond * W, beyond);
  store3(b.next + kR * W, load3<T>(b.last + kR * W) + displacement(b, beyond, step));
}
// What rounding has left of the displacement is made good by the next steps.
template <class T>
RIGSTEP_INLINE void keep_low_part(const BodyArrays<T>& b, const StepSize& step) {
  constexpr int W = kWidth<T>;
  const V3<T> moved = load3<T>(b.next + kR * W) - load3<T>(b.last + kR * W);
  store3(b.next + kLow * W, displacement(b, load3<T>(b.history + kBeyond * W), step) - moved);
}

// (15) (16), and what later iterations need of the last instant.
template <class T>
RIGSTEP_INLINE void predict_body(const BodyArrays<T>& b, const StepSize& step) {
  constexpr int W = kWidth<T>;
  const T half_dt2(0.5 * step.dt * step.dt), half_dt(0.5 * step.dt), quarter_dt2(step.quarter_dt2),
      four_over_dt(step.four_over_dt), eight_over_dt2(step.eight_over_dt2);
  const Quaternion<T> p = load_quaternion<T>(b.last + kP * W);
  const V3<T> w = load3<T>(b.last + kOmega * W), al = load3<T>(b.last + kAlpha * W);
  const Quaternion<T> twice_pd{-dot(p.e, w), add_cross(p.w * w, p.e, w)};
  const T half_w2 = T(0.5) * dot(w, w);
  const Quaternion<T> twice_pdd{-fma(half_w2, p.w, dot(p.e, al)), fnma(half_w2, p.e, add_cross(p.w * al, p.e, al))};
  store_quaternion<T>(b.history + kMinus2h1 * W,
                      {fma(four_over_dt, p.w, twice_pd.w), fma(four_over_dt, p.e, twice_pd.e)});
  store_quaternion<T>(b.history + kMinus2h2 * W,
                      {fma(eight_over_dt2, p.w, fma(four_over_dt, twice_pd.w, twice_pdd.w)),
                       fma(eight_over_dt2, p.e, fma(four_over_dt, twice_pd.e, twice_pdd.e))});
  const Quaternion<T> turned{fma(quarter_dt2, twice_pdd.w, fma(half_dt, twice_pd.w, p.w)),
                             fma(quarter_dt2, twice_pdd.e, fma(half_dt, twice_pd.e, p.e))};
  move_body(b, half_dt2 * load3<T>(b.last + kA * W), step);
  turn_body(b, turned);
}

template <class T>
RIGSTEP_INLINE V3<T> velocity(const BodyArrays<T>& b, const StepSize& step) {
  constexpr int W = kWidth<T>;
  return fma(T(step.two_over_dt), load3<T>(b.history + kBeyond * W), load3<T>(b.last + kV * W));
}
template <class T>
RIGSTEP_INLINE V3<T> acceleration(const BodyArrays<T>& b, const StepSize& step) {
  constexpr int W = kWidth<T>;
  return fma(T(step.four_over_dt2), load3<T>(b.history + kBeyond * W), -load3<T>(b.last + kA * W));
}

// ---- tangent mass matrix of a body

template <class T>
RIGSTEP_INLINE S3<T> inverse(const S3<T>& S) {
  const T cxx = fnma(S.zy, S.zy, S.yy * S.zz), cyx = fnma(S.yx, S.zz, S.zx * S.zy), czx = fnma(S.zx, S.yy, S.yx * S.zy);
  const T scale = T(1.0) / fma(S.xx, cxx, fma(S.yx, cyx, S.zx * czx));
  return {scale * cxx, scale * fnma(S.zx, S.zx, S.xx * S.zz), scale * fnma(S.yx, S.yx, S.xx * S.yy), scale * cyx,
          scale * czx, scale * fnma(S.xx, S.zy, S.yx * S.zx)};
}

// dt^2/4 times the derivative of the inertia torque with respect to the body's rotation, in the world frame; A, p: of
// the iterate, minus_2_h1 minus_2_h2: of the last instant. By the angle t of half a step, in the body's axes
//   c J + 1/2 t^2 (J t)(J t)' / (t . J t):
// what turns about a principal axis needs no more, and a slender body bears no more, as this is never less than c J.
// Without it a rotor that turns by 0.6 rad a step loses a thousandth of its speed every tenth of a second.
template <class T>
RIGSTEP_INLINE S3<T> inertia_tangent(const S3<T>& J, const M3<T>& A, Quaternion<T> p, Quaternion<T> minus_2_h1,
                                     Quaternion<T> minus_2_h2, const StepSize& step) {
  const T c = T(0.5 * step.quarter_dt2) * fma(p.w, minus_2_h2.w, dot(p.e, minus_2_h2.e)), at_rest(1e-300);
  const V3<T> t = T(0.5 * step.dt) * G(minus_2_h1, p), Jt = J * t;
  const V3<T> at = A * Jt, share = T(0.5) * (dot(t, t) / (dot(t, Jt) + at_rest)) * at;
  const S3<T> I = rotated(A, J);
  return {fma(c, I.xx, share.x * at.x), fma(c, I.yy, share.y * at.y), fma(c, I.zz, share.z * at.z),
          fma(c, I.yx, share.y * at.x), fma(c, I.zx, share.z * at.x), fma(c, I.zy, share.z * at.y)};
}

// Inertia plus a factor times K, the geometric stiffness, which must leave a tenth of the inertia. Where it falls short
// of that in one direction by little (at the predictor the joint forces still point along the last pose) it is lifted
// there: the first Newton step for the lowest eigenvalue, from 0, goes beyond it. Otherwise it is left out for this
// body.
template <class T>
RIGSTEP_INLINE S3<T> with_stiffness(const S3<T>& I, const S3<T>& K, T factor) {
  constexpr double kLeft = 0.1, kMostLift = 0.05;
  const S3<T> full = fma(factor, K, I), S = fma(T(-kLeft), I, full);
  const T minor = fnma(S.yx, S.yx, S.xx * S.yy);
  const T det = fma(S.zz, minor, fma(S.zx, fnma(S.zx, S.yy, S.yx * S.zy), S.zy * fnma(S.xx, S.zy, S.yx * S.zx)));
  const T least = smaller(smaller(S.xx, minor), det);
  if (all_positive(least)) return full;
  const T minors = minor + (fnma(S.zx, S.zx, S.xx * S.zz) + fnma(S.zy, S.zy, S.yy * S.zz));
  const T lift = -det / minors;
  const T allowed = fma(T(kMostLift), S.xx + (S.yy + S.zz), -lift);
  const T zero(0.0);
  const T by = where_positive(least, zero, where_positive(smaller(smaller(minors, lift), allowed), lift, T(-1.0)));
  const auto pick = [&](T with, T without) { return where_positive(-by, without, with); };
  return {pick(full.xx + by, I.xx), pick(full.yy + by, I.yy), pick(full.zz + by, I.zz),
          pick(full.yx, I.yx),      pick(full.zx, I.zx),      pick(full.zy, I.zy)};
}

// what the torque of the joints, in the body's axes, adds to twice the geometric stiffness there
template <class T>
RIGSTEP_INLINE S3<T> turning_stiffness(const BodyArrays<T>& b, V3<T> torque) {
  constexpr int W = kWidth<T>;
  const auto sum = [&](int k) RIGSTEP_INLINED {
    return fma(load<T>(b.turning + k * W), torque.x,
               fma(load<T>(b.turning + (6 + k) * W), torque.y, load<T>(b.turning + (12 + k) * W) * torque.z));
  };
  return {sum(0), sum(1), sum(2), sum(3), sum(4), sum(5)};
}

template <class T>
struct Motion {
  V3<T> v, w;
};

// M^-1 (force, torque), M the tangent mass matrix
template <class T>
struct InverseMass {
  T inverse_mass;
  S3<T> inertia_inverse;
  RIGSTEP_INLINE Motion<T> operator()(V3<T> force, V3<T> torque) const {
    return {inverse_mass * force, inertia_inverse * torque};
  }
  // m - M^-1 (force, torque)
  RIGSTEP_INLINE Motion<T> taken_from(Motion<T> m, V3<T> force, V3<T> torque) const {
    const S3<T>& S = inertia_inverse;
    return {fnma(inverse_mass, force, m.v),
            {fnma(S.xx, torque.x, fnma(S.yx, torque.y, fnma(S.zx, torque.z, m.w.x))),
             fnma(S.yx, torque.x, fnma(S.yy, torque.y, fnma(S.zy, torque.z, m.w.y))),
             fnma(S.zx, torque.x, fnma(S.zy, torque.y, fnma(S.zz, torque.z, m.w.z)))}};
  }
};

// by a symmetric matrix 6 x 6, packed
template <class T>
struct SymmetricProduct {
  const double* at;
  RIGSTEP_INLINE T entry(int i, int k) const {
    return load<T>(at + (i > k ? packed(i) + k : packed(k) + i) * kWidth<T>);
  }
  RIGSTEP_INLINE T row(int i, V3<T> f, V3<T> t) const {
    return fma(
        entry(i, 0), f.x,
        fma(entry(i, 1), f.y, fma(entry(i, 2), f.z, fma(entry(i, 3), t.x, fma(entry(i, 4), t.y, entry(i, 5) * t.z)))));
  }
  RIGSTEP_INLINE Motion<T> operator()(V3<T> f, V3<T> t) const {
    return {{row(0, f, t), row(1, f, t), row(2, f, t)}, {row(3, f, t), row(4, f, t), row(5, f, t)}};
  }
  RIGSTEP_INLINE Motion<T> taken_from(Motion<T> m, V3<T> f, V3<T> t) const {
    const Motion<T> product = (*this)(f, t);
    return {m.v - product.v, m.w - product.w};
  }
};

// ---- LDL' of a constraint's own block

// ... of M <= 3 of its rows from J on, with the pivots as ratios of leading minors: so the divisions do not wait for
// each other. Returns a number that is positive if all pivots are.
template <int J, int M, class T>
RIGSTEP_INLINE T factorise_few_pivots(T* A, T* inverse_d) {
  const auto at = [A](int i, int k) RIGSTEP_INLINED -> T& { return A[packed(J + i) + J + k]; };
  const T first = at(0, 0), one(1.0);
  inverse_d[J] = one / first;
  if constexpr (M == 1) {
    return first;
  } else {
    const T second = fnma(at(1, 0), at(1, 0), first * at(1, 1)), one_over_second = one / second;
    inverse_d[J + 1] = first * one_over_second;
    T least = smaller(first, second);
    if constexpr (M == 3) {
      const T below = fnma(at(1, 0), at(2, 0), first * at(2, 1));
      const T third = fnma(below, below, second * fnma(at(2, 0), at(2, 0), first * at(2, 2)));  // times the first
      inverse_d[J + 2] = (first * second) * (one / third);
      at(2, 0) = at(2, 0) * inverse_d[J], at(2, 1) = below * one_over_second;
      least = smaller(least, third);
    }
    at(1, 0) = at(1, 0) * inverse_d[J];
    return least;
  }
}

// A (packed) becomes L below the diagonal; inverse: 1 / D. Three rows at a time, from J on. Returns as above.
template <int N, int J = 0, class T>
RIGSTEP_INLINE T factorise_pivots(T* A, T* inverse_d) {
  constexpr int M = N - J < 3 ? N - J : 3;
  const T least = factorise_few_pivots<J, M>(A, inverse_d);
  if constexpr (J + M == N) {
    return least;
  } else {
    T scaled[N][M];  // the rows below, times D
#pragma GCC unroll 6
    for (int i = J + M; i < N; ++i) {
      T* const row = A + packed(i);
      each<M>([&](int k) RIGSTEP_INLINED {
        scaled[i][k] = row[J + k];
#pragma GCC unroll 6
        for (int j = 0; j < k; ++j) scaled[i][k] = fnma(A[packed(J + k) + J + j], scaled[i][j], scaled[i][k]);
      });
      each<M>([&](int k) RIGSTEP_INLINED { row[J + k] = scaled[i][k] * inverse_d[J + k]; });
#pragma GCC unroll 6
      for (int j = J + M; j <= i; ++j)
        each<M>([&](int k) RIGSTEP_INLINED { row[j] = fnma(row[J + k], scaled[j][k], row[j]); });
    }
    return smaller(least, factorise_pivots<N, J + M>(A, inverse_d));
  }
}

// x := L^-1 x
template <int N, class T>
RIGSTEP_INLINE void forward(const T* L, T* x) {
#pragma GCC unroll 6
  for (int k = 1; k < N; ++k)
#pragma GCC unroll 6
    for (int j = 0; j < k; ++j) x[k] = fnma(L[packed(k) + j], x[j], x[k]);
}

// x := L'^-1 x
template <int N, class T>
RIGSTEP_INLINE void backward(const T* L, T* x) {
#pragma GCC unroll 6
  for (int k = N - 2; k >= 0; --k)
#pragma GCC unroll 6
    for (int j = k + 1; j < N; ++j) x[k] = fnma(L[packed(j) + k], x[j], x[k]);
}

// ---- constraints: three rows of a common point P_A - P_B, then cosines u_A . h_B

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
  return C - (C == 3 ? 1 : 0);  // 0, 1, 2, 2
}
template <int C>
constexpr int second_axes() {
  return C == 3 ? 2 : (C > 0 ? 1 : 0);
}

// Both sides of a point constraint in the world frame.
template <int C, class T>
struct PointSides {
  V3<T> s_first, s_second, u[2], h[2];
  RIGSTEP_INLINE V3<T> axis_first(int k) const { return u[first_axis<C>(k)]; }
  RIGSTEP_INLINE V3<T> axis_second(int k) const { return h[second_axis<C>(k)]; }
  RIGSTEP_INLINE V3<T> normal(int k) const { return cross(axis_first(k), axis_second(k)); }
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
  if constexpr (C == RowFormat::kGeneral) {
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
  if constexpr (C == RowFormat::kGeneral) {
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
  put3(to, 0, force);
  if constexpr (C > 0) put3(to, kMomentOfHandle, moment);
  each<C>([&](int k) RIGSTEP_INLINED { put3(to, normals_of_handle(C) + 3 * k, at.normal(k)); });
}

// twice the geometric stiffness of the cosines, the same for both bodies
template <int C, class T>
RIGSTEP_INLINE S3<T> stiffness_of_cosines(const PointSides<C, T>& at, const T* lambda) {
  S3<T> K = outer(lambda[0] * at.axis_first(0), at.axis_second(0));
  each<C - 1>([&](int k)
                  RIGSTEP_INLINED { K = K + outer(lambda[k + 1] * at.axis_first(k + 1), at.axis_second(k + 1)); });
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

// y[k] = M^-1 J' of every row, without the sign of the side
template <int C, class T, class Inverse>
RIGSTEP_INLINE void compliance_columns(const PointHandle<C, T>& h, const Inverse& inverse, Motion<T>* y) {
  each<3>([&](int k) RIGSTEP_INLINED { y[k] = response_to_force(inverse, k, h.arm); });
  each<C>([&](int k) RIGSTEP_INLINED { y[3 + k] = response_to_moment(inverse, h.normal(k)); });
}

// one column of a block: J_b y
template <int C, class T>
RIGSTEP_INLINE void block_column(const PointHandle<C, T>& h, const Motion<T>& y, T* column) {
  const V3<T> at_point = add_cross(y.v, y.w, h.arm);
  column[0] = at_point.x, column[1] = at_point.y, column[2] = at_point.z;
  each<C>([&](int k) RIGSTEP_INLINED { column[3 + k] = dot(h.normal(k), y.w); });
}

}  // namespace rigstep::index3::RIGSTEP_ISA
