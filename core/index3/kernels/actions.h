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
    const V3<T> s = factor * arm;
    OwnBlock block = none();
    each<3>([&](int k) RIGSTEP_INLINED { block.at(k, k) = factor; });
    block.at(3, 1) = -s.z, block.at(3, 2) = s.y, block.at(4, 2) = -s.x;
    block.at(4, 0) = s.z, block.at(5, 0) = -s.y, block.at(5, 1) = s.x;
    block.at(3, 3) = fma(s.y, arm.y, s.z * arm.z), block.at(4, 4) = fma(s.x, arm.x, s.z * arm.z);
    block.at(5, 5) = fma(s.x, arm.x, s.y * arm.y);
    block.at(4, 3) = -(s.x * arm.y), block.at(5, 3) = -(s.x * arm.z), block.at(5, 4) = -(s.y * arm.z);
    return block;
  }
  RIGSTEP_INLINE T& at(int row, int column) { return number[packed(row) + column]; }
  // + factor g g'
  RIGSTEP_INLINE void add(T factor, const Load<T>& g) {
    const T x[6] = {g.force.x, g.force.y, g.force.z, g.torque.x, g.torque.y, g.torque.z};
    each<6>([&](int row) RIGSTEP_INLINED {
      const T scaled = factor * x[row];
      for (int k = 0; k <= row; ++k) at(row, k) = fma(scaled, x[k], at(row, k));
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

// Whether a body's block has changed by more than kSteady; constants: of its record.
template <class T>
RIGSTEP_INLINE bool differs(const OwnBlock<T>& now, const double* before, const double* constants) {
  constexpr int W = kWidth<T>;
  const double* const scales = constants + (kTangentScalesField - kConstantsField) * W;
  const T of_displacements = load<T>(constants), between = load<T>(scales), of_rotations = load<T>(scales + W);
  T change(0.0), largest(1.0);
  each<6>([&](int row) RIGSTEP_INLINED {
    for (int column = 0; column <= row; ++column) {
      const int k = packed(row) + column;
      const T scale = row < 3 ? of_displacements : column < 3 ? between : of_rotations;
      change = larger(magnitude(now.number[k] - load<T>(before + k * W)) * scale, change);
      largest = larger(magnitude(now.number[k]) * scale, largest);
    }
  });
  return !all_positive(T(kSteady) * largest - change);
}

// Says whether they have changed, where they are compared.
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
