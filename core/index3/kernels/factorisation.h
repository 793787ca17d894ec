// L d L' of the block of one constraint, d diagonal, and solves with it. Symmetric matrices are packed by rows, lower
// half.
#pragma once

#include "core/index3/kernels/lanes.h"

namespace rigstep::index3::RIGSTEP_ISA {

constexpr int packed(int row) { return row * (row + 1) / 2; }

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

// A (packed) becomes L below the diagonal; inverse_d: 1 / d. Three rows at a time, from J on. Returns as above.
template <int N, int J = 0, class T>
RIGSTEP_INLINE T factorise_pivots(T* A, T* inverse_d) {
  constexpr int M = N - J < 3 ? N - J : 3;
  const T least = factorise_few_pivots<J, M>(A, inverse_d);
  if constexpr (J + M == N) {
    return least;
  } else {
    T scaled[N][M];  // the rows of L d below
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

}  // namespace rigstep::index3::RIGSTEP_ISA
