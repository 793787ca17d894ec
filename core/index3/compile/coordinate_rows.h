// The own coordinate of a revolute or prismatic joint, its angle or displacement: which joints' constraints end with
// its row (RowFormat::Coordinate), and of which joints iterates measure it in lanes. Load time only.
//
// A driver of such a joint, and the springs, frictions and motors along it, act between the same two bodies as the
// joint. As constraints of their own each would be eliminated by itself and evaluated by itself; as one more row of the
// joint they lie in lanes wherever the joints do, and a driven arm remains a chain.
#pragma once

#include "core/index3/compile/plan.h"

namespace rigstep::index3 {

// Per joint of the mechanism. with_drivers: also of the joints that drivers hold.
std::vector<CoordinateRow> coordinate_rows_of(const Mechanism& mechanism, bool with_drivers);

// The driver holds its joint's coordinate in a row of that joint.
bool is_row_of_joint(const Plan& plan, int driver);

// The joint whose own coordinate this followed one is; -1: there is none.
int joint_of_own_coordinate(const Mechanism& mechanism, int coordinate);

// ... if it is a measured one, else -1.
int measured_joint(const Plan& plan, int coordinate);

// The joint along whose own coordinate an input acts, at every pose in another direction; -1: it is no such input.
int joint_of_effort(const Mechanism& mechanism, const Input& input);

}  // namespace rigstep::index3
