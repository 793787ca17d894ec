// Dense algebra of ONE operation of the elimination. Matrices are symmetric, column-major, n x n, lower half used; the
// first e rows are eliminated, the others stay pending. Called in the loop.
#pragma once

#include <cmath>

namespace rigstep::index3::kernels {

// Adds the pending block of a child (n_child x n_child, first e_child rows eliminated) to a parent (n x n) at `place`.
inline void scatter_add(const double* child, int n_child, int e_child, const int* place, double* parent,
                        int n) noexcept {
  for (int k = e_child; k < n_child; ++k) {
    const int column = place[k - e_child];
    for (int i = k; i < n_child; ++i) {
      const int row = place[i - e_child];
      const int low = row > column ? row : column, high = row > column ? column : row;
      parent[low + high * n] += child[i + k * n_child];
    }
  }
}

// Partial Cholesky: W_ee = L L', rows below become W_pe L^-T, the pending block its Schur complement (36) (38).
// The diagonal of L is stored inverted. Returns the first row whose pivot is zero or negative, or -1; NaN goes through.
inline int eliminate(double* W, int n, int e) noexcept {
  int failed = -1;
  for (int c = 0; c < e; ++c) {
    double* column = W + c * n;
    const double pivot = column[c];
    if (pivot <= 0.0 && failed < 0) failed = c;
    const double inverse = 1.0 / std::sqrt(pivot);
    column[c] = inverse;
    for (int i = c + 1; i < n; ++i) column[i] *= inverse;
    for (int k = c + 1; k < n; ++k) {
      const double factor = column[k];
      double* to = W + k * n;
      for (int i = k; i < n; ++i) to[i] -= column[i] * factor;
    }
  }
  return failed;
}

// b_e := L^-1 b_e, b_p -= (W_pe L^-T) b_e.
inline void solve_up(const double* W, int n, int e, double* b) noexcept {
  for (int c = 0; c < e; ++c) {
    const double* column = W + c * n;
    const double y = b[c] * column[c];
    b[c] = y;
    for (int i = c + 1; i < n; ++i) b[i] -= column[i] * y;
  }
}

// b_e := L^-T (b_e - (W_pe L^-T)' b_p) with b_p the solution of the pending rows.
inline void solve_down(const double* W, int n, int e, double* b) noexcept {
  for (int c = e - 1; c >= 0; --c) {
    const double* column = W + c * n;
    double sum = b[c];
    for (int i = c + 1; i < n; ++i) sum -= column[i] * b[i];
    b[c] = sum * column[c];
  }
}

}  // namespace rigstep::index3::kernels
