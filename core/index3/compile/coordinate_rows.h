// Which joints' constraints end with the row of their own coordinate (RowFormat::Coordinate). Load time only.
//
// A driver of a revolute or prismatic joint, and the springs, frictions and motors along it, act between the same two
// bodies as the joint. As constraints of their own each would be eliminated by itself and evaluated by itself; as one
// more row of the joint they lie in lanes wherever the joints do, and a driven arm remains a chain.
#pragma once

#include "core/index3/compile/plan.h"

namespace rigstep::index3 {

// Per joint of the mechanism. with_drivers: also of the joints that drivers hold.
std::vector<CoordinateRow> coordinate_rows_of(const Mechanism& mechanism, bool with_drivers);

}  // namespace rigstep::index3
