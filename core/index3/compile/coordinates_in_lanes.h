// Joint coordinates that lanes evaluate as constraints of their own: those that drivers hold, and those of couplings.
// Load time.
#pragma once

#include "core/index3/compile/plan.h"

namespace rigstep::index3 {

// Its row, as kernels/general_rows.h takes it.
RowFormat format_of_coordinate(const Mechanism& mechanism, const JointCoordinate& coordinate);

// A joint whose points and axes lanes hold, and its first axis in the first body.
struct JointInLanes {
  Joint joint;
  Vec3 first_axis_b;
};
JointInLanes joint_of_coordinate(const Mechanism& mechanism, const JointCoordinate& coordinate);

// Such a joint's constants into a lane of batches so wide.
void write_constants(const JointInLanes& joint, int width, double* to);

// The coordinates of couplings into lanes, after the bodies have theirs.
void place_coupled_coordinates(Plan& plan);

}  // namespace rigstep::index3
