// The compliance J M^-1 J' of the bodies of a run between all their constraints, [001] (26) projected onto the joints.
#pragma once

#include "core/index3/kernels/general_rows.h"
#include "core/index3/kernels/runs.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

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
        f.template operator()<RowFormat::kAnyRows>(numbers);
      else
        with_cosines(h->format.cosines, [&]<int D>() RIGSTEP_INLINED { f.template operator()<D>(numbers); });
    }
  }
}

// inverts the inertia, but leaves it as it is where it is to be inverted with the rest; returns the inertia
template <int C, class T>
RIGSTEP_INLINE S3<T> invert_inertia(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b, const Tangent& how) {
  constexpr int W = kWidth<T>;
  S3<T> I = load_symmetric<T>(b.constants + 2 * W);
  const M3<T> A = load33<T>(b.rotation);
  if (how.with_force_derivatives)
    I = inertia_tangent(I, A, load_quaternion<T>(b.next + kP * W), load_quaternion<T>(b.history + kMinus2PdHat * W),
                        load_quaternion<T>(b.history + kMinus2PddHat * W), a.step);
  else
    I = rotated(A, I);
  if (how.geometric != 0.0) {
    S3<T> K{T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0)};
    for_handles<C, T>(a, leaf, [&]<int D>(const auto& handle) RIGSTEP_INLINED { K = K + stiffness_of<D>(handle); });
    if (!leaf.is_isotropic) {
      V3<T> torque{T(0.0), T(0.0), T(0.0)};
      for_handles<C, T>(
          a, leaf, [&]<int D>(const auto& handle) RIGSTEP_INLINED { torque = torque + load_of<D>(handle).torque; });
      K = K + rotated(A, torque_stiffness(b, transposed_times(A, torque)));
    }
    I = index3::RIGSTEP_ISA::with_stiffness(I, K, T(0.5 * how.geometric));
  }
  if (leaf.dense < 0 || !how.with_force_derivatives) store_symmetric(b.inertia_inverse, inverse(I));
  return I;
}

// tangent mass matrix: mass, inertia I and force tangent together
template <class T>
void tangent_mass(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b, const S3<T>& I, bool with_tangent,
                  T* A) {
  constexpr int W = kWidth<T>;
  for (int k = 0; k < 21; ++k) A[k] = with_tangent ? load<T>(a.tangent + leaf.dense + k * W) : T(0.0);
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
  if (leaf.dense >= 0 && *a.has_forces != 0.0)
    f(SymmetricProduct<T>{a.mass_inverse + leaf.dense});
  else
    f(InverseMass<T>{load<T>(b.constants), load_symmetric<T>(b.inertia_inverse)});
}

template <class T, class Inverse>
RIGSTEP_INLINE int columns_of(const StepArrays& a, const Handle& h, const Inverse& inverse, Motion<T>* response) {
  if (h.format.general()) {
    const GeneralHandle<T> g(a.handles + h.at);
    for (int k = 0; k < h.format.rows; ++k) response[k] = inverse(g.force(k), g.torque(k));
  } else {
    with_cosines(h.format.cosines, [&]<int C>() { compliance_columns<C>(PointHandle<C, T>(a, h), inverse, response); });
  }
  return h.format.rows;
}

// block J_i M^-1 J_k' of two handles of a leaf into its packed compliance
template <class T>
RIGSTEP_INLINE void store_block(const StepArrays& a, const Handle& hi, const Handle& hk, const Motion<T>* response,
                                T sign, double* S) {
  constexpr int W = kWidth<T>;
  const bool diagonal = &hi == &hk;
  const int rows = hi.format.rows, columns = hk.format.rows;
  if (hi.format.general()) {
    const GeneralHandle<T> g(a.handles + hi.at);
    for (int k = 0; k < columns; ++k)
      for (int i = diagonal ? k : 0; i < rows; ++i)
        store(S + (packed(hi.row + i) + hk.row + k) * W,
              flipped(dot(g.force(i), response[k].v) + dot(g.torque(i), response[k].w), sign));
    return;
  }
  with_cosines(hi.format.cosines, [&]<int C>() {
    const PointHandle<C, T> p(a, hi);
    for (int k = 0; k < columns; ++k) {
      T column[3 + C];
      block_column<C>(p, response[k], column);
      for (int i = diagonal ? k : 0; i < 3 + C; ++i)
        store(S + (packed(hi.row + i) + hk.row + k) * W, flipped(column[i], sign));
    }
  });
}

// the same for a body between two constraints of one format
template <int C, class T, class Inverse>
RIGSTEP_INLINE void fill_two_points(const StepArrays& a, const Handle* h, const Inverse& inverse, double* S) {
  constexpr int W = kWidth<T>, N = 3 + C;
  const PointHandle<C, T> first(a, h[0]), second(a, h[1]);
  const T sign = flipped(signs_of<T>(a, h[0]), signs_of<T>(a, h[1]));
  Motion<T> response[N];
  T column[N];
  compliance_columns<C>(first, inverse, response);
  each<N>([&](int k) RIGSTEP_INLINED {
    block_column<C>(first, response[k], column);
#pragma GCC unroll 6
    for (int i = k; i < N; ++i) store(S + (packed(i) + k) * W, column[i]);
    block_column<C>(second, response[k], column);
    each<N>([&](int i) RIGSTEP_INLINED { store(S + (packed(N + i) + k) * W, flipped(column[i], sign)); });
  });
  compliance_columns<C>(second, inverse, response);
  each<N>([&](int k) RIGSTEP_INLINED {
    block_column<C>(second, response[k], column);
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
  Motion<T> J[kMaxRows];
  const int rows = columns_of(
      a, h,
      [](V3<T> force, V3<T> torque) {
        return Motion<T>{force, torque};
      },
      J);
  for (int k = 0; k < packed(rows + 6); ++k) store(S + k * W, T(0.0));
  const T minus = -signs_of<T>(a, h);
  for (int k = 0; k < rows; ++k) {
    const T column[] = {J[k].v.x, J[k].v.y, J[k].v.z, J[k].w.x, J[k].w.y, J[k].w.z};
    for (int i = 0; i < 6; ++i) store(S + (packed(rows + i) + k) * W, flipped(column[i], minus));
  }
}

// the inverse of a body's tangent mass matrix, of a primal body also the matrix itself
template <int C, class T>
RIGSTEP_INLINE void invert_leaf(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b, const Tangent& how) {
  const S3<T> I = invert_inertia<C>(a, leaf, b, how);
  const bool is_dense = leaf.dense >= 0 && how.with_force_derivatives;
  if (!is_dense && !leaf.is_primal) return;
  T M[packed(6)];
  tangent_mass(a, leaf, b, I, is_dense, M);
  if (leaf.is_primal) fill_primal_body(a, leaf, M);
  if (is_dense) invert_mass(a, leaf, M);
}

// (26) projected: the compliance J M^-1 J' of a body between all its joints
template <int C, class T>
RIGSTEP_INLINE void fill_leaf(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b) {
  if (leaf.is_primal) return;
  double* S = a.arena + leaf.matrix;
  with_inverse_mass(a, leaf, b, [&](const auto& inverse) RIGSTEP_INLINED {
    const Handle* h = a.handle + leaf.first_handle;
    if constexpr (C != kAnyLeaf) {
      fill_two_points<C, T>(a, h, inverse, S);
    } else {
      for (int k = 0; k < leaf.handles; ++k) {
        Motion<T> response[kMaxRows];
        columns_of(a, h[k], inverse, response);
        for (int i = k; i < leaf.handles; ++i)
          store_block(a, h[i], h[k], response, flipped(signs_of<T>(a, h[i]), signs_of<T>(a, h[k])), S);
      }
    }
  });
}

// In two rounds: each is a long chain of results that wait for each other, and processors look ahead only so far.
void fill_leaves(const StepArrays& a, const Run& run, const Tangent& how) {
  *a.has_forces = how.with_force_derivatives ? 1.0 : 0.0;
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

}  // namespace

}  // namespace rigstep::index3::RIGSTEP_ISA
