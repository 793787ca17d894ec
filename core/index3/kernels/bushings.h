// Bushings and drags at the iterate, as many side by side as lanes hold: the same as physics/elements/bushing.h and
// drag.h have for one. Called in the loop.
#pragma once

#include "core/index3/kernels/actions.h"
#include "core/index3/kernels/body_at_iterate.h"
#include "core/index3/kernels/runs.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

// The axes of a frame, of which x and y are given in its body.
template <class T>
struct Axes {
  V3<T> of[3];
};
template <class T>
RIGSTEP_INLINE Axes<T> axes_of(const BodyAtIterate<T>& body, const double* x_and_y) {
  const V3<T> x = body.A * load3<T>(x_and_y), y = body.A * load3<T>(x_and_y + 3 * kWidth<T>);
  return {{x, y, cross(x, y)}};
}

// K x + C xd, about the second point: the second body takes the opposite
template <class T>
RIGSTEP_INLINE Load<T> opposing_load(const double* numbers, const T* deflection, const T* rate, const Axes<T>& axes,
                                     const V3<T>* turning) {
  V3<T> force{T(0.0), T(0.0), T(0.0)}, torque = force;
  each<6>([&](int k) RIGSTEP_INLINED {
    T opposing(0.0);
    each<6>([&](int j) RIGSTEP_INLINED {
      const double* const of_matrices = numbers + (6 * k + j) * kWidth<T>;
      opposing = fma(load<T>(of_matrices + kStiffnessOfBushing * kWidth<T>), deflection[j],
                     fma(load<T>(of_matrices + kDampingOfBushing * kWidth<T>), rate[j], opposing));
    });
    k < 3 ? force = fma(opposing, axes.of[k % 3], force) : torque = fma(opposing, turning[k % 3], torque);
  });
  return {force, torque};
}

template <class T>
RIGSTEP_LOOP void evaluate_bushings(const StepArrays& a, const ElementTables& all) {
  constexpr int W = kWidth<T>;
  for_elements<T, kBushingNumbers, kBushingFound>(
      all, [&](const ElementBatch& bushing, const double* p, double* to) RIGSTEP_INLINED {
        const BodyAtIterate<T> first = body_at_iterate<T>(a, bushing.first, all.at_end);
        const BodyAtIterate<T> second = body_at_iterate<T>(a, bushing.second, all.at_end);
        const double* const p_second = p + kSecondFrameOfBushing * W;
        const V3<T> s_first = first.A * load3<T>(p), s_second = second.A * load3<T>(p_second);
        const Axes<T> x = axes_of(first, p + 3 * W), y = axes_of(second, p_second + 3 * W);
        const V3<T> gap = (second.r - first.r) + (s_second - s_first), arm = s_first + gap;
        const V3<T> velocity = add_cross(second.v, second.w, s_second) - add_cross(first.v, first.w, arm);
        V3<T> turn{T(0.0), T(0.0), T(0.0)};
        T trace(0.0);
        each<3>([&](int k)
                    RIGSTEP_INLINED { turn = turn + cross(x.of[k], y.of[k]), trace = trace + dot(x.of[k], y.of[k]); });
        V3<T> turning[3];
        T deflection[6], rate[6];
        each<3>([&](int k) RIGSTEP_INLINED {
          V3<T> twice = trace * x.of[k];
          each<3>([&](int j) RIGSTEP_INLINED { twice = fma(-dot(y.of[j], x.of[k]), x.of[j], twice); });
          turning[k] = T(0.5) * twice;
          deflection[k] = dot(x.of[k], gap), deflection[3 + k] = T(0.5) * dot(x.of[k], turn);
          rate[k] = dot(x.of[k], velocity), rate[3 + k] = dot(turning[k], second.w - first.w);
          store3(to + (kAxesOfBushing + 3 * k) * W, x.of[k]), store3(to + (kTurningOfBushing + 3 * k) * W, turning[k]);
        });
        each<6>([&](int k) RIGSTEP_INLINED {
          store(to + k * W, deflection[k]), store(to + (kRateOfBushing + k) * W, rate[k]);
        });
        store3(to + kArmsOfBushing * W, arm), store3(to + (kArmsOfBushing + 3) * W, s_second);
        if (all.at_end) return;
        const Load<T> opposing = opposing_load(p, deflection, rate, x, turning);
        const V3<T> force = opposing.force, torque = opposing.torque;
        double* const actions = to + kActionsOfBushing * W;
        store_load(actions, Load<T>{force, add_cross(torque, arm, force)});
        store_load(actions + kLoadNumbers * W, Load<T>{-force, -add_cross(torque, s_second, force)});
      });
}

template <class T>
RIGSTEP_LOOP void evaluate_drags(const StepArrays& a, const ElementTables& all) {
  constexpr int W = kWidth<T>;
  for_elements<T, kDragNumbers, kDragFound>(
      all, [&](const ElementBatch& drag, const double* p, double* to) RIGSTEP_INLINED {
        const BodyAtIterate<T> body = body_at_iterate<T>(a, drag.first, all.at_end);
        const V3<T> arm = body.A * load3<T>(p);
        const V3<T> u = add_cross(body.v, body.w, arm) - load3<T>(p + kWindOfDrag * W);
        store3(to, arm), store3(to + kVelocityOfDrag * W, u);
        if (all.at_end) return;
        const T speed = square_root(dot(u, u)), factor = load<T>(p + kFactorOfDrag * W);
        const Load<T> along = load_at(u, arm);
        double* const action = to + kActionOfDrag * W;
        store_load(action, -(factor * speed) * along);
        if (all.factors == nullptr) return;
        const T damping = T(all.factors->damping) * factor;
        OwnBlock<T> block = OwnBlock<T>::of_point(damping * speed, arm);
        block.add(where_positive(speed, damping / speed, T(0.0)), along);
        block.store_behind_load(action);
      });
}

void evaluate_bushings(const StepArrays& a, const ElementTables& all) {
  with_lanes_of_forces(all.lanes, [&]<class T>() { evaluate_bushings<T>(a, all); });
}
void evaluate_drags(const StepArrays& a, const ElementTables& all) {
  with_lanes_of_forces(all.lanes, [&]<class T>() { evaluate_drags<T>(a, all); });
}

}  // namespace

}  // namespace rigstep::index3::RIGSTEP_ISA
