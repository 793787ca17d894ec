// The phases of a step over all batches. Compiled once per instruction set (RIGSTEP_ISA names it); whatever is
// instantiated here stays in that namespace, so that no function for a newer processor can be called on an older one.
#include <type_traits>
#include <utility>

#include "core/index3/kernels/kernels.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

#if defined(__AVX512F__)
constexpr int kWidest = 8;
#else
constexpr int kWidest = 4;
#endif

template <class F>
RIGSTEP_INLINE void with_width(int width, F&& f) {
  if (width == 1) return f.template operator()<double>();
  if (width == 2) return f.template operator()<Lanes<2>>();
  if constexpr (kWidest == 8)
    if (width == 8) return f.template operator()<Lanes<8>>();
  f.template operator()<Lanes<4>>();
}

template <class F>
RIGSTEP_INLINE void with_cosines(int cosines, F&& f) {
  switch (cosines) {
    case 0:
      return f.template operator()<0>();
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    default:
      return;
  }
}

// S: shape of a run, as a constant for the compiler
constexpr int width_of(int shape) { return 1 << shape % kWidths < kWidest ? 1 << shape % kWidths : kWidest; }
template <int S>
using LanesOf = std::conditional_t<width_of(S) == 1, double, Lanes<width_of(S)>>;

template <class Loop, int Count>
struct Loops {
  Loop of_shape[Count];
};

// loop_of<0>() ... loop_of<Count - 1>(): looked up once per run, since a run may be as short as its decisions
template <class F, int... S>
constexpr auto loops(const F& loop_of, std::integer_sequence<int, S...>) {
  return Loops<decltype(loop_of.template operator()<0>()), sizeof...(S)>{{loop_of.template operator()<S>()...}};
}
template <int Count, class F>
constexpr auto loops(const F& loop_of) {
  return loops(loop_of, std::make_integer_sequence<int, Count>{});
}

template <class F>
RIGSTEP_INLINE void for_bodies(const StepArrays& a, F&& f) {
  for (const Run* run = a.run; run < a.run + a.runs; ++run) {
    if (run->of != Run::Of::leaves) continue;
    const Leaf* leaf = a.leaf + run->first;
    with_width(leaf->width, [&]<class T>() RIGSTEP_INLINED {
      for (const Leaf* end = leaf + run->count; leaf < end; ++leaf)
        f.template operator()<T>(BodyArrays<T>(a, a.body + leaf->record));
    });
  }
}

// What the leaves of a run have in common: C cosines of both constraints of a link, kAnyLeaf otherwise.
constexpr int kAnyLeaf = -2;
template <int S>
struct LeafOf {
  using T = LanesOf<S>;
  static constexpr int C = S / kWidths == 0 ? kAnyLeaf : S / kWidths - 1;
};

template <class T, int C, class F>
RIGSTEP_LOOP void for_leaves(const StepArrays& a, const Leaf* leaf, const Leaf* end, F f) {
  for (; leaf < end; ++leaf) f.template operator()<T, C>(*leaf, BodyArrays<T>(a, a.body + leaf->record));
}

// f<T, C>(leaf, body) of every leaf of a run
template <class F>
RIGSTEP_INLINE void for_leaves(const StepArrays& a, const Run& run, F f) {
  static constexpr auto kLoops =
      loops<kLeafShapes>([]<int S, class Of = LeafOf<S>>() { return &for_leaves<typename Of::T, Of::C, F>; });
  const Leaf* first = a.leaf + run.first;
  kLoops.of_shape[run.shape](a, first, first + run.count, f);
}

void carry_over_multipliers(const StepArrays& a) {
  for (int i = 0; i < a.constraints; ++i) {
    const ConstraintBatch& c = a.constraint[i];
    const double* from = a.last_lambda + c.row_position;
    double* to = a.lambda + c.row_position;
    with_width(c.width, [&]<class T>() RIGSTEP_INLINED {
      for (int k = 0; k < c.format.rows; ++k) store(to + k * kWidth<T>, load<T>(from + k * kWidth<T>));
    });
  }
}

void predict(const StepArrays& a) {
  carry_over_multipliers(a);
  for_bodies(a, [&]<class T>(const BodyArrays<T>& b) RIGSTEP_INLINED { predict_body(b, a.step); });
}

void place(const StepArrays& a) {
  for_bodies(a, [&]<class T>(const BodyArrays<T>& b) { turn_body(b, load_quaternion<T>(b.next + kP * kWidth<T>)); });
}

// ---- constraints

// f(source of a field of either side's body, of its handle), by the way they lie
template <class T, class F>
RIGSTEP_INLINE void with_sides(const StepArrays& a, const ConstraintBatch& c, F&& f) {
  constexpr int W = kWidth<T>;
  const auto number = [&](int field, int side) RIGSTEP_INLINED {
    return a.body + (c.side[side].record.base + field * c.side[side].record.stride);
  };
  if (W == 1 || c.sides == Operands::beside) {
    f(
        [&](int field, int side) RIGSTEP_INLINED {
          return Beside<T>{number(field, side), c.side[side].record.stride};
        },
        [&](int side) RIGSTEP_INLINED {
          return Beside<T>{a.handles + c.side[side].handle.base, c.side[side].handle.stride};
        });
  } else if (c.sides == Operands::in_order) {
    f([&](int field, int side) RIGSTEP_INLINED { return InOrder<T>{a.body + (c.side[side].record.base + field * W)}; },
      [&](int side) RIGSTEP_INLINED { return InOrder<T>{a.handles + c.side[side].handle.base}; });
  } else if (c.sides == Operands::chosen) {
    if constexpr (W >= 4) {
      const auto choice = [&](int side)
                              RIGSTEP_INLINED -> const ChosenSide& { return a.chosen_side[c.side[side].chosen]; };
      f([&](int field, int side)
            RIGSTEP_INLINED { return Chosen<T>(a.body + field * W, choice(side).record, choice(side).body); },
        [&](int side) RIGSTEP_INLINED { return KeptHandles<T>(a.handles, choice(side)); });
    }
  } else if constexpr (W > 1) {
    // one of the sides may lie lane after lane
    const auto places = [&](int side) RIGSTEP_INLINED { return a.scattered_side + c.side[side].scattered; };
    const auto body_of = [&](int field, int side, int l) RIGSTEP_INLINED {
      const Place lane_after_lane{c.side[side].record.base + l, c.side[side].record.stride};
      const Place& at = c.side[side].scattered < 0 ? lane_after_lane : places(side)->record[l];
      return Place{at.base + field * at.stride, at.stride};
    };
    const auto handle_of = [&](int side, int l) RIGSTEP_INLINED {
      return c.side[side].scattered < 0 ? Place{c.side[side].handle.base + l, c.side[side].handle.stride}
                                        : places(side)->handle[l];
    };
    f([&](int field, int side) { return gathered<T>(a.body, [&](int l) { return body_of(field, side, l); }); },
      [&](int side) { return gathered<T>(a.handles, [&](int l) { return handle_of(side, l); }); });
  }
}

RIGSTEP_INLINE void copy(const StepArrays& a, double* array, int first, int copies, int begin, int end) {
  for (int c = first; c < first + copies; ++c) {
    const Place &from = a.copy[c].from, &to = a.copy[c].to;
    for (int k = begin; k < end; ++k) array[to.base + k * to.stride] = array[from.base + k * from.stride];
  }
}

template <int C, class T>
RIGSTEP_INLINE void constrain_points(const StepArrays& a, const ConstraintBatch& c, const AssemblySweep& what) {
  constexpr int W = kWidth<T>;
  with_sides<T>(a, c, [&](const auto& body, const auto& handle) RIGSTEP_INLINED {
    const PointSides<C, T> at = turned_sides<C, T>(a.constraint_constants + kConstraintConstants * c.position,
                                                   nine(body(kRotationField, 0)), nine(body(kRotationField, 1)));
    if (what.keep_sides) store_sides<C>(a.constraint_fields + kConstraintFields * c.position, at);
    double* Phi = a.Phi + c.row_position;
    const double* lambda = a.lambda + c.row_position;
    const V3<T> distance = three(body(a.next, 0), kR) - three(body(a.next, 1), kR);
    store3(Phi, distance + (at.s_first - at.s_second));
    const V3<T> force = load3<T>(lambda);
    T lambda_cosines[3];
    V3<T> moment{T(0.0), T(0.0), T(0.0)};
    each<C>([&](int k) RIGSTEP_INLINED {
      store(Phi + (3 + k) * W, dot(at.axis_first(k), at.axis_second(k)));
      lambda_cosines[k] = load<T>(lambda + (3 + k) * W);
      moment = fma(lambda_cosines[k], at.normal(k), moment);
    });
    const auto first = handle(0), second = handle(1);
    constexpr bool kIsShared = std::is_same_v<decltype(second), const InOrder<T>>;  // see Handle
    put3(first, arm_of_handle(C), at.s_first), put3(second, arm_of_handle(C), at.s_second);
    put_shared<C>(first, at, force, moment);
    if constexpr (!kIsShared) put_shared<C>(second, at, force, moment);
    if constexpr (C > 0)
      if (what.with_stiffness) {
        const S3<T> K = stiffness_of_cosines(at, lambda_cosines);
        put_symmetric(first, kStiffnessOfHandle, K);
        if constexpr (!kIsShared) put_symmetric(second, kStiffnessOfHandle, K);
      }
  });
  if (c.sides != Operands::in_order)
    for (const Side& side : c.side) copy(a, a.handles, side.first_copy, side.copies, 0, c.format.handle_size());
}

template <int C, class T, class F>
RIGSTEP_LOOP void for_constraints(const ConstraintBatch* c, const ConstraintBatch* end, F f) {
  for (; c < end; ++c) f.template operator()<C, T>(*c);
}

// f<C, T>(constraint) of every point constraint of a run
template <class F>
RIGSTEP_INLINE void for_constraints(const StepArrays& a, const Run& run, F f) {
  static constexpr auto kLoops =
      loops<kConstraintShapes>([]<int S>() { return &for_constraints<S / kWidths, LanesOf<S>, F>; });
  const ConstraintBatch* first = a.constraint + run.first;
  kLoops.of_shape[run.shape](first, first + run.count, f);
}

void constrain(const StepArrays& a, const Run& run, const AssemblySweep& what) {
  for_constraints(
      a, run, [&]<int C, class T>(const ConstraintBatch& c) RIGSTEP_INLINED { constrain_points<C, T>(a, c, what); });
}

// ---- factorisation

template <class T>
RIGSTEP_INLINE T signs_of(const StepArrays& a, const Handle& h) {
  return load<T>(a.signs[h.signs].of_lane);
}

// A handle in the lanes of its leaf; those of a primal body lie in the lanes of its attachments.
template <class T>
RIGSTEP_INLINE auto numbers_of(const StepArrays& a, const Handle& h) {
  double *const shared = a.handles + h.shared, *const own = a.handles + h.at;
  const T sign = signs_of<T>(a, h);
  if constexpr (kWidth<T> == 1)
    return HandleNumbers<T, Beside<T>>{{shared, h.stride}, {own, h.stride}, sign};
  else
    return HandleNumbers<T, InOrder<T>>{{shared}, {own}, sign};
}

// f<C>(handle) of what holds a body; C: cosines
template <int C, class T, class F>
RIGSTEP_INLINE void for_handles(const StepArrays& a, const Leaf& leaf, const F& f) {
  const Handle* h = a.handle + leaf.first_handle;
  if constexpr (C != kAnyLeaf) {
    f.template operator()<C>(numbers_of<T>(a, h[0])), f.template operator()<C>(numbers_of<T>(a, h[1]));
  } else {
    for (const Handle* end = h + leaf.handles; h < end; ++h) {
      const auto numbers = numbers_of<T>(a, *h);
      if (h->format.general())
        f.template operator()<RowFormat::kGeneral>(numbers);
      else
        with_cosines(h->format.cosines, [&]<int D>() RIGSTEP_INLINED { f.template operator()<D>(numbers); });
    }
  }
}

// inverts the inertia, but leaves it as it is where it is to be inverted with the rest; returns the inertia
template <int C, class T>
RIGSTEP_INLINE S3<T> invert_inertia(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b,
                                    const AssemblySweep::Factorise& how) {
  constexpr int W = kWidth<T>;
  S3<T> I = load_symmetric<T>(b.constants + 2 * W);
  const M3<T> A = load33<T>(b.rotation);
  if (how.with_tangent)
    I = inertia_tangent(I, A, load_quaternion<T>(b.next + kP * W), load_quaternion<T>(b.history),
                        load_quaternion<T>(b.history + kMinus2h2 * W), a.step);
  else
    I = rotated(A, I);
  if (how.geometric != 0.0) {
    S3<T> K{T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0)};
    for_handles<C, T>(a, leaf, [&]<int D>(const auto& handle) RIGSTEP_INLINED { K = K + stiffness_of<D>(handle); });
    if (!leaf.is_isotropic) {
      V3<T> torque{T(0.0), T(0.0), T(0.0)};
      for_handles<C, T>(
          a, leaf, [&]<int D>(const auto& handle) RIGSTEP_INLINED { torque = torque + load_of<D>(handle).torque; });
      K = K + rotated(A, turning_stiffness(b, transposed_times(A, torque)));
    }
    I = index3::RIGSTEP_ISA::with_stiffness(I, K, T(0.5 * how.geometric));
  }
  if (leaf.dense < 0) store_symmetric(b.inertia_inverse, inverse(I));
  return I;
}

// tangent mass matrix: mass, inertia I and force tangent together
template <class T>
void tangent_mass(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b, const S3<T>& I, bool with_tangent,
                  T* A) {
  constexpr int W = kWidth<T>;
  const bool has_tangent = with_tangent && leaf.dense >= 0;
  for (int k = 0; k < 21; ++k) A[k] = has_tangent ? load<T>(a.tangent + leaf.dense + k * W) : T(0.0);
  const T mass = load<T>(b.constants + W);
  for (int k = 0; k < 3; ++k) A[packed(k) + k] = A[packed(k) + k] + mass;
  A[packed(3) + 3] = A[packed(3) + 3] + I.xx, A[packed(4) + 4] = A[packed(4) + 4] + I.yy;
  A[packed(5) + 5] = A[packed(5) + 5] + I.zz, A[packed(4) + 3] = A[packed(4) + 3] + I.yx;
  A[packed(5) + 3] = A[packed(5) + 3] + I.zx, A[packed(5) + 4] = A[packed(5) + 4] + I.zy;
}

template <class T>
void invert_mass(const StepArrays& a, const Leaf& leaf, T* A) {
  constexpr int W = kWidth<T>;
  T inverse_d[6];
  factorise_pivots<6>(A, inverse_d);
  for (int column = 0; column < 6; ++column) {
    T x[6];
    for (int k = 0; k < 6; ++k) x[k] = T(k == column ? 1.0 : 0.0);
    forward<6>(A, x);
    for (int k = 0; k < 6; ++k) x[k] = x[k] * inverse_d[k];
    backward<6>(A, x);
    for (int k = column; k < 6; ++k) store(a.mass_inverse + leaf.dense + (packed(k) + column) * W, x[k]);
  }
}

template <class T, class F>
RIGSTEP_INLINE void with_inverse_mass(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b, F&& f) {
  if (leaf.dense >= 0)
    f(SymmetricProduct<T>{a.mass_inverse + leaf.dense});
  else
    f(InverseMass<T>{load<T>(b.constants), load_symmetric<T>(b.inertia_inverse)});
}

template <class T, class Inverse>
RIGSTEP_INLINE int columns_of(const StepArrays& a, const Handle& h, const Inverse& inverse, Motion<T>* y) {
  if (h.format.general()) {
    const GeneralHandle<T> g(a.handles + h.at);
    for (int k = 0; k < h.format.rows; ++k) y[k] = inverse(g.force(k), g.torque(k));
  } else {
    with_cosines(h.format.cosines, [&]<int C>() { compliance_columns<C>(PointHandle<C, T>(a, h), inverse, y); });
  }
  return h.format.rows;
}

// block J_i M^-1 J_k' of two handles of a leaf into its packed compliance
template <class T>
RIGSTEP_INLINE void store_block(const StepArrays& a, const Handle& hi, const Handle& hk, const Motion<T>* y, T sign,
                                double* S) {
  constexpr int W = kWidth<T>;
  const bool diagonal = &hi == &hk;
  const int rows = hi.format.rows, columns = hk.format.rows;
  if (hi.format.general()) {
    const GeneralHandle<T> g(a.handles + hi.at);
    for (int k = 0; k < columns; ++k)
      for (int i = diagonal ? k : 0; i < rows; ++i)
        store(S + (packed(hi.row + i) + hk.row + k) * W,
              flipped(dot(g.force(i), y[k].v) + dot(g.torque(i), y[k].w), sign));
    return;
  }
  with_cosines(hi.format.cosines, [&]<int C>() {
    const PointHandle<C, T> p(a, hi);
    for (int k = 0; k < columns; ++k) {
      T column[3 + C];
      block_column<C>(p, y[k], column);
      for (int i = diagonal ? k : 0; i < 3 + C; ++i)
        store(S + (packed(hi.row + i) + hk.row + k) * W, flipped(column[i], sign));
    }
  });
}

// the same for a body between two constraints of one format
template <int C, class T, class Inverse>
RIGSTEP_INLINE void fill_link(const StepArrays& a, const Handle* h, const Inverse& inverse, double* S) {
  constexpr int W = kWidth<T>, N = 3 + C;
  const PointHandle<C, T> first(a, h[0]), second(a, h[1]);
  const T sign = flipped(signs_of<T>(a, h[0]), signs_of<T>(a, h[1]));
  Motion<T> y[N];
  T column[N];
  compliance_columns<C>(first, inverse, y);
  each<N>([&](int k) RIGSTEP_INLINED {
    block_column<C>(first, y[k], column);
#pragma GCC unroll 6
    for (int i = k; i < N; ++i) store(S + (packed(i) + k) * W, column[i]);
    block_column<C>(second, y[k], column);
    each<N>([&](int i) RIGSTEP_INLINED { store(S + (packed(N + i) + k) * W, flipped(column[i], sign)); });
  });
  compliance_columns<C>(second, inverse, y);
  each<N>([&](int k) RIGSTEP_INLINED {
    block_column<C>(second, y[k], column);
#pragma GCC unroll 6
    for (int i = k; i < N; ++i) store(S + (packed(N + i) + N + k) * W, column[i]);
  });
}

// A primal body's own part of its rows: -M.
template <class T>
void fill_primal_body(const StepArrays& a, const Leaf& leaf, const T* M) {
  for (int k = 0; k < packed(6); ++k) store(a.arena + leaf.matrix + k * kWidth<T>, -M[k]);
}

// What a constraint adds to its own rows and those of a primal body: [[0, -J'], [-J, 0]].
template <class T>
void fill_attachment(const StepArrays& a, const Attachment& attachment) {
  constexpr int W = kWidth<T>;
  double* const S = a.arena + attachment.matrix;
  const Handle& h = a.handle[attachment.handle];
  Motion<T> y[kMaxRows];
  const int rows = columns_of(
      a, h,
      [](V3<T> force, V3<T> torque) {
        return Motion<T>{force, torque};
      },
      y);
  for (int k = 0; k < packed(rows + 6); ++k) store(S + k * W, T(0.0));
  const T minus = -signs_of<T>(a, h);
  for (int k = 0; k < rows; ++k) {
    const T column[] = {y[k].v.x, y[k].v.y, y[k].v.z, y[k].w.x, y[k].w.y, y[k].w.z};
    for (int i = 0; i < 6; ++i) store(S + (packed(rows + i) + k) * W, flipped(column[i], minus));
  }
}

// the inverse of a body's tangent mass matrix, of a primal body also the matrix itself
template <int C, class T>
RIGSTEP_INLINE void invert_leaf(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b,
                                const AssemblySweep::Factorise& how) {
  const S3<T> I = invert_inertia<C>(a, leaf, b, how);
  if (leaf.dense < 0 && !leaf.is_primal) return;
  T M[packed(6)];
  tangent_mass(a, leaf, b, I, how.with_tangent, M);
  if (leaf.is_primal) fill_primal_body(a, leaf, M);
  if (leaf.dense >= 0) invert_mass(a, leaf, M);
}

// (26) projected: the compliance J M^-1 J' of a body between all its joints
template <int C, class T>
RIGSTEP_INLINE void fill_leaf(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b) {
  if (leaf.is_primal) return;
  double* S = a.arena + leaf.matrix;
  with_inverse_mass(a, leaf, b, [&](const auto& inverse) RIGSTEP_INLINED {
    const Handle* h = a.handle + leaf.first_handle;
    if constexpr (C != kAnyLeaf) {
      fill_link<C, T>(a, h, inverse, S);
    } else {
      for (int k = 0; k < leaf.handles; ++k) {
        Motion<T> y[kMaxRows];
        columns_of(a, h[k], inverse, y);
        for (int i = k; i < leaf.handles; ++i)
          store_block(a, h[i], h[k], y, flipped(signs_of<T>(a, h[i]), signs_of<T>(a, h[k])), S);
      }
    }
  });
}

// f(left, right): sources of the children's numbers, by the way they lie; `what`: matrix or vector
template <class T, class What, class F>
RIGSTEP_INLINE void with_children(const StepArrays& a, const Front& f, const What& what, F&& body) {
  constexpr int W = kWidth<T>;
  const Child &left = f.child[0], &right = f.child[1];
  if (W == 1 || f.children == Operands::beside) {
    body(Beside<T>{a.arena + what.of(left), left.stride}, Beside<T>{a.arena + what.of(right), right.stride});
  } else if (f.children == Operands::in_order) {
    body(InOrder<T>{a.arena + what.of(left)}, InOrder<T>{a.arena + what.of(right)});
  } else if constexpr (W > 1) {
    const auto scattered = [&](const Child& c) {
      return gathered<T>(a.arena, [&](int l) {
        return c.scattered < 0 ? Place{what.of(c) + l, c.stride} : what.of(a.scattered_child[c.scattered])[l];
      });
    };
    body(scattered(left), scattered(right));
  }
}
struct Matrix {
  RIGSTEP_INLINE int of(const Child& c) const { return c.matrix; }
  RIGSTEP_INLINE const Place* of(const ScatteredChild& c) const { return c.matrix; }
};
struct Vector {
  RIGSTEP_INLINE int of(const Child& c) const { return c.vector; }
  RIGSTEP_INLINE const Place* of(const ScatteredChild& c) const { return c.vector; }
};

RIGSTEP_INLINE int entry(int i, int k) { return i >= k ? packed(i) + k : packed(k) + i; }

// Between the rows of the constraint that a front eliminates. Only narrow ones may lie beside others: for the widest
// the compiler knows it.
template <class T>
RIGSTEP_INLINE int row_stride(const Front& f) {
  return kWidth<T> < kWidest ? f.row_stride : kWidth<T>;
}

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

// What the fronts of a run have in common, as constants for the compiler.
template <int S>
struct FrontOf {
  using T = LanesOf<S>;
  static constexpr int N = S / (kForms * kWidths);
  static constexpr Form kForm = N < 3 ? Form::general : static_cast<Form>(S / kWidths % kForms);
};

// In two rounds: each is a long chain of results that wait for each other, and processors look ahead only so far.
void fill_leaves(const StepArrays& a, const Run& run, const AssemblySweep::Factorise& how) {
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    invert_leaf<C>(a, leaf, b, how);
  });
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    fill_leaf<C>(a, leaf, b);
  });
}

void fill_attachments(const StepArrays& a, const Run& run) {
  const Attachment* attachment = a.attachment + run.first;
  with_width(attachment->width, [&]<class T>() {
    for (const Attachment* end = attachment + run.count; attachment < end; ++attachment)
      fill_attachment<T>(a, *attachment);
  });
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

bool eliminate_fronts(const StepArrays& a, const Run& run, int stage) {
  static constexpr auto kLoops = loops<kFrontShapes>(
      []<int S, class Of = FrontOf<S>>() { return &eliminate_fronts<Of::N, Of::kForm, typename Of::T>; });
  const Front* first = a.front + run.first;
  return kLoops.of_shape[run.shape](a, first, first + run.count, stage);
}

// ---- right-hand sides

// what a point constraint sees of a body's motion: J motion
template <int C, class T>
RIGSTEP_INLINE void project_point(const StepArrays& a, const Handle& h, const Motion<T>& m, double* to) {
  T column[3 + C];
  block_column<C>(PointHandle<C, T>(a, h), m, column);
  const T sign = signs_of<T>(a, h);
  each<3 + C>([&](int i) RIGSTEP_INLINED { store(to + (h.row + i) * kWidth<T>, flipped(column[i], sign)); });
}

// right-hand side of a primal body: -M motion
template <class T>
RIGSTEP_INLINE void momentum_of_primal_body(const StepArrays& a, const Leaf& leaf, const Motion<T>& m) {
  constexpr int W = kWidth<T>;
  const SymmetricProduct<T> minus_M{a.arena + leaf.matrix};
  const Motion<T> minus_momentum = minus_M(m.v, m.w);
  store3(a.arena + leaf.vector, minus_momentum.v), store3(a.arena + leaf.vector + 3 * W, minus_momentum.w);
}

// right-hand side of a leaf
template <int C, class T>
RIGSTEP_INLINE void project_motion(const StepArrays& a, const Leaf& leaf, const Motion<T>& m) {
  constexpr int W = kWidth<T>;
  double* const to = a.arena + leaf.vector;
  const Handle* h = a.handle + leaf.first_handle;
  if constexpr (C != kAnyLeaf) {
    project_point<C>(a, h[0], m, to), project_point<C>(a, h[1], m, to);
    return;
  }
  if (leaf.is_primal) return momentum_of_primal_body(a, leaf, m);
  for (const Handle* end = h + leaf.handles; h < end; ++h) {
    if (h->format.general()) {
      const GeneralHandle<T> g(a.handles + h->at);
      for (int i = 0; i < h->format.rows; ++i)
        store(to + (h->row + i) * W, dot(g.force(i), m.v) + dot(g.torque(i), m.w));
    } else {
      with_cosines(h->format.cosines, [&]<int D>() RIGSTEP_INLINED { project_point<D>(a, *h, m, to); });
    }
  }
}

// keeps a body's motion without its joints and passes it on to the elimination
template <int C, class T>
RIGSTEP_INLINE void start_motion(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b, const Motion<T>& m) {
  store3(b.motion, m.v), store3(b.motion + 3 * kWidth<T>, m.w);
  project_motion<C>(a, leaf, m);
}

// g of (17) (18) on every body, and the free motion -(dt^2/4) M^-1 g that it causes, (27)
void free_motion(const StepArrays& a, const Run& run) {
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    const Quaternion<T> p = load_quaternion<T>(b.next + kP * W), minus_2_h1 = load_quaternion<T>(b.history);
    const V3<T> w = G(minus_2_h1, p), al = G(load_quaternion<T>(b.history + kMinus2h2 * W), p);
    const S3<T> J = load_symmetric<T>(b.constants + 2 * W);
    const V3<T> momentum = J * w;
    const T twice_p_dot_pd =
        T(a.step.four_over_dt) - fma(p.w, minus_2_h1.w, dot(p.e, minus_2_h1.e));  // not quite 0 before convergence
    const V3<T> torque_b = fma(twice_p_dot_pd, momentum, add_cross(J * al, w, momentum));
    Load<T> g{load<T>(b.constants + W) * acceleration(b, a.step) - load3<T>(b.load),
              load33<T>(b.rotation) * torque_b - load3<T>(b.load + 3 * W)};
    for_handles<C, T>(a, leaf, [&]<int D>(const auto& handle) RIGSTEP_INLINED { g = g + load_of<D>(handle); });
    with_inverse_mass(a, leaf, b, [&](const auto& inverse) RIGSTEP_INLINED {
      start_motion<C>(a, leaf, b, inverse(T(-a.step.quarter_dt2) * g.force, T(-a.step.quarter_dt2) * g.torque));
    });
  });
}

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

template <int N, Form Shape, class T>
RIGSTEP_INLINE void solve_front_up(const StepArrays& a, const Front& f, const double* rhs, bool anew) {
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
      if (anew)
        each<N>([&](int k) RIGSTEP_INLINED {
          const int row = f.row_position + k * row_stride<T>(f);
          y[k] = fnma(load<T>(a.carried + row), load<T>(a.lambda + row), y[k]);
        });
      T solution[N];
      each<N>([&](int k) RIGSTEP_INLINED { solution[k] = y[k]; });
      solve_pivots<N>(factor, solution);
      double* const keep = P + (kIsLink ? 2 * N : f.rows) * N * W;
      each<N>([&](int k) RIGSTEP_INLINED { store(keep + k * W, solution[k]); });
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

void keep_motion(const StepArrays& a, const Run& run) {
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    project_motion<C>(a, leaf, Motion<T>{load3<T>(b.motion), load3<T>(b.motion + 3 * kWidth<T>)});
  });
}

// Whatever moves, a primal body's motion is among the unknowns: an attachment has nothing on the right-hand side.
void clear_attachments(const StepArrays& a, const Run& run) {
  for (const Attachment* g = a.attachment + run.first; g < a.attachment + run.first + run.count; ++g)
    for (int k = 0; k < (a.handle[g->handle].format.rows + 6) * g->width; ++k) a.arena[g->vector + k] = 0.0;
}

template <int N, Form Shape, class T>
RIGSTEP_LOOP void solve_up(const StepArrays& a, const Front* f, const Front* end, const double* rhs, bool anew) {
  for (; f < end; ++f) solve_front_up<N, Shape, T>(a, *f, rhs, anew);
}

void solve_up(const StepArrays& a, const Run& run, RightHandSide side) {
  const bool anew = side == RightHandSide::Phi_restarted;
  const double* rhs = anew || side == RightHandSide::Phi ? a.Phi : side == RightHandSide::rate ? a.rate : a.quadratic;
  static constexpr auto kLoops =
      loops<kFrontShapes>([]<int S, class Of = FrontOf<S>>() { return &solve_up<Of::N, Of::kForm, typename Of::T>; });
  const Front* first = a.front + run.first;
  kLoops.of_shape[run.shape](a, first, first + run.count, rhs, anew);
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

void solve_down(const StepArrays& a, const Run& run, Multiplier kind) {
  static constexpr auto kLoops =
      loops<kFrontShapes>([]<int S, class Of = FrontOf<S>>() { return &solve_down<Of::N, Of::kForm, typename Of::T>; });
  const Front* first = a.front + run.first;
  kLoops.of_shape[run.shape](a, first, first + run.count, kind);
}

// J' Lambda of a point constraint
template <int C, class T>
RIGSTEP_INLINE Load<T> point_load(const StepArrays& a, const Handle& h, const double* x) {
  constexpr int W = kWidth<T>;
  const PointHandle<C, T> p(a, h);
  const double* Lambda = x + h.row * W;
  const T sign = signs_of<T>(a, h);
  const V3<T> force = flipped(load3<T>(Lambda), sign);
  V3<T> torque = cross(p.arm, force);
  each<C>([&](int i)
              RIGSTEP_INLINED { torque = fma(flipped(load<T>(Lambda + (3 + i) * W), sign), p.normal(i), torque); });
  return {force, torque};
}

// motion of a body with the joints closed: motion - M^-1 J' Lambda; that of a primal body is found by the elimination
template <int C, class T>
RIGSTEP_INLINE Motion<T> closed_motion(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b) {
  constexpr int W = kWidth<T>;
  const double* x = a.arena + leaf.vector;
  if (C == kAnyLeaf && leaf.is_primal) return {load3<T>(x), load3<T>(x + 3 * W)};
  const Handle* h = a.handle + leaf.first_handle;
  const V3<T> zero{T(0.0), T(0.0), T(0.0)};
  Load<T> all{zero, zero};
  if constexpr (C != kAnyLeaf) {
    all = point_load<C, T>(a, h[0], x) + point_load<C, T>(a, h[1], x);
  } else {
    for (const Handle* end = h + leaf.handles; h < end; ++h) {
      if (h->format.general()) {
        const GeneralHandle<T> g(a.handles + h->at);
        for (int i = 0; i < h->format.rows; ++i) {
          const T l = load<T>(x + (h->row + i) * W);
          all = {fma(l, g.force(i), all.force), fma(l, g.torque(i), all.torque)};
        }
      } else {
        with_cosines(h->format.cosines, [&]<int D>() RIGSTEP_INLINED { all = all + point_load<D, T>(a, *h, x); });
      }
    }
  }
  Motion<T> m{load3<T>(b.motion), load3<T>(b.motion + 3 * W)};
  with_inverse_mass(a, leaf, b,
                    [&](const auto& inverse) RIGSTEP_INLINED { m = inverse.taken_from(m, all.force, all.torque); });
  return m;
}

void close(const StepArrays& a, const Run& run) {
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    const Motion<T> m = closed_motion<C>(a, leaf, b);
    store3(b.motion, m.v), store3(b.motion + 3 * kWidth<T>, m.w);
  });
}

// ---- Newton update and projections

// A result of all batches, whatever their width.
struct LaneByLane {
  alignas(kMostLanes * sizeof(double)) double value[kMostLanes] = {};
  double largest() const {
    double most = 0.0;
    for (const double each : value) most = larger(each, most);
    return most;
  }
  double sum() const {
    double all = 0.0;
    for (const double each : value) all += each;
    return all;
  }
};

// (24) (25): closes the joints and moves the bodies
void update(const StepArrays& a, const Run& run, bool is_last, Increment& largest) {
  LaneByLane move, half_turn;
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    const Motion<T> m = closed_motion<C>(a, leaf, b);
    const V3<T> beyond = load3<T>(b.history + kBeyond * W) + m.v;
    if (is_last)
      move_body(b, beyond, a.step);
    else  // the same but for the last bit, from fewer numbers
      store3(b.history + kBeyond * W, beyond), store3(b.next + kR * W, load3<T>(b.next + kR * W) + m.v);
    const Quaternion<T> p = load_quaternion<T>(b.next + kP * W);
    const V3<T> half = T(0.5) * m.w;
    turn_body<T>(b, {p.w - dot(half, p.e), p.e + add_cross(p.w * half, half, p.e)});  // what is small summed first
    if (!is_last) return;
    store(move.value, larger(dot(m.v, m.v), load<T>(move.value)));
    store(half_turn.value, larger(dot(half, half), load<T>(half_turn.value)));
  });
  largest.move = larger(square_root(move.largest()), largest.move);
  largest.turn = larger(2.0 * square_root(half_turn.largest()), largest.turn);
}

void start_velocities(const StepArrays& a, const Run& run) {  // (45)
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    const V3<T> w = G_world(load_quaternion<T>(b.history), load_quaternion<T>(b.next + kP * kWidth<T>));
    keep_low_part(b, a.step);
    start_motion<C>(a, leaf, b, Motion<T>{velocity(b, a.step), w});
  });
}

template <int C, class T>
RIGSTEP_INLINE void quadratic_terms(const StepArrays& a, const ConstraintBatch& c) {
  constexpr int W = kWidth<T>;
  with_sides<T>(a, c, [&](const auto& body, const auto&) RIGSTEP_INLINED {
    const V3<T> w1 = three(body(kTwistField, 0), 3), w2 = three(body(kTwistField, 1), 3);
    const PointSides<C, T> at = load_sides<C, T>(a.constraint_fields + kConstraintFields * c.position);
    double* to = a.quadratic + c.row_position;
    store3(to, cross(w1, cross(w1, at.s_first)) - cross(w2, cross(w2, at.s_second)));
    each<C>([&](int k) RIGSTEP_INLINED {
      const V3<T> u = at.axis_first(k), h = at.axis_second(k), ud = cross(w1, u), hd = cross(w2, h);
      store(to + (3 + k) * W, dot(cross(w1, ud), h) + fma(T(2.0), dot(ud, hd), dot(u, cross(w2, hd))));
    });
  });
}

void close_velocities(const StepArrays& a, const Run& run) {  // (54)
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    const Motion<T> m = closed_motion<C>(a, leaf, b);
    store3(b.twist, m.v), store3(b.twist + 3 * W, m.w);
    store3(b.next + kV * W, m.v), store3(b.next + kOmega * W, transposed_times(load33<T>(b.rotation), m.w));
  });
}

void quadratic_terms(const StepArrays& a, const Run& run) {
  for_constraints(a, run,
                  [&]<int C, class T>(const ConstraintBatch& c) RIGSTEP_INLINED { quadratic_terms<C, T>(a, c); });
}

void start_accelerations(const StepArrays& a, const Run& run) {  // (60)
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    const V3<T> al = G_world(load_quaternion<T>(b.history + kMinus2h2 * W), load_quaternion<T>(b.next + kP * W));
    start_motion<C>(a, leaf, b, Motion<T>{acceleration(b, a.step), al});
  });
}

// says whether they are finite
bool close_accelerations(const StepArrays& a, const Run& run) {  // (69)
  LaneByLane check;
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    const Motion<T> m = closed_motion<C>(a, leaf, b);
    const V3<T> acc = m.v, al = transposed_times(load33<T>(b.rotation), m.w);
    store3(b.motion, m.v), store3(b.motion + 3 * W, m.w);
    store3(b.next + kA * W, acc), store3(b.next + kAlpha * W, al);
    // 0 for finite numbers, otherwise not a number; this depends on everything that the step computed
    const T zero = T(0.0) * (((acc.x + acc.y) + acc.z) + ((al.x + al.y) + al.z));
    store(check.value, load<T>(check.value) + zero);
  });
  return check.sum() == 0.0;
}

template <int C, class T>
RIGSTEP_INLINE void largest_residuals(const StepArrays& a, const ConstraintBatch& c, LaneByLane* most) {
  constexpr int W = kWidth<T>;
  with_sides<T>(a, c, [&](const auto& body, const auto&) RIGSTEP_INLINED {
    const auto t1 = body(kTwistField, 0), t2 = body(kTwistField, 1), m1 = body(kMotionField, 0),
               m2 = body(kMotionField, 1);
    const V3<T> w1 = three(t1, 3), w2 = three(t2, 3), al1 = three(m1, 3), al2 = three(m2, 3);
    const PointSides<C, T> at = load_sides<C, T>(a.constraint_fields + kConstraintFields * c.position);
    const V3<T> v = add_cross(three(t1, 0), w1, at.s_first) - add_cross(three(t2, 0), w2, at.s_second);
    const double *Phi = a.Phi + c.row_position, *quadratic = a.quadratic + c.row_position;
    const V3<T> acc =
        (add_cross(three(m1, 0), al1, at.s_first) - add_cross(three(m2, 0), al2, at.s_second)) + load3<T>(quadratic);
    const V3<T> gap = load3<T>(Phi);
    const auto most_of = [](V3<T> x) { return larger(magnitude(x.x), larger(magnitude(x.y), magnitude(x.z))); };
    T found[3] = {most_of(gap), most_of(v), most_of(acc)};
    each<C>([&](int k) RIGSTEP_INLINED {
      const V3<T> n = at.normal(k);
      found[0] = larger(magnitude(load<T>(Phi + (3 + k) * W)), found[0]);
      found[1] = larger(magnitude(dot(n, w1 - w2)), found[1]);
      found[2] = larger(magnitude(dot(n, al1 - al2) + load<T>(quadratic + (3 + k) * W)), found[2]);
    });
    each<3>([&](int k) RIGSTEP_INLINED {
      double* const largest = most[k].value;
      store(largest, larger(found[k], load<T>(largest)));
    });
  });
}

void residuals(const StepArrays& a, const Run& run, Residuals& largest) {
  LaneByLane most[3];
  for_constraints(
      a, run, [&]<int C, class T>(const ConstraintBatch& c) RIGSTEP_INLINED { largest_residuals<C, T>(a, c, most); });
  double* const all[3] = {&largest.position, &largest.velocity, &largest.acceleration};
  for (int k = 0; k < 3; ++k) *all[k] = larger(most[k].largest(), *all[k]);
}

// ---- from the leaves to the root, and back

void start(const StepArrays& a, const Run& run, AssemblySweep::Start motion) {
  switch (motion) {
    case AssemblySweep::Start::nothing:
      return;
    case AssemblySweep::Start::free_motion:
      return free_motion(a, run);
    case AssemblySweep::Start::velocities:
      return start_velocities(a, run);
    case AssemblySweep::Start::accelerations:
      return start_accelerations(a, run);
    case AssemblySweep::Start::same_motion:
      return keep_motion(a, run);
  }
}

bool assemble(const StepArrays& a, const AssemblySweep& what) {
  bool positive = true;
  for (const Run* run = a.run; run < a.run + a.runs; ++run) {
    if (run->of == Run::Of::constraints) {
      if (what.constrain) constrain(a, *run, what);
    } else if (run->of == Run::Of::leaves) {
      if (what.factorise.wanted) fill_leaves(a, *run, what.factorise);
      start(a, *run, what.start);
    } else if (run->of == Run::Of::attachments) {
      if (what.factorise.wanted) fill_attachments(a, *run);
      if (what.assemble) clear_attachments(a, *run);
    } else {
      if (what.factorise.wanted) positive = eliminate_fronts(a, *run, what.factorise.stage) && positive;
      if (what.assemble) solve_up(a, *run, what.rhs);
    }
  }
  return positive;
}

void finish(const StepArrays& a, const Run& run, const DisassemblySweep& what, StepMeasures& found) {
  switch (what.finish) {
    case DisassemblySweep::Finish::nothing:
      return;
    case DisassemblySweep::Finish::motion:
      return close(a, run);
    case DisassemblySweep::Finish::displacements:
      return update(a, run, what.measure, found.increment);
    case DisassemblySweep::Finish::velocities:
      return close_velocities(a, run);
    case DisassemblySweep::Finish::accelerations:
      found.finite = close_accelerations(a, run) && found.finite;
  }
}

StepMeasures disassemble(const StepArrays& a, const DisassemblySweep& what) {
  StepMeasures found;
  for (int k = a.runs; k-- > 0;) {  // there may be none, and no array
    const Run* const run = a.run + k;
    if (run->of == Run::Of::fronts) {
      if (what.disassemble) solve_down(a, *run, what.kind);
    } else if (run->of == Run::Of::leaves) {
      finish(a, *run, what, found);
    } else if (run->of == Run::Of::attachments) {
      continue;  // nothing moves there
    } else if (what.finish == DisassemblySweep::Finish::velocities) {
      quadratic_terms(a, *run);
    } else if (what.finish == DisassemblySweep::Finish::accelerations) {
      residuals(a, *run, found.residuals);
    }
  }
  return found;
}

}  // namespace

extern const Kernels kKernels;
const Kernels kKernels{RIGSTEP_ISA_NAME, kWidest, predict, place, assemble, disassemble};

}  // namespace rigstep::index3::RIGSTEP_ISA
