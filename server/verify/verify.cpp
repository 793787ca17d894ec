#include "server/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "core/index3/outputs/diagnostics.h"
#include "core/offline/families.h"
#include "server/verify/piecewise_run.h"
#include "server/verify/stepper_run.h"

namespace rigstep::server {

namespace {

using offline::Instant;
using Progress = std::function<void(std::string_view what, double done)>;

constexpr int kMostRuns = 7;         // of the stepper: down to dt / 64
constexpr int kRoom = 20;            // parts before a singular pose, of which the last is left out
constexpr double kTighter = 1e-2;    // the tolerance of a reference solver that is asked again
constexpr double kPatience = 4.0;    // times the limit for a reference solver that has not come to the first instant
constexpr double kEnough = 0.5;      // share of the time that is to be compared where the stepper does not converge
constexpr double kFewestSteps = 20;  // that are to be compared before a singular pose

// Processor time since it was made; others on the machine do not count.
class ProcessorClock {
 public:
  double seconds() const { return static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t begin_ = std::clock();
};

bool uses_penalty(const std::vector<const offline::Solver*>& solvers) {
  return std::ranges::any_of(solvers, [](const offline::Solver* solver) { return solver->name == "index3_literal"; });
}

// One verification with a given dt.
class Verification {
 public:
  Verification(const VerifyRequest& request, const Progress& progress)
      : request_(request), progress_(progress), case_(load_case(request)) {
    scenario_.mechanism = &mechanism();
    scenario_.inputs = held_inputs(case_);
    motions_.expected_order = expected_order(case_);
    report_.mechanism = mechanism().name();
    report_.tolerance = request.tolerance;
    report_.joints = mechanism().joints().size();
    report_.cut = case_.cut;
    report_.recorded = request.path.ends_with(".mcap");
    report_.starts_singular = index3::start_rank(mechanism()).singular();
    report_.asked = case_.duration();
    // at the start the stepper knows no input yet, reference solvers do; a singular pose leaves accelerations open
    motions_.start_has_loads = scenario_.inputs.empty() && !report_.starts_singular;
  }

  VerifyReport run(const std::vector<const offline::Solver*>& solvers) {
    if (uses_penalty(solvers)) report_.alpha = request_.alpha.value_or(case_.mechanism.penalty_factor);
    end_before_singular_pose();
    run_stepper();
    describe_stepper();
    ask(solvers);
    return std::move(report_);
  }

 private:
  // A jump makes stiff parts ring for some steps: its errors need shorter ones to fall as they should.
  int fewest_runs() const { return motions_.expected_order < 2.0 ? 4 : 3; }
  const Mechanism& mechanism() const { return case_.described(); }
  void end_before_singular_pose();
  void run_stepper();
  bool assess_runs();
  bool may_refine(double last_run, double spent) const;
  bool is_long_enough() const;
  void describe_stepper();
  void ask(const std::vector<const offline::Solver*>& solvers);
  VerifyReport::SolverResult ask(const offline::Solver& solver, double tolerance, const std::string& which) const;
  void compare(const offline::Trajectory& run, VerifyReport::SolverResult& result) const;

  const VerifyRequest& request_;
  const Progress& progress_;
  VerifyCase case_;
  offline::Scenario scenario_;
  VerifyReport report_;
  StepperMotions motions_;
  std::size_t certain_ = 0;  // instants up to where poses converge
  offline::Determined determined_;
  Convergence found_;
};

void Verification::end_before_singular_pose() {
  if (case_.steps == 0 || case_.settings.dt_ns % (1 << (fewest_runs() - 1)) != 0)
    throw config::ConfigError(
        fmt::format("--dt, --duration: there is no step, or dt / {} is no whole number of nanoseconds: change them",
                    1 << (fewest_runs() - 1)));
  const std::uint64_t regular =
      regular_steps(case_, scenario_, [this](double done) { progress_("the way to a singular pose", done); });
  if (regular == case_.steps) return;
  report_.why_not_further =
      fmt::format("singular pose near {:.4g} s", seconds(case_.settings.dt_ns) * static_cast<double>(regular + 1));
  case_.steps = regular - regular / kRoom;
  report_.too_short = static_cast<double>(case_.steps) < kFewestSteps;
}

// With ever shorter steps, until every quantity converges.
void Verification::run_stepper() {
  StepperRuns stepper(case_);
  double spent = 0.0, last_run = 0.0;
  for (bool done = false; !done;) {
    const int divisor = 1 << motions_.runs.size();
    const ProcessorClock clock;
    const std::string what = fmt::format("stepper at dt / {}", divisor);
    motions_.runs.push_back(stepper.run(divisor, [&](double part) { progress_(what, part); }));
    last_run = clock.seconds();
    motions_.finest_dt = seconds(case_.settings.dt_ns) / divisor;
    report_.steps.push_back({motions_.finest_dt, {}});
    if (static_cast<int>(motions_.runs.size()) < fewest_runs()) continue;
    if (static_cast<int>(motions_.runs.size()) > fewest_runs()) spent += last_run;
    done = assess_runs() || !may_refine(last_run, spent);
  }
}

// The next run takes twice as long as the last one.
bool Verification::may_refine(double last_run, double spent) const {
  const std::size_t runs = motions_.runs.size();
  return runs < kMostRuns && case_.settings.dt_ns % (1 << runs) == 0 && spent + 2.0 * last_run <= request_.limit;
}

// Up to where poses are certain. Whether shorter steps are not needed.
bool Verification::assess_runs() {
  certain_ = certain_instants(mechanism(), motions_);
  if (certain_ < 2) return false;
  StepperMotions certain = motions_;
  certain.resize(certain_);
  if (determined_.empty()) determined_ = offline::determined_constraints(scenario_, motions_.runs.front().front().body);
  Convergence now = assess(mechanism(), certain, determined_, request_.tolerance);
  report_.settled = !found_.limit.empty() && has_settled(found_, now);
  found_ = std::move(now);
  return found_.converges() && is_long_enough();
}

bool Verification::is_long_enough() const {
  const Instants& run = motions_.runs.front();
  return certain_ == run.size() || (certain_ > 0 && run[certain_ - 1].time >= kEnough * run.back().time);
}

void Verification::describe_stepper() {
  const Instants& run = motions_.runs.front();
  if (certain_ < run.size())
    report_.why_not_further =
        fmt::format("the stepper does not converge beyond {:.4g} s with this dt", run[certain_].time);
  if (certain_ < 2)
    throw StepTooLong("nothing to compare: " + report_.why_not_further + ": " +
                      (report_.starts_singular ? "start further from it" : "use a smaller --dt"));
  report_.too_short |= !is_long_enough();
  report_.until = found_.limit.back().time;
  report_.determined_reactions = static_cast<std::size_t>(
      std::count(determined_.begin(), determined_.begin() + static_cast<std::ptrdiff_t>(report_.joints), true));
  report_.take(mechanism(), found_);
  report_.settled &= !report_.converges;
  // the next three runs, of which all have whole nanoseconds
  const std::int64_t next = (case_.settings.dt_ns >> (motions_.runs.size() - 2)) & ~std::int64_t{7};
  if (!report_.converges && !report_.settled) report_.dt_to_try = seconds(std::max<std::int64_t>(next, 8));
}

void Verification::compare(const offline::Trajectory& run, VerifyReport::SolverResult& result) const {
  const std::size_t count = run.instants.size();
  result.stopped = result.stopped && count < found_.limit.size();  // not where the limit ran out at the very end
  if (!result.stopped && count != found_.limit.size())
    throw offline::SolverError(fmt::format("it gave {} of {} instants", count, found_.limit.size()));
  if (count < 2) return;
  result.until = run.instants.back().time;
  compare_solver(mechanism(), found_, run.instants, determined_, result);
  for (const Instant& instant : run.instants) {
    result.energy_change = std::max(result.energy_change, std::abs(instant.energy - run.instants.front().energy));
    result.position_residual = std::max(result.position_residual, instant.position_residual);
    result.velocity_residual = std::max(result.velocity_residual, instant.velocity_residual);
    result.acceleration_residual = std::max(result.acceleration_residual, instant.acceleration_residual);
  }
  result.seconds = run.seconds;
  result.right_hand_sides = run.right_hand_sides;
}

VerifyReport::SolverResult Verification::ask(const offline::Solver& solver, double tolerance,
                                             const std::string& which) const {
  VerifyReport::SolverResult result;
  result.name = solver.name;
  result.family = offline::family_of(solver.name).name;
  result.tolerance = tolerance;
  result.unsupported_reason = solver.unsupported_reason(mechanism());
  if (result.unsupported_reason.empty()) result.unsupported_reason = why_not_piecewise(case_);
  if (!result.unsupported_reason.empty()) return result;
  offline::Options options;
  options.relative_tolerance = options.absolute_tolerance = tolerance;
  options.alpha = report_.alpha;
  const ProcessorClock clock;
  double reached = 0.0;
  options.progress = [&](double t) {
    progress_(which, t / scenario_.instants.back());
    reached = t;
    result.stopped = clock.seconds() > request_.limit * (t < scenario_.instants[1] ? kPatience : 1.0);
    return !result.stopped;
  };
  try {
    const offline::Trajectory run = simulate_piecewise(solver, case_, scenario_, options);
    compare(run, result);
    if (run.instants.size() < 2)
      result.unsupported_reason =
          fmt::format("stopped at {:.3g} s after {:g} s of processor time: give it more with --limit", reached,
                      kPatience * request_.limit);
  } catch (const Error& error) {
    result.unsupported_reason = error.what();
    result.failed = true;
  }
  return result;
}

void Verification::ask(const std::vector<const offline::Solver*>& solvers) {
  scenario_.start = found_.limit.front().body;
  for (const Instant& instant : found_.limit) scenario_.instants.push_back(instant.time);
  for (std::size_t k = 0; k < solvers.size(); ++k) {
    const std::string which = fmt::format("{}, solver {} of {}", solvers[k]->name, k + 1, solvers.size());
    VerifyReport::SolverResult result = ask(*solvers[k], request_.tolerance, which);
    if (result.differs()) {  // is it the reference solver's own error that shows?
      const double tolerance = kTighter * request_.tolerance;
      VerifyReport::SolverResult tighter = ask(*solvers[k], tolerance, fmt::format("{} at {:g}", which, tolerance));
      if (tighter.agrees()) result = std::move(tighter);
    }
    report_.results.push_back(std::move(result));
  }
}

std::vector<const offline::Solver*> chosen_solvers(const VerifyRequest& request) {
  std::vector<const offline::Solver*> chosen;
  if (request.solvers.empty() || request.solvers == std::vector<std::string>{"all"}) {
    for (const offline::Solver& solver : offline::solvers()) chosen.push_back(&solver);
    return chosen;
  }
  for (const std::string& name : request.solvers) {
    chosen.push_back(offline::find_solver(name));
    if (!chosen.back())
      throw config::ConfigError("--solver: \"" + name +
                                "\" is no reference solver: use all, or one of: " + offline::solver_names());
  }
  return chosen;
}

VerifyReport verify_with_its_dt(const VerifyRequest& request, const Progress& progress) {
  return Verification(request, progress).run(chosen_solvers(request));
}

}  // namespace

VerifyReport verify(const VerifyRequest& request, const Progress& progress) {
  if (request.alpha && !uses_penalty(chosen_solvers(request)))
    throw config::ConfigError("--alpha: only index3_literal has a penalty factor: add it to --solver");
  VerifyRequest chosen = request;
  if (request.dt > 0.0) return verify_with_its_dt(chosen, progress);
  const auto choose = [&](double dt) {  // what needs shorter steps is faster, too
    chosen.dt = dt;
    if (request.duration == 0.0 && dt < 1e-3) chosen.duration = 1e3 * dt;
  };
  for (const double dt : {1e-3, 1e-4}) {
    choose(dt);
    try {
      return verify_with_its_dt(chosen, progress);
    } catch (const StepTooLong&) {
      continue;
    }
  }
  choose(1e-5);
  return verify_with_its_dt(chosen, progress);
}

}  // namespace rigstep::server
