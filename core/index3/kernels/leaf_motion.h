// The motion of the bodies of a run: without further joint loads, (27) (45) (60); with them, (24) (25) (43) (44) (58)
// (59).
#pragma once

#include "core/index3/kernels/leaf_compliance.h"
#include "core/index3/kernels/midpoint.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

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

// keeps a body's motion without further joint loads and passes it on to the elimination
template <int C, class T>
RIGSTEP_INLINE void start_motion(const StepArrays& a, const Leaf& leaf, const BodyArrays<T>& b, const Motion<T>& m) {
  store3(b.motion, m.v), store3(b.motion + 3 * kWidth<T>, m.w);
  project_motion<C>(a, leaf, m);
}

// g of (12) (13) on every body, J'lambda included, and the free motion -(dt^2/4) M^-1 g that it causes, (27)
void free_motion(const StepArrays& a, const Run& run) {
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    const Quaternion<T> p = load_quaternion<T>(b.next + kP * W),
                        minus_2_pd_hat = load_quaternion<T>(b.history + kMinus2PdHat * W);
    const V3<T> w = G(minus_2_pd_hat, p), al = G(load_quaternion<T>(b.history + kMinus2PddHat * W), p);
    const S3<T> J = load_symmetric<T>(b.constants + 2 * W);
    const V3<T> momentum = J * w;
    V3<T> torque_b;
    if (a.step.to_middle) {  // midpoint.h
      torque_b = add_cross(J * fnma(T(a.step.two_over_dt), load3<T>(b.last + kOmega * W), al), w, momentum);
    } else {
      // p . pd need not be 0 before convergence; with this term the residual equals that of the seven coordinates
      const T twice_p_dot_pd = T(a.step.four_over_dt) - fma(p.w, minus_2_pd_hat.w, dot(p.e, minus_2_pd_hat.e));
      torque_b = fma(twice_p_dot_pd, momentum, add_cross(J * al, w, momentum));
    }
    Load<T> g{load<T>(b.constants + W) * acceleration(b, a.step) - load3<T>(b.load),
              load33<T>(b.rotation) * torque_b - load3<T>(b.load + 3 * W)};
    for_handles<C, T>(a, leaf, [&]<int D>(const auto& handle) RIGSTEP_INLINED { g = g + load_of<D>(handle); });
    with_inverse_mass(a, leaf, b, [&](const auto& inverse) RIGSTEP_INLINED {
      start_motion<C>(a, leaf, b, inverse(T(-a.step.quarter_dt2) * g.force, T(-a.step.quarter_dt2) * g.torque));
    });
  });
}

void keep_motion(const StepArrays& a, const Run& run) {
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    project_motion<C>(a, leaf, Motion<T>{load3<T>(b.motion), load3<T>(b.motion + 3 * kWidth<T>)});
  });
}

void start_at_rest(const StepArrays& a, const Run& run) {
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    for (int k = 0; k < 6; ++k) store(b.motion + k * W, T(0.0));
    for (int k = 0; k < leaf.rows; ++k) store(a.arena + leaf.vector + k * W, T(0.0));
  });
}

// M^-1 Q; with the gyroscopic torque, of the velocities that the bodies have reached, (12) (13) without the joints
void start_with_loads(const StepArrays& a, const Run& run, bool gyroscopic) {
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    V3<T> torque = load3<T>(b.load + 3 * W);
    if (gyroscopic) {
      const V3<T> w = load3<T>(b.next + kOmega * W);
      torque = torque - load33<T>(b.rotation) * cross(w, load_symmetric<T>(b.constants + 2 * W) * w);
    }
    with_inverse_mass(a, leaf, b, [&](const auto& inverse) RIGSTEP_INLINED {
      start_motion<C>(a, leaf, b, inverse(load3<T>(b.load), torque));
    });
  });
}

// Whatever moves, a primal body's motion is among the unknowns: an attachment has nothing on the right-hand side.
void clear_attachments(const StepArrays& a, const Run& run) {
  for (const Attachment* g = a.attachment + run.first; g < a.attachment + run.first + run.count; ++g)
    for (int k = 0; k < (a.handle[g->handle].format.rows + 6) * g->width; ++k) a.arena[g->vector + k] = 0.0;
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

// motion of a body with the joints' further loads: motion - M^-1 J' Lambda; that of a primal body is found by the
// elimination
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

// Of the bodies of a run.
struct LargestMove {
  LaneByLane squared, half_turn_squared;

  template <class T>
  RIGSTEP_INLINE void add(V3<T> displacement, V3<T> half_turn) {
    store(squared.value, larger(dot(displacement, displacement), load<T>(squared.value)));
    store(half_turn_squared.value, larger(dot(half_turn, half_turn), load<T>(half_turn_squared.value)));
  }
  void add_to(Increment& largest) const {
    largest.displacement = larger(square_root(squared.largest()), largest.displacement);
    largest.rotation = larger(2.0 * square_root(half_turn_squared.largest()), largest.rotation);
  }
};

// (24) (25): closes the joints and moves the bodies
void update(const StepArrays& a, const Run& run, bool is_last, Increment& largest) {
  LargestMove moved;
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
    moved.add(m.v, half);
  });
  moved.add_to(largest);
}

void start_velocities(const StepArrays& a, const Run& run) {  // (45)
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    const V3<T> w = G_world(load_quaternion<T>(b.history + kMinus2PdHat * W), load_quaternion<T>(b.next + kP * W));
    keep_low_part(b, a.step);
    start_motion<C>(a, leaf, b, Motion<T>{velocity(b, a.step), w});
  });
}

void close_velocities(const StepArrays& a, const Run& run) {  // (43) (44)
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    const Motion<T> m = closed_motion<C>(a, leaf, b);
    store3(b.twist, m.v), store3(b.twist + 3 * W, m.w);
    store3(b.next + kV * W, m.v), store3(b.next + kOmega * W, transposed_times(load33<T>(b.rotation), m.w));
  });
}

void start_accelerations(const StepArrays& a, const Run& run) {  // (60)
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    const V3<T> al = G_world(load_quaternion<T>(b.history + kMinus2PddHat * W), load_quaternion<T>(b.next + kP * W));
    start_motion<C>(a, leaf, b, Motion<T>{acceleration(b, a.step), al});
  });
}

// says whether they are finite
bool close_accelerations(const StepArrays& a, const Run& run) {  // (58) (59)
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

// The motion that restores the joints, from rest, moves the bodies.
void correct_poses(const StepArrays& a, const Run& run, Increment& largest) {
  LargestMove moved;
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    const Motion<T> m = closed_motion<C>(a, leaf, b);
    shift_body(b, m.v);
    const Quaternion<T> p = load_quaternion<T>(b.next + kP * W);
    const V3<T> half = T(0.5) * m.w;
    turn_body<T>(b, {p.w - dot(half, p.e), p.e + add_cross(p.w * half, half, p.e)});
    moved.add(m.v, half);
  });
  moved.add_to(largest);
}

void correct_velocities(const StepArrays& a, const Run& run) {
  for_leaves(a, run, [&]<class T, int C>(const Leaf& leaf, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    const Motion<T> m = closed_motion<C>(a, leaf, b);
    store3(b.next + kV * W, load3<T>(b.next + kV * W) + m.v);
    store3(b.next + kOmega * W, load3<T>(b.next + kOmega * W) + transposed_times(load33<T>(b.rotation), m.w));
  });
}

void take_over_velocities(const StepArrays& a, const Run& run) {
  for_leaves(a, run, [&]<class T, int C>(const Leaf&, const BodyArrays<T>& b) RIGSTEP_INLINED {
    constexpr int W = kWidth<T>;
    store3(b.twist, load3<T>(b.next + kV * W));
    store3(b.twist + 3 * W, load33<T>(b.rotation) * load3<T>(b.next + kOmega * W));
  });
}

}  // namespace

}  // namespace rigstep::index3::RIGSTEP_ISA
