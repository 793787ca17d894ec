// The motion of bodies that force elements act on, one in each lane, wherever their records lie. Called in the loop.
#pragma once

#include "core/index3/kernels/body.h"
#include "core/index3/kernels/operands.h"
#include "core/index3/kernels/runs.h"

namespace rigstep::index3::RIGSTEP_ISA {

// Its pose at the iterate, and the velocities that the trapezoidal rule gives, (15), or, at the instant that a step has
// reached, those that the projection has left.
template <class T>
struct BodyAtIterate {
  M3<T> A;
  V3<T> r, v, w;
};

// Numbers of records one after the other, in as many lanes.
template <class T, int Count>
struct FromRecords {
  alignas(T) double number[Count * kWidth<T>];
  RIGSTEP_INLINE FromRecords(const StepArrays& a, const LanePlaces& record, int field) {
    gather<T>(a.body, record, field, Count, number);
  }
  RIGSTEP_INLINE V3<T> three(int k) const { return load3<T>(number + k * kWidth<T>); }
  RIGSTEP_INLINE Quaternion<T> quaternion(int k) const { return load_quaternion<T>(number + k * kWidth<T>); }
};

template <class T>
RIGSTEP_INLINE BodyAtIterate<T> body_at_iterate(const StepArrays& a, const LanePlaces& record, bool at_end) {
  static_assert(kTwistField == kRotationField + 9 && kP == kR + 3);
  BodyAtIterate<T> body;
  if (at_end) {
    const FromRecords<T, 15> turned(a, record, kRotationField);
    body.A = load33<T>(turned.number);
    body.r = FromRecords<T, 3>(a, record, a.last + kR).three(0);
    body.v = turned.three(9), body.w = turned.three(12);
    return body;
  }
  body.A = load33<T>(FromRecords<T, 9>(a, record, kRotationField).number);
  const FromRecords<T, 7> pose(a, record, a.next + kR);
  body.r = pose.three(0);
  body.v = fma(T(a.step.two_over_dt), FromRecords<T, 3>(a, record, kHistoryField + kBeyond).three(0),
               FromRecords<T, 3>(a, record, a.last + kV).three(0));
  body.w = G_world(FromRecords<T, 4>(a, record, kHistoryField + kMinus2PdHat).quaternion(0), pose.quaternion(3));
  return body;
}

// f<T>() with as many lanes as the batches of force elements have: the widest or four. One is for a single scalar.
template <class F>
RIGSTEP_INLINE void with_lanes_of_forces(int lanes, F&& f) {
  if (kWidest > 4 && lanes == kWidest) return f.template operator()<Lanes<kWidest>>();
  f.template operator()<Lanes<4>>();
}

// f(batch, its numbers, where what it finds goes) of all batches of elements of a kind, whose kernel takes and finds so
// many numbers of each
template <class T, int kNumbers, int kFound, class F>
RIGSTEP_INLINE void for_elements(const ElementTables& all, const F& f) {
  const double* numbers = all.numbers;
  double* found = all.found;
  for (const ElementBatch *batch = all.batch, *end = batch + all.batches; batch < end; ++batch) {
    f(*batch, numbers, found);
    numbers += kNumbers * kWidth<T>, found += kFound * kWidth<T>;
  }
}

}  // namespace rigstep::index3::RIGSTEP_ISA
