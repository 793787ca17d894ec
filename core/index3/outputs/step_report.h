// What a step says about itself: its status by the size of its last increment and its residuals, and where a step that
// failed went wrong. Called in the loop.
#pragma once

#include "core/index3/step/newton.h"

namespace rigstep::index3 {

// status: of all parts
StepReport make_report(const StepProblem& step, const ResidualLimits& limits, const PartStatus& status) noexcept;

// Names the body or joint where a step that failed began, in `report`. Goes through the step once more; the workspace
// belongs to no state afterwards. reached: a state to write into.
void find_origin(const StepProblem& step, State& reached, StepReport& report) noexcept;

}  // namespace rigstep::index3
