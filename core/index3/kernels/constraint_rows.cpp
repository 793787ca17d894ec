#include "core/index3/kernels/constraint_rows.h"

#include "core/index3/kernels/general_rows.h"
#include "core/index3/kernels/joint_angle.h"
#include "core/index3/kernels/runs.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

// The body and the handle of a side that lies scattered; one of a constraint's sides may lie lane after lane.
template <class T>
RIGSTEP_LOOP Gathered<T> scattered_field(const StepArrays& a, const Side& side, int field) {
  return gathered<T>(a.body, [&](int l) {
    const Place lane_after_lane{side.record.base + (side.is_uniform ? 0 : l), side.record.stride};
    const Place& at = side.scattered < 0 ? lane_after_lane : a.scattered_side[side.scattered].record[l];
    return Place{at.base + field * at.stride, at.stride};
  });
}
template <class T>
RIGSTEP_LOOP Gathered<T> scattered_handle(const StepArrays& a, const Side& side) {
  return gathered<T>(a.handles, [&](int l) {
    return side.scattered < 0 ? Place{side.handle.base + l, side.handle.stride}
                              : a.scattered_side[side.scattered].handle[l];
  });
}

// f(source of a field of either side's body, of its handle), by the way they lie
template <class T, class F>
RIGSTEP_INLINE void with_sides(const StepArrays& a, const ConstraintBatch& c, F&& f) {
  constexpr int W = kWidth<T>;
  const auto number = [&](int field, int side) RIGSTEP_INLINED {
    return a.body + (c.side[side].record.base + field * c.side[side].record.stride);
  };
  if (W == 1 || c.sides == Operands::beside)
    return f(
        [&](int field, int side) RIGSTEP_INLINED {
          return BesideOrUniform<T>{number(field, side), c.side[side].record.stride, c.side[side].is_uniform};
        },
        [&](int side) RIGSTEP_INLINED {
          return Beside<T>{a.handles + c.side[side].handle.base, c.side[side].handle.stride};
        });
  if (c.sides == Operands::in_order)
    return f([&](int field, int side)
                 RIGSTEP_INLINED { return InOrder<T>{a.body + (c.side[side].record.base + field * W)}; },
             [&](int side) RIGSTEP_INLINED { return InOrder<T>{a.handles + c.side[side].handle.base}; });
  if constexpr (W >= 4) {
    if (c.sides == Operands::chosen) {
      const auto choice = [&](int side)
                              RIGSTEP_INLINED -> const ChosenSide& { return a.chosen_side[c.side[side].chosen]; };
      return f([&](int field, int side)
                   RIGSTEP_INLINED { return Chosen<T>(a.body + field * W, choice(side).record, choice(side).body); },
               [&](int side) RIGSTEP_INLINED { return KeptHandles<T>(a.handles, choice(side)); });
    }
  }
  if constexpr (W > 1)
    f([&](int field, int side) RIGSTEP_INLINED { return scattered_field<T>(a, c.side[side], field); },
      [&](int side) RIGSTEP_INLINED { return scattered_handle<T>(a, c.side[side]); });
}

template <class T, class Bodies, class Sides>
RIGSTEP_INLINE V3<T> gap_of_points(const StepArrays& a, const Bodies& body, const Sides& at) {
  const V3<T> distance = three(body(a.next, 0), kR) - three(body(a.next, 1), kR);
  return distance + (at.s_first - at.s_second);
}

template <int C, class T>
RIGSTEP_INLINE void store_gaps(const StepArrays& a, const ConstraintBatch& c, V3<T> gap, const PointSides<C, T>& at) {
  constexpr int W = kWidth<T>;
  double* const Phi = a.Phi + c.row_position;
  store3(Phi, gap);
  each<kCosinesOf<C>>([&](int k)
                          RIGSTEP_INLINED { store(Phi + (3 + k) * W, dot(at.axis_first(k), at.axis_second(k))); });
  if constexpr (C == kAngleRow) store(Phi + 5 * W, gap_of_angle(a, c, at));
}

template <class T, class Bodies>
RIGSTEP_INLINE GeneralSides<T> sides_of_general(const StepArrays& a, const ConstraintBatch& c, const Bodies& body) {
  return general_sides<T>(a.constraint_constants + kConstraintConstants * c.position, a.next, body);
}

// both sides of a point constraint at the iterate
template <int C, class T, class Bodies>
RIGSTEP_INLINE PointSides<C, T> point_sides(const StepArrays& a, const ConstraintBatch& c, const Bodies& body) {
  return with_angle_row(a, c,
                        turned_sides<C, T>(a.constraint_constants + kConstraintConstants * c.position,
                                           nine(body(kRotationField, 0)), nine(body(kRotationField, 1))));
}

template <int C, class T>
RIGSTEP_INLINE void constrain_points(const StepArrays& a, const ConstraintBatch& c, const AssemblySweep& what) {
  constexpr int W = kWidth<T>, M = kMomentRows<C>;
  with_sides<T>(a, c, [&](const auto& body, const auto& handle) RIGSTEP_INLINED {
    const PointSides<C, T> at = point_sides<C, T>(a, c, body);
    if (what.keep_sides) store_sides<C>(a.constraint_fields + kConstraintFields * c.position, at);
    if (what.rows == AssemblySweep::Rows::all) store_gaps<C, T>(a, c, gap_of_points<T>(a, body, at), at);
    const double* lambda = a.lambda + c.row_position;
    const V3<T> force = load3<T>(lambda);
    T lambda_moments[3];
    V3<T> moment{T(0.0), T(0.0), T(0.0)};
    each<M>([&](int k) RIGSTEP_INLINED {
      lambda_moments[k] = load<T>(lambda + (3 + k) * W);
      moment = fma(lambda_moments[k], at.normal(k), moment);
    });
    const auto first = handle(0), second = handle(1);
    constexpr bool kIsShared = std::is_same_v<decltype(second), const InOrder<T>>;  // see Handle
    put3(first, arm_of_handle(M), at.s_first), put3(second, arm_of_handle(M), at.s_second);
    put_shared<C>(first, at, force, moment);
    if constexpr (!kIsShared) put_shared<C>(second, at, force, moment);
    if constexpr (M > 0)
      if (what.with_stiffness) {
        S3<T> K = stiffness_of_cosines(at, lambda_moments);
        if constexpr (C == kAngleRow) K = K + stiffness_of_angle(at, lambda_moments[2]);
        put_symmetric(first, kStiffnessOfHandle, K);
        if constexpr (!kIsShared) put_symmetric(second, kStiffnessOfHandle, K);
      }
  });
  if (c.sides != Operands::in_order)
    for (const Side& side : c.side) copy(a, a.handles, side.first_copy, side.copies, 0, c.format.handle_size());
}

// f(row, lambda, number) of every row of a constraint whose rows are general, with both its sides
template <class T, class F>
RIGSTEP_INLINE void for_general_rows(const StepArrays& a, const ConstraintBatch& c, const GeneralSides<T>& at, F&& f) {
  for (int k = 0; k < c.format.rows; ++k) {
    const int number = c.row_position + k * kWidth<T>;
    GeneralRow<T> row = general_row(c.format, at, load<T>(a.closed_at + number), k);
    if (c.format.is_elastic(k)) row = elastic_row(row, load<T>(a.elasticity + number));
    f(row, k, number);
  }
}

template <class T>
RIGSTEP_INLINE void constrain_general(const StepArrays& a, const ConstraintBatch& c, const AssemblySweep& what) {
  with_sides<T>(a, c, [&](const auto& body, const auto& handle) RIGSTEP_INLINED {
    const GeneralSides<T> at = sides_of_general<T>(a, c, body);
    const auto first = handle(0), second = handle(1);
    const V3<T> zero{T(0.0), T(0.0), T(0.0)};
    Load<T> on_first{zero, zero}, on_second{zero, zero};
    S3<T> K_first{T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0)}, K_second = K_first;
    for_general_rows<T>(a, c, at, [&](const GeneralRow<T>& row, int k, int number) RIGSTEP_INLINED {
      if (what.rows == AssemblySweep::Rows::all) store(a.Phi + number, row.Phi);
      const T lambda = load<T>(a.lambda + number);
      on_first = {fma(lambda, row.force, on_first.force), fma(lambda, row.torque_first, on_first.torque)};
      on_second = {fma(-lambda, row.force, on_second.force), fma(-lambda, row.torque_second, on_second.torque)};
      put3(first, kRowsOfHandle + 6 * k, row.force), put3(first, kRowsOfHandle + 6 * k + 3, row.torque_first);
      put3(second, kRowsOfHandle + 6 * k, -row.force), put3(second, kRowsOfHandle + 6 * k + 3, -row.torque_second);
      if (what.with_stiffness) add_stiffness(c.format, at, row, k, lambda, K_first, K_second);
    });
    put3(first, 0, on_first.force), put3(first, kMomentOfHandle, on_first.torque);
    put3(second, 0, on_second.force), put3(second, kMomentOfHandle, on_second.torque);
    if (what.with_stiffness)
      put_symmetric(first, kStiffnessOfHandle, K_first), put_symmetric(second, kStiffnessOfHandle, K_second);
  });
  if (c.sides != Operands::in_order)
    for (const Side& side : c.side) copy(a, a.handles, side.first_copy, side.copies, 0, c.format.handle_size());
}

template <int C, class T, class F>
RIGSTEP_LOOP void for_constraints(const ConstraintBatch* c, const ConstraintBatch* end, F f) {
  for (; c < end; ++c) f.template operator()<C, T>(*c);
}

// f<C, T>(constraint) of every constraint of a run; C: cosines, kGeneralRows or kAngleRow
template <class F>
RIGSTEP_INLINE void for_constraints(const StepArrays& a, const Run& run, F f) {
  static constexpr auto kLoops =
      loops<kConstraintShapes>([]<int S>() { return &for_constraints<S / kWidths, LanesOf<S>, F>; });
  const ConstraintBatch* first = a.constraint + run.first;
  kLoops.of_shape[run.shape](first, first + run.count, f);
}

// Phi, or half of it, and nothing else
template <int C, class T>
RIGSTEP_INLINE void measure_gaps(const StepArrays& a, const ConstraintBatch& c, bool half) {
  constexpr int W = kWidth<T>;
  if constexpr (C == kGeneralRows) {
    GeneralSides<T> at;
    with_sides<T>(a, c, [&](const auto& body, const auto&) RIGSTEP_INLINED { at = sides_of_general<T>(a, c, body); });
    for_general_rows<T>(
        a, c, at, [&](const GeneralRow<T>& row, int, int number) RIGSTEP_INLINED { store(a.Phi + number, row.Phi); });
  } else {
    with_sides<T>(a, c, [&](const auto& body, const auto&) RIGSTEP_INLINED {
      const PointSides<C, T> at = point_sides<C, T>(a, c, body);
      store_gaps<C, T>(a, c, gap_of_points<T>(a, body, at), at);
    });
  }
  if (!half) return;
  for (int k = 0; k < c.format.rows; ++k) {
    double* const Phi = a.Phi + c.row_position + k * W;
    store(Phi, T(0.5) * load<T>(Phi));
  }
}

template <class T, class Source>
RIGSTEP_INLINE Motion<T> motion_from(const Source& s) {
  return {three(s, 0), three(s, 3)};
}

// J v + Phi_t of the twists, in the place of the quadratic terms
template <class T>
RIGSTEP_INLINE void measure_general_velocities(const StepArrays& a, const ConstraintBatch& c) {
  GeneralSides<T> at;
  Motion<T> first, second;
  with_sides<T>(a, c, [&](const auto& body, const auto&) RIGSTEP_INLINED {
    at = sides_of_general<T>(a, c, body);
    first = motion_from<T>(body(kTwistField, 0)), second = motion_from<T>(body(kTwistField, 1));
  });
  for_general_rows<T>(a, c, at, [&](const GeneralRow<T>& row, int k, int number) RIGSTEP_INLINED {
    const T rate = times_motions(row, first, second) + load<T>(a.rate + number);
    store(a.quadratic + number, c.format.is_elastic(k) ? T(0.0) : rate);
  });
}

template <int C, class T>
RIGSTEP_INLINE void measure_point_velocities(const StepArrays& a, const ConstraintBatch& c) {
  constexpr int W = kWidth<T>;
  with_sides<T>(a, c, [&](const auto& body, const auto&) RIGSTEP_INLINED {
    const PointSides<C, T> at = point_sides<C, T>(a, c, body);
    const auto t1 = body(kTwistField, 0), t2 = body(kTwistField, 1);
    const V3<T> w1 = three(t1, 3), w2 = three(t2, 3);
    double* const to = a.quadratic + c.row_position;
    store3(to, add_cross(three(t1, 0), w1, at.s_first) - add_cross(three(t2, 0), w2, at.s_second));
    each<kCosinesOf<C>>([&](int k) RIGSTEP_INLINED { store(to + (3 + k) * W, dot(at.normal(k), w1 - w2)); });
    if constexpr (C == kAngleRow) {
      const T rate = dot(at.normal(2), w1 - w2) + load<T>(a.rate + c.row_position + 5 * W);
      store(to + 5 * W, c.format.is_elastic(5) ? T(0.0) : rate);
    }
  });
}

template <class T>
RIGSTEP_INLINE void general_quadratic_terms(const StepArrays& a, const ConstraintBatch& c) {
  GeneralSides<T> at;
  GeneralRates<T> rates;
  with_sides<T>(a, c, [&](const auto& body, const auto&) RIGSTEP_INLINED {
    at = sides_of_general<T>(a, c, body);
    rates = general_rates(at, body);
  });
  for_general_rows<T>(a, c, at, [&](const GeneralRow<T>& row, int k, int number) RIGSTEP_INLINED {
    const T quadratic = general_quadratic(c.format, at, row, rates, k) - load<T>(a.closed_acceleration + number);
    store(a.quadratic + number, c.format.is_elastic(k) ? T(0.0) : quadratic);
  });
}

template <int C, class T>
RIGSTEP_INLINE void point_quadratic_terms(const StepArrays& a, const ConstraintBatch& c) {
  constexpr int W = kWidth<T>;
  with_sides<T>(a, c, [&](const auto& body, const auto&) RIGSTEP_INLINED {
    const V3<T> w1 = three(body(kTwistField, 0), 3), w2 = three(body(kTwistField, 1), 3);
    const PointSides<C, T> at = load_sides<C, T>(a.constraint_fields + kConstraintFields * c.position);
    double* to = a.quadratic + c.row_position;
    store3(to, cross(w1, cross(w1, at.s_first)) - cross(w2, cross(w2, at.s_second)));
    each<kCosinesOf<C>>([&](int k) RIGSTEP_INLINED {
      const V3<T> u = at.axis_first(k), h = at.axis_second(k), ud = cross(w1, u), hd = cross(w2, h);
      store(to + (3 + k) * W, dot(cross(w1, ud), h) + fma(T(2.0), dot(ud, hd), dot(u, cross(w2, hd))));
    });
    if constexpr (C == kAngleRow) {
      const T quadratic = quadratic_of_angle(at, w1, w2) - load<T>(a.closed_acceleration + c.row_position + 5 * W);
      store(to + 5 * W, c.format.is_elastic(5) ? T(0.0) : quadratic);
    }
  });
}

template <class T>
RIGSTEP_INLINE void take_larger(const T* found, LaneByLane* most) {
  each<3>([&](int k) RIGSTEP_INLINED {
    double* const largest = most[k].value;
    store(largest, larger(found[k], load<T>(largest)));
  });
}

template <class T>
RIGSTEP_INLINE void largest_general_residuals(const StepArrays& a, const ConstraintBatch& c, LaneByLane* most) {
  GeneralSides<T> at;
  Motion<T> v1, v2, a1, a2;
  with_sides<T>(a, c, [&](const auto& body, const auto&) RIGSTEP_INLINED {
    at = sides_of_general<T>(a, c, body);
    v1 = motion_from<T>(body(kTwistField, 0)), v2 = motion_from<T>(body(kTwistField, 1));
    a1 = motion_from<T>(body(kMotionField, 0)), a2 = motion_from<T>(body(kMotionField, 1));
  });
  T found[3] = {T(0.0), T(0.0), T(0.0)};
  for_general_rows<T>(a, c, at, [&](const GeneralRow<T>& row, int k, int number) RIGSTEP_INLINED {
    if (c.format.is_elastic(k)) return;
    found[0] = larger(magnitude(load<T>(a.Phi + number)), found[0]);
    found[1] = larger(magnitude(times_motions(row, v1, v2) + load<T>(a.rate + number)), found[1]);
    found[2] = larger(magnitude(times_motions(row, a1, a2) + load<T>(a.quadratic + number)), found[2]);
  });
  take_larger(found, most);
}

template <int C, class T>
RIGSTEP_INLINE void largest_point_residuals(const StepArrays& a, const ConstraintBatch& c, LaneByLane* most) {
  constexpr int W = kWidth<T>;
  with_sides<T>(a, c, [&](const auto& body, const auto&) RIGSTEP_INLINED {
    const auto t1 = body(kTwistField, 0), t2 = body(kTwistField, 1), m1 = body(kMotionField, 0),
               m2 = body(kMotionField, 1);
    const V3<T> w1 = three(t1, 3), w2 = three(t2, 3), al1 = three(m1, 3), al2 = three(m2, 3);
    const PointSides<C, T> at =
        with_angle_row(a, c, load_sides<C, T>(a.constraint_fields + kConstraintFields * c.position));
    const V3<T> v = add_cross(three(t1, 0), w1, at.s_first) - add_cross(three(t2, 0), w2, at.s_second);
    const double *Phi = a.Phi + c.row_position, *quadratic = a.quadratic + c.row_position;
    const V3<T> acc =
        (add_cross(three(m1, 0), al1, at.s_first) - add_cross(three(m2, 0), al2, at.s_second)) + load3<T>(quadratic);
    const V3<T> gap = load3<T>(Phi);
    const auto most_of = [](V3<T> x) { return larger(magnitude(x.x), larger(magnitude(x.y), magnitude(x.z))); };
    T found[3] = {most_of(gap), most_of(v), most_of(acc)};
    each<kCosinesOf<C>>([&](int k) RIGSTEP_INLINED {
      const V3<T> n = at.normal(k);
      found[0] = larger(magnitude(load<T>(Phi + (3 + k) * W)), found[0]);
      found[1] = larger(magnitude(dot(n, w1 - w2)), found[1]);
      found[2] = larger(magnitude(dot(n, al1 - al2) + load<T>(quadratic + (3 + k) * W)), found[2]);
    });
    if constexpr (C == kAngleRow) {
      if (!c.format.is_elastic(5)) {
        const T rate = load<T>(a.rate + c.row_position + 5 * W);
        found[0] = larger(magnitude(load<T>(Phi + 5 * W)), found[0]);
        found[1] = larger(magnitude(dot(at.normal(2), w1 - w2) + rate), found[1]);
        found[2] = larger(magnitude(dot(at.normal(2), al1 - al2) + load<T>(quadratic + 5 * W)), found[2]);
      }
    }
    take_larger(found, most);
  });
}

// ---- coordinates of couplings

template <class T>
RIGSTEP_LOOP void evaluate_coordinate(const StepArrays& a, const CoordinateTables& all, const CoordinateBatch& batch) {
  constexpr int W = kWidth<T>;
  double* const to = all.found + kCoordinateNumbers * batch.position;
  const auto body = [&](int field, int side) RIGSTEP_INLINED {
    const Place* const record = side == 0 ? batch.first : batch.second;
    if constexpr (W == 1)
      return Beside<T>{a.body + record->base + field * record->stride, record->stride};
    else
      return gathered<T>(a.body, [&](int l) {
        return Place{record[l].base + field * record[l].stride, record[l].stride};
      });
  };
  const GeneralSides<T> at = general_sides<T>(all.constants + kConstraintConstants * batch.position, a.next, body);
  const GeneralRow<T> row = general_row(batch.format, at, T(0.0), 0);
  store(to, row.Phi);
  double* const gradient = to + kGradientOfCoordinate * W;
  store3(gradient, row.force), store3(gradient + 3 * W, row.torque_first), store3(gradient + 6 * W, row.torque_second);
  if (all.with_stiffness) {
    S3<T> K_first{T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0)}, K_second = K_first;
    add_stiffness(batch.format, at, row, 0, T(1.0), K_first, K_second);
    const InOrder<T> stiffness{to + kStiffnessOfCoordinate * W};
    put_symmetric(stiffness, 0, K_first), put_symmetric(stiffness, 6, K_second);
  }
  if (!all.with_velocity) return;
  const Motion<T> v1 = motion_from<T>(body(kTwistField, 0)), v2 = motion_from<T>(body(kTwistField, 1));
  const Motion<T> a1 = motion_from<T>(body(kMotionField, 0)), a2 = motion_from<T>(body(kMotionField, 1));
  const T quadratic = general_quadratic(batch.format, at, row, general_rates(at, body), 0);
  store(to + W, times_motions(row, v1, v2)), store(to + 2 * W, quadratic);
  store(to + 3 * W, times_motions(row, a1, a2) + quadratic);
}

}  // namespace

void evaluate_coordinates(const StepArrays& a, const CoordinateTables& all) {
  for (const CoordinateBatch *batch = all.batch, *end = batch + all.batches; batch < end; ++batch)
    with_width(batch->width, [&]<class T>() RIGSTEP_INLINED { evaluate_coordinate<T>(a, all, *batch); });
}

void constrain(const StepArrays& a, const Run& run, const AssemblySweep& what) {
  using Rows = AssemblySweep::Rows;
  if (what.rows == Rows::gaps || what.rows == Rows::half_gaps)
    return for_constraints(a, run, [&]<int C, class T>(const ConstraintBatch& c) RIGSTEP_INLINED {
      measure_gaps<C, T>(a, c, what.rows == Rows::half_gaps);
    });
  if (what.rows == Rows::velocities)
    return for_constraints(a, run, [&]<int C, class T>(const ConstraintBatch& c) RIGSTEP_INLINED {
      if constexpr (C == kGeneralRows)
        measure_general_velocities<T>(a, c);
      else
        measure_point_velocities<C, T>(a, c);
    });
  for_constraints(a, run, [&]<int C, class T>(const ConstraintBatch& c) RIGSTEP_INLINED {
    if constexpr (C == kGeneralRows)
      constrain_general<T>(a, c, what);
    else
      constrain_points<C, T>(a, c, what);
  });
}

void quadratic_terms(const StepArrays& a, const Run& run) {
  for_constraints(a, run, [&]<int C, class T>(const ConstraintBatch& c) RIGSTEP_INLINED {
    if constexpr (C == kGeneralRows)
      general_quadratic_terms<T>(a, c);
    else
      point_quadratic_terms<C, T>(a, c);
  });
}

void residuals(const StepArrays& a, const Run& run, Residuals& largest) {
  LaneByLane most[3];
  for_constraints(a, run, [&]<int C, class T>(const ConstraintBatch& c) RIGSTEP_INLINED {
    if constexpr (C == kGeneralRows)
      largest_general_residuals<T>(a, c, most);
    else
      largest_point_residuals<C, T>(a, c, most);
  });
  double* const all[3] = {&largest.position, &largest.velocity, &largest.acceleration};
  for (int k = 0; k < 3; ++k) *all[k] = larger(most[k].largest(), *all[k]);
}

}  // namespace rigstep::index3::RIGSTEP_ISA
