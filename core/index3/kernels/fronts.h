// The fronts of a run: where the numbers of their children lie, and the loops over fronts of one shape.
// front_elimination.cpp and front_solution.cpp compile the loops.
#pragma once

#include "core/index3/kernels/factorisation.h"
#include "core/index3/kernels/runs.h"

namespace rigstep::index3::RIGSTEP_ISA {

// (36)-(38); says whether all pivots are positive
using EliminateFronts = bool (*)(const StepArrays&, const Front* first, const Front* end, ComplianceOf which);
extern const Loops<EliminateFronts, kFrontShapes> kEliminateFronts;

// (39), and the multipliers that a front would have as the root, (35)
using SolveUp = void (*)(const StepArrays&, const Front* first, const Front* end, const double* rhs, bool restarts);
extern const Loops<SolveUp, kFrontShapes> kSolveUp;

// (35)
using SolveDown = void (*)(const StepArrays&, const Front* first, const Front* end, Multiplier kind);
extern const Loops<SolveDown, kFrontShapes> kSolveDown;

namespace {

// What a front takes from its children: the packed compliance, or the right-hand side, in whose place it leaves the
// solution.
struct Matrix {
  RIGSTEP_INLINE static int of(const Child& c) { return c.matrix; }
  RIGSTEP_INLINE static const Place* of(const ScatteredChild& c) { return c.matrix; }
  RIGSTEP_INLINE static int count(const Child& c) { return packed(c.rows); }
  static constexpr bool kReturns = false;
};
struct Vector {
  RIGSTEP_INLINE static int of(const Child& c) { return c.vector; }
  RIGSTEP_INLINE static const Place* of(const ScatteredChild& c) { return c.vector; }
  RIGSTEP_INLINE static int count(const Child& c) { return c.rows; }
  static constexpr bool kReturns = false;
};
struct Solution : Vector {
  static constexpr bool kReturns = true;
};

template <class T, class What>
RIGSTEP_LOOP Gathered<T> scattered_child(const StepArrays& a, const Child& c) {
  return gathered<T>(a.arena, [&](int l) {
    return c.scattered < 0 ? Place{What::of(c) + l, c.stride} : What::of(a.scattered_child[c.scattered])[l];
  });
}

// f(left, right): the children's numbers, by the way they lie. Scattered ones are brought into the front's lanes, and
// back where it has changed them.
template <class What, class T, class F>
RIGSTEP_INLINE void with_children(const StepArrays& a, const Front& f, F&& body) {
  constexpr int W = kWidth<T>;
  const Child &left = f.child[0], &right = f.child[1];
  if (W == 1 || f.children == Operands::beside)
    return body(Beside<T>{a.arena + What::of(left), left.stride}, Beside<T>{a.arena + What::of(right), right.stride});
  if (f.children == Operands::in_order)
    return body(InOrder<T>{a.arena + What::of(left)}, InOrder<T>{a.arena + What::of(right)});
  if constexpr (W > 1) {
    double* const in_lanes_left = a.scratch + f.rows * f.pivots * W;
    double* const in_lanes_right = in_lanes_left + What::count(left) * W;
    const auto each_child = [&](const auto& move) RIGSTEP_INLINED {
      if (left.present) move(scattered_child<T, What>(a, left), What::count(left), in_lanes_left);
      if (right.present) move(scattered_child<T, What>(a, right), What::count(right), in_lanes_right);
    };
    each_child([&](const Gathered<T>& child, int count, double* in_lanes) { gather(child, 0, count, in_lanes); });
    body(InOrder<T>{in_lanes_left}, InOrder<T>{in_lanes_right});
    if constexpr (What::kReturns)
      each_child([&](const Gathered<T>& child, int count, double* in_lanes) { scatter(in_lanes, child, 0, count); });
  }
}

// Between the rows of the constraint that a front eliminates. Only narrow ones may lie beside others: for the widest
// the compiler knows it.
template <class T>
RIGSTEP_INLINE int row_stride(const Front& f) {
  return kWidth<T> < kWidest ? f.row_stride : kWidth<T>;
}

// What the fronts of a run have in common, as constants for the compiler.
template <int S>
struct FrontOf {
  using T = LanesOf<S>;
  static constexpr int N = S / (kForms * kWidths);
  static constexpr Form kForm = N < 3 ? Form::general : static_cast<Form>(S / kWidths % kForms);
};

}  // namespace

}  // namespace rigstep::index3::RIGSTEP_ISA
