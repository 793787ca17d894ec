// The output channels of a mechanism as a reference solver has them: from its motion, its multipliers and the loads of
// forces.h. Nothing of the stepper's. Offline only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/offline/forces.h"

namespace rigstep::offline {

// (output channels) of an instant whose other fields are complete; NaN: the solver has none.
std::vector<double> output_values(const Mechanism& mechanism, const Situation& at, const Instant& instant);

// (outputs) why a solver's run has no values of an output, as the end of a sentence; empty: it has. Loads of joints and
// drivers count where the motion determines them, at the start, in the middle and at the end of the run.
std::vector<std::string> output_unsupported_reasons(const Scenario& scenario, std::span<const Instant> run);

}  // namespace rigstep::offline
