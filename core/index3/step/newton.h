// Newton's iterations of a step, [001] 3.5 step 3: a fixed number, from the predictor on. Called in the loop.
#pragma once

#include <functional>

#include "core/index3/state.h"
#include "core/index3/step/part_sweeps.h"

namespace rigstep::index3 {

// What a step starts from and where it works.
struct StepProblem {
  const Plan& plan;
  const State& last;     // committed
  const Inputs& inputs;  // held on (t_k, t_k+1]
  Workspace& w;

  double quarter_dt2() const noexcept { return w.arrays.step.quarter_dt2; }
  double end_time() const noexcept;  // t_k+1 [s]
};

// An increment as a part of the largest arm, or as an angle [rad].
double of_largest_arm(const Plan& plan, const Increment& increment) noexcept;

// Drivers, inputs and the loads that are the same at every pose: by one thread before any begins.
void prepare_step(const StepProblem& step) noexcept;

// 3a-3h. false: a thread was late. after_assembly: called in every iteration when the free motion (27) and the factors
// are known, to find where a failed step began; empty in the loop.
// serves_projections: in the end, whether its tangent does.
bool newton(const StepProblem& step, PartSweeps& sweeps, bool& serves_projections,
            const std::function<void()>& after_assembly = {});

}  // namespace rigstep::index3
