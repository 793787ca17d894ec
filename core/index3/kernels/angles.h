// Arctangent and sine of several angles side by side, without branches: what core/mechanism/portable_math.h has for
// one, to rounding. Called in the loop.
#pragma once

#include "core/index3/kernels/lanes.h"

namespace rigstep::index3::RIGSTEP_ISA {

inline constexpr double kHalfTurn = 3.14159265358979323846;

// Angle of the vector (x, y) in (-pi, pi] [rad], without branches.
template <class T>
RIGSTEP_INLINE T arctangent(T y, T x) {
  constexpr double kTangentOfPiEighth = 0.41421356237309503, kNotZero = 1e-300;
  const T size_x = magnitude(x), size_y = magnitude(y);
  const T steep = size_y - size_x;
  const T ratio = smaller(size_x, size_y) / larger(larger(size_x, size_y), T(kNotZero));
  const T large = ratio - T(kTangentOfPiEighth);
  const T reduced = where_positive(large, (ratio - T(1.0)) / (ratio + T(1.0)), ratio);
  const T z = reduced / (T(1.0) + square_root(fma(reduced, reduced, T(1.0))));  // of half the angle
  const T z2 = z * z;
  T sum(0.0);
#pragma GCC unroll 12
  for (int n = 25; n >= 3; n -= 2) sum = fnma(z2, sum, -(T(1.0 / n) * z2));
  const T twice = T(2.0) * fma(z, sum, z);
  const T of_ratio = where_positive(large, twice + T(kHalfTurn / 4.0), twice);
  const T of_sizes = where_positive(steep, T(kHalfTurn / 2.0) - of_ratio, of_ratio);
  const T upper = where_positive(-x, T(kHalfTurn) - of_sizes, of_sizes);
  return where_positive(-y, -upper, upper);
}

// To the nearest integer, of what is far below 2^51.
template <class T>
RIGSTEP_INLINE T rounded(T x) {
  constexpr double kRoundsToInteger = 6755399441055744.0;  // 1.5 * 2^52
  return (x + T(kRoundsToInteger)) - T(kRoundsToInteger);
}

// An angle less the full turns that bring it nearest to the reference [rad].
template <class T>
RIGSTEP_INLINE T unwrapped(T angle, T reference) {
  const T turns = rounded((angle - reference) * T(0.5 / kHalfTurn));
  return fnma(turns, T(2.0 * kHalfTurn), angle);
}

// By the Taylor series of x less a multiple of pi, which changes the sign where it is odd.
template <class T>
RIGSTEP_INLINE T sine(T x) {
  constexpr double kHalfTurnHigh = 3.1415926218032837, kHalfTurnMiddle = 3.178650942459171e-8;
  constexpr double kHalfTurnLow = 1.2246467864107189e-16;  // together pi
  const T turns = rounded(x * T(1.0 / kHalfTurn));
  const T r = fnma(turns, T(kHalfTurnLow), fnma(turns, T(kHalfTurnMiddle), fnma(turns, T(kHalfTurnHigh), x)));
  const T minus_r2 = -(r * r), one(1.0);
  T sum = one;
#pragma GCC unroll 10
  for (int n = 21; n >= 3; n -= 2) sum = fma(minus_r2 * T(1.0 / (n * (n - 1))), sum, one);
  const T of_rest = r * sum, half = turns * T(0.5), odd = magnitude(half - rounded(half));
  return where_positive(odd - T(0.25), -of_rest, of_rest);
}

}  // namespace rigstep::index3::RIGSTEP_ISA
