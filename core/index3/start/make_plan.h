// From a mechanism and settings to the plan of its steps. Load time only.
#pragma once

#include "core/index3/compile/plan.h"

namespace rigstep::index3 {

// Numbers the constraint rows, chooses each joint's compliance at the start pose, compiles the elimination, and decides
// which bodies stay primal and among how many threads a step is divided.
// Throws MechanismError for a body with too many joints, for a mechanism that is too large, and for an instruction set
// that this processor lacks.
Plan make_plan(const Mechanism& mechanism, const Settings& settings);

}  // namespace rigstep::index3
