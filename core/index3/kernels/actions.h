// What force elements do to bodies, their actions (physics/laws.h): how kernels make them, and their sums in the lanes
// of the leaves. Called in the loop.
#pragma once

#include "core/index3/kernels/body.h"
#include "core/index3/kernels/factorisation.h"
#include "core/index3/kernels/operands.h"
#include "core/index3/kernels/runs.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

// Of a force with this arm about the mass centre.
template <class T>
RIGSTEP_INLINE Load<T> load_at(V3<T> force, V3<T> arm) {
  return {force, cross(arm, force)};
}
template <class T>
RIGSTEP_INLINE void store_load(double* to, const Load<T>& load) {
  store3(to, load.force), store3(to + 3 * kWidth<T>, load.torque);
}

// An own-body block of the tangent, packed lower half by rows.
template <class T>
struct OwnBlock {
  T number[packed(6)];

  static RIGSTEP_INLINE OwnBlock none() {
    OwnBlock block;
    each<packed(6)>([&](int k) RIGSTEP_INLINED { block.number[k] = T(0.0); });
    return block;
  }
  // factor J'J, J = (E, -skew(arm)) the Jacobian of a point
  static RIGSTEP_INLINE OwnBlock of_point(T factor, V3<T> arm) {
    const T none(0.0), x = factor * arm.x, y = factor * arm.y, z = factor * arm.z;
    return {{factor,  //
             none,
             factor,  //
             none,
             none,
             factor,  //
             none,
             -z,
             y,
             fma(y, arm.y, z * arm.z),  //
             z,
             none,
             -x,
             -(x * arm.y),
             fma(x, arm.x, z * arm.z),  //
             -y,
             x,
             none,
             -(x * arm.z),
             -(y * arm.z),
             fma(x, arm.x, y * arm.y)}};
  }
  // + factor g g'
  RIGSTEP_INLINE void add(T factor, const Load<T>& g) {
    const T x[6] = {g.force.x, g.force.y, g.force.z, g.torque.x, g.torque.y, g.torque.z};
    each<6>([&](int row) RIGSTEP_INLINED {
      const T scaled = factor * x[row];
      for (int k = 0; k <= row; ++k) number[packed(row) + k] = fma(scaled, x[k], number[packed(row) + k]);
    });
  }
  RIGSTEP_INLINE void store_behind_load(double* action) const {
    each<packed(6)>([&](int k) RIGSTEP_INLINED { store(action + (kLoadNumbers + k) * kWidth<T>, number[k]); });
  }
};

// Numbers `first` ... first + N - 1 of the actions on the bodies of a leaf, added.
template <int N, class T>
RIGSTEP_INLINE void add_action(const ActionTables& all, const LanePlaces& from, int first, T* sum) {
  const auto add = [sum](const auto& number)
                       RIGSTEP_INLINED { each<N>([&](int k) RIGSTEP_INLINED { sum[k] = sum[k] + number(k); }); };
  if constexpr (kWidth<T> != 1) {
    if (from.pattern == LanePlaces::Pattern::scattered) {
      alignas(T) double numbers[N * kWidth<T>];
      gather<T>(all.numbers, from, first, N, numbers);
      return add(InOrder<T>{numbers});
    }
  }
  const auto [base, stride] = from.of_lane[0];
  add(BesideOrUniform<T>{all.numbers + base + first * stride, stride, from.pattern == LanePlaces::Pattern::uniform});
}

template <class T>
RIGSTEP_INLINE void sum_loads(const StepArrays& a, const ActionTables& all, const Leaf& leaf, const Action* action,
                              const Action* end) {
  constexpr int W = kWidth<T>;
  double* const record = a.body + leaf.record;
  const T mass = load<T>(record + (kConstantsField + 1) * W), none(0.0);
  T sum[kLoadNumbers] = {
      mass * T(all.gravity[0]), mass * T(all.gravity[1]), mass * T(all.gravity[2]), none, none, none};
  for (; action < end; ++action) add_action<kLoadNumbers>(all, action->from, 0, sum);
  each<kLoadNumbers>([&](int k) RIGSTEP_INLINED { store(record + (kLoadField + k) * W, sum[k]); });
}

// What makes rows and columns of a body's tangent those of unit inertia at most: 1 / mass for displacements, the trace
// of its inverse inertia for rotations, whatever its axes, and the root of their product in between.
template <class T>
struct InverseInertia {
  T of_mass, between, of_inertia;
  RIGSTEP_INLINE explicit InverseInertia(const double* constants) {
    const S3<T> J = load_symmetric<T>(constants + 2 * kWidth<T>);
    const T xy = fnma(J.yx, J.yx, J.xx * J.yy), xz = fnma(J.zx, J.zx, J.xx * J.zz), yz = fnma(J.zy, J.zy, J.yy * J.zz);
    const T determinant = fma(J.xx, yz, fma(J.yx, fnma(J.yx, J.zz, J.zx * J.zy), J.zx * fnma(J.zx, J.yy, J.yx * J.zy)));
    of_mass = load<T>(constants), of_inertia = ((xy + xz) + yz) / determinant,
    between = square_root(of_mass * of_inertia);
  }
  RIGSTEP_INLINE const T& of(int row, int column) const {
    return row < 3 ? of_mass : column < 3 ? between : of_inertia;
  }
};

template <class T>
RIGSTEP_INLINE bool differs(const OwnBlock<T>& now, const double* before, const double* constants) {
  const InverseInertia<T> scale(constants);
  T change(0.0), largest(1.0);
  each<6>([&](int row) RIGSTEP_INLINED {
    for (int column = 0; column <= row; ++column) {
      const int k = packed(row) + column;
      const T one = scale.of(row, column);
      change = larger(magnitude(now.number[k] - load<T>(before + k * kWidth<T>)) * one, change);
      largest = larger(magnitude(now.number[k]) * one, largest);
    }
  });
  return !all_positive(T(kSteady) * largest - change);
}

// says whether they have changed, where it is asked for
template <class T>
RIGSTEP_INLINE bool sum_tangents(const StepArrays& a, const ActionTables& all, const Leaf& leaf, const Action* action,
                                 const Action* end) {
  constexpr int W = kWidth<T>;
  OwnBlock<T> sum = OwnBlock<T>::none();
  for (; action < end; ++action)
    if (action->has_tangent) add_action<packed(6)>(all, action->from, kLoadNumbers, sum.number);
  double* const tangent = a.tangent + leaf.dense;
  const bool has_changed = all.blocks == ActionTables::OwnBlocks::compared &&
                           differs(sum, tangent, a.body + leaf.record + kConstantsField * W);
  each<packed(6)>([&](int k) RIGSTEP_INLINED { store(tangent + k * W, sum.number[k]); });
  return has_changed;
}

template <class T>
RIGSTEP_LOOP bool sum_actions(const StepArrays& a, const ActionTables& all, const LoadedLeaf& loaded) {
  const Leaf& leaf = a.leaf[loaded.leaf];
  const Action *const first = all.action + loaded.first_action, *const end = first + loaded.actions;
  sum_loads<T>(a, all, leaf, first, end);
  return all.blocks != ActionTables::OwnBlocks::kept && leaf.dense >= 0 && sum_tangents<T>(a, all, leaf, first, end);
}

bool sum_actions(const StepArrays& a, const ActionTables& all) {
  bool has_changed = false;
  for (const LoadedLeaf *loaded = all.leaf, *end = loaded + all.leaves; loaded < end; ++loaded)
    with_width(a.leaf[loaded->leaf].width,
               [&]<class T>() RIGSTEP_INLINED { has_changed = sum_actions<T>(a, all, *loaded) || has_changed; });
  return has_changed;
}

}  // namespace

}  // namespace rigstep::index3::RIGSTEP_ISA
