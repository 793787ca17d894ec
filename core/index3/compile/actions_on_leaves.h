// Where the leaves of loaded bodies find what acts on these. Load time.
#pragma once

#include "core/index3/compile/plan.h"

namespace rigstep::index3 {

// After force elements have their lanes.
void place_actions(Plan& plan);

}  // namespace rigstep::index3
