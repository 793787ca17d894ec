// From the paper's blocks to the packed compliance of a compound.
//
// [001] sees a compound body through the two joints 1 and 2 by which it is still joined to others. With the multipliers
// lambda_1 and lambda_2 of these joints its end bodies move by (26), (35)
//
//     | dq_1 |   | delta_11  delta_12 | | Phi_1' lambda_1 |   | delta_10 |
//     | dq_2 | = | delta_21  delta_22 | | Phi_2' lambda_2 | + | delta_20 |
//
// with 7 x 7 blocks: of one body delta_ij = -M^-1 and delta_i0 = -(dt^2/4) M^-1 g, M its tangent mass matrix (17). A
// joint needs of dq only what its own rows J see. Multiplied by J_1 and J_2, with any number of pending constraints
// instead of two, and with Lambda for the scaled multipliers, this becomes
//
//     y = b - S Lambda,        S_ij = J_i M^-1 J_j'  (packed compliance),   b_i = J_i delta_i0  (right-hand side):
//
// symmetric, positive definite, and as large as there are pending rows. leaf_compliance.h fills S and b of one body.
//
// Compounds A and B share the constraint p; the others of A are called a, those of B are called b, r = (a, b):
//
//         | S_aa  S_ap |             | S_pp  S_pb |
//     A = | S_pa  S_pp |,        B = | S_bp  S_bb |
//
// J of p has opposite signs on its two bodies, so its opening after the step is Phi_p + y_p of A + y_p of B. It must
// be what its compliance C allows, C Lambda_p, which is (28) with 4 / (alpha dt^2) = C:
//
//     D Lambda_p = b_p - Z' Lambda_r,       D = C + A.S_pp + B.S_pp,   b_p = Phi_p + A.b_p + B.b_p,   Z = | S_ap |
//                                                                                                       | S_bp |
// With P = Z D^-1 the constraint p disappears from what a and b see, which is (36)-(39) for packed blocks:
//
//     | S_aa        |                                   | b_a |
// S = |        S_bb | - P Z',                       b = |     | - P b_p
//                                                       | b_b |
//
// eliminate() below does that: L D L' of the pivots, P row by row, S by its lower half. At the root nothing is pending,
// r is empty, and Lambda_p = D^-1 b_p is the solve at the root. On the way back (34) gives
//
//     Lambda_p = D^-1 b_p - P' Lambda_r.
//
// A loop closes where A and B share several constraints: they are eliminated one after the other, the others being
// pending in both, so that their entries add up.
#include "core/index3/kernels/factorisation.h"
#include "core/index3/kernels/fronts.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

RIGSTEP_INLINE int entry(int i, int k) { return i >= k ? packed(i) + k : packed(k) + i; }

// L below the diagonal and 1/D of the pivots on it, kept
template <int N, class T>
RIGSTEP_INLINE void keep_pivots(const T* L, const T* inverse_d, double* factor) {
  each<N>([&](int i) RIGSTEP_INLINED {
#pragma GCC unroll 6
    for (int k = 0; k < i; ++k) store(factor + (packed(i) + k) * kWidth<T>, L[packed(i) + k]);
    store(factor + (packed(i) + i) * kWidth<T>, inverse_d[i]);
  });
}

// A row x below the pivots: z = L^-1 x, p = D^-1 z; kept: P = x times the inverse of the pivots.
template <int N, class T>
RIGSTEP_INLINE void reduce_row(const T* L, const T* inverse_d, T* z, T* p, double* P) {
  forward<N>(L, z);
  T solved[N];
  each<N>([&](int k) RIGSTEP_INLINED { solved[k] = p[k] = z[k] * inverse_d[k]; });
  backward<N>(L, solved);
  each<N>([&](int k) RIGSTEP_INLINED { store(P + k * kWidth<T>, solved[k]); });
}

template <int N, class T>
RIGSTEP_INLINE T minus_dot(T sum, const T* p, const T* z) {
  each<N>([&](int k) RIGSTEP_INLINED { sum = fnma(p[k], z[k], sum); });
  return sum;
}

// (36)-(38) where compounds [a p] and [p b] become [a b], all of N rows; what is missing is skipped.
template <int N, bool IsLink, class T>
RIGSTEP_INLINE bool eliminate_two_sided(const StepArrays& a, const Front& f, int stage) {
  constexpr int W = kWidth<T>;
  const bool has_left = IsLink || (f.form & kLeft), has_right = IsLink || (f.form & kRight);
  const bool has_a = IsLink || (f.form & kLeftOpen), has_b = IsLink || (f.form & kRightOpen);
  bool positive = true;
  with_children<T>(a, f, Matrix{}, [&](const auto& left, const auto& right) RIGSTEP_INLINED {
    double* const factor = a.arena + f.factor;
    double* P = factor + packed(N) * W;
    double* const S = a.arena + f.matrix;
    const double* const compliance = a.compliance[stage] + f.row_position;
    T L[packed(N)], inverse_d[N], Z_a[N][N], Z_b[N][N], p[N];
    const int p_left = IsLink ? N : f.child[0].pivot;
    each<N>([&](int i) RIGSTEP_INLINED {
#pragma GCC unroll 6
      for (int k = 0; k <= i; ++k) {
        T value(0.0);
        if (has_left) value = left(packed(p_left + i) + p_left + k);
        if (has_right) value = has_left ? value + right(packed(i) + k) : right(packed(i) + k);
        L[packed(i) + k] = value;
      }
      L[packed(i) + i] = L[packed(i) + i] + load<T>(compliance + i * row_stride<T>(f));
    });
    positive = all_positive(factorise_pivots<N>(L, inverse_d));
    keep_pivots<N>(L, inverse_d, factor);
    if (has_a) {
      each<N>([&](int i) RIGSTEP_INLINED {
        each<N>([&](int k) RIGSTEP_INLINED { Z_a[i][k] = left(packed(N + k) + i); });
        reduce_row<N>(L, inverse_d, Z_a[i], p, P + i * N * W);
#pragma GCC unroll 6
        for (int j = 0; j <= i; ++j) store(S + (packed(i) + j) * W, minus_dot<N>(left(packed(i) + j), p, Z_a[j]));
      });
      P += N * N * W;
    }
    if (!IsLink && !has_a)
      each<N>([&](int i) RIGSTEP_INLINED { each<N>([&](int k) RIGSTEP_INLINED { Z_a[i][k] = T(0.0); }); });
    if (!has_b) return;
    const int first_b = has_a ? N : 0;
    each<N>([&](int i) RIGSTEP_INLINED {
      each<N>([&](int k) RIGSTEP_INLINED { Z_b[i][k] = right(packed(N + i) + k); });
      reduce_row<N>(L, inverse_d, Z_b[i], p, P + i * N * W);
      if (has_a) {
        each<N>([&](int j) RIGSTEP_INLINED { store(S + (packed(N + i) + j) * W, minus_dot<N>(T(0.0), p, Z_a[j])); });
      }
#pragma GCC unroll 6
      for (int j = 0; j <= i; ++j)
        store(S + (packed(first_b + i) + first_b + j) * W, minus_dot<N>(right(packed(N + i) + N + j), p, Z_b[j]));
    });
  });
  return positive;
}

template <class T>
RIGSTEP_INLINE void turn_over(T* values, int count) {
  for (int k = 0; k < count; ++k) values[k] = -values[k];
}

// (36)-(38): Schur complement of one constraint, or of a primal body, whose pivots are negative: LDL' of the block
// turned over has the same L and -D; N = 0 only joins the two compounds
template <int N, class T>
RIGSTEP_INLINE bool eliminate(const StepArrays& a, const Front& f, int stage) {
  constexpr int W = kWidth<T>;
  bool positive = true;
  with_children<T>(a, f, Matrix{}, [&](const auto& left, const auto& right) RIGSTEP_INLINED {
    double* const Z = a.scratch;  // rows below, times D
    double* const factor = a.arena + f.factor;
    double* const P = factor + packed(N) * W;  // after L and 1/D
    double* const S = a.arena + f.matrix;
    // entry (i, k) of the front's children; rows of theirs are negative where they do not have them
    const auto sum = [&](int left_i, int left_k, int right_i, int right_k) {
      T value(0.0);
      if (left_i >= 0 && left_k >= 0) value = left(entry(left_i, left_k));
      if (right_i >= 0 && right_k >= 0) value = value + right(entry(right_i, right_k));
      return value;
    };
    const int left_pivot = f.child[0].present ? f.child[0].pivot : -1 - N;
    const int right_pivot = f.child[1].present ? f.child[1].pivot : -1 - N;
    T L[packed(N) + 1], inverse_d[N + 1];
    if constexpr (N > 0) {
      const double* compliance = a.compliance[stage] + f.row_position;
      each<N>([&](int i) RIGSTEP_INLINED {
#pragma GCC unroll 6
        for (int k = 0; k <= i; ++k)
          L[packed(i) + k] = sum(left_pivot + i, left_pivot + k, right_pivot + i, right_pivot + k);
        L[packed(i) + i] = L[packed(i) + i] + load<T>(compliance + i * row_stride<T>(f));
      });
      if (f.is_primal) turn_over(L, packed(N));
      positive = all_positive(factorise_pivots<N>(L, inverse_d));
      if (f.is_primal) turn_over(inverse_d, N);
      keep_pivots<N>(L, inverse_d, factor);
    }
    const Pending* const pending = a.pending + f.first_pending;
    for (int b = 0; b < f.pendings; ++b) {
      const Pending& block = pending[b];
      for (int i = 0; i < block.rows; ++i) {
        const int row = block.row + i;
        const int in_left = block.in_child[0] < 0 ? -1 : block.in_child[0] + i;
        const int in_right = block.in_child[1] < 0 ? -1 : block.in_child[1] + i;
        T z[N + 1], p[N + 1];
        if constexpr (N > 0) {
          each<N>([&](int k) RIGSTEP_INLINED { z[k] = sum(in_left, left_pivot + k, in_right, right_pivot + k); });
          reduce_row<N>(L, inverse_d, z, p, P + row * N * W);
          each<N>([&](int k) RIGSTEP_INLINED { store(Z + (row * N + k) * W, z[k]); });
        }
        for (int q = 0; q <= b; ++q) {
          const Pending& other = pending[q];
          const bool from_left = in_left >= 0 && other.in_child[0] >= 0;
          const bool from_right = in_right >= 0 && other.in_child[1] >= 0;
          const int columns = q == b ? i + 1 : other.rows;
          for (int j = 0; j < columns; ++j) {
            T value(0.0);
            if (from_left) value = left(entry(in_left, other.in_child[0] + j));
            if (from_right) value = value + right(entry(in_right, other.in_child[1] + j));
            const double* z_j = Z + (other.row + j) * N * W;
            each<N>([&](int k) RIGSTEP_INLINED { value = fnma(p[k], load<T>(z_j + k * W), value); });
            store(S + (packed(row) + other.row + j) * W, value);
          }
        }
      }
    }
  });
  return positive;
}

// says whether all pivots are positive
template <int N, Form Shape, class T>
RIGSTEP_LOOP bool eliminate_fronts(const StepArrays& a, const Front* f, const Front* end, int stage) {
  bool positive = true;
  for (; f < end; ++f) {
    if constexpr (Shape == Form::general)
      positive = eliminate<N, T>(a, *f, stage) && positive;
    else
      positive = eliminate_two_sided<N, Shape == Form::link, T>(a, *f, stage) && positive;
  }
  return positive;
}

}  // namespace

const Loops<EliminateFronts, kFrontShapes> kEliminateFronts = loops<kFrontShapes>(
    []<int S, class Of = FrontOf<S>>() { return &eliminate_fronts<Of::N, Of::kForm, typename Of::T>; });

}  // namespace rigstep::index3::RIGSTEP_ISA
