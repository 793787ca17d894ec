// The phases of a step over all batches. Compiled once per instruction set (RIGSTEP_ISA names it); whatever is
// instantiated here stays in that namespace, so that no function for a newer processor can be called on an older one.
#include "core/index3/kernels.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

template <class F>
RIGSTEP_INLINE void with_width(int width, F&& f) {
  if (width == 1)
    f.template operator()<double>();
  else
    f.template operator()<Lanes4>();
}

template <class F>
RIGSTEP_INLINE void for_bodies(const StepArrays& a, F&& f) {
  for (int i = 0; i < a.leaves; ++i) {
    const Leaf& leaf = a.leaf[i];
    with_width(leaf.width, [&]<class T>() { f.template operator()<T>(leaf, BodyArrays<T>(a, leaf.position)); });
  }
}

void predict(const StepArrays& a) {
  for (int k = 0; k < a.rows; ++k) a.lambda[k] = a.last_lambda[k];
  for_bodies(a, [&]<class T>(const Leaf&, const BodyArrays<T>& b) { predict_body(b, a.dt); });
}

void place(const StepArrays& a) {
  for_bodies(a, [&]<class T>(const Leaf&, const BodyArrays<T>& b) {
    place_body(b, load_quaternion<T>(b.next + kP * kWidth<T>));
  });
}

// ---- constraints

// f(source of F numbers of a body for either side), by the way they lie
template <class T, class F>
RIGSTEP_INLINE void with_sides(const ConstraintBatch& c, F&& f) {
  const auto place = [](const Side& side, int fields, int l) { return side.body[l].of(fields); };
  if (kWidth<T> == 1 || (c.side[0].aligned && c.side[1].aligned)) {
    f([&](double* array, int fields, int side) { return direct<T>(array, place(c.side[side], fields, 0)); },
      [&](double* handles, int side) { return direct<T>(handles, c.side[side].handle[0]); });
  } else if constexpr (kWidth<T> > 1) {
    f([&](double* array, int fields,
          int side) { return gathered(array, [&](int l) { return place(c.side[side], fields, l); }); },
      [&](double* handles, int side) { return gathered(handles, [&](int l) { return c.side[side].handle[l]; }); });
  }
}

RIGSTEP_INLINE void copy(const StepArrays& a, double* array, int first, int copies, int begin, int end) {
  for (int c = first; c < first + copies; ++c) {
    const Place &from = a.copy[c].from, &to = a.copy[c].to;
    for (int k = begin; k < end; ++k) array[to.base + k * to.stride] = array[from.base + k * from.stride];
  }
}

template <int C, class T>
RIGSTEP_INLINE void constrain_points(const StepArrays& a, const ConstraintBatch& c, bool with_stiffness) {
  constexpr int W = kWidth<T>;
  with_sides<T>(c, [&](const auto& body, const auto& handle) {
    const PointSides<C, T> at =
        turned_sides<C, T>(a.constraint_constants + kConstraintConstants * c.position, nine(body(a.rotation, 9, 0)),
                           nine(body(a.rotation, 9, 1)), a.constraint_fields + kConstraintFields * c.position);
    double* Phi = a.Phi + c.row_position;
    const double* lambda = a.lambda + c.row_position;
    const V3<T> distance = three(body(a.next, kStateFields, 0), kR) - three(body(a.next, kStateFields, 1), kR);
    store3(Phi, distance + (at.s_first - at.s_second));
    const V3<T> force = load3<T>(lambda);
    T lambda_cosines[3];
    V3<T> moment{T(0.0), T(0.0), T(0.0)};
#pragma GCC unroll 3
    for (int k = 0; k < C; ++k) {
      store(Phi + (3 + k) * W, dot(at.axis_first(k), at.axis_second(k)));
      lambda_cosines[k] = load<T>(lambda + (3 + k) * W);
      moment = fma(lambda_cosines[k], at.normal(k), moment);
    }
    put_handle<C, T>(handle(a.handles, 0), at, at.s_first, 1.0, force, moment, lambda_cosines, with_stiffness);
    put_handle<C, T>(handle(a.handles, 1), at, at.s_second, -1.0, force, moment, lambda_cosines, with_stiffness);
  });
  for (const Side& side : c.side) copy(a, a.handles, side.first_copy, side.copies, 0, 15 + 3 * C);
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

template <class F>
RIGSTEP_INLINE void for_point_constraints(const StepArrays& a, F&& f) {
  for (int i = 0; i < a.constraints; ++i) {
    const ConstraintBatch& c = a.constraint[i];
    with_cosines(c.format.cosines,
                 [&]<int C>() { with_width(c.width, [&]<class T>() { f.template operator()<C, T>(c); }); });
  }
}

void constrain(const StepArrays& a, bool with_stiffness) {
  for_point_constraints(
      a, [&]<int C, class T>(const ConstraintBatch& c) { constrain_points<C, T>(a, c, with_stiffness); });
}

// ---- factorisation

template <class T>
RIGSTEP_INLINE void invert_inertia(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b, double geometric) {
  constexpr int W = kWidth<T>;
  S3<T> I = rotated(load33<T>(b.rotation), load_symmetric<T>(b.constants + 2 * W));
  if (geometric != 0.0) {
    S3<T> K{T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0)};
    for (int h = leaf.first_handle; h < leaf.first_handle + leaf.handles; ++h) {
      const S3<T> add = load_symmetric<T>(a.handles + a.handle[h].at + 6 * W);
      K = {K.xx + add.xx, K.yy + add.yy, K.zz + add.zz, K.yx + add.yx, K.zx + add.zx, K.zy + add.zy};
    }
    I = index3::RIGSTEP_ISA::with_stiffness(I, K, T(geometric));
  }
  if (leaf.dense >= 0)
    store_symmetric(b.inertia_inverse, I);  // inverted with the rest
  else
    store_symmetric(b.inertia_inverse, inverse(I));
}

// inverse of mass, inertia (in inertia_inverse) and force tangent together
template <class T>
void invert_dense(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b, bool with_tangent) {
  constexpr int W = kWidth<T>;
  T A[21], inverse_d[6];
  for (int k = 0; k < 21; ++k) A[k] = with_tangent ? load<T>(a.tangent + leaf.dense + k * W) : T(0.0);
  const T mass = load<T>(b.constants + W);
  const S3<T> I = load_symmetric<T>(b.inertia_inverse);
  for (int k = 0; k < 3; ++k) A[packed(k) + k] = A[packed(k) + k] + mass;
  A[packed(3) + 3] = A[packed(3) + 3] + I.xx, A[packed(4) + 4] = A[packed(4) + 4] + I.yy;
  A[packed(5) + 5] = A[packed(5) + 5] + I.zz, A[packed(4) + 3] = A[packed(4) + 3] + I.yx;
  A[packed(5) + 3] = A[packed(5) + 3] + I.zx, A[packed(5) + 4] = A[packed(5) + 4] + I.zy;
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
    f(DenseInverseMass<T>{a.mass_inverse + leaf.dense});
  else
    f(InverseMass<T>{load<T>(b.constants), load_symmetric<T>(b.inertia_inverse)});
}

template <class T, class Inverse>
RIGSTEP_INLINE int columns_of(const StepArrays& a, const Handle& h, const Inverse& inverse, Motion<T>* y) {
  if (h.format.general()) {
    const GeneralHandle<T> g(a.handles + h.at);
    for (int k = 0; k < h.format.rows; ++k) y[k] = inverse(g.force(k), g.torque(k));
  } else {
    const PointHandle<T> p(a.handles + h.at);
    with_cosines(h.format.cosines, [&]<int C>() { compliance_columns<C>(p, inverse, y); });
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
        store(S + (packed(hi.row + i) + hk.row + k) * W, sign * (dot(g.force(i), y[k].v) + dot(g.torque(i), y[k].w)));
    return;
  }
  const PointHandle<T> p(a.handles + hi.at);
  with_cosines(hi.format.cosines, [&]<int C>() {
    for (int k = 0; k < columns; ++k) {
      T column[3 + C];
      block_column<C>(p, y[k], column);
      for (int i = diagonal ? k : 0; i < 3 + C; ++i) store(S + (packed(hi.row + i) + hk.row + k) * W, sign * column[i]);
    }
  });
}

// the same for a body between two constraints of one format
template <int C, class T, class Inverse>
RIGSTEP_INLINE void fill_link(const StepArrays& a, const Handle* h, const Inverse& inverse, double* S) {
  constexpr int W = kWidth<T>, N = 3 + C;
  const PointHandle<T> first(a.handles + h[0].at), second(a.handles + h[1].at);
  const T sign(h[0].sign * h[1].sign);
  Motion<T> y[N];
  T column[N];
  compliance_columns<C>(first, inverse, y);
#pragma GCC unroll 6
  for (int k = 0; k < N; ++k) {
    block_column<C>(first, y[k], column);
#pragma GCC unroll 6
    for (int i = k; i < N; ++i) store(S + (packed(i) + k) * W, column[i]);
    block_column<C>(second, y[k], column);
#pragma GCC unroll 6
    for (int i = 0; i < N; ++i) store(S + (packed(N + i) + k) * W, sign * column[i]);
  }
  compliance_columns<C>(second, inverse, y);
#pragma GCC unroll 6
  for (int k = 0; k < N; ++k) {
    block_column<C>(second, y[k], column);
#pragma GCC unroll 6
    for (int i = k; i < N; ++i) store(S + (packed(N + i) + N + k) * W, column[i]);
  }
}

// (26) projected: the compliance J M^-1 J' of a body between all its joints
template <class T>
RIGSTEP_INLINE void fill_leaf(const StepArrays& a, const Leaf& leaf, double geometric, bool with_tangent) {
  const BodyArrays<T> b(a, leaf.position);
  invert_inertia(a, leaf, b, geometric);
  if (leaf.dense >= 0) invert_dense(a, leaf, b, with_tangent);
  double* S = a.arena + leaf.matrix;
  with_inverse_mass(a, leaf, b, [&](const auto& inverse) {
    const Handle* h = a.handle + leaf.first_handle;
    if (leaf.is_link) return with_cosines(h->format.cosines, [&]<int C>() { fill_link<C, T>(a, h, inverse, S); });
    for (int k = 0; k < leaf.handles; ++k) {
      Motion<T> y[kMaxRows];
      columns_of(a, h[k], inverse, y);
      for (int i = k; i < leaf.handles; ++i) store_block(a, h[i], h[k], y, T(h[i].sign * h[k].sign), S);
    }
  });
}

// f(left, right): sources of the children's numbers at the places that `place` names, by the way they lie
template <class T, class Get, class F>
RIGSTEP_INLINE void with_children(const StepArrays& a, const Front& f, const Get& place, F&& body) {
  if (kWidth<T> == 1 || (f.child[0].aligned && f.child[1].aligned)) {
    body(direct<T>(a.arena, place(f.child[0], 0)), direct<T>(a.arena, place(f.child[1], 0)));
  } else if constexpr (kWidth<T> > 1) {
    body(gathered(a.arena, [&](int l) { return place(f.child[0], l); }),
         gathered(a.arena, [&](int l) { return place(f.child[1], l); }));
  }
}
RIGSTEP_INLINE const Place& matrix_of(const Child& c, int l) { return c.matrix[l]; }
RIGSTEP_INLINE const Place& vector_of(const Child& c, int l) { return c.vector[l]; }

RIGSTEP_INLINE int entry(int i, int k) { return i >= k ? packed(i) + k : packed(k) + i; }

// L below the diagonal and 1/D of the pivots, kept; says whether they are positive
template <int N, class T>
RIGSTEP_INLINE bool keep_pivots(T* D, T* inverse_d, double* factor) {
  constexpr int W = kWidth<T>;
  const bool positive = all_positive(factorise_pivots<N>(D, inverse_d));
#pragma GCC unroll 21
  for (int k = 0; k < packed(N); ++k) store(factor + k * W, D[k]);
#pragma GCC unroll 6
  for (int k = 0; k < N; ++k) store(factor + (packed(N) + k) * W, inverse_d[k]);
  return positive;
}

// A row below the pivots: z = L^-1 x, p = D^-1 z, kept in P.
template <int N, class T>
RIGSTEP_INLINE void reduce_row(const T* L, const T* inverse_d, T* z, T* p, double* P) {
  forward<N>(L, z);
#pragma GCC unroll 6
  for (int k = 0; k < N; ++k) {
    p[k] = z[k] * inverse_d[k];
    store(P + k * kWidth<T>, p[k]);
  }
}

template <int N, class T>
RIGSTEP_INLINE T minus_dot(T sum, const T* p, const T* z) {
#pragma GCC unroll 6
  for (int k = 0; k < N; ++k) sum = fnma(p[k], z[k], sum);
  return sum;
}

// (36)-(38) where compounds [a p] and [p b] become [a b], all of N rows: the link of a chain.
template <int N, class T>
RIGSTEP_INLINE bool eliminate_serial(const StepArrays& a, const Front& f, int stage) {
  constexpr int W = kWidth<T>;
  bool positive = true;
  with_children<T>(a, f, matrix_of, [&](const auto& left, const auto& right) {
    double* const factor = a.arena + f.factor;
    double* const P = factor + (packed(N) + N) * W;
    double* const S = a.arena + f.matrix;
    const double* const compliance = a.compliance[stage] + f.row_position;
    T L[packed(N)], inverse_d[N], Z_a[N][N], Z_b[N][N], p[N];
#pragma GCC unroll 6
    for (int i = 0; i < N; ++i) {
#pragma GCC unroll 6
      for (int k = 0; k <= i; ++k) L[packed(i) + k] = left(packed(N + i) + N + k) + right(packed(i) + k);
      L[packed(i) + i] = L[packed(i) + i] + load<T>(compliance + i * W);
    }
    positive = keep_pivots<N>(L, inverse_d, factor);
#pragma GCC unroll 6
    for (int i = 0; i < N; ++i) {
#pragma GCC unroll 6
      for (int k = 0; k < N; ++k) Z_a[i][k] = left(packed(N + k) + i);
      reduce_row<N>(L, inverse_d, Z_a[i], p, P + i * N * W);
#pragma GCC unroll 6
      for (int j = 0; j <= i; ++j) store(S + (packed(i) + j) * W, minus_dot<N>(left(packed(i) + j), p, Z_a[j]));
    }
#pragma GCC unroll 6
    for (int i = 0; i < N; ++i) {
#pragma GCC unroll 6
      for (int k = 0; k < N; ++k) Z_b[i][k] = right(packed(N + i) + k);
      reduce_row<N>(L, inverse_d, Z_b[i], p, P + (N + i) * N * W);
#pragma GCC unroll 6
      for (int j = 0; j < N; ++j) store(S + (packed(N + i) + j) * W, minus_dot<N>(T(0.0), p, Z_a[j]));
#pragma GCC unroll 6
      for (int j = 0; j <= i; ++j)
        store(S + (packed(N + i) + N + j) * W, minus_dot<N>(right(packed(N + i) + N + j), p, Z_b[j]));
    }
  });
  return positive;
}

// (36)-(38): Schur complement of one constraint; N = 0 only joins the two compounds
template <int N, class T>
RIGSTEP_INLINE bool eliminate(const StepArrays& a, const Front& f, int stage) {
  constexpr int W = kWidth<T>;
  bool positive = true;
  with_children<T>(a, f, matrix_of, [&](const auto& left, const auto& right) {
    double* const Z = a.scratch;  // rows below, times D
    double* const factor = a.arena + f.factor;
    double* const P = factor + (packed(N) + N) * W;  // after L with its diagonal, and 1/D
    double* const S = a.arena + f.matrix;
    // entry (i, k) of the front's children; rows of theirs are negative where they do not have them
    const auto sum = [&](int left_i, int left_k, int right_i, int right_k) {
      T value(0.0);
      if (left_i >= 0 && left_k >= 0) value = left(entry(left_i, left_k));
      if (right_i >= 0 && right_k >= 0) value = value + right(entry(right_i, right_k));
      return value;
    };
    const int left_pivot = f.child[0].pivot, right_pivot = f.child[1].present ? f.child[1].pivot : -1 - N;
    T L[packed(N) + 1], inverse_d[N + 1];
    if constexpr (N > 0) {
      const double* compliance = a.compliance[stage] + f.row_position;
#pragma GCC unroll 6
      for (int i = 0; i < N; ++i) {
#pragma GCC unroll 6
        for (int k = 0; k <= i; ++k)
          L[packed(i) + k] = sum(left_pivot + i, left_pivot + k, right_pivot + i, right_pivot + k);
        L[packed(i) + i] = L[packed(i) + i] + load<T>(compliance + i * W);
      }
      positive = keep_pivots<N>(L, inverse_d, factor);
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
#pragma GCC unroll 6
          for (int k = 0; k < N; ++k) z[k] = sum(in_left, left_pivot + k, in_right, right_pivot + k);
          reduce_row<N>(L, inverse_d, z, p, P + row * N * W);
#pragma GCC unroll 6
          for (int k = 0; k < N; ++k) store(Z + (row * N + k) * W, z[k]);
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
#pragma GCC unroll 6
            for (int k = 0; k < N; ++k) value = fnma(p[k], load<T>(z_j + k * W), value);
            store(S + (packed(row) + other.row + j) * W, value);
          }
        }
      }
    }
  });
  return positive;
}

template <class F>
RIGSTEP_INLINE void with_pivots(int pivots, F&& f) {
  switch (pivots) {
    case 0:
      return f.template operator()<0>();
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    case 4:
      return f.template operator()<4>();
    case 5:
      return f.template operator()<5>();
    default:
      return f.template operator()<6>();
  }
}

// f<N, serial, T>() of a front
template <class F>
RIGSTEP_INLINE void with_shape(const Front& f, F&& body) {
  with_pivots(f.pivots, [&]<int N>() {
    with_width(f.width, [&]<class T>() {
      if constexpr (N >= 3)
        if (f.serial) return body.template operator()<N, true, T>();
      body.template operator()<N, false, T>();
    });
  });
}

int factorise(const StepArrays& a, double geometric, bool with_tangent, int stage) {
  int failed = -1;
  for (int i = 0; i < a.operations; ++i) {
    const Operation& o = a.operation[i];
    if (o.is_leaf) {
      const Leaf& leaf = a.leaf[o.index];
      with_width(leaf.width, [&]<class T>() { fill_leaf<T>(a, leaf, geometric, with_tangent); });
    } else {
      const Front& f = a.front[o.index];
      bool positive = true;
      with_shape(f, [&]<int N, bool serial, class T>() {
        if constexpr (serial)
          positive = eliminate_serial<N, T>(a, f, stage);
        else
          positive = eliminate<N, T>(a, f, stage);
      });
      if (!positive && failed < 0) failed = o.index;
    }
  }
  return failed;
}

// ---- right-hand sides

// g of (17) (18) on every body, and the free motion -(dt^2/4) M^-1 g that it causes, (27)
void free_motion(const StepArrays& a) {
  for_bodies(a, [&]<class T>(const Leaf& leaf, const BodyArrays<T>& b) {
    constexpr int W = kWidth<T>;
    const double h2 = 0.25 * a.dt * a.dt;
    const Quaternion<T> p = load_quaternion<T>(b.next + kP * W), h1 = load_quaternion<T>(b.history);
    const V3<T> w = twice_G(p, h1), al = twice_G(p, load_quaternion<T>(b.history + 4 * W));
    const S3<T> J = load_symmetric<T>(b.constants + 2 * W);
    const V3<T> momentum = J * w;
    const T p_dot_pd = T(2.0 / a.dt) + fma(p.w, h1.w, dot(p.e, h1.e));  // not quite 0 before convergence
    const V3<T> torque_b = fma(p_dot_pd + p_dot_pd, momentum, add_cross(J * al, w, momentum));
    V3<T> force = load<T>(b.constants + W) * acceleration(b, a.dt) - load3<T>(b.load);
    V3<T> torque = load33<T>(b.rotation) * torque_b - load3<T>(b.load + 3 * W);
    for (int h = leaf.first_handle; h < leaf.first_handle + leaf.handles; ++h) {
      const double* at = a.handles + a.handle[h].at;
      force = force + load3<T>(at), torque = torque + load3<T>(at + 3 * W);
    }
    with_inverse_mass(a, leaf, b, [&](const auto& inverse) {
      const Motion<T> free = inverse(T(-h2) * force, T(-h2) * torque);
      store3(b.motion, free.v), store3(b.motion + 3 * W, free.w);
    });
  });
}

template <class T>
RIGSTEP_INLINE void project_motion(const StepArrays& a, const Leaf& leaf) {
  constexpr int W = kWidth<T>;
  const BodyArrays<T> b(a, leaf.position);
  const Motion<T> m{load3<T>(b.motion), load3<T>(b.motion + 3 * W)};
  double* to = a.arena + leaf.vector;
  for (int k = leaf.first_handle; k < leaf.first_handle + leaf.handles; ++k) {
    const Handle& h = a.handle[k];
    const T sign(h.sign);
    if (h.format.general()) {
      const GeneralHandle<T> g(a.handles + h.at);
      for (int i = 0; i < h.format.rows; ++i)
        store(to + (h.row + i) * W, sign * (dot(g.force(i), m.v) + dot(g.torque(i), m.w)));
    } else {
      const PointHandle<T> p(a.handles + h.at);
      with_cosines(h.format.cosines, [&]<int C>() {
        T column[3 + C];
        block_column<C>(p, m, column);
#pragma GCC unroll 6
        for (int i = 0; i < 3 + C; ++i) store(to + (h.row + i) * W, sign * column[i]);
      });
    }
  }
}

// y = L^-1 (b + rhs) of the pivots, kept behind the rows below
template <int N, class T>
RIGSTEP_INLINE void reduce_pivots(const Front& f, const double* factor, const double* rhs, T* y) {
  constexpr int W = kWidth<T>;
  T L[packed(N)];
#pragma GCC unroll 21
  for (int k = 0; k < packed(N); ++k) L[k] = load<T>(factor + k * W);
#pragma GCC unroll 6
  for (int k = 0; k < N; ++k) y[k] = y[k] + load<T>(rhs + (f.row_position + k * W));
  forward<N>(L, y);
}

template <int N, class T>
RIGSTEP_INLINE T minus_row(T sum, const double* row, const T* y) {
#pragma GCC unroll 6
  for (int k = 0; k < N; ++k) sum = fnma(load<T>(row + k * kWidth<T>), y[k], sum);
  return sum;
}

template <int N, bool serial, class T>
RIGSTEP_INLINE void solve_up(const StepArrays& a, const Front& f, const double* rhs) {
  constexpr int W = kWidth<T>;
  with_children<T>(a, f, vector_of, [&](const auto& left, const auto& right) {
    double* const factor = a.arena + f.factor;
    double* const P = factor + (packed(N) + N) * W;
    double* const b = a.arena + f.vector;
    T y[N + 1];
    if constexpr (N > 0) {
#pragma GCC unroll 6
      for (int k = 0; k < N; ++k) {
        if (serial)
          y[k] = left(N + k) + right(k);
        else
          y[k] = f.child[1].present ? left(f.child[0].pivot + k) + right(f.child[1].pivot + k)
                                    : left(f.child[0].pivot + k);
      }
      reduce_pivots<N>(f, factor, rhs, y);
      double* const keep = P + f.rows * N * W;
#pragma GCC unroll 6
      for (int k = 0; k < N; ++k) store(keep + k * W, y[k]);
    }
    if constexpr (serial) {
#pragma GCC unroll 6
      for (int i = 0; i < N; ++i) store(b + i * W, minus_row<N>(left(i), P + i * N * W, y));
#pragma GCC unroll 6
      for (int i = 0; i < N; ++i) store(b + (N + i) * W, minus_row<N>(right(N + i), P + (N + i) * N * W, y));
      return;
    }
    for (int p = 0; p < f.pendings; ++p) {
      const Pending& block = a.pending[f.first_pending + p];
      for (int i = 0; i < block.rows; ++i) {
        T sum(0.0);
        if (block.in_child[0] >= 0) sum = left(block.in_child[0] + i);
        if (block.in_child[1] >= 0) sum = sum + right(block.in_child[1] + i);
        store(b + (block.row + i) * W, minus_row<N>(sum, P + (block.row + i) * N * W, y));
      }
    }
  });
}

void assemble(const StepArrays& a, RightHandSide side) {
  const double* rhs = side == RightHandSide::Phi ? a.Phi : side == RightHandSide::rate ? a.rate : a.quadratic;
  for (int i = 0; i < a.operations; ++i) {
    const Operation& o = a.operation[i];
    if (o.is_leaf) {
      const Leaf& leaf = a.leaf[o.index];
      with_width(leaf.width, [&]<class T>() { project_motion<T>(a, leaf); });
    } else {
      const Front& f = a.front[o.index];
      with_shape(f, [&]<int N, bool serial, class T>() { solve_up<N, serial, T>(a, f, rhs); });
    }
  }
}

template <int N, bool serial, class T>
RIGSTEP_INLINE void solve_down(const StepArrays& a, const Front& f) {
  constexpr int W = kWidth<T>;
  with_children<T>(a, f, vector_of, [&](const auto& left, const auto& right) {
    const double* const factor = a.arena + f.factor;
    const double* const P = factor + (packed(N) + N) * W;
    const double* const x = a.arena + f.vector;
    const int rows = serial ? 2 * N : f.rows;
    T z[N + 1];
    if constexpr (N > 0) {
      const double* y = P + rows * N * W;
      T L[packed(N)];
#pragma GCC unroll 21
      for (int k = 0; k < packed(N); ++k) L[k] = load<T>(factor + k * W);
#pragma GCC unroll 6
      for (int k = 0; k < N; ++k) z[k] = load<T>(y + k * W) * load<T>(factor + (packed(N) + k) * W);
      for (int i = 0; i < rows; ++i) {
        const T xi = load<T>(x + i * W);
#pragma GCC unroll 6
        for (int k = 0; k < N; ++k) z[k] = fnma(load<T>(P + (i * N + k) * W), xi, z[k]);
      }
      backward<N>(L, z);
#pragma GCC unroll 6
      for (int k = 0; k < N; ++k) {
        store(a.Lambda + f.row_position + k * W, z[k]);
        left.put((serial ? N : f.child[0].pivot) + k, z[k]);
        if (serial || f.child[1].present) right.put((serial ? 0 : f.child[1].pivot) + k, z[k]);
      }
    }
    if constexpr (serial) {
#pragma GCC unroll 6
      for (int i = 0; i < N; ++i) left.put(i, load<T>(x + i * W)), right.put(N + i, load<T>(x + (N + i) * W));
    } else {
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
  for (const Child& c : f.child) copy(a, a.arena, c.first_copy, c.copies, 0, c.rows);
}

void disassemble(const StepArrays& a) {
  for (int i = a.operations - 1; i >= 0; --i) {
    const Operation& o = a.operation[i];
    if (o.is_leaf) continue;
    const Front& f = a.front[o.index];
    with_shape(f, [&]<int N, bool serial, class T>() { solve_down<N, serial, T>(a, f); });
  }
}

// motion of a body with the joints closed: motion - M^-1 J' Lambda
template <class T>
RIGSTEP_INLINE Motion<T> closed_motion(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b) {
  constexpr int W = kWidth<T>;
  V3<T> force{T(0.0), T(0.0), T(0.0)}, torque = force;
  const double* x = a.arena + leaf.vector;
  for (int k = leaf.first_handle; k < leaf.first_handle + leaf.handles; ++k) {
    const Handle& h = a.handle[k];
    const double* Lambda = x + h.row * W;
    const T sign(h.sign);
    if (h.format.general()) {
      const GeneralHandle<T> g(a.handles + h.at);
      for (int i = 0; i < h.format.rows; ++i) {
        const T l = sign * load<T>(Lambda + i * W);
        force = fma(l, g.force(i), force), torque = fma(l, g.torque(i), torque);
      }
    } else {
      const PointHandle<T> p(a.handles + h.at);
      const V3<T> f = sign * load3<T>(Lambda);
      force = force + f, torque = add_cross(torque, p.arm, f);
      with_cosines(h.format.cosines, [&]<int C>() {
#pragma GCC unroll 3
        for (int i = 0; i < C; ++i) torque = fma(sign * load<T>(Lambda + (3 + i) * W), p.normal(i), torque);
      });
    }
  }
  Motion<T> m{load3<T>(b.motion), load3<T>(b.motion + 3 * W)};
  with_inverse_mass(a, leaf, b, [&](const auto& inverse) {
    const Motion<T> back = inverse(force, torque);
    m = {m.v - back.v, m.w - back.w};
  });
  return m;
}

void close(const StepArrays& a) {
  for_bodies(a, [&]<class T>(const Leaf& leaf, const BodyArrays<T>& b) {
    const Motion<T> m = closed_motion(a, leaf, b);
    store3(b.motion, m.v), store3(b.motion + 3 * kWidth<T>, m.w);
  });
}

// ---- Newton update and projections

// (24) (25) (34): closes the joints, moves the bodies, accumulates the multipliers
Moves update(const StepArrays& a) {
  for (int k = 0; k < a.rows; ++k) a.lambda[k] = fma(a.gain[k], a.Lambda[k], a.lambda[k]);
  Lanes4 wide_move(0.0), wide_turn(0.0);
  double move = 0.0, turn = 0.0;
  for_bodies(a, [&]<class T>(const Leaf& leaf, const BodyArrays<T>& b) {
    constexpr int W = kWidth<T>;
    const Motion<T> m = closed_motion(a, leaf, b);
    store3(b.motion, m.v), store3(b.motion + 3 * W, m.w);
    store3(b.next + kR * W, load3<T>(b.next + kR * W) + m.v);
    const Quaternion<T> p = load_quaternion<T>(b.next + kP * W);
    const T half(0.5);
    const Quaternion<T> turned =
        normalised<T>({fnma(half, dot(m.w, p.e), p.w), fma(half, add_cross(p.w * m.w, m.w, p.e), p.e)});
    store_quaternion<T>(b.next + kP * W, turned);
    place_body(b, turned);
    const T moved2 = dot(m.v, m.v), turned2 = dot(m.w, m.w);
    if constexpr (W == 1)
      move = larger(moved2, move), turn = larger(turned2, turn);
    else
      wide_move = larger(moved2, wide_move), wide_turn = larger(turned2, wide_turn);
  });
  return {square_root(larger(largest_lane(wide_move), move)), square_root(larger(largest_lane(wide_turn), turn))};
}

void start_velocities(const StepArrays& a) {  // (45)
  for_bodies(a, [&]<class T>(const Leaf&, const BodyArrays<T>& b) {
    constexpr int W = kWidth<T>;
    const V3<T> w_b = twice_G(load_quaternion<T>(b.next + kP * W), load_quaternion<T>(b.history));
    store3(b.motion, velocity(b, a.dt)), store3(b.motion + 3 * W, load33<T>(b.rotation) * w_b);
  });
}

template <int C, class T>
RIGSTEP_INLINE void quadratic_terms(const StepArrays& a, const ConstraintBatch& c) {
  constexpr int W = kWidth<T>;
  with_sides<T>(c, [&](const auto& body, const auto&) {
    const V3<T> w1 = three(body(a.twist, 6, 0), 3), w2 = three(body(a.twist, 6, 1), 3);
    const PointSides<C, T> at = load_sides<C, T>(a.constraint_fields + kConstraintFields * c.position);
    double* to = a.quadratic + c.row_position;
    store3(to, cross(w1, cross(w1, at.s_first)) - cross(w2, cross(w2, at.s_second)));
#pragma GCC unroll 3
    for (int k = 0; k < C; ++k) {
      const V3<T> u = at.axis_first(k), h = at.axis_second(k), ud = cross(w1, u), hd = cross(w2, h);
      store(to + (3 + k) * W, dot(cross(w1, ud), h) + fma(T(2.0), dot(ud, hd), dot(u, cross(w2, hd))));
    }
  });
}

void keep_velocities(const StepArrays& a) {
  for_bodies(a, [&]<class T>(const Leaf&, const BodyArrays<T>& b) {
    constexpr int W = kWidth<T>;
    const V3<T> v = load3<T>(b.motion), w = load3<T>(b.motion + 3 * W);
    store3(b.twist, v), store3(b.twist + 3 * W, w);
    store3(b.next + kV * W, v), store3(b.next + kOmega * W, transposed_times(load33<T>(b.rotation), w));
  });
  for_point_constraints(a, [&]<int C, class T>(const ConstraintBatch& c) { quadratic_terms<C, T>(a, c); });
}

void start_accelerations(const StepArrays& a) {  // (60)
  for_bodies(a, [&]<class T>(const Leaf&, const BodyArrays<T>& b) {
    constexpr int W = kWidth<T>;
    const V3<T> al = twice_G(load_quaternion<T>(b.next + kP * W), load_quaternion<T>(b.history + 4 * W));
    store3(b.motion, acceleration(b, a.dt)), store3(b.motion + 3 * W, load33<T>(b.rotation) * al);
  });
}

void add_kappa(const StepArrays& a, bool first) {
  for (int k = 0; k < a.rows; ++k) a.kappa[k] = first ? a.Lambda[k] : a.kappa[k] + a.Lambda[k];
}

bool keep_accelerations(const StepArrays& a) {
  double check = 0.0;
  Lanes4 wide(0.0);
  for_bodies(a, [&]<class T>(const Leaf&, const BodyArrays<T>& b) {
    constexpr int W = kWidth<T>;
    const V3<T> acc = load3<T>(b.motion), al = transposed_times(load33<T>(b.rotation), load3<T>(b.motion + 3 * W));
    store3(b.next + kA * W, acc), store3(b.next + kAlpha * W, al);
    // 0 for finite numbers, otherwise not a number; this depends on everything that the step computed
    const T zero = T(0.0) * (((acc.x + acc.y) + acc.z) + ((al.x + al.y) + al.z));
    if constexpr (W == 1)
      check = check + zero;
    else
      wide = wide + zero;
  });
  for (int k = 0; k < kLanes; ++k) check += lane(wide, k);
  return check == 0.0;
}

template <int C, class T>
RIGSTEP_INLINE void largest_residuals(const StepArrays& a, const ConstraintBatch& c, T* most) {
  constexpr int W = kWidth<T>;
  with_sides<T>(c, [&](const auto& body, const auto&) {
    const auto t1 = body(a.twist, 6, 0), t2 = body(a.twist, 6, 1), m1 = body(a.motion, 6, 0), m2 = body(a.motion, 6, 1);
    const V3<T> w1 = three(t1, 3), w2 = three(t2, 3), al1 = three(m1, 3), al2 = three(m2, 3);
    const PointSides<C, T> at = load_sides<C, T>(a.constraint_fields + kConstraintFields * c.position);
    const V3<T> v = add_cross(three(t1, 0), w1, at.s_first) - add_cross(three(t2, 0), w2, at.s_second);
    const double *Phi = a.Phi + c.row_position, *quadratic = a.quadratic + c.row_position;
    const V3<T> acc =
        (add_cross(three(m1, 0), al1, at.s_first) - add_cross(three(m2, 0), al2, at.s_second)) + load3<T>(quadratic);
    const V3<T> gap = load3<T>(Phi);
    const auto most_of = [](V3<T> x) { return larger(magnitude(x.x), larger(magnitude(x.y), magnitude(x.z))); };
    T found[3] = {most_of(gap), most_of(v), most_of(acc)};
#pragma GCC unroll 3
    for (int k = 0; k < C; ++k) {
      const V3<T> n = at.normal(k);
      found[0] = larger(magnitude(load<T>(Phi + (3 + k) * W)), found[0]);
      found[1] = larger(magnitude(dot(n, w1 - w2)), found[1]);
      found[2] = larger(magnitude(dot(n, al1 - al2) + load<T>(quadratic + (3 + k) * W)), found[2]);
    }
    const T real = load<T>(a.gain + c.row_position);  // 0: only fills a lane
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k) most[k] = larger(where_positive(real, found[k], T(0.0)), most[k]);
  });
}

Residuals residuals(const StepArrays& a) {
  double most[3] = {0.0, 0.0, 0.0};
  Lanes4 wide[3] = {0.0, 0.0, 0.0};
  for_point_constraints(a, [&]<int C, class T>(const ConstraintBatch& c) {
    if constexpr (kWidth<T> == 1)
      largest_residuals<C, T>(a, c, most);
    else
      largest_residuals<C, T>(a, c, wide);
  });
  const auto all = [&](int k) { return larger(largest_lane(wide[k]), most[k]); };
  return {all(0), all(1), all(2)};
}

}  // namespace

extern const Kernels kKernels;
const Kernels kKernels{
    RIGSTEP_ISA_NAME,   predict,  place,  constrain,        factorise,       free_motion,         assemble,
    disassemble,        close,    update, start_velocities, keep_velocities, start_accelerations, add_kappa,
    keep_accelerations, residuals};

}  // namespace rigstep::index3::RIGSTEP_ISA
