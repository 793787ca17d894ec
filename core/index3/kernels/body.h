// One body, or several side by side: its record, the trapezoidal rule in displacements, its tangent mass matrix and
// the inverse of that. Called in the loop.
#pragma once

#include "core/index3/kernels/factorisation.h"
#include "core/index3/kernels/operands.h"

namespace rigstep::index3::RIGSTEP_ISA {

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

// G(p) x, which is -G(x) p. With the hatted terms of (15) (16) for p this gives the angular velocity 2 G(p) pd_hat =
// G(-2 pd_hat) p and the angular acceleration 2 G(p) pdd_hat = G(-2 pdd_hat) p, in the body's axes, since G(p) p = 0.
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

template <class T>
struct BodyArrays {
  static constexpr int W = kWidth<T>;
  double *last, *next, *history, *rotation, *twist, *load, *motion, *inertia_inverse, *constants, *torque_tangent;
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
        torque_tangent(record + W * kTorqueTangentField) {}
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

// twice the rates of the Euler parameters p at the last instant
template <class T>
struct TwiceRates {
  Quaternion<T> pd, pdd;
};
template <class T>
RIGSTEP_INLINE TwiceRates<T> twice_rates(const BodyArrays<T>& b, Quaternion<T> p) {
  constexpr int W = kWidth<T>;
  const V3<T> w = load3<T>(b.last + kOmega * W), al = load3<T>(b.last + kAlpha * W);
  const T half_w2 = T(0.5) * dot(w, w);
  return {{-dot(p.e, w), add_cross(p.w * w, p.e, w)},
          {-fma(half_w2, p.w, dot(p.e, al)), fnma(half_w2, p.e, add_cross(p.w * al, p.e, al))}};
}

// Taylor predictor (3.5 3a) and the history terms of (15) (16).
template <class T>
RIGSTEP_INLINE void predict_body(const BodyArrays<T>& b, const StepSize& step) {
  constexpr int W = kWidth<T>;
  const T half_dt2(0.5 * step.dt * step.dt), half_dt(0.5 * step.dt), quarter_dt2(step.quarter_dt2),
      four_over_dt(step.four_over_dt), eight_over_dt2(step.eight_over_dt2);
  const Quaternion<T> p = load_quaternion<T>(b.last + kP * W);
  const auto [twice_pd, twice_pdd] = twice_rates(b, p);
  store_quaternion<T>(b.history + kMinus2PdHat * W,
                      {fma(four_over_dt, p.w, twice_pd.w), fma(four_over_dt, p.e, twice_pd.e)});
  store_quaternion<T>(b.history + kMinus2PddHat * W,
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
  const V3<T> beyond = load3<T>(b.history + kBeyond * W);
  if (step.to_middle) return T(step.four_over_dt2) * beyond;
  return fma(T(step.four_over_dt2), beyond, -load3<T>(b.last + kA * W));
}

// ---- tangent mass matrix

template <class T>
RIGSTEP_INLINE S3<T> inverse(const S3<T>& S) {
  const T cxx = fnma(S.zy, S.zy, S.yy * S.zz), cyx = fnma(S.yx, S.zz, S.zx * S.zy), czx = fnma(S.zx, S.yy, S.yx * S.zy);
  const T scale = T(1.0) / fma(S.xx, cxx, fma(S.yx, cyx, S.zx * czx));
  return {scale * cxx, scale * fnma(S.zx, S.zx, S.xx * S.zz), scale * fnma(S.yx, S.yx, S.xx * S.yy), scale * cyx,
          scale * czx, scale * fnma(S.xx, S.zy, S.yx * S.zx)};
}

// dt^2/4 times the derivative of the inertia torque with respect to the body's rotation, symmetric and approximate: in
// the body's axes
//   c J + 1/2 t^2 (J t)(J t)' / (t . J t)
// with t = dt/2 w, the rotation vector of half a step, and c = -(dt^2/4) p . pdd_hat, which is 1 at rest. Exact for a
// steady turn about a principal axis; never less than c J, so that slender bodies keep a positive tangent. With J alone
// three iterations left a rotor of 0.6 rad a step a remainder that cost a quarter of its energy in 10 s; scales_test
// ("rotors, tops and tumbling bodies keep their energy ...") holds that it is kept. Returned in the world frame; A, p:
// of the iterate.
template <class T>
RIGSTEP_INLINE S3<T> inertia_tangent(const S3<T>& J, const M3<T>& A, Quaternion<T> p, Quaternion<T> minus_2_pd_hat,
                                     Quaternion<T> minus_2_pdd_hat, const StepSize& step) {
  const T c = T(0.5 * step.quarter_dt2) * fma(p.w, minus_2_pdd_hat.w, dot(p.e, minus_2_pdd_hat.e)), at_rest(1e-300);
  const V3<T> t = T(0.5 * step.dt) * G(minus_2_pd_hat, p), Jt = J * t;
  const V3<T> at = A * Jt, share = T(0.5) * (dot(t, t) / (dot(t, Jt) + at_rest)) * at;
  const S3<T> I = rotated(A, J);
  return {fma(c, I.xx, share.x * at.x), fma(c, I.yy, share.y * at.y), fma(c, I.zz, share.z * at.z),
          fma(c, I.yx, share.y * at.x), fma(c, I.zx, share.z * at.x), fma(c, I.zy, share.z * at.y)};
}

// I + factor K, K the geometric stiffness, if at least kLeft of I is left (S = I + factor K - kLeft I positive
// definite). Where the lowest eigenvalue of S is slightly negative, as at the predictor, where the joint forces still
// point along the last pose, all of the diagonal is raised by -det/minors: Newton's step from 0 on the characteristic
// polynomial, which overshoots that root. Beyond kMostLift of the trace, K is left out for this body. Both numbers were
// chosen, not measured: how fast the iterations converge depends on them, and the metric of the projections.
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

// what the torque of the joints, in the body's axes, adds to twice the geometric stiffness there; see
// symmetrised_torque_tangent in step/workspace.cpp
template <class T>
RIGSTEP_INLINE S3<T> torque_stiffness(const BodyArrays<T>& b, V3<T> torque) {
  constexpr int W = kWidth<T>;
  const auto sum = [&](int k) RIGSTEP_INLINED {
    return fma(
        load<T>(b.torque_tangent + k * W), torque.x,
        fma(load<T>(b.torque_tangent + (6 + k) * W), torque.y, load<T>(b.torque_tangent + (12 + k) * W) * torque.z));
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

}  // namespace rigstep::index3::RIGSTEP_ISA
