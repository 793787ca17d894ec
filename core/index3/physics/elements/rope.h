// A rope in a step. Prepared at load time, called in the loop.
#pragma once

#include "core/index3/physics/elements/one_sided.h"
#include "core/mechanism/elements/rope.h"

namespace rigstep::index3 {

struct RopeConstants {
  double dt;                 // [s]
  std::vector<int> bodies;   // that move, each once; the ground beside a single one
  std::vector<int> side_of;  // (points) place of the point's body in `bodies`; -1: the ground
};

struct RopeReading : ElementReading {
  double unstretched;  // [m]
};

// How much longer than unstretched a rope is.
struct Stretch {
  double unstretched;  // [m]
  double value;        // [m]
  double rate;         // [m/s]
};

template <>
struct Stepped<Rope> {
  using Reading = RopeReading;
  using Constants = RopeConstants;
  using Evaluated = Stretch;
  using Start = OverStep;  // x: the stretch [m]
  static constexpr int kMostRows = 1;
};

// At an instant, never positive.
double rope_effort(const Rope& rope, const Stretch& stretch) noexcept;
// In Newton's equations of a step that ends at this stretch.
ScalarEffort rope_effort_over_step(const Rope& rope, double unstretched, const OverStep& over, double stretch,
                                   double dt) noexcept;

RopeConstants prepare(const Rope& rope, double dt);
Connectivity connectivity(const Rope& rope, const RopeConstants& constants);
inline bool slopes_change(const Rope&) { return true; }
Stretch evaluate(const Rope& rope, const RopeConstants& constants, const Surroundings& at) noexcept;
OverStep start_step(const Rope& rope, const Stretch& now) noexcept;
RopeReading apply(const Rope& rope, const RopeConstants& constants, const Stretch& now, const Surroundings& at,
                  const Loads& loads) noexcept;
void follow_iterate(const Rope& rope, const RopeConstants& constants, const Stretch& now, OverStep& over) noexcept;
void apply_over_step(const Rope& rope, const OverStep& over, const Stretch& now, const Surroundings& at,
                     const Loads& loads) noexcept;
void add_tangent(const Rope& rope, const OverStep& over, const Stretch& now, const Surroundings& at,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept;
void evaluate_rows(const Rope& rope, const RopeConstants& constants, const OverStep& over, const Stretch& now,
                   const Surroundings& at, const TangentFactors& factors, ElementRows rows) noexcept;
double energy(const Rope& rope, const RopeReading& reading, const Surroundings& at) noexcept;

}  // namespace rigstep::index3
