// Where the operands of an operation lie: in its own lanes, beside each other, or scattered. T is double or Lanes;
// arrays are strided by its width.
#pragma once

#include "core/index3/compile/schedule.h"
#include "core/index3/kernels/lanes.h"

namespace rigstep::index3::RIGSTEP_ISA {

// In its own lanes.
template <class T>
struct InOrder {
  static constexpr int stride = kWidth<T>;
  double* p;
  RIGSTEP_INLINE T operator()(int k) const { return load<T>(p + k * kWidth<T>); }
  RIGSTEP_INLINE void put(int k, T value) const { store(p + k * kWidth<T>, value); }
};

// In neighbouring lanes of a batch.
template <class T>
struct Beside {
  double* p;
  int stride;
  RIGSTEP_INLINE T operator()(int k) const { return load<T>(p + k * stride); }
  RIGSTEP_INLINE void put(int k, T value) const { store(p + k * stride, value); }
};

// In neighbouring lanes of a batch, or one number for all lanes.
template <class T>
struct BesideOrUniform {
  const double* p;
  int stride;
  bool is_uniform;
  RIGSTEP_INLINE T operator()(int k) const { return is_uniform ? T(p[k * stride]) : load<T>(p + k * stride); }
};

// Anywhere.
template <class T>
struct Gathered {
  static constexpr int W = kWidth<T>;
  double* p[W];
  int stride[W];
  RIGSTEP_INLINE T operator()(int k) const {
    typename T::Vector v;
    each<W>([&](int l) RIGSTEP_INLINED { v[l] = p[l][k * stride[l]]; });
    return v;
  }
  RIGSTEP_INLINE void put(int k, T value) const {
    each<W>([&](int l) RIGSTEP_INLINED { p[l][k * stride[l]] = lane(value, l); });
  }
};

// In any lanes of two batches as wide as its own.
template <class T>
struct Chosen {
  const double* p[2];
  Selection<kWidth<T>> select;
  RIGSTEP_INLINE Chosen(const double* array, const int (&base)[2], const LaneChoice& choice)
      : p{array + base[0], array + base[1]}, select(choice.of_lane) {}
  RIGSTEP_INLINE T operator()(int k) const {
    return select(load<T>(p[0] + k * kWidth<T>), load<T>(p[1] + k * kWidth<T>));
  }
};

// Handles in any lanes of two batches as wide as the constraint's, whose other lanes are kept.
template <class T>
struct KeptHandles {
  int handles;
  double* p[2];
  Selection<kWidth<T>> select[2];
  RIGSTEP_INLINE KeptHandles(double* array, const ChosenSide& side)
      : handles(side.handles),
        p{array + side.handle[0], array + side.handle[1]},
        select{Selection<kWidth<T>>(side.kept[0].of_lane), Selection<kWidth<T>>(side.kept[1].of_lane)} {}
  RIGSTEP_INLINE void put(int k, T value) const {
    for (int h = 0; h < handles; ++h) {
      double* const at = p[h] + k * kWidth<T>;
      store(at, select[h](load<T>(at), value));
    }
  }
};

// Numbers begin ... end - 1 of each of the copies.
RIGSTEP_INLINE void copy(const StepArrays& a, double* array, int first, int copies, int begin, int end) {
  for (int c = first; c < first + copies; ++c) {
    const Place &from = a.copy[c].from, &to = a.copy[c].to;
    for (int k = begin; k < end; ++k) array[to.base + k * to.stride] = array[from.base + k * from.stride];
  }
}

template <class T, class Get>
RIGSTEP_INLINE Gathered<T> gathered(double* array, const Get& place_of_lane) {
  Gathered<T> g;
  for (int l = 0; l < kWidth<T>; ++l) {
    const Place at = place_of_lane(l);
    g.p[l] = array + at.base, g.stride[l] = at.stride;
  }
  return g;
}

// Numbers k ... k + count - 1 into the lanes of `to`, or out of those of `from`. Calls: what works with the numbers is
// compiled for operands in its own lanes only.
template <class T>
RIGSTEP_LOOP void gather(const Gathered<T>& from, int k, int count, double* to) {
  constexpr int W = kWidth<T>;
  const double* p[W];
  each<W>([&](int l) RIGSTEP_INLINED { p[l] = from.p[l] + k * from.stride[l]; });
  for (int i = 0; i < count; ++i) {
    typename T::Vector v;
    each<W>([&](int l) RIGSTEP_INLINED { v[l] = *p[l], p[l] += from.stride[l]; });
    store(to + i * W, T(v));
  }
}
// The same, by the pattern of the places: numbers `field` ... field + count - 1 of what is there.
template <class T>
RIGSTEP_LOOP void gather(double* array, const LanePlaces& places, int field, int count, double* to) {
  const Place& first = places.of_lane[0];
  if constexpr (kWidth<T> != 1) {
    if (places.pattern == LanePlaces::Pattern::scattered)
      return gather(gathered<T>(array, [&](int l) { return places.of_lane[l]; }), field, count, to);
  }
  const BesideOrUniform<T> from{array + first.base, first.stride, places.pattern == LanePlaces::Pattern::uniform};
  for (int k = 0; k < count; ++k) store(to + k * kWidth<T>, from(field + k));
}
template <class T>
RIGSTEP_LOOP void scatter(const double* from, const Gathered<T>& to, int k, int count) {
  for (int i = 0; i < count; ++i) to.put(k + i, load<T>(from + i * kWidth<T>));
}

template <class Source>
RIGSTEP_INLINE auto three(const Source& s, int k) -> V3<decltype(s(0))> {
  return {s(k), s(k + 1), s(k + 2)};
}
template <class Sink, class T>
RIGSTEP_INLINE void put3(const Sink& s, int k, V3<T> v) {
  s.put(k, v.x), s.put(k + 1, v.y), s.put(k + 2, v.z);
}
template <class Sink, class T>
RIGSTEP_INLINE void put_symmetric(const Sink& s, int k, const S3<T>& S) {
  put3(s, k, V3<T>{S.xx, S.yy, S.zz}), put3(s, k + 3, V3<T>{S.yx, S.zx, S.zy});
}
template <class Source>
RIGSTEP_INLINE auto symmetric(const Source& s, int k) -> S3<decltype(s(0))> {
  return {s(k), s(k + 1), s(k + 2), s(k + 3), s(k + 4), s(k + 5)};
}
template <class Source>
RIGSTEP_INLINE auto nine(const Source& s) -> M3<decltype(s(0))> {
  return {three(s, 0), three(s, 3), three(s, 6)};
}

// the same of scattered operands
template <class T>
RIGSTEP_INLINE V3<T> three(const Gathered<T>& s, int k) {
  alignas(T) double numbers[3 * kWidth<T>];
  gather(s, k, 3, numbers);
  return three(InOrder<T>{numbers}, 0);
}
template <class T>
RIGSTEP_INLINE M3<T> nine(const Gathered<T>& s) {
  alignas(T) double numbers[9 * kWidth<T>];
  gather(s, 0, 9, numbers);
  return nine(InOrder<T>{numbers});
}
template <class T>
RIGSTEP_INLINE void put3(const Gathered<T>& s, int k, V3<T> v) {
  alignas(T) double numbers[3 * kWidth<T>];
  put3(InOrder<T>{numbers}, 0, v);
  scatter(numbers, s, k, 3);
}

}  // namespace rigstep::index3::RIGSTEP_ISA
