// Motions and loads of the stepper as reference solvers report theirs, and where its pose gets singular. Offline.
#pragma once

#include <functional>
#include <vector>

#include "core/index3/outputs/reactions.h"
#include "core/offline/solver.h"
#include "server/verify/verify_case.h"

namespace rigstep::server {

// The stepper fails with this dt, or leaves nothing to compare.
struct StepTooLong : offline::SolverError {
  using SolverError::SolverError;
};

using RunProgress = std::function<void(double done)>;  // 0..1; may throw to stop

// The stepper with the step of a case divided by `divisor`, at the same instants for each of them. Loads are those that
// outputs give. Throws StepTooLong.
class StepperRuns {
 public:
  explicit StepperRuns(const VerifyCase& a);
  std::vector<offline::Instant> run(int divisor, const RunProgress& progress);

 private:
  offline::Instant read(const index3::Stepper& stepper);

  const VerifyCase& case_;
  const index3::Stepper at_start_;  // whose plan the two below refer to
  index3::Workspace pose_;
  index3::Reactions reactions_;
};

// Steps before the pose gets singular; all of them where it does not. Throws StepTooLong.
std::uint64_t regular_steps(const VerifyCase& a, const offline::Scenario& scenario, const RunProgress& progress);

}  // namespace rigstep::server
