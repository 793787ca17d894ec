// Loops over the runs of a part: every loop is compiled for each shape that a run may have.
#pragma once

#include <type_traits>
#include <utility>

#include "core/index3/kernels/constraints.h"
#include "core/index3/kernels/sweeps.h"

namespace rigstep::index3::RIGSTEP_ISA {

// One loop for each shape; looked up once per run, since a run may be as short as its decisions.
template <class Loop, int Count>
struct Loops {
  Loop of_shape[Count];
};

namespace {

#if defined(__AVX512F__)
constexpr int kWidest = 8;
#else
constexpr int kWidest = 4;
#endif

template <class F>
RIGSTEP_INLINE void with_width(int width, F&& f) {
  if (width == 1) return f.template operator()<double>();
  if (width == 2) return f.template operator()<Lanes<2>>();
  if constexpr (kWidest == 8)
    if (width == 8) return f.template operator()<Lanes<8>>();
  f.template operator()<Lanes<4>>();
}

template <class F>
RIGSTEP_INLINE void with_cosines(int cosines, F&& f) {
  switch (cosines) {
    case 0:
      return f.template operator()<0>();
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    default:
      return;
  }
}

// S: shape of a run, as a constant for the compiler
constexpr int width_of(int shape) { return 1 << shape % kWidths < kWidest ? 1 << shape % kWidths : kWidest; }
template <int S>
using LanesOf = std::conditional_t<width_of(S) == 1, double, Lanes<width_of(S)>>;

// loop_of<0>() ... loop_of<Count - 1>()
template <class F, int... S>
constexpr auto loops(const F& loop_of, std::integer_sequence<int, S...>) {
  return Loops<decltype(loop_of.template operator()<0>()), sizeof...(S)>{{loop_of.template operator()<S>()...}};
}
template <int Count, class F>
constexpr auto loops(const F& loop_of) {
  return loops(loop_of, std::make_integer_sequence<int, Count>{});
}

// What the leaves of a run have in common: C cosines of both constraints of leaves with two equal points, kAnyLeaf
// otherwise.
constexpr int kAnyLeaf = -2;
template <int S>
struct LeafOf {
  using T = LanesOf<S>;
  static constexpr int C = S / kWidths == 0 ? kAnyLeaf : S / kWidths - 1;
};

template <class T, int C, class F>
RIGSTEP_LOOP void for_leaves(const StepArrays& a, const Leaf* leaf, const Leaf* end, F f) {
  for (; leaf < end; ++leaf) f.template operator()<T, C>(*leaf, BodyArrays<T>(a, a.body + leaf->record));
}

// f<T, C>(leaf, body) of every leaf of a run
template <class F>
RIGSTEP_INLINE void for_leaves(const StepArrays& a, const Run& run, F f) {
  static constexpr auto kLoops =
      loops<kLeafShapes>([]<int S, class Of = LeafOf<S>>() { return &for_leaves<typename Of::T, Of::C, F>; });
  const Leaf* first = a.leaf + run.first;
  kLoops.of_shape[run.shape](a, first, first + run.count, f);
}

// A result of all batches, whatever their width.
struct LaneByLane {
  alignas(kMostLanes * sizeof(double)) double value[kMostLanes] = {};
  double largest() const {
    double most = 0.0;
    for (const double each : value) most = larger(each, most);
    return most;
  }
  double sum() const {
    double all = 0.0;
    for (const double each : value) all += each;
    return all;
  }
};

}  // namespace

}  // namespace rigstep::index3::RIGSTEP_ISA
