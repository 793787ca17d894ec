// An effort along a joint freedom that is given over time in a step. Prepared at load time, called in the loop.
#pragma once

#include "core/index3/physics/elements/element.h"
#include "core/index3/physics/time_function.h"
#include "core/mechanism/elements/effort.h"

namespace rigstep::index3 {

template <>
struct Stepped<AppliedEffort> {
  using Reading = ElementReading;
  using Constants = Curvatures;
  using Evaluated = EvaluatedScalar;
  static constexpr int kMostRows = 0;
};

inline Curvatures prepare(const AppliedEffort& effort, double) { return prepare(effort.function); }
Connectivity connectivity(const AppliedEffort& effort, const Curvatures& constants);
bool slopes_change(const AppliedEffort& effort);
EvaluatedScalar evaluate(const AppliedEffort& effort, const Curvatures& constants, const Surroundings& at) noexcept;
ElementReading apply(const AppliedEffort& effort, const Curvatures& constants, const EvaluatedScalar& now,
                     const Surroundings& at, const Loads& loads) noexcept;
inline void add_tangent(const AppliedEffort&, const Curvatures&, const EvaluatedScalar&, const Surroundings&,
                        const TangentFactors&, const OwnTangents&) noexcept {}
inline void evaluate_rows(const AppliedEffort&, const Curvatures&, const EvaluatedScalar&, const Surroundings&,
                          const TangentFactors&, ElementRows) noexcept {}
inline double energy(const AppliedEffort&, const ElementReading&, const Surroundings&) noexcept { return 0.0; }

}  // namespace rigstep::index3
