// The start that satisfies joints, couplings and drivers around what is held. Load time. The same bits on every
// machine, since start poses are part of a mechanism's identity.
#pragma once

#include <optional>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep {

// A joint coordinate that is held at the start. Where a number is absent, it is that of the bodies as they are given.
struct HeldCoordinate {
  int joint = 0;
  Freedom freedom = Freedom::angle;
  double offset = 0.0;          // as in JointCoordinate [m] or [rad]
  std::optional<double> value;  // [m] or [rad], full turns count
  std::optional<double> rate;   // [m/s] or [rad/s]
  bool holds_value = true;      // false: the rate alone
};

struct Held {
  std::vector<HeldCoordinate> coordinates;
  std::vector<int> bodies;  // that keep pose and velocity
  bool empty() const { return coordinates.empty() && bodies.empty(); }
};

struct Assembled {
  std::vector<Body> bodies;        // with the new poses and velocities
  std::vector<double> coordinate;  // (Held::coordinates) as reached, angles followed from the given pose [m] or [rad]
  double gap = 0.0;                // largest one left in joints, couplings, drivers and what is held [m] or [rad]
  double rate_gap = 0.0;           // likewise of the velocities [m/s] or [rad/s]
  bool closed = false;             // both gaps are rounding
  bool poses_closed = false;
};

// Bodies that hang on others by joints without loops go with them: their joints keep their coordinates and rates. Held
// coordinates are led from where they are to their values, and loops are closed on the way by the motion that is the
// smallest with masses and inertias as weights, so that they stay on their branch. Joints that are open as given are
// closed likewise.
Assembled assemble(const Mechanism& mechanism, const Held& held);

}  // namespace rigstep
