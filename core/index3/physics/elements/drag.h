// Aerodynamic drag in a step. Prepared at load time, called in the loop.
#pragma once

#include "core/index3/physics/elements/element.h"
#include "core/mechanism/elements/drag.h"

namespace rigstep::index3 {

struct DragReading {
  Vec3 force;    // on the body at its point, world frame [N]
  double speed;  // of the point against the air [m/s]
};

// Where the air meets the body, world frame.
struct DragPoint {
  Vec3 arm;  // from the mass centre [m]
  Vec3 u;    // velocity against the wind [m/s]
};

template <>
struct Stepped<Drag> {
  using Reading = DragReading;
  using Constants = NoConstants;
  using Evaluated = DragPoint;
  static constexpr int kMostRows = 0;
  static constexpr int kLaneNumbers = kDragNumbers, kLaneFound = kDragFound;
  static constexpr std::array kActions{kActionOfDrag};
};

LaneNumbersOf<Drag> lane_numbers(const Drag& drag, const double* inputs) noexcept;
DragPoint from_lane(const Drag& drag, const FoundInLane& found) noexcept;

// Force on the point for its velocity u against the wind.
Vec3 drag_force(const Drag& drag, const Vec3& u) noexcept;
// Minus the derivative of its load on the body with respect to the body's velocities, world frame.
Mat6 drag_damping(const Drag& drag, const DragPoint& at) noexcept;

inline NoConstants prepare(const Drag&, double) { return {}; }
Connectivity connectivity(const Drag& drag, const NoConstants& constants);
bool slopes_change(const Drag& drag);
DragPoint evaluate(const Drag& drag, const NoConstants& constants, const Surroundings& at) noexcept;
DragReading apply(const Drag& drag, const NoConstants& constants, const DragPoint& now, const Surroundings& at,
                  const Loads& loads) noexcept;
void add_tangent(const Drag& drag, const NoConstants& constants, const DragPoint& now, const Surroundings& at,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept;
inline void evaluate_rows(const Drag&, const NoConstants&, const DragPoint&, const Surroundings&, const TangentFactors&,
                          ElementRows) noexcept {}
inline double energy(const Drag&, const DragReading&, const Surroundings&) noexcept { return 0.0; }
void write(const DragReading& reading, double* to) noexcept;

}  // namespace rigstep::index3
