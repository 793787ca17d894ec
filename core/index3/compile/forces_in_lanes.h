// Force elements in lanes (divide_evaluations.h says which): their batches, laws, tables and constants. Load time.
#pragma once

#include "core/index3/compile/plan.h"

namespace rigstep::index3 {

// After the bodies have their lanes.
void place_forces_in_lanes(Plan& plan);

}  // namespace rigstep::index3
