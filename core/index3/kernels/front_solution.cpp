// Right-hand sides from the leaves to the root, (39), and the solution back from the root to the leaves, (34).
#include "core/index3/kernels/factorisation.h"
#include "core/index3/kernels/fronts.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

// x := D^-1 x of the pivots
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
RIGSTEP_INLINE T minus_row(T sum, const double* row, const T* y) {
  each<N>([&](int k) RIGSTEP_INLINED { sum = fnma(load<T>(row + k * kWidth<T>), y[k], sum); });
  return sum;
}

// The solve at the root, (34) where nothing above moves: Lambda_p = D^-1 b_p. Every front keeps it: the root has its
// solution with it, and to the others the way back adds what moves above them.
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
  constexpr bool kIsLink = Shape == Form::link;
  const bool has_left = kIsLink || f.child[0].present, has_right = kIsLink || f.child[1].present;
  with_children<T>(a, f, Vector{}, [&](const auto& left, const auto& right) RIGSTEP_INLINED {
    double* const factor = a.arena + f.factor;
    double* P = factor + packed(N) * W;
    double* b = a.arena + f.vector;
    T y[N + 1];
    if constexpr (N > 0) {
      const int in_left = kIsLink ? N : f.child[0].pivot, in_right = kIsLink ? 0 : f.child[1].pivot;
      each<N>([&](int k) RIGSTEP_INLINED {
        y[k] = T(0.0);
        if (has_left) y[k] = left(in_left + k);
        if (has_right) y[k] = has_left ? y[k] + right(in_right + k) : right(in_right + k);
      });
      each<N>([&](int k) RIGSTEP_INLINED { y[k] = y[k] + load<T>(rhs + (f.row_position + k * row_stride<T>(f))); });
      if (restarts)
        each<N>([&](int k) RIGSTEP_INLINED {
          const int row = f.row_position + k * row_stride<T>(f);
          y[k] = fnma(load<T>(a.carried + row), load<T>(a.lambda + row), y[k]);
        });
      solve_as_root<N>(factor, y, P + (kIsLink ? 2 * N : f.rows) * N * W);
    }
    if constexpr (Shape != Form::general) {
      if (kIsLink || (f.form & kLeftOpen)) {
        each<N>([&](int i) RIGSTEP_INLINED { store(b + i * W, minus_row<N>(left(i), P + i * N * W, y)); });
        P += N * N * W, b += N * W;
      }
      if (kIsLink || (f.form & kRightOpen)) {
        each<N>([&](int i) RIGSTEP_INLINED { store(b + i * W, minus_row<N>(right(N + i), P + i * N * W, y)); });
      }
    } else {
      for (int p = 0; p < f.pendings; ++p) {
        const Pending& block = a.pending[f.first_pending + p];
        for (int i = 0; i < block.rows; ++i) {
          T sum(0.0);
          if (block.in_child[0] >= 0) sum = left(block.in_child[0] + i);
          if (block.in_child[1] >= 0) sum = sum + right(block.in_child[1] + i);
          store(b + (block.row + i) * W, minus_row<N>(sum, P + (block.row + i) * N * W, y));
        }
      }
    }
  });
}

template <int N, Form Shape, class T>
RIGSTEP_LOOP void solve_up(const StepArrays& a, const Front* f, const Front* end, const double* rhs, bool restarts) {
  for (; f < end; ++f) solve_front_up<N, Shape, T>(a, *f, rhs, restarts);
}

// z: solution of the eliminated constraint
template <int N, class T>
RIGSTEP_INLINE void keep_multipliers(const StepArrays& a, const Front& f, Multiplier kind, const T* z) {
  const int at = f.row_position, stride = row_stride<T>(f);
  switch (kind) {
    case Multiplier::lambda: {  // accumulated, (21) (34)
      const T gain = load<T>(a.gain + at);
      return each<N>([&](int k) RIGSTEP_INLINED {
        double* lambda = a.lambda + (at + k * stride);
        store(lambda, fma(gain, z[k], load<T>(lambda)));
      });
    }
    case Multiplier::sigma:
      return each<N>([&](int k) RIGSTEP_INLINED { store(a.sigma + (at + k * stride), z[k]); });
    case Multiplier::kappa:
      return each<N>([&](int k) RIGSTEP_INLINED { store(a.kappa + (at + k * stride), z[k]); });
    case Multiplier::more_kappa:
      return each<N>([&](int k) RIGSTEP_INLINED {
        store(a.kappa + (at + k * stride), load<T>(a.kappa + (at + k * stride)) + z[k]);
      });
  }
}

// z -= row x
template <int N, class T>
RIGSTEP_INLINE void subtract_row(T* z, const double* row, const double* x) {
  const T value = load<T>(x);
  each<N>([&](int k) RIGSTEP_INLINED { z[k] = fnma(load<T>(row + k * kWidth<T>), value, z[k]); });
}

// The solution of a padding constraint beside its right-hand side. If it were zero, what falls from link to link
// towards a free end would end as denormal numbers, which are slow.
constexpr double kPadding = 1e-30;

template <class T, class Vector>
RIGSTEP_INLINE void suppress_padding(const Child& child, const Vector& vector) {
  for (int k = child.padding; k < child.padding + child.padding_rows; ++k) vector.put(k, T(kPadding) * vector(k));
}

template <int N, Form Shape, class T>
RIGSTEP_INLINE void solve_front_down(const StepArrays& a, const Front& f, Multiplier kind) {
  constexpr int W = kWidth<T>;
  constexpr bool kIsLink = Shape == Form::link;
  const bool has_left = kIsLink || f.child[0].present, has_right = kIsLink || f.child[1].present;
  with_children<T>(a, f, Vector{}, [&](const auto& left, const auto& right) RIGSTEP_INLINED {
    const double* const P = a.arena + f.factor + packed(N) * W;
    const double* const x = a.arena + f.vector;
    const int rows = kIsLink ? 2 * N : f.rows;
    T z[N + 1];
    if constexpr (N > 0) {
      const double* solution = P + rows * N * W;
      each<N>([&](int k) RIGSTEP_INLINED { z[k] = load<T>(solution + k * W); });
      if constexpr (kIsLink) {  // both ends at a time: half as many results wait for each other
        T right_end[N];
        each<N>([&](int k) RIGSTEP_INLINED { right_end[k] = T(0.0); });
        each<N>([&](int i) RIGSTEP_INLINED {
          subtract_row<N>(z, P + i * N * W, x + i * W);
          subtract_row<N>(right_end, P + (N + i) * N * W, x + (N + i) * W);
        });
        each<N>([&](int k) RIGSTEP_INLINED { z[k] = z[k] + right_end[k]; });
      } else {
        for (int i = 0; i < rows; ++i) subtract_row<N>(z, P + i * N * W, x + i * W);
      }
      keep_multipliers<N>(a, f, kind, z);
    }
    if constexpr (kIsLink) {  // what goes to the right may lie where the left child will have z
      each<N>([&](int i) RIGSTEP_INLINED { right.put(N + i, load<T>(x + (N + i) * W)); });
      if constexpr (!std::is_same_v<decltype(left), const InOrder<T>&>)  // else it is its own vector
        each<N>([&](int i) RIGSTEP_INLINED { left.put(i, load<T>(x + i * W)); });
    }
    if constexpr (N > 0) {
      const int in_left = kIsLink ? N : f.child[0].pivot, in_right = kIsLink ? 0 : f.child[1].pivot;
      each<N>([&](int k) RIGSTEP_INLINED {
        if (has_left) left.put(in_left + k, z[k]);
        if (has_right) right.put(in_right + k, z[k]);
      });
    }
    if constexpr (!kIsLink) {
      suppress_padding<T>(f.child[0], left);
      suppress_padding<T>(f.child[1], right);
    }
    if constexpr (Shape == Form::two_sided) {
      const double* open = x;
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
          const T xi = load<T>(x + (block.row + i) * W);
          if (block.in_child[0] >= 0) left.put(block.in_child[0] + i, xi);
          if (block.in_child[1] >= 0) right.put(block.in_child[1] + i, xi);
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
