// A body in a step of the implicit midpoint rule, whose iterate is the middle of the step: h the step, q_0 v_0 its
// begin,
//
//   r_m = r_0 + h/2 v_0 + beyond              v_m = v_0 + 2/h beyond         a_m = 4/h^2 beyond
//   p_m, d = vec(conj(p_0) p_m)               w_m = 4/h d                    alpha_m = 2/h (w_m - w_0)     body axes
//
// and of its end, the reflection of its begin at the middle,
//
//   r_1 = r_0 + h v_0 + 2 beyond              v_1 = 2 v_m - v_0
//   p_1 = 2 (p_0 . p_m) p_m - p_0             w_1 = 2 w_m - w_0
//
// With begin and end exchanged and -h for h these equations are the same, so that the error of a step has odd powers of
// h only, and one extrapolation raises the order by two. The record's history is that of the trapezoidal rule without
// the rates of the last instant: w_m = G(4/h p_0) p_m. StepSize::dt is h/2 here. Called in the loop.
#pragma once

#include "core/index3/kernels/body.h"

namespace rigstep::index3::RIGSTEP_ISA {

// Taylor predictor of the middle; its acceleration need not be that of the equations of motion.
template <class T>
RIGSTEP_INLINE void predict_middle(const BodyArrays<T>& b, const StepSize& step) {
  constexpr int W = kWidth<T>;
  const T half_time(0.5 * step.dt), quarter_time2(0.25 * step.dt * step.dt);
  const Quaternion<T> p = load_quaternion<T>(b.last + kP * W);
  const auto [twice_pd, twice_pdd] = twice_rates(b, p);
  store_quaternion<T>(b.history + kMinus2PdHat * W, {T(step.four_over_dt) * p.w, T(step.four_over_dt) * p.e});
  store_quaternion<T>(b.history + kMinus2PddHat * W, {T(step.eight_over_dt2) * p.w, T(step.eight_over_dt2) * p.e});
  move_body(b, T(0.5 * step.dt * step.dt) * load3<T>(b.last + kA * W), step);
  turn_body<T>(b, {fma(quarter_time2, twice_pdd.w, fma(half_time, twice_pd.w, p.w)),
                   fma(quarter_time2, twice_pdd.e, fma(half_time, twice_pd.e, p.e))});
}

template <class T>
RIGSTEP_INLINE void show_rotation(const BodyArrays<T>& b, Quaternion<T> p) {
  constexpr int W = kWidth<T>;
  const M3<T> A = rotation(p, T(2.0) / fma(p.w, p.w, dot(p.e, p.e)));
  store3(b.rotation, A.x), store3(b.rotation + 3 * W, A.y), store3(b.rotation + 6 * W, A.z);
}

template <class T>
RIGSTEP_INLINE Quaternion<T> end_of_turn(const BodyArrays<T>& b) {
  constexpr int W = kWidth<T>;
  const Quaternion<T> p_0 = load_quaternion<T>(b.last + kP * W), p_m = load_quaternion<T>(b.next + kP * W);
  const T twice = T(2.0) * fma(p_0.w, p_m.w, dot(p_0.e, p_m.e));
  return {fma(twice, p_m.w, -p_0.w), fma(twice, p_m.e, -p_0.e)};
}

// of the whole step, with what rounding has left of earlier ones
template <class T>
RIGSTEP_INLINE V3<T> displacement_to_end(const BodyArrays<T>& b, const StepSize& step) {
  constexpr int W = kWidth<T>;
  const V3<T> to_middle = fma(T(step.dt), load3<T>(b.last + kV * W), load3<T>(b.history + kBeyond * W));
  return fma(T(2.0), to_middle, load3<T>(b.last + kLow * W));
}

// The pose that constraints and force elements see; p_m stays where it is.
template <class T>
RIGSTEP_INLINE void show_end(const BodyArrays<T>& b, const StepSize& step) {
  constexpr int W = kWidth<T>;
  store3(b.next + kR * W, load3<T>(b.last + kR * W) + displacement_to_end(b, step));
  show_rotation(b, end_of_turn(b));
}
template <class T>
RIGSTEP_INLINE void show_middle(const BodyArrays<T>& b, const StepSize& step) {
  constexpr int W = kWidth<T>;
  move_body(b, load3<T>(b.history + kBeyond * W), step);
  show_rotation(b, load_quaternion<T>(b.next + kP * W));
}

template <class T>
RIGSTEP_INLINE void find_end_velocities(const BodyArrays<T>& b, const StepSize& step) {
  constexpr int W = kWidth<T>;
  const V3<T> w_m = G(load_quaternion<T>(b.history + kMinus2PdHat * W), load_quaternion<T>(b.next + kP * W));
  store3(b.next + kV * W, fma(T(step.four_over_dt), load3<T>(b.history + kBeyond * W), load3<T>(b.last + kV * W)));
  store3(b.next + kOmega * W, fma(T(2.0), w_m, -load3<T>(b.last + kOmega * W)));
}

// The accelerations, which the next predictor needs, are those of the middle and as much beyond them as these lie
// beyond the begin's.
template <class T>
RIGSTEP_INLINE void reach_end(const BodyArrays<T>& b, const StepSize& step) {
  constexpr int W = kWidth<T>;
  const auto mean_rate = [&](int rate, int of) RIGSTEP_INLINED {
    const V3<T> change = load3<T>(b.next + of * W) - load3<T>(b.last + of * W);
    store3(b.next + rate * W, fma(T(step.two_over_dt), change, -load3<T>(b.last + rate * W)));
  };
  mean_rate(kA, kV), mean_rate(kAlpha, kOmega);
  const V3<T> d = displacement_to_end(b, step), r_0 = load3<T>(b.last + kR * W), r_1 = r_0 + d;
  store3(b.next + kR * W, r_1);
  store3(b.next + kLow * W, d - (r_1 - r_0));
  turn_body(b, end_of_turn(b));
}

// Moves a body without a turn; what rounding leaves goes to the low part.
template <class T>
RIGSTEP_INLINE void shift_body(const BodyArrays<T>& b, V3<T> by) {
  constexpr int W = kWidth<T>;
  const V3<T> d = load3<T>(b.next + kLow * W) + by, r = load3<T>(b.next + kR * W), moved = r + d;
  store3(b.next + kR * W, moved);
  store3(b.next + kLow * W, d - (moved - r));
}

// Adds `share` of what two half steps have reached beyond the state `whole` of a whole step: local extrapolation of an
// error in h^3 where it is a third. Returned: how far that is, of the position and of half the turn.
template <class T>
RIGSTEP_INLINE Motion<T> extrapolate_body(const BodyArrays<T>& b, const double* whole, T share) {
  constexpr int W = kWidth<T>;
  const auto beyond = [&](int of) RIGSTEP_INLINED { return load3<T>(b.next + of * W) - load3<T>(whole + of * W); };
  for (const int rate : {kV, kOmega}) store3(b.next + rate * W, fma(share, beyond(rate), load3<T>(b.next + rate * W)));
  const V3<T> dr = beyond(kR) + beyond(kLow);
  shift_body(b, share * dr);
  const Quaternion<T> p = load_quaternion<T>(b.next + kP * W), q = load_quaternion<T>(whole + kP * W);
  // p and -p are one orientation
  const T side = where_positive(fma(p.w, q.w, dot(p.e, q.e)), T(1.0), T(-1.0));
  const Quaternion<T> dp{fnma(side, q.w, p.w), fnma(side, q.e, p.e)};
  turn_body<T>(b, {fma(share, dp.w, p.w), fma(share, dp.e, p.e)});
  return {dr, G(p, dp)};
}

}  // namespace rigstep::index3::RIGSTEP_ISA
