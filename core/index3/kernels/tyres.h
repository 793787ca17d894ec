// Tyres at the iterate, as many side by side as lanes hold: the same as physics/elements/tyre.h has for one. Called in
// the loop.
#pragma once

#include "core/index3/kernels/actions.h"
#include "core/index3/kernels/body_at_iterate.h"
#include "core/index3/kernels/joint_angle.h"
#include "core/index3/kernels/runs.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

template <class T>
RIGSTEP_INLINE T power(const Load<T>& wrench, const BodyAtIterate<T>& body) {
  return dot(wrench.force, body.v) + dot(wrench.torque, body.w);
}

template <class T>
RIGSTEP_LOOP void evaluate_tyres(const StepArrays& a, const ElementTables& all) {
  constexpr int W = kWidth<T>;
  for_elements<T, kTyreNumbers, kTyreFound>(all, [&](const ElementBatch& tyre, const double* p,
                                                     double* to) RIGSTEP_INLINED {
    const auto number = [&](int k) RIGSTEP_INLINED { return load<T>(p + k * W); };
    const BodyAtIterate<T> wheel = body_at_iterate<T>(a, tyre.first, all.at_end);
    const V3<T> n = load3<T>(p + kRoadNormalOfTyre * W);
    const V3<T> axis = wheel.A * load3<T>(p), s_centre = wheel.A * load3<T>(p + kCentreOfTyre * W);
    const T zero(0.0), radius = number(kRadiusOfTyre), across = square_root(dot(cross(axis, n), cross(axis, n)));
    const T lies = T(kFlatWheel) - across, cosine = where_positive(lies, T(1.0), across);
    const T height = dot(wheel.r + s_centre - load3<T>(p + kRoadPointOfTyre * W), n) - number(kRoadHeightOfTyre);
    const T deflection = fma(radius, across, -height);
    // in the wheel's plane
    const V3<T> down = (T(1.0) / cosine) * fma(dot(axis, n), axis, -n);
    const V3<T> forward = (T(1.0) / cosine) * cross(axis, n), sideways = cross(n, forward);
    const V3<T> arm = fma(larger(zero, height / cosine), down, s_centre);
    const Load<T> normal = load_at(n, fma(radius, down, s_centre));
    const Load<T> along = load_at(forward, arm), beside = load_at(sideways, arm);
    const T vx = dot(add_cross(wheel.v, wheel.w, s_centre), forward), low = number(kLowSpeedOfTyre);
    const T speed = square_root(vx * vx + low * low);
    const RadialNumbers<T> radial{radius, number(kRadiusOfTyre + 1), number(kRadiusOfTyre + 2)};
    const auto curve = [&](int k) RIGSTEP_INLINED {
      return SlipCurveNumbers<T>{number(k), number(k + 1), number(k + 2), number(k + 3)};
    };
    const T load_on_road = radial_law(radial, deflection, number(kRoadHeightOfTyre + 1) - power(normal, wheel));
    const SlipForceOf<T> slip = slip_law(curve(kCurvesOfTyre), curve(kCurvesOfTyre + 4), load_on_road, speed,
                                         power(along, wheel), power(beside, wheel));
    // in the air, or lying, nothing; what is not a number stays so
    const auto touching = [&](T x) RIGSTEP_INLINED {
      return where_positive(-deflection, zero, where_positive(lies, zero, x));
    };
    const T f_n = touching(load_on_road), f_x = touching(slip.x), f_y = touching(slip.y);
    const T damping_x = touching(slip.damping_x), damping_y = touching(slip.damping_y);
    store(to, deflection), store(to + W, f_n);
    store(to + 2 * W, touching(slip.kappa)), store(to + 3 * W, touching(slip.tan_alpha));
    store(to + 4 * W, f_x), store(to + 5 * W, f_y);
    store(to + 6 * W, damping_x), store(to + 7 * W, damping_y);
    store(to + 8 * W, touching(T(1.0)));
    double* wrench = to + kWrenchesOfTyre * W;
    for (const Load<T>& each : {normal, along, beside}) store_load(wrench, each), wrench += 6 * W;
    if (all.at_end) return;
    double* const action = to + kActionOfTyre * W;
    store_load(action, fma(f_n, normal, fma(f_x, along, f_y * beside)));
    if (all.factors == nullptr) return;
    const T stiffness(all.factors->stiffness), damping(all.factors->damping);
    const T of_normal = fma(stiffness, radial.stiffness, damping * (radial.damping * damping_ramp(radial, deflection)));
    const auto pressed = [&](T x) RIGSTEP_INLINED { return where_positive(f_n, x, zero); };
    OwnBlock<T> block = OwnBlock<T>::none();
    block.add(pressed(of_normal), normal);
    block.add(pressed(damping * damping_x), along), block.add(pressed(damping * damping_y), beside);
    block.store_behind_load(action);
  });
}

void evaluate_tyres(const StepArrays& a, const ElementTables& all) {
  with_lanes_of_forces(all.lanes, [&]<class T>() { evaluate_tyres<T>(a, all); });
}

}  // namespace

}  // namespace rigstep::index3::RIGSTEP_ISA
