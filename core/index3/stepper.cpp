#include "core/index3/stepper.h"

#include <algorithm>
#include <utility>

#include "core/index3/outputs/diagnostics.h"
#include "core/index3/outputs/sensors.h"
#include "core/index3/outputs/step_report.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/lane_access.h"
#include "core/index3/step/projections.h"
#include "core/index3/step/team.h"
#include "core/index3/stepper_access.h"

namespace rigstep::index3 {

namespace {

// [001] 3.5, figure 2: predictor and a fixed number of Newton iterations, then both projections with the tangent of the
// converged pose. By each thread of a team, or by one for all parts.
void run(const StepProblem& step, Team* team, int part) {
  PartSweeps sweeps(step.plan, step.w, team, part);
  sweeps.finish(newton(step, sweeps)                      // 3   (15)-(39)
                && project_velocities(step, sweeps)       // 4   (40)-(54)
                && project_accelerations(step, sweeps));  // 5   (55)-(69)
}

}  // namespace

struct Stepper::Parts {
  Parts(const Mechanism& mechanism, const Settings& settings);

  StepReport step(const Inputs& inputs) noexcept;
  bool attempt(const StepProblem& problem, Team* with) noexcept;
  void go_on_alone() noexcept;
  StepReport commit(const Inputs& inputs, const StepReport& report) noexcept;
  StepReport reject(const Inputs& inputs, StepReport report) noexcept;
  void take_back() noexcept;
  const State& current() noexcept;
  StepProblem problem(const Inputs& inputs) noexcept { return {plan, state, inputs, *workspace}; }

  Plan plan;
  std::unique_ptr<Workspace> workspace;
  std::unique_ptr<Workspace> spare;  // with a team: for steps that a late worker spoils
  std::unique_ptr<Team> team;        // null: alone
  State state;                       // the last committed one
  bool state_is_current = true;      // else it is still in the lanes, from where current() fetches it
  ResidualLimits limits;
  State failed_state;  // what a failed step would have committed; before that, what take_back() needs
  std::unique_ptr<Sensors> sensors;
  std::uint64_t late_workers = 0;
};

Stepper::Parts::Parts(const Mechanism& mechanism, const Settings& settings)
    : plan(make_plan(mechanism, settings)),
      workspace(std::make_unique<Workspace>(plan)),
      state(initial_state(plan, *workspace)),
      limits(index3::residual_limits(plan, state)),
      failed_state(state) {
  enter_lanes(plan, state, *workspace);
  sensors = std::make_unique<Sensors>(plan, state);
  const int threads = static_cast<int>(plan.elimination.parts.size());
  if (threads == 1) return;
  spare = std::make_unique<Workspace>(plan);
  team = std::make_unique<Team>(threads);
}

StepReport Stepper::Parts::step(const Inputs& inputs) noexcept {
  Team* with = team && team->is_ready() ? team.get() : nullptr;
  while (!attempt(problem(inputs), with)) {
    go_on_alone();
    with = nullptr;
  }
  const StepReport report = make_report(problem(inputs), limits, all_of(*workspace));
  return failed(report.status) ? reject(inputs, report) : commit(inputs, report);
}

// false: a worker was late
bool Stepper::Parts::attempt(const StepProblem& problem, Team* with) noexcept {
  prepare_step(problem);
  if (with == nullptr)
    run(problem, nullptr, 0);
  else if (!with->split([problem, with](int part) { run(problem, with, part); }))
    return false;
  return problem.w.part_status[0].complete;
}

// A late worker may still write: the step is made once more in memory that it does not know.
void Stepper::Parts::go_on_alone() noexcept {
  enter_lanes(plan, current(), *spare);
  evaluate_state(plan, state, *spare);
  std::swap(workspace, spare);
  ++late_workers;
}

StepReport Stepper::Parts::commit(const Inputs& inputs, const StepReport& report) noexcept {
  const double end_time = problem(inputs).end_time();
  gather_followed_poses(plan, *workspace);
  workspace->advance();
  if (plan.shows_forces) apply_forces(plan, inputs, end_time, state.coordinate, ActingAt::instant, *workspace);
  failed_state.coordinate = state.coordinate;
  failed_state.drive = state.drive;
  follow_coordinates(plan, state.coordinate, *workspace);
  std::copy(workspace->coordinate.begin(), workspace->coordinate.end(), state.coordinate.begin());
  std::copy(workspace->drive.begin(), workspace->drive.end(), state.drive.begin());
  ++state.step;
  state_is_current = false;
  return report;
}

// The step just committed is undone: the lanes still hold the instant before it.
void Stepper::Parts::take_back() noexcept {
  workspace->advance();
  std::swap(state.coordinate, failed_state.coordinate);
  std::swap(state.drive, failed_state.drive);
  --state.step;
  state_is_current = false;
  evaluate_state(plan, current(), *workspace);
}

// the state stays; what sensors read belongs to it again
StepReport Stepper::Parts::reject(const Inputs& inputs, StepReport report) noexcept {
  find_origin(problem(inputs), failed_state, report);
  evaluate_state(plan, current(), *workspace);
  return report;
}

const State& Stepper::Parts::current() noexcept {
  if (!std::exchange(state_is_current, true)) leave_lanes(plan, *workspace, Instant::last, state);
  return state;
}

Stepper::Stepper(const Mechanism& mechanism, const Settings& settings)
    : parts_(std::make_unique<Parts>(mechanism, settings)) {}
Stepper::~Stepper() = default;
Stepper::Stepper(Stepper&&) noexcept = default;

StepReport Stepper::step(const Inputs& inputs) noexcept { return parts_->step(inputs); }

StepReport Stepper::step(const Inputs& inputs, Outputs& outputs) noexcept {
  StepReport report = parts_->step(inputs);
  if (failed(report.status)) return report;
  Outputs reached;
  read_outputs(report, reached);
  report.output = first_not_finite(reached);
  if (report.output < 0) {
    outputs = reached;
  } else {
    report.status = StepStatus::output_not_finite;
    parts_->take_back();
  }
  return report;
}

void Stepper::read_outputs(const StepReport& report, Outputs& outputs) const noexcept {
  parts_->sensors->read(parts_->plan, *parts_->workspace, state(), report, outputs);
}
Vec6 Stepper::joint_reaction(int j) const noexcept { return index3::joint_reaction(parts_->plan, state(), j); }
double Stepper::driver_effort(int driver) const noexcept {
  return index3::driver_effort(parts_->plan, state(), driver);
}
Energy Stepper::energy() const noexcept { return index3::energy(parts_->plan, state(), *parts_->workspace); }

const State& Stepper::state() const noexcept { return parts_->current(); }

void Stepper::restore(std::span<const double> flat, std::uint64_t step_index) noexcept {
  parts_->state.restore(flat, step_index);
  parts_->state_is_current = true;
  evaluate_state(parts_->plan, parts_->state, *parts_->workspace);
  enter_lanes(parts_->plan, parts_->state, *parts_->workspace);
}

const Mechanism& Stepper::mechanism() const noexcept { return parts_->plan.mechanism; }
const Settings& Stepper::settings() const noexcept { return parts_->plan.settings; }
const ResidualLimits& Stepper::residual_limits() const noexcept { return parts_->limits; }

std::size_t Stepper::bytes() const noexcept {
  return parts_->workspace->bytes() + parts_->sensors->bytes() + 2 * sizeof(double) * parts_->state.flat_size();
}

int Stepper::threads() const noexcept { return parts_->team ? parts_->team->threads() : 1; }
std::span<const std::thread::native_handle_type> Stepper::workers() const noexcept {
  if (parts_->team == nullptr) return {};
  return parts_->team->workers();
}
std::uint64_t Stepper::late_workers() const noexcept { return parts_->late_workers; }

const Plan& StepperAccess::plan(const Stepper& stepper) noexcept { return stepper.parts_->plan; }
const Workspace& StepperAccess::workspace(const Stepper& stepper) noexcept { return *stepper.parts_->workspace; }

}  // namespace rigstep::index3
