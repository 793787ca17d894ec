// Right-hand sides from the leaves to the root, (39), and the multipliers back from the root to the leaves, (35). The
// letters are those of front_elimination.cpp.
#include "core/index3/kernels/factorisation.h"
#include "core/index3/kernels/fronts.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

// x := D^-1 x, D the block of the pivots
template <int N, class T>
RIGSTEP_INLINE void solve_pivots(const double* factor, T* x) {
  constexpr int W = kWidth<T>;
  T L[packed(N)];
  each<packed(N)>([&](int k) RIGSTEP_INLINED { L[k] = load<T>(factor + k * W); });
  forward<N>(L, x);
  each<N>([&](int k) RIGSTEP_INLINED { x[k] = x[k] * L[packed(k) + k]; });
  backward<N>(L, x);
}

template <int N, class T>
RIGSTEP_INLINE T minus_row(T sum, const double* row, const T* b_p) {
  each<N>([&](int k) RIGSTEP_INLINED { sum = fnma(load<T>(row + k * kWidth<T>), b_p[k], sum); });
  return sum;
}

// The solve at the root, (35) where nothing is pending: Lambda_p = D^-1 b_p. Every front keeps it: for the root it is
// the solution, and for the others the way back subtracts P' Lambda_r.
template <int N, class T>
RIGSTEP_INLINE void solve_as_root(const double* factor, const T* b_p, double* keep) {
  T Lambda_p[N];
  each<N>([&](int k) RIGSTEP_INLINED { Lambda_p[k] = b_p[k]; });
  solve_pivots<N>(factor, Lambda_p);
  each<N>([&](int k) RIGSTEP_INLINED { store(keep + k * kWidth<T>, Lambda_p[k]); });
}

template <int N, Form Shape, class T>
RIGSTEP_INLINE void solve_front_up(const StepArrays& a, const Front& f, const double* rhs, bool restarts) {
  constexpr int W = kWidth<T>;
  constexpr bool kIsChainLink = Shape == Form::chain_link;
  const bool has_left = kIsChainLink || f.child[0].present, has_right = kIsChainLink || f.child[1].present;
  with_children<Vector, T>(a, f, [&](const auto& left, const auto& right) RIGSTEP_INLINED {
    double* const factor = a.arena + f.factor;
    double* P = factor + packed(N) * W;
    double* b = a.arena + f.vector;
    T b_p[N + 1];
    if constexpr (N > 0) {
      const int in_left = kIsChainLink ? N : f.child[0].pivot, in_right = kIsChainLink ? 0 : f.child[1].pivot;
      each<N>([&](int k) RIGSTEP_INLINED {
        b_p[k] = T(0.0);
        if (has_left) b_p[k] = left(in_left + k);
        if (has_right) b_p[k] = has_left ? b_p[k] + right(in_right + k) : right(in_right + k);
      });
      each<N>([&](int k) RIGSTEP_INLINED { b_p[k] = b_p[k] + load<T>(rhs + (f.row_position + k * row_stride<T>(f))); });
      if (restarts)
        each<N>([&](int k) RIGSTEP_INLINED {
          const int row = f.row_position + k * row_stride<T>(f);
          b_p[k] = fnma(load<T>(a.carried + row), load<T>(a.lambda + row), b_p[k]);
        });
      solve_as_root<N>(factor, b_p, P + (kIsChainLink ? 2 * N : f.rows) * N * W);
    }
    if constexpr (Shape != Form::general) {
      if (kIsChainLink || (f.form & kLeftOpen)) {
        each<N>([&](int i) RIGSTEP_INLINED { store(b + i * W, minus_row<N>(left(i), P + i * N * W, b_p)); });
        P += N * N * W, b += N * W;
      }
      if (kIsChainLink || (f.form & kRightOpen)) {
        each<N>([&](int i) RIGSTEP_INLINED { store(b + i * W, minus_row<N>(right(N + i), P + i * N * W, b_p)); });
      }
    } else {
      for (int p = 0; p < f.pendings; ++p) {
        const Pending& block = a.pending[f.first_pending + p];
        for (int i = 0; i < block.rows; ++i) {
          T sum(0.0);
          if (block.in_child[0] >= 0) sum = left(block.in_child[0] + i);
          if (block.in_child[1] >= 0) sum = sum + right(block.in_child[1] + i);
          store(b + (block.row + i) * W, minus_row<N>(sum, P + (block.row + i) * N * W, b_p));
        }
      }
    }
  });
}

template <int N, Form Shape, class T>
RIGSTEP_LOOP void solve_up(const StepArrays& a, const Front* f, const Front* end, const double* rhs, bool restarts) {
  for (; f < end; ++f) solve_front_up<N, Shape, T>(a, *f, rhs, restarts);
}

// Lambda_p: of the eliminated constraint
template <int N, class T>
RIGSTEP_INLINE void keep_multipliers(const StepArrays& a, const Front& f, Multiplier kind, const T* Lambda_p) {
  const int at = f.row_position, stride = row_stride<T>(f);
  switch (kind) {
    case Multiplier::lambda:  // accumulated, (34)
      return each<N>([&](int k) RIGSTEP_INLINED {
        double* lambda = a.lambda + (at + k * stride);
        store(lambda, fma(load<T>(a.multiplier_scale + (at + k * stride)), Lambda_p[k], load<T>(lambda)));
      });
    case Multiplier::sigma:
      return each<N>([&](int k) RIGSTEP_INLINED { store(a.sigma + (at + k * stride), Lambda_p[k]); });
    case Multiplier::kappa:
      return each<N>([&](int k) RIGSTEP_INLINED { store(a.kappa + (at + k * stride), Lambda_p[k]); });
    case Multiplier::more_kappa:
      return each<N>([&](int k) RIGSTEP_INLINED {
        store(a.kappa + (at + k * stride), load<T>(a.kappa + (at + k * stride)) + Lambda_p[k]);
      });
  }
}

// Lambda_p -= row Lambda_i, row: that of P for element i of Lambda_r
template <int N, class T>
RIGSTEP_INLINE void subtract_row(T* Lambda_p, const double* row, const double* Lambda_i) {
  const T value = load<T>(Lambda_i);
  each<N>([&](int k) RIGSTEP_INLINED { Lambda_p[k] = fnma(load<T>(row + k * kWidth<T>), value, Lambda_p[k]); });
}

// The solution of a padding constraint beside its right-hand side. If it were zero, what falls from front to front
// towards a free end would end as denormal numbers, which are slow.
constexpr double kPadding = 1e-30;

template <class T, class Vector>
RIGSTEP_INLINE void suppress_padding(const Child& child, const Vector& vector) {
  for (int k = child.padding; k < child.padding + child.padding_rows; ++k) vector.put(k, T(kPadding) * vector(k));
}

template <int N, Form Shape, class T>
RIGSTEP_INLINE void solve_front_down(const StepArrays& a, const Front& f, Multiplier kind) {
  constexpr int W = kWidth<T>;
  constexpr bool kIsChainLink = Shape == Form::chain_link;
  const bool has_left = kIsChainLink || f.child[0].present, has_right = kIsChainLink || f.child[1].present;
  with_children<Solution, T>(a, f, [&](const auto& left, const auto& right) RIGSTEP_INLINED {
    const double* const P = a.arena + f.factor + packed(N) * W;
    const double* const Lambda_r = a.arena + f.vector;
    const int rows = kIsChainLink ? 2 * N : f.rows;
    T Lambda_p[N + 1];
    if constexpr (N > 0) {
      const double* solution = P + rows * N * W;
      each<N>([&](int k) RIGSTEP_INLINED { Lambda_p[k] = load<T>(solution + k * W); });
      T others[N];  // two rows at a time: half as many results wait for each other
      each<N>([&](int k) RIGSTEP_INLINED { others[k] = T(0.0); });
      if constexpr (kIsChainLink) {
        each<N>([&](int i) RIGSTEP_INLINED {
          subtract_row<N>(Lambda_p, P + i * N * W, Lambda_r + i * W);
          subtract_row<N>(others, P + (N + i) * N * W, Lambda_r + (N + i) * W);
        });
      } else {
        int i = 0;
        for (; i + 1 < rows; i += 2) {
          subtract_row<N>(Lambda_p, P + i * N * W, Lambda_r + i * W);
          subtract_row<N>(others, P + (i + 1) * N * W, Lambda_r + (i + 1) * W);
        }
        if (i < rows) subtract_row<N>(Lambda_p, P + i * N * W, Lambda_r + i * W);
      }
      each<N>([&](int k) RIGSTEP_INLINED { Lambda_p[k] = Lambda_p[k] + others[k]; });
      keep_multipliers<N>(a, f, kind, Lambda_p);
    }
    if constexpr (kIsChainLink) {  // what goes to the right may lie where the left child will have Lambda_p
      each<N>([&](int i) RIGSTEP_INLINED { right.put(N + i, load<T>(Lambda_r + (N + i) * W)); });
      if (W == 1 || f.children != Operands::in_order)  // else it is its own vector
        each<N>([&](int i) RIGSTEP_INLINED { left.put(i, load<T>(Lambda_r + i * W)); });
    }
    if constexpr (N > 0) {
      const int in_left = kIsChainLink ? N : f.child[0].pivot, in_right = kIsChainLink ? 0 : f.child[1].pivot;
      each<N>([&](int k) RIGSTEP_INLINED {
        if (has_left) left.put(in_left + k, Lambda_p[k]);
        if (has_right) right.put(in_right + k, Lambda_p[k]);
      });
    }
    if constexpr (!kIsChainLink) {
      suppress_padding<T>(f.child[0], left);
      suppress_padding<T>(f.child[1], right);
    }
    if constexpr (Shape == Form::two_sided) {
      const double* open = Lambda_r;
      if (f.form & kLeftOpen) {
        each<N>([&](int i) RIGSTEP_INLINED { left.put(i, load<T>(open + i * W)); });
        open += N * W;
      }
      if (f.form & kRightOpen) {
        each<N>([&](int i) RIGSTEP_INLINED { right.put(N + i, load<T>(open + i * W)); });
      }
    } else if constexpr (Shape == Form::general) {
      for (int p = 0; p < f.pendings; ++p) {
        const Pending& block = a.pending[f.first_pending + p];
        for (int i = 0; i < block.rows; ++i) {
          const T Lambda_i = load<T>(Lambda_r + (block.row + i) * W);
          if (block.in_child[0] >= 0) left.put(block.in_child[0] + i, Lambda_i);
          if (block.in_child[1] >= 0) right.put(block.in_child[1] + i, Lambda_i);
        }
      }
    }
  });
  if (f.children != Operands::in_order)
    for (const Child& c : f.child) copy(a, a.arena, c.first_copy, c.copies, 0, c.rows);
}

template <int N, Form Shape, class T>
RIGSTEP_LOOP void solve_down(const StepArrays& a, const Front* first, const Front* end, Multiplier kind) {
  for (const Front* f = end; f-- > first;) solve_front_down<N, Shape, T>(a, *f, kind);
}

}  // namespace

const Loops<SolveUp, kFrontShapes> kSolveUp =
    loops<kFrontShapes>([]<int S, class Of = FrontOf<S>>() { return &solve_up<Of::N, Of::kForm, typename Of::T>; });
const Loops<SolveDown, kFrontShapes> kSolveDown =
    loops<kFrontShapes>([]<int S, class Of = FrontOf<S>>() { return &solve_down<Of::N, Of::kForm, typename Of::T>; });

}  // namespace rigstep::index3::RIGSTEP_ISA
