#include "server/bench/solvers.h"

#include <cmath>
#include <memory>
#include <thread>

#include "core/index3/plan.h"
#include "core/index3/workspace.h"
#include "server/session.h"

namespace rigstep::server {

namespace {

// Takes the number of threads if these settings have one.
template <class Settings>
constexpr bool set_threads(Settings& settings, int threads) {
  if constexpr (requires { settings.threads; }) {
    settings.threads = threads;
    return true;
  }
  return threads == 1;
}

}  // namespace

int most_threads() {
  index3::Settings settings;
  return set_threads(settings, 2) ? static_cast<int>(std::max(1u, std::thread::hardware_concurrency())) : 1;
}

std::size_t bytes_of(const index3::Stepper& stepper) {
  return stepper.workspace().bytes() + 2 * sizeof(double) * stepper.state().flat_size();
}

TimedSolver timed_stepper(const Mechanism& mechanism, double dt, int threads, std::size_t* bytes) {
  index3::Settings settings;
  settings.dt_ns = std::llround(1e9 * dt);
  if (!set_threads(settings, threads)) throw Error("the stepper runs on one thread only");
  const auto stepper = std::make_shared<index3::Stepper>(mechanism, settings);
  if (bytes != nullptr) *bytes = bytes_of(*stepper);
  struct Saved {
    std::vector<double> flat;
    std::uint64_t step = 0;
  };
  const auto saved = std::make_shared<Saved>();
  saved->flat.resize(stepper->state().flat_size());
  TimedSolver solver;
  solver.name = "rigstep";
  solver.step = [stepper] {
    const StepReport report = stepper->step(Inputs{});
    if (failed(report.status))
      throw StepFailed(stepper->plan().mechanism.name() + ": step " + std::to_string(stepper->state().step + 1) +
                       " is " + describe_fault(stepper->plan().mechanism, report.status, report.body, report.joint));
  };
  solver.save = [stepper, saved] {
    stepper->state().flatten(saved->flat);
    saved->step = stepper->state().step;
  };
  solver.restore = [stepper, saved] { stepper->restore(saved->flat, saved->step); };
  solver.position_0 = [stepper](int body) { return stepper->state().body[static_cast<std::size_t>(body)].r; };
  return solver;
}

TimedSolver timed_literal(const Mechanism& mechanism, double dt, std::size_t* bytes) {
  offline::LiteralSettings settings;
  settings.dt_ns = std::llround(1e9 * dt);
  const auto stepper = std::make_shared<offline::LiteralStepper>(mechanism, settings);
  if (bytes != nullptr) *bytes = stepper->bytes();
  const auto saved = std::make_shared<offline::LiteralState>(stepper->state());
  TimedSolver solver;
  solver.name = "literal";
  solver.step = [stepper] { stepper->step(); };
  solver.save = [stepper, saved] { *saved = stepper->state(); };
  solver.restore = [stepper, saved] { stepper->restore(*saved); };
  solver.position_0 = [stepper](int body) { return stepper->position_0(body); };
  return solver;
}

}  // namespace rigstep::server
