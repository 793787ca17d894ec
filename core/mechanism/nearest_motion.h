// The motion of bodies that satisfies linear equations and is the nearest to a given one, with masses as weights. Load
// time. The same bits on every machine.
#pragma once

#include <utility>
#include <vector>

#include "core/mechanism/types.h"

namespace rigstep {

// J v = rate between the motions v = (velocity or displacement, angular ones) of bodies, world frame; beside it the gap
// of the same equation between poses.
struct MotionRow {
  double gap = 0.0, rate = 0.0;
  std::vector<std::pair<int, Vec6>> on = {};  // body and its part of J
};

using InverseMass = Eigen::Matrix<double, 6, 6>;  // of a body, world frame

// Equations that repeat others are welcome. passes: refinements; one is enough within Newton's iterations.
std::vector<Vec6> nearest_motion(const std::vector<MotionRow>& rows, const std::vector<InverseMass>& inverse_mass,
                                 std::vector<Vec6> motion, int passes);

}  // namespace rigstep
