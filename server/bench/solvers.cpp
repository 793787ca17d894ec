#include "server/bench/solvers.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include "core/index3/compile/plan.h"
#include "core/index3/step/workspace.h"
#include "server/live/session.h"

namespace rigstep::server {

int most_threads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, index3::kMostThreads);
}

TimedSolver timed_stepper(const Mechanism& mechanism, double dt, index3::Settings settings, std::size_t* bytes) {
  settings.dt_ns = std::llround(1e9 * dt);
  const auto stepper = std::make_shared<index3::Stepper>(mechanism, settings);
  if (bytes != nullptr) *bytes = stepper->bytes();
  struct Saved {
    std::vector<double> flat;
    std::uint64_t step = 0;
  };
  const auto saved = std::make_shared<Saved>();
  saved->flat.resize(stepper->state().flat_size());
  TimedSolver solver;
  solver.name = "rigstep";
  const auto residual = std::make_shared<double>(0.0);
  const auto not_converged = std::make_shared<int>(0);
  solver.gap = [residual] { return *residual; };
  solver.not_converged = [not_converged] { return *not_converged; };
  solver.step = [stepper, residual, not_converged] {
    const StepReport report = stepper->step(Inputs{});
    *residual = report.position_residual;
    *not_converged += report.status == StepStatus::not_converged;
    if (failed(report.status))
      throw StepFailed(stepper->mechanism().name() + ": step " + std::to_string(stepper->state().step + 1) + " is " +
                       describe_fault(stepper->mechanism(), report.status, report.body, report.joint));
  };
  solver.save = [stepper, saved] {
    stepper->state().flatten(saved->flat);
    saved->step = stepper->state().step;
  };
  solver.restore = [stepper, saved] { stepper->restore(saved->flat, saved->step); };
  solver.position_0 = [stepper](int body) { return stepper->state().body[static_cast<std::size_t>(body)].r; };
  return solver;
}

TimedSolver timed_literal(const Mechanism& mechanism, double dt, bool tuned, std::size_t* bytes, int threads) {
  offline::LiteralSettings settings;
  settings.tuned = tuned;
  settings.threads = threads;
  settings.dt_ns = std::llround(1e9 * dt);
  const auto stepper = std::make_shared<offline::LiteralStepper>(mechanism, settings);
  if (bytes != nullptr) *bytes = stepper->bytes();
  const auto saved = std::make_shared<offline::LiteralState>(stepper->state());
  TimedSolver solver;
  solver.name = tuned ? "literal_tuned" : "literal";
  solver.step = [stepper] { stepper->step(); };
  solver.save = [stepper, saved] { *saved = stepper->state(); };
  solver.restore = [stepper, saved] { stepper->restore(*saved); };
  solver.position_0 = [stepper](int body) { return stepper->position_0(body); };
  return solver;
}

}  // namespace rigstep::server
