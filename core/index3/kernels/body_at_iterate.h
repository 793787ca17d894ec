// The motion of bodies that force elements act on, one in each lane, wherever their records lie. Called in the loop.
#pragma once

#include "core/index3/kernels/body.h"
#include "core/index3/kernels/operands.h"

namespace rigstep::index3::RIGSTEP_ISA {

// Its pose at the iterate, and the velocities that the trapezoidal rule gives, (15), or, at the end of a step, those
// that the projection has left.
template <class T>
struct BodyAtIterate {
  M3<T> A;
  V3<T> r, v, w;
};

template <class T>
RIGSTEP_INLINE BodyAtIterate<T> body_at_iterate(const StepArrays& a, const Place* record, bool at_end) {
  const auto field = [&](int k) RIGSTEP_INLINED {
    return gathered<T>(a.body, [&](int l) { return Place{record[l].base + k * record[l].stride, record[l].stride}; });
  };
  const auto quaternion = [&](int k) RIGSTEP_INLINED {
    const Gathered<T> at = field(k);
    return Quaternion<T>{at(0), three(at, 1)};
  };
  BodyAtIterate<T> body;
  body.A = nine(field(kRotationField)), body.r = three(field(a.next + kR), 0);
  if (at_end) {
    const Gathered<T> twist = field(kTwistField);
    body.v = three(twist, 0), body.w = three(twist, 3);
    return body;
  }
  body.v = fma(T(a.step.two_over_dt), three(field(kHistoryField + kBeyond), 0), three(field(a.last + kV), 0));
  body.w = G_world(quaternion(kHistoryField + kMinus2PdHat), quaternion(a.next + kP));
  return body;
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
