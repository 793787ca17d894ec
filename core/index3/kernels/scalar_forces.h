// Scalars along which force elements and inputs act, at the iterate, as many side by side as lanes hold: the own
// coordinates of revolute and prismatic joints, as physics/constraints.h has them for one, distances of points of
// springs and stops, as physics/elements/element.h has them; and what acts along them. Called in the loop.
#pragma once

#include "core/index3/kernels/actions.h"
#include "core/index3/kernels/body_at_iterate.h"
#include "core/index3/kernels/joint_angle.h"
#include "core/index3/kernels/runs.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

// A scalar, and what a unit effort along it does: the force on the second body, the torques on both; the first has the
// opposite of the former two.
template <class T>
struct MeasuredScalar {
  T value, rate;
  V3<T> force, torque_first, torque_second;
  V3<T> arm_first, arm_second;  // of points

  RIGSTEP_INLINE void find_rate(const BodyAtIterate<T>& first, const BodyAtIterate<T>& second) {
    rate = dot(force, second.v - first.v) + (dot(torque_second, second.w) - dot(torque_first, first.w));
  }
};

template <class T>
RIGSTEP_INLINE MeasuredScalar<T> own_coordinate(bool is_angle, const double* constants, const BodyAtIterate<T>& first,
                                                const BodyAtIterate<T>& second) {
  const PointSides<kAngleRow, T> at = turned_sides<kAngleRow, T>(constants, first.A, second.A);
  MeasuredScalar<T> x;
  if (is_angle) {
    const JointAngle<T> angle = joint_angle(at);
    x.value = value_of_angle(at, angle);
    x.force = {T(0.0), T(0.0), T(0.0)}, x.torque_first = x.torque_second = angle.direction;
  } else {
    const V3<T> gap = (first.r - second.r) + (at.s_first - at.s_second);
    x.force = cross(at.u[0], at.u[1]), x.value = -dot(x.force, gap);
    x.torque_first = cross(at.s_first - gap, x.force), x.torque_second = cross(at.s_second, x.force);
  }
  x.arm_first = at.s_first, x.arm_second = at.s_second;
  return x;
}

template <class T>
RIGSTEP_INLINE MeasuredScalar<T> distance(bool has_direction, const double* constants, const BodyAtIterate<T>& first,
                                          const BodyAtIterate<T>& second) {
  constexpr int W = kWidth<T>;
  MeasuredScalar<T> x;
  x.arm_first = first.A * load3<T>(constants), x.arm_second = second.A * load3<T>(constants + 3 * W);
  const V3<T> d = (second.r + x.arm_second) - (first.r + x.arm_first);
  if (has_direction) {
    x.force = load3<T>(constants + 6 * W), x.value = dot(x.force, d);
  } else {
    x.value = square_root(dot(d, d));
    x.force = where_positive(x.value, T(1.0) / x.value, T(0.0)) * d;
  }
  x.torque_first = cross(x.arm_first, x.force), x.torque_second = cross(x.arm_second, x.force);
  return x;
}

RIGSTEP_INLINE bool is_of_joint(const ScalarBatch& batch) {
  return batch.of == ScalarBatch::Of::angle || batch.of == ScalarBatch::Of::displacement;
}

template <class T>
RIGSTEP_INLINE MeasuredScalar<T> measure(const StepArrays& a, const ScalarBatch& batch, const double* constants,
                                         bool at_end) {
  using Of = ScalarBatch::Of;
  const BodyAtIterate<T> first = body_at_iterate<T>(a, batch.first, at_end);
  const BodyAtIterate<T> second = body_at_iterate<T>(a, batch.second, at_end);
  MeasuredScalar<T> x = is_of_joint(batch) ? own_coordinate(batch.of == Of::angle, constants, first, second)
                                           : distance(batch.of == Of::projection, constants, first, second);
  x.find_rate(first, second);
  return x;
}

// A characteristic (core/mechanism/characteristic.h) without branches: of the pieces that have begun the last one
// counts.
template <class T>
RIGSTEP_INLINE TableValue<T> look_up(const double* table, int pieces, T at) {
  constexpr int W = kWidth<T>;
  struct Piece {
    T begin, value, slope;
  };
  const auto piece = [&](int k) RIGSTEP_INLINED {
    const double* const p = table + (1 + kTablePiece * k) * W;
    return Piece{load<T>(p), load<T>(p + W), load<T>(p + 2 * W)};
  };
  const auto enter = [](Piece& in, const Piece& next, T x) RIGSTEP_INLINED {
    const T ahead = next.begin - x;
    in = {where_positive(ahead, in.begin, next.begin), where_positive(ahead, in.value, next.value),
          where_positive(ahead, in.slope, next.slope)};
  };
  const T near = load<T>(table);
  Piece here = piece(0), left = here, right = here;
  for (int k = 1; k < pieces; ++k) {
    const Piece next = piece(k);
    enter(here, next, at), enter(left, next, at - near), enter(right, next, at + near);
  }
  const T share = smaller(larger(T(0.5) + T(0.5) * (at - right.begin) / near, T(0.0)), T(1.0));
  return {here.value + here.slope * (at - here.begin), left.slope + share * (right.slope - left.slope)};
}

// numbers: kLawNumbers of each lane
template <class T>
RIGSTEP_INLINE EffortAlong<T> effort_of(const LawBatch& law, const double* tables, const double* numbers, T x, T v) {
  const auto number = [&](int k) RIGSTEP_INLINED { return load<T>(numbers + k * kWidth<T>); };
  const auto characteristic = [&](int k, T at) RIGSTEP_INLINED {
    if (law.table[k] < 0) return TableValue<T>{T(0.0), T(0.0)};
    return look_up(tables + law.table[k], law.pieces[k], at);
  };
  switch (law.law) {
    case Law::spring: {
      const SpringNumbers<T> spring{number(0), number(1), number(2), number(3)};
      const T deflection = x - spring.rest;
      return spring_law(spring, deflection, v, characteristic(0, deflection), characteristic(1, v));
    }
    case Law::friction:
      return friction_law(FrictionNumbers<T>{number(0), number(1), number(2)}, v);
    case Law::motor:
      break;
  }
  return motor_law(MotorNumbers<T>{number(0), number(1), number(2), number(3), number(4), number(5), number(6)}, x, v);
}

// What resists at a point of a body: an effort along its direction, with what it adds to the tangent, and across it
// what pulls, like a string.
template <class T>
RIGSTEP_INLINE OwnBlock<T> block_of_point(T along, T across, V3<T> arm, const Load<T>& direction) {
  OwnBlock<T> block = OwnBlock<T>::of_point(across, arm);
  block.add(along - across, direction);
  return block;
}

// effort: of all along the scalar
template <class T>
RIGSTEP_INLINE void store_actions(const MeasuredScalar<T>& x, const EffortAlong<T>& effort, const ScalarBatch& batch,
                                  const double* constants, const TangentFactors* factors, double* to) {
  constexpr int W = kWidth<T>;
  const Load<T> first{-x.force, -x.torque_first}, second{x.force, x.torque_second};
  double* const on_second = to + kActionNumbers * W;
  store_load(to, effort.effort * first), store_load(on_second, effort.effort * second);
  if (factors == nullptr || is_of_joint(batch)) return;
  const T stiffness(factors->stiffness), none(0.0);
  const T along =
      load<T>(constants + kIsOnGround * W) * fma(stiffness, effort.stiffness, T(factors->damping) * effort.damping);
  T across = none;
  if (batch.of == ScalarBatch::Of::distance)
    across = where_positive(-effort.effort, where_positive(x.value, stiffness * -effort.effort / x.value, none), none);
  block_of_point(along, across, x.arm_first, first).store_behind_load(to);
  block_of_point(along, across, x.arm_second, second).store_behind_load(on_second);
}

template <class T>
RIGSTEP_LOOP void evaluate_batches(const StepArrays& a, const ScalarTables& all) {
  constexpr int W = kWidth<T>;
  using Of = ScalarTables::Of;
  for (int k = 0; k < all.batches; ++k) {
    const ScalarBatch& batch = all.batch[k];
    if (all.of != Of::iterate && is_of_joint(batch) != (all.of == Of::joints_at_end)) continue;
    const double* const held = all.held + kHeldNumbers * W * k;
    const double* const constants = all.constants + kScalarConstants * W * k;
    MeasuredScalar<T> x = measure<T>(a, batch, constants, all.of != Of::iterate);
    x.value = x.value + load<T>(held);
    if (batch.of == ScalarBatch::Of::angle) x.value = unwrapped(x.value, load<T>(held + W));
    EffortAlong<T> sum{load<T>(held + 2 * W), T(0.0), T(0.0)};
    const int laws = all.of == Of::joints_at_end ? 0 : batch.laws;  // for its coordinate alone
    for (int law = batch.first_law; law < batch.first_law + laws; ++law)
      sum = sum + effort_of(all.law[law], all.tables, all.law_numbers + kLawNumbers * W * law, x.value, x.rate);
    double* const to = all.found + kScalarNumbers * W * k;
    store(to, x.value), store(to + W, x.rate);
    store3(to + 2 * W, x.force), store3(to + 5 * W, x.torque_first), store3(to + 8 * W, x.torque_second);
    store3(to + kEffortAlong * W, V3<T>{sum.effort, sum.stiffness, sum.damping});
    store3(to + kArmsOfPoints * W, x.arm_first), store3(to + (kArmsOfPoints + 3) * W, x.arm_second);
    if (all.of == Of::iterate) store_actions(x, sum, batch, constants, all.factors, to + kActionsOfScalar * W);
  }
}

void evaluate_scalars(const StepArrays& a, const ScalarTables& all) {
  if (all.lanes == 1) return evaluate_batches<double>(a, all);
  with_lanes_of_forces(all.lanes, [&]<class T>() { evaluate_batches<T>(a, all); });
}

}  // namespace

}  // namespace rigstep::index3::RIGSTEP_ISA
