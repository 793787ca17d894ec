// What of a plan follows from the values of tunable parameters. In the loop, between two steps: no allocation, bounded
// by the size of the mechanism.
#pragma once

#include <span>

#include "core/index3/compile/plan.h"

namespace rigstep::index3 {

// The compliance of the rows of a joint, coupling or driver at the start pose, by plan.compliance_choice.
void choose_compliance(Plan& plan, int constraint) noexcept;

// Sets these values, which their parameters allow, and all that follows from them: constants of elements and drivers
// and, where masses or moments of inertia are among them, the compliance of every constraint.
void tune(Plan& plan, std::span<const ParameterValue> values) noexcept;

}  // namespace rigstep::index3
