// What a step says about itself: its status, by the size of its last increment and its residuals. Called in the loop.
#pragma once

#include "core/index3/step/newton.h"

namespace rigstep::index3 {

// status: of all parts
StepReport make_report(const StepProblem& step, const ResidualLimits& limits, const PartStatus& status) noexcept;

}  // namespace rigstep::index3
