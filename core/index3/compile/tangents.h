// How many of a step's iterations need a tangent of their own. Load time only.
#pragma once

#include "core/index3/compile/plan.h"

namespace rigstep::index3 {

// The tangent of the predictor serves all iterations where that is near enough to the end of the step. In closed loops
// it is not where an iteration moves bodies by more than little: redundant rows are independent there by as much as the
// joints are open, which turns their rounding into motion, and near a singular pose a loop's stiffness changes within
// the step. So there a step finds out, and so it does where it is long, or gravity swings bodies quickly, at the end of
// a whip above all. Slender bodies and rotors turn or load what inertia there is so much within a step that each
// iteration needs its own.
Tangents tangents_of(const Mechanism& mechanism, const Settings& settings, bool has_loops);

}  // namespace rigstep::index3
