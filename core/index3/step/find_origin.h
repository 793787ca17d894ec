// Where a step that failed went wrong. Called in the loop.
#pragma once

#include "core/index3/step/newton.h"

namespace rigstep::index3 {

// Names the body or joint where a step that failed began, in `report`. Goes through the step once more; the workspace
// belongs to no state afterwards. reached: a state to write into.
void find_origin(const StepProblem& step, State& reached, StepReport& report) noexcept;

}  // namespace rigstep::index3
