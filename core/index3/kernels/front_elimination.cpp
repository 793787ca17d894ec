// From the paper's blocks to the packed compliance of a compound.
//
// [001] sees a compound body through the two joints 1 and 2 by which it is still joined to others. Increments of the
// multipliers of these joints move its end bodies by (28)-(31)
//
//     | dq_1 |   | delta_11  delta_12 | | Phi_1' dlambda_1 |   | delta_13 |
//     | dq_2 | = | delta_21  delta_22 | | Phi_2' dlambda_2 | + | delta_23 |
//
// with 7 x 7 blocks. Phi_i is Phi_q of joint i. Of one body delta_ij = -(dt^2/4) M7^-1 (26) and
// delta_i3 = -(dt^2/4) M7^-1 g7 (27), M7 with the penalty of normalisation.
//
// From seven to six: dq = B d, d = (dr, dtheta), dp = G' dtheta_b / 2. Normalisation held exactly (its alpha to
// infinity, p of length one) turns M7^-1 into B M^-1 B', where M = B' M7 B is 6 x 6, and g7 into g = B' g7. With
// J = Phi_q B, Lambda = (dt^2/4) dlambda, and y_i = J_i d for what the rows of joint i see of the motion, this becomes,
// for any number of pending constraints,
//
//     y = b - S Lambda,        S_ij = J_i M^-1 J_j'  (packed compliance),
//                              b_i = -(dt^2/4) J_i M^-1 g  (right-hand side).
//
// S is symmetric, positive semidefinite, and as large as there are pending rows. leaf_compliance.h fills S of one body,
// leaf_motion.h fills b.
//
// Compounds A and B share the constraint p; the others of A are called a, those of B are called b, r = (a, b):
//
//         | S_aa  S_ap |             | S_pp  S_pb |
//     A = | S_pa  S_pp |,        B = | S_bp  S_bb |
//
// J holds the sign of its side, so the opening of p after the step is Phi_p + A.y_p + B.y_p. The augmented Lagrangian
// (34) makes it E Lambda_p, E = 4 / (alpha dt^2), the compliance of p's rows:
//
//     D Lambda_p = b_p - Z' Lambda_r,       D = E + A.S_pp + B.S_pp,   b_p = Phi_p + A.b_p + B.b_p,   Z = | S_ap |
//                                                                                                       | S_bp |
// (dt^2/4) D is the bracket below (35) whose inverse the paper calls C. With P = Z D^-1 the constraint p disappears
// from what a and b see, which is (36)-(39) for packed blocks:
//
//     | S_aa        |                                   | b_a |
// S = |        S_bb | - P Z',                       b = |     | - P b_p
//                                                       | b_b |
//
// eliminate() factorises D = L d L'. Of each row Z_i of Z it forms z = L^-1 Z_i' and d^-1 z, whose products are P Z',
// and keeps P_i = L'^-1 d^-1 z. At the root nothing is pending, r is empty, and Lambda_p = D^-1 b_p is the solve at the
// root. On the way back, (35):
//
//     Lambda_p = D^-1 b_p - P' Lambda_r.
//
// A loop closes where A and B share several constraints: they are eliminated one after the other, the others being
// pending in both, so that their entries add up.
#include "core/index3/kernels/factorisation.h"
#include "core/index3/kernels/fronts.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

// L below the diagonal and 1/d of the pivots on it, kept
template <int N, class T>
RIGSTEP_INLINE void keep_pivots(const T* L, const T* inverse_d, double* factor) {
  each<N>([&](int i) RIGSTEP_INLINED {
#pragma GCC unroll 6
    for (int k = 0; k < i; ++k) store(factor + (packed(i) + k) * kWidth<T>, L[packed(i) + k]);
    store(factor + (packed(i) + i) * kWidth<T>, inverse_d[i]);
  });
}

// z: a row of Z, becomes L^-1 times it; z_over_d: d^-1 z; kept: P, the row of P.
template <int N, class T>
RIGSTEP_INLINE void reduce_row(const T* L, const T* inverse_d, T* z, T* z_over_d, double* P) {
  forward<N>(L, z);
  T solved[N];
  each<N>([&](int k) RIGSTEP_INLINED { solved[k] = z_over_d[k] = z[k] * inverse_d[k]; });
  backward<N>(L, solved);
  each<N>([&](int k) RIGSTEP_INLINED { store(P + k * kWidth<T>, solved[k]); });
}

template <int N, class T>
RIGSTEP_INLINE T minus_dot(T sum, const T* z_over_d, const T* z) {
  each<N>([&](int k) RIGSTEP_INLINED { sum = fnma(z_over_d[k], z[k], sum); });
  return sum;
}

// (36)-(38) where compounds [a p] and [p b] become [a b], all of N rows; what is missing is skipped.
template <int N, bool IsChainLink, class T>
RIGSTEP_INLINE bool eliminate_two_sided(const StepArrays& a, const Front& f, ComplianceOf which) {
  constexpr int W = kWidth<T>;
  const bool has_left = IsChainLink || (f.form & kLeft), has_right = IsChainLink || (f.form & kRight);
  const bool has_a = IsChainLink || (f.form & kLeftOpen), has_b = IsChainLink || (f.form & kRightOpen);
  bool positive = true;
  with_children<Matrix, T>(a, f, [&](const auto& left, const auto& right) RIGSTEP_INLINED {
    double* const factor = a.arena + f.factor;
    double* P = factor + packed(N) * W;
    double* const S = a.arena + f.matrix;
    const double* const compliance = a.compliance[static_cast<int>(which)] + f.row_position;
    T L[packed(N)], inverse_d[N], z_a[N][N], z_b[N][N], z_over_d[N];
    const int p_left = IsChainLink ? N : f.child[0].pivot;
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
        each<N>([&](int k) RIGSTEP_INLINED { z_a[i][k] = left(packed(N + k) + i); });
        reduce_row<N>(L, inverse_d, z_a[i], z_over_d, P + i * N * W);
#pragma GCC unroll 6
        for (int j = 0; j <= i; ++j)
          store(S + (packed(i) + j) * W, minus_dot<N>(left(packed(i) + j), z_over_d, z_a[j]));
      });
      P += N * N * W;
    }
    if (!IsChainLink && !has_a)
      each<N>([&](int i) RIGSTEP_INLINED { each<N>([&](int k) RIGSTEP_INLINED { z_a[i][k] = T(0.0); }); });
    if (!has_b) return;
    const int first_b = has_a ? N : 0;
    each<N>([&](int i) RIGSTEP_INLINED {
      each<N>([&](int k) RIGSTEP_INLINED { z_b[i][k] = right(packed(N + i) + k); });
      reduce_row<N>(L, inverse_d, z_b[i], z_over_d, P + i * N * W);
      if (has_a) {
        each<N>([&](int j)
                    RIGSTEP_INLINED { store(S + (packed(N + i) + j) * W, minus_dot<N>(T(0.0), z_over_d, z_a[j])); });
      }
#pragma GCC unroll 6
      for (int j = 0; j <= i; ++j)
        store(S + (packed(first_b + i) + first_b + j) * W,
              minus_dot<N>(right(packed(N + i) + N + j), z_over_d, z_b[j]));
    });
  });
  return positive;
}

template <class T>
RIGSTEP_INLINE void negate(T* values, int count) {
  for (int k = 0; k < count; ++k) values[k] = -values[k];
}

// Entries of a row of a child's matrix one after the other: along the row, or, above the diagonal, down the column that
// is the same.
template <class T>
struct Entries {
  const double* p = nullptr;
  int step = 0, growth = 0;

  Entries() = default;
  template <class Child>
  RIGSTEP_INLINE Entries(const Child& child, int row, int column) {
    const bool is_below = column <= row;
    p = child.p + (is_below ? packed(row) + column : packed(column) + row) * child.stride;
    step = is_below ? child.stride : (column + 1) * child.stride, growth = is_below ? 0 : child.stride;
  }
  RIGSTEP_INLINE T next() {
    const T value = load<T>(p);
    p += step, step += growth;
    return value;
  }
};

// Of a row of what is left: so many columns, which the children have that have both.
template <int N, bool FromLeft, bool FromRight, class T>
RIGSTEP_INLINE void eliminate_columns(Entries<T> left, Entries<T> right, const T* z_over_d, const double* z,
                                      int columns, double* S) {
  constexpr int W = kWidth<T>;
  for (const double* const end = S + columns * W; S < end; S += W, z += N * W) {
    T value(0.0);
    if constexpr (FromLeft) value = left.next();
    if constexpr (FromRight) value = FromLeft ? value + right.next() : right.next();
    each<N>([&](int k) RIGSTEP_INLINED { value = fnma(z_over_d[k], load<T>(z + k * W), value); });
    store(S, value);
  }
}

// (36)-(38): Schur complement of one constraint, or of a primal body, whose pivots are negative: L d L' of the negated
// block has the same L and -d. N = 0 only joins the two compounds.
template <int N, class T>
RIGSTEP_INLINE bool eliminate(const StepArrays& a, const Front& f, ComplianceOf which) {
  constexpr int W = kWidth<T>;
  bool positive = true;
  with_children<Matrix, T>(a, f, [&](const auto& left, const auto& right) RIGSTEP_INLINED {
    double* const z_of_rows = a.scratch;  // L^-1 times each row of Z
    double* const factor = a.arena + f.factor;
    double* const P = factor + packed(N) * W;  // after L and 1/d
    double* const S = a.arena + f.matrix;
    const bool has_left = f.child[0].present, has_right = f.child[1].present;
    const int left_pivot = f.child[0].pivot, right_pivot = f.child[1].pivot;
    // the first columns of the pivots in a row of the children; the row is negative in one that does not have it
    const auto add_pivots = [&](int in_left, int in_right, int columns, T* to) RIGSTEP_INLINED {
#pragma GCC unroll 6
      for (int k = 0; k < columns; ++k) to[k] = T(0.0);
      if (has_left && in_left >= 0) {
        Entries<T> entries(left, in_left, left_pivot);
#pragma GCC unroll 6
        for (int k = 0; k < columns; ++k) to[k] = entries.next();
      }
      if (has_right && in_right >= 0) {
        Entries<T> entries(right, in_right, right_pivot);
#pragma GCC unroll 6
        for (int k = 0; k < columns; ++k) to[k] = to[k] + entries.next();
      }
    };
    T L[packed(N) + 1], inverse_d[N + 1];
    if constexpr (N > 0) {
      const double* compliance = a.compliance[static_cast<int>(which)] + f.row_position;
      each<N>([&](int i) RIGSTEP_INLINED {
        add_pivots(left_pivot + i, right_pivot + i, i + 1, L + packed(i));
        L[packed(i) + i] = L[packed(i) + i] + load<T>(compliance + i * row_stride<T>(f));
      });
      if (f.is_primal) negate(L, packed(N));
      positive = all_positive(factorise_pivots<N>(L, inverse_d));
      if (f.is_primal) negate(inverse_d, N);
      keep_pivots<N>(L, inverse_d, factor);
    }
    const Pending* const pending = a.pending + f.first_pending;
    for (int b = 0; b < f.pendings; ++b) {
      const Pending& block = pending[b];
      for (int i = 0; i < block.rows; ++i) {
        const int row = block.row + i;
        const int in_left = block.in_child[0] < 0 ? -1 : block.in_child[0] + i;
        const int in_right = block.in_child[1] < 0 ? -1 : block.in_child[1] + i;
        T z[N + 1], z_over_d[N + 1];
        if constexpr (N > 0) {
          add_pivots(in_left, in_right, N, z);
          reduce_row<N>(L, inverse_d, z, z_over_d, P + row * N * W);
          each<N>([&](int k) RIGSTEP_INLINED { store(z_of_rows + (row * N + k) * W, z[k]); });
        }
        for (int q = 0; q <= b; ++q) {
          const Pending& other = pending[q];
          const bool from_left = in_left >= 0 && other.in_child[0] >= 0;
          const bool from_right = in_right >= 0 && other.in_child[1] >= 0;
          const Entries<T> of_left = from_left ? Entries<T>(left, in_left, other.in_child[0]) : Entries<T>();
          const Entries<T> of_right = from_right ? Entries<T>(right, in_right, other.in_child[1]) : Entries<T>();
          const auto eliminate_from = [&]<bool FromLeft, bool FromRight>() RIGSTEP_INLINED {
            eliminate_columns<N, FromLeft, FromRight>(of_left, of_right, z_over_d, z_of_rows + other.row * N * W,
                                                      q == b ? i + 1 : other.rows, S + (packed(row) + other.row) * W);
          };
          if (from_left)
            from_right ? eliminate_from.template operator()<true, true>()
                       : eliminate_from.template operator()<true, false>();
          else
            from_right ? eliminate_from.template operator()<false, true>()
                       : eliminate_from.template operator()<false, false>();
        }
      }
    }
  });
  return positive;
}

// says whether all pivots are positive
template <int N, Form Shape, class T>
RIGSTEP_LOOP bool eliminate_fronts(const StepArrays& a, const Front* f, const Front* end, ComplianceOf which) {
  bool positive = true;
  for (; f < end; ++f) {
    if constexpr (Shape == Form::general)
      positive = eliminate<N, T>(a, *f, which) && positive;
    else
      positive = eliminate_two_sided<N, Shape == Form::chain_link, T>(a, *f, which) && positive;
  }
  return positive;
}

}  // namespace

const Loops<EliminateFronts, kFrontShapes> kEliminateFronts = loops<kFrontShapes>(
    []<int S, class Of = FrontOf<S>>() { return &eliminate_fronts<Of::N, Of::kForm, typename Of::T>; });

}  // namespace rigstep::index3::RIGSTEP_ISA
