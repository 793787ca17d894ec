#include "core/index3/stepper.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/index3/compile/tuning.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/outputs/sensors.h"
#include "core/index3/outputs/step_report.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/step/extrapolated_step.h"
#include "core/index3/step/find_origin.h"
#include "core/index3/step/lane_access.h"
#include "core/index3/step/projections.h"
#include "core/index3/step/team.h"
#include "core/index3/stepper_access.h"
#include "core/mechanism/numbers.h"

namespace rigstep::index3 {

namespace {

// [001] 3.5, figure 2: predictor and a fixed number of Newton iterations, then both projections with the tangent of the
// converged pose. By each thread of a team, or by one for all parts.
void run(const StepProblem& step, Team* team, int part) {
  PartSweeps sweeps(step.plan, step.w, team, part);
  bool serves_projections = false;                                        // the tangent of the iterations
  sweeps.finish(newton(step, sweeps, serves_projections)                  // 3   (15)-(39)
                && project_velocities(step, sweeps, !serves_projections)  // 4   (40)-(54)
                && project_accelerations(step, sweeps));                  // 5   (55)-(69)
}

Settings of_half_step(Settings settings) {
  if (settings.dt_ns % 2 != 0)
    throw MechanismError("order", "is 4, which divides a step in two, but the step has an odd number of nanoseconds",
                         "use a step of whole microseconds");
  settings.dt_ns /= 2;
  return settings;
}

}  // namespace

struct Stepper::Impl {
  Impl(const Mechanism& mechanism, const Settings& settings);

  StepReport step(const Inputs& inputs) noexcept;
  bool attempt(const StepProblem& problem, Team* with) noexcept;
  void go_on_alone() noexcept;
  StepReport commit(const StepReport& report) noexcept;
  StepReport reject(const Inputs& inputs, StepReport report) noexcept;
  void take_back() noexcept;
  void evaluate_current() noexcept;
  const State& current() noexcept;
  bool allows(const ParameterValue& wanted) const noexcept;
  void tune(std::span<const ParameterValue> values) noexcept;
  const Workspace& read() noexcept;
  StepProblem problem(const Inputs& inputs) noexcept { return {plan, state, inputs, *workspace}; }

  Plan plan;
  std::unique_ptr<Workspace> workspace;
  std::unique_ptr<Workspace> spare;              // with a team: for steps that a late worker spoils
  std::unique_ptr<Extrapolation> extrapolation;  // order 4, whose half steps are made in `workspace`; else null
  std::unique_ptr<Team> team;                    // null: alone
  State state;                                   // the last committed one
  bool state_is_current = true;                  // else it is still in the lanes, from where current() fetches it
  ResidualLimits limits;
  State failed_state;                       // what a failed step would have committed
  std::vector<double> previous_coordinate;  // of the state before, for take_back()
  std::vector<Prescribed> previous_drive;   // likewise
  std::unique_ptr<Sensors> sensors;
  std::uint64_t late_workers = 0;
  bool has_read_elements = true;  // else force elements have not been read since the last step, which read() does
  bool is_tuned = false;          // parameters have been set since the workspaces were made
};

Stepper::Impl::Impl(const Mechanism& mechanism, const Settings& settings)
    : plan(make_plan(mechanism, settings)),
      workspace(std::make_unique<Workspace>(plan)),
      state(initial_state(plan, *workspace)),
      limits(index3::residual_limits(plan, state)),
      failed_state(state),
      previous_coordinate(state.coordinate),
      previous_drive(state.drive) {
  if (plan.settings.order_of_accuracy == 4) {
    extrapolation = std::make_unique<Extrapolation>(plan, make_plan(plan.mechanism, of_half_step(plan.settings)));
    workspace = std::make_unique<Workspace>(extrapolation->half_step);
    evaluate_state(plan, state, *workspace);
    enter_lanes(plan, state, extrapolation->whole_step);
  }
  enter_lanes(plan, state, *workspace);
  sensors = std::make_unique<Sensors>(plan, state);
  const int threads = static_cast<int>(plan.elimination.parts.size());
  if (threads == 1) return;
  spare = std::make_unique<Workspace>(plan);
  team = std::make_unique<Team>(threads);
}

StepReport Stepper::Impl::step(const Inputs& inputs) noexcept {
  Team* with = team && team->is_ready() ? team.get() : nullptr;
  while (!attempt(problem(inputs), with)) {
    go_on_alone();
    with = nullptr;
  }
  StepReport report = make_report(problem(inputs), limits, all_of(*workspace));
  if (extrapolation) {
    report.position_error = extrapolation->error.displacement;
    report.orientation_error = extrapolation->error.rotation;
    report.error_body = extrapolation->error_body;
  }
  return failed(report.status) ? reject(inputs, report) : commit(report);
}

// false: a worker was late
bool Stepper::Impl::attempt(const StepProblem& problem, Team* with) noexcept {
  if (extrapolation) {
    extrapolated_step(problem, *extrapolation);
    return true;
  }
  prepare_step(problem);
  if (with == nullptr)
    run(problem, nullptr, 0);
  else if (!with->split([problem, with](int part) { run(problem, with, part); }))
    return false;
  return problem.w.part_status[0].complete;
}

// A late worker may still write: the step is made once more in memory that it does not know.
void Stepper::Impl::go_on_alone() noexcept {
  if (is_tuned) {
    spare->follow_parameters(plan);
    for (int i = 0; i < static_cast<int>(plan.mechanism.bodies().size()); ++i) spare->follow_body(plan, i);
  }
  enter_lanes(plan, current(), *spare);
  evaluate_state(plan, state, *spare);
  std::swap(workspace, spare);
  ++late_workers;
}

StepReport Stepper::Impl::commit(const StepReport& report) noexcept {
  gather_reached(plan, *workspace);
  workspace->advance();
  follow_reached_coordinates(plan, state.coordinate, *workspace);
  if (extrapolation) {
    extrapolation->whole_step.advance();  // for take_back()
    copy_last_instant(plan, *workspace, extrapolation->whole_step);
  }
  has_read_elements = false;
  previous_coordinate = state.coordinate;
  previous_drive = state.drive;
  std::ranges::transform(workspace->coordinate, state.coordinate.begin(), &Coordinate::value);
  std::copy(workspace->drive.begin(), workspace->drive.end(), state.drive.begin());
  ++state.step;
  state_is_current = false;
  return report;
}

// The step just committed is undone: the lanes still hold the instant before it.
void Stepper::Impl::take_back() noexcept {
  workspace->advance();
  if (extrapolation) {
    extrapolation->whole_step.advance();
    copy_last_instant(plan, extrapolation->whole_step, *workspace);
  }
  std::swap(state.coordinate, previous_coordinate);
  std::swap(state.drive, previous_drive);
  --state.step;
  state_is_current = false;
  evaluate_current();
}

// the state stays; what sensors read belongs to it again, but for the inputs (evaluate_state)
StepReport Stepper::Impl::reject(const Inputs& inputs, StepReport report) noexcept {
  if (extrapolation)
    copy_last_instant(plan, extrapolation->whole_step, *workspace);
  else
    find_origin(problem(inputs), failed_state, report);
  evaluate_current();
  return report;
}

void Stepper::Impl::evaluate_current() noexcept {
  evaluate_state(plan, current(), *workspace);
  has_read_elements = true;
}

// What outputs read of the last step, or of the state that evaluate_state saw.
const Workspace& Stepper::Impl::read() noexcept {
  if (!std::exchange(has_read_elements, true)) read_elements(plan, plan.time_of(state.step), *workspace);
  return *workspace;
}

const State& Stepper::Impl::current() noexcept {
  if (!std::exchange(state_is_current, true)) leave_lanes(plan, *workspace, Instant::last, state);
  return state;
}

bool Stepper::Impl::allows(const ParameterValue& wanted) const noexcept {
  const std::vector<Parameter>& all = plan.mechanism.parameters();
  return wanted.index >= 0 && wanted.index < static_cast<int>(all.size()) && all[wanted.index].tunable &&
         all[wanted.index].allows(wanted.value);
}

// The spare workspace follows when it is needed: a late worker may be at it now.
void Stepper::Impl::tune(std::span<const ParameterValue> values) noexcept {
  is_tuned = true;
  read();  // with the parameters of the last step
  index3::tune(plan, values);
  Workspace* const whole_step = extrapolation ? &extrapolation->whole_step : nullptr;
  if (extrapolation) index3::tune(extrapolation->half_step, values), whole_step->follow_parameters(plan);
  workspace->follow_parameters(plan);
  const auto follow_body = [this, whole_step](int body) {
    for (Workspace* const each : {workspace.get(), whole_step}) {
      if (each == nullptr) continue;
      each->follow_body(plan, body);
      enter_weight(plan, body, *each);
    }
  };
  for (const ParameterValue& each : values)
    for (const Target& target : plan.mechanism.parameters()[each.index].targets) {
      if (target.owner_kind == owner_kind_of<Body>) follow_body(target.owner);
      if (target.owner_kind == owner_kind_of<Vec3>)
        for (int i = 0; i < static_cast<int>(plan.mechanism.bodies().size()); ++i) follow_body(i);
    }
}

Stepper::Stepper(const Mechanism& mechanism, const Settings& settings)
    : impl_(std::make_unique<Impl>(mechanism, settings)) {}
Stepper::~Stepper() = default;
Stepper::Stepper(Stepper&&) noexcept = default;

StepReport Stepper::step(const Inputs& inputs) noexcept { return impl_->step(inputs); }

StepReport Stepper::step(const Inputs& inputs, Outputs& outputs) noexcept {
  StepReport report = impl_->step(inputs);
  if (failed(report.status)) return report;
  Outputs reached;
  read_outputs(report, reached);
  report.output = first_not_finite(reached);
  if (report.output < 0) {
    outputs = reached;
  } else {
    report.status = StepStatus::output_not_finite;
    impl_->take_back();
  }
  return report;
}

void Stepper::read_outputs(const StepReport& report, Outputs& outputs) const noexcept {
  impl_->sensors->read(impl_->plan, impl_->read(), state(), report, outputs);
}
Vec6 Stepper::joint_reaction(int j) const noexcept { return index3::joint_reaction(impl_->plan, state(), j); }
double Stepper::driver_effort(int driver) const noexcept { return index3::driver_effort(impl_->plan, state(), driver); }
Energy Stepper::energy() const noexcept { return index3::energy(impl_->plan, state(), impl_->read()); }

bool Stepper::set_parameters(std::span<const ParameterValue> values) noexcept {
  for (const ParameterValue& each : values)
    if (!impl_->allows(each)) return false;
  impl_->tune(values);
  return true;
}
bool Stepper::set_parameter(int index, double value) noexcept {
  const ParameterValue one{index, value};
  return set_parameters({&one, 1});
}
double Stepper::parameter(int index) const noexcept { return impl_->plan.mechanism.parameters()[index].value; }

const State& Stepper::state() const noexcept { return impl_->current(); }

void Stepper::restore(std::span<const double> flat, std::uint64_t step_index) noexcept {
  impl_->state.restore(flat, step_index);
  keep_planar(impl_->plan.mechanism, impl_->plan.planar, impl_->state);
  impl_->state_is_current = true;
  impl_->evaluate_current();
  enter_lanes(impl_->plan, impl_->state, *impl_->workspace);
  if (impl_->extrapolation) enter_lanes(impl_->plan, impl_->state, impl_->extrapolation->whole_step);
}

const Mechanism& Stepper::mechanism() const noexcept { return impl_->plan.mechanism; }
const Settings& Stepper::settings() const noexcept { return impl_->plan.settings; }
const ResidualLimits& Stepper::residual_limits() const noexcept { return impl_->limits; }

std::size_t Stepper::bytes() const noexcept {
  const std::size_t of_order_4 = impl_->extrapolation ? impl_->extrapolation->bytes() : 0;
  return impl_->workspace->bytes() + of_order_4 + impl_->sensors->bytes() +
         2 * sizeof(double) * impl_->state.flat_size();
}

int Stepper::threads() const noexcept { return impl_->team ? impl_->team->threads() : 1; }
std::span<const std::thread::native_handle_type> Stepper::workers() const noexcept {
  if (impl_->team == nullptr) return {};
  return impl_->team->workers();
}
std::uint64_t Stepper::late_workers() const noexcept { return impl_->late_workers; }

const Plan& StepperAccess::plan(const Stepper& stepper) noexcept { return stepper.impl_->plan; }
const Workspace& StepperAccess::workspace(const Stepper& stepper) noexcept { return stepper.impl_->read(); }

}  // namespace rigstep::index3
