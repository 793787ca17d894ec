// The fronts of a run: where the numbers of their children lie, and the loops over fronts of one shape.
// front_elimination.cpp and front_solution.cpp compile the loops.
#pragma once

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

// f(left, right): sources of the children's numbers, by the way they lie; `what`: matrix or vector
template <class T, class What, class F>
RIGSTEP_INLINE void with_children(const StepArrays& a, const Front& f, const What& what, F&& body) {
  constexpr int W = kWidth<T>;
  const Child &left = f.child[0], &right = f.child[1];
  if (W == 1 || f.children == Operands::beside) {
    body(Beside<T>{a.arena + what.of(left), left.stride}, Beside<T>{a.arena + what.of(right), right.stride});
  } else if (f.children == Operands::in_order) {
    body(InOrder<T>{a.arena + what.of(left)}, InOrder<T>{a.arena + what.of(right)});
  } else if constexpr (W > 1) {
    const auto scattered = [&](const Child& c) {
      return gathered<T>(a.arena, [&](int l) {
        return c.scattered < 0 ? Place{what.of(c) + l, c.stride} : what.of(a.scattered_child[c.scattered])[l];
      });
    };
    body(scattered(left), scattered(right));
  }
}
struct Matrix {
  RIGSTEP_INLINE int of(const Child& c) const { return c.matrix; }
  RIGSTEP_INLINE const Place* of(const ScatteredChild& c) const { return c.matrix; }
};
struct Vector {
  RIGSTEP_INLINE int of(const Child& c) const { return c.vector; }
  RIGSTEP_INLINE const Place* of(const ScatteredChild& c) const { return c.vector; }
};

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
