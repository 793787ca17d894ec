// End stops in a step. Prepared at load time, called in the loop.
#pragma once

#include "core/index3/physics/elements/one_sided.h"
#include "core/mechanism/elements/stop.h"

namespace rigstep::index3 {

struct StopConstants {
  double dt;  // [s]
};

struct EvaluatedStop {
  Coordinate x;
  Vec3 arm_first, arm_second;  // between points: of these about the mass centres, world frame [m]
};

template <>
struct Stepped<Stop> {
  using Reading = ElementReading;
  using Constants = StopConstants;
  using Evaluated = EvaluatedStop;
  using Start = OverStep;
  static constexpr int kMostRows = 1;
};

// How far x is beyond a limit: above the upper one positive, below the lower one negative, 0 in between.
double depth_beyond(const Stop& stop, double x) noexcept;

// At an instant.
double stop_effort(const Stop& stop, double x, double v) noexcept;
// In Newton's equations of a step that ends at x.
ScalarEffort stop_effort_over_step(const Stop& stop, const OverStep& over, double x, double dt) noexcept;

inline StopConstants prepare(const Stop&, double dt) { return {dt}; }
Connectivity connectivity(const Stop& stop, const StopConstants& constants);
inline bool slopes_change(const Stop&) { return true; }
inline int coordinate_of_tangent(const Stop& stop) { return stop.coordinate; }
EvaluatedStop evaluate(const Stop& stop, const StopConstants& constants, const Surroundings& at) noexcept;
OverStep start_step(const Stop& stop, const EvaluatedStop& now) noexcept;
ElementReading apply(const Stop& stop, const StopConstants& constants, const EvaluatedStop& now, const Surroundings& at,
                     const Loads& loads) noexcept;
void follow_iterate(const Stop& stop, const StopConstants& constants, const EvaluatedStop& now,
                    OverStep& over) noexcept;
void apply_over_step(const Stop& stop, const OverStep& over, const EvaluatedStop& now, const Surroundings& at,
                     const Loads& loads) noexcept;
void add_tangent(const Stop& stop, const OverStep& over, const EvaluatedStop& now, const Surroundings& at,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept;
void evaluate_rows(const Stop& stop, const StopConstants& constants, const OverStep& over, const EvaluatedStop& now,
                   const Surroundings& at, const TangentFactors& factors, ElementRows rows) noexcept;
double energy(const Stop& stop, const ElementReading& reading, const Surroundings& at) noexcept;

}  // namespace rigstep::index3
