#include "core/index3/stepper.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/index3/outputs/diagnostics.h"
#include "core/index3/outputs/sensors.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/lane_access.h"
#include "core/index3/step/team.h"

namespace rigstep::index3 {

namespace {

constexpr double kTornJoint = 1e-2;  // a joint open by more than this, of the largest arm or in radians, is no joint

// the end of the step that starts at `step` [s]
double time_at(const Plan& plan, std::uint64_t step) {
  return 1e-9 * static_cast<double>(static_cast<std::int64_t>(step) * plan.settings.dt_ns);
}

Increment larger(const Increment& a, const Increment& b) {
  return {std::max(a.move, b.move), std::max(a.turn, b.turn)};
}

void add(const StepMeasures& found, StepMeasures& sum) {
  sum.increment = larger(sum.increment, found.increment);
  sum.finite = sum.finite && found.finite;
  sum.residuals = {std::max(sum.residuals.position, found.residuals.position),
                   std::max(sum.residuals.velocity, found.residuals.velocity),
                   std::max(sum.residuals.acceleration, found.residuals.acceleration)};
}

// what all have noticed; where the parts are joined, all find the same
PartStatus all_of(const Workspace& w) {
  PartStatus all = w.part_status[0];
  for (std::size_t p = 1; p < w.part_status.size(); ++p) {
    all.failed = all.failed || w.part_status[p].failed;
    add(w.part_status[p].found, all.found);
  }
  return all;
}

// One attempt at a step: the work of one part beside the threads of the others, or of all parts alone. Every thread
// joins the parts by itself, once it has heard of the others; only what must be looked at one by one (force elements,
// general constraints) is the first one's. False: somebody was late, and the attempt is void.
class Attempt {
 public:
  // team: null, alone
  Attempt(const Plan& plan, const State& last, const Inputs& inputs, Workspace& w, Team* team, int part)
      : plan_(plan),
        kernels_(*plan.kernels),
        last_(last),
        inputs_(inputs),
        w_(w),
        team_(team),
        part_(part),
        is_divided_(w.parts.size() > 1),
        stamp_(team ? std::uint64_t{team->call()} << 32U : 0) {
    each([&](int p) { w.part_status[p] = {}; });
  }

  // [001] 3.5, figure 2: predictor, a fixed number of Newton iterations, the first of them with a tangent of their own,
  // both projections with the tangent of the converged pose.
  void run() {
    const bool complete = iterate([] {})               // 3
                          && project_velocities()      // 4        (40)-(54)
                          && project_accelerations();  // 5        (55)-(69)
    each([&](int p) { w_.part_status[p].complete = complete; });
  }

  // before anybody begins
  static void prepare(const Plan& plan, const State& last, const Inputs& inputs, Workspace& w) {
    drive(plan, last, inputs, time_at(plan, last.step + 1), w);
    take_inputs(plan, inputs, w);
    if (!loads_vary(plan)) load(plan, last, inputs, w);
  }

  // Newton's iterations from the predictor on
  template <class Watch>
  bool iterate(const Watch& after_free_motion) {
    predict();  // 3a   (15) (16)
    if (!observe(0)) return false;
    for (int k = 0; k < plan_.settings.iterations; ++k) {
      AssemblySweep up = solve(AssemblySweep::Start::free_motion, closing(k));
      up.constrain = true;
      if (needs_tangent(k)) up.with_stiffness = true, up.factorise = {true, h2(), true, 0};
      if (!assemble(up)) return false;  // 3c-3e   (17) (18) (26) (27) (36)-(39), leaves to root
      after_free_motion();
      // 3f-3h, 3b   (34) (24) (25) (15) (16)
      disassemble(Multiplier::lambda, DisassemblySweep::Finish::displacements, is_last(k));
      if (!observe(k + 1)) return false;
    }
    return true;
  }

 private:
  // (40)-(54): the nearest velocities, in the metric of the tangent, that satisfy J v + Phi_t = 0. The tangent is that
  // of the converged pose, without the force elements: a metric that holds springs does not keep momentum.
  bool project_velocities() {
    AssemblySweep up = solve(AssemblySweep::Start::velocities, RightHandSide::rate);
    up.constrain = up.with_stiffness = up.keep_sides = true;
    up.factorise = {true, h2(), false, 1};
    if (!assemble(up)) return false;
    for (int sweep = 1; sweep < plan_.settings.projection_passes; ++sweep)
      if (!sweep_again(RightHandSide::rate, Multiplier::sigma)) return false;
    disassemble(Multiplier::sigma, DisassemblySweep::Finish::velocities);
    return one_by_one([this] {
      gather_velocities(plan_, w_);
      add_quadratic_terms(plan_, w_);
    });
  }

  // (55)-(69): the nearest accelerations that satisfy J a = gamma, with gamma of the projected velocities
  bool project_accelerations() {
    if (!assemble(solve(AssemblySweep::Start::accelerations, RightHandSide::quadratic), kTwists)) return false;
    Multiplier kind = Multiplier::kappa;
    for (int sweep = 1; sweep < plan_.settings.projection_passes; ++sweep, kind = Multiplier::more_kappa)
      if (!sweep_again(RightHandSide::quadratic, kind)) return false;
    disassemble(kind, DisassemblySweep::Finish::accelerations);
    return note_joins(kind);
  }

  // with the pose; else they are those of the step
  static bool loads_vary(const Plan& plan) { return !plan.pose_dependent_bodies.empty(); }
  bool is_last(int iteration) const { return iteration + 1 == plan_.settings.iterations; }
  bool needs_tangent(int iteration) const { return iteration < plan_.tangents.count; }

  static void load(const Plan& plan, const State& last, const Inputs& inputs, Workspace& w) {
    load_bodies(plan, inputs, time_at(plan, last.step + 1), last.coordinate, w);
  }

  // At a singular pose loops hold nothing in one direction. What rounding leaves open there, multipliers that were
  // carried over would add up step by step; anew they are as small as the first iteration makes them, and the next one
  // mends what that leaves open elsewhere. In trees every direction is held, and carrying over rounds less.
  RightHandSide closing(int iteration) const {
    return plan_.has_loops && iteration == 0 ? RightHandSide::Phi_restarted : RightHandSide::Phi;
  }

  double h2() const { return 0.25 * plan_.dt() * plan_.dt(); }

  // f(part) on this thread's part, or on all
  template <class F>
  void each(const F& f) {
    if (team_) return f(part_);
    for (int part = 0; part < static_cast<int>(w_.parts.size()); ++part) f(part);
  }
  bool is_first() const { return team_ == nullptr || part_ == 0; }

  void post(unsigned what) {
    if (team_) w_.exchange.post(w_.lanes, part_, what, ++stamp_);
  }
  // what was posted last
  bool fetch(unsigned what) {
    if (team_) return w_.exchange.fetch(w_.lanes, part_, what, stamp_, *team_, spins_);
    w_.exchange.pass(w_.lanes, what);
    return true;
  }
  bool pass(unsigned what) {
    post(what);
    return fetch(what);
  }

  // what is the first one's, while nobody goes on
  template <class F>
  bool one_by_one(const F& f) {
    if (!loads_vary(plan_)) return true;
    if (!pass(kNothing)) return false;
    if (is_first()) f();
    return pass(kNothing);
  }

  void predict() {
    if (is_divided_) each([&](int p) { kernels_.predict(w_.borders[p]), kernels_.predict(w_.joins[p]); });
    post(kPoses);
    each([&](int p) { kernels_.predict(w_.parts[p]); });
  }

  // what must be looked at one by one, before the iteration k
  bool observe(int k) {
    if (!loads_vary(plan_)) return true;
    if (!fetch(kPoses)) return false;
    const bool is_done = k == plan_.settings.iterations;
    return one_by_one([&] {
      gather_poses(plan_, w_);
      constrain_general(plan_, w_, needs_tangent(k) || is_done);
      if (is_done) return;
      if (needs_tangent(k)) tangent_of_forces(plan_, h2(), 0.5 * plan_.dt(), w_);  // (8)
      load(plan_, last_, inputs_, w_);
    });
  }

  static AssemblySweep solve(AssemblySweep::Start start, RightHandSide rhs) {
    AssemblySweep up;
    up.start = start;
    up.assemble = true;
    up.rhs = rhs;
    return up;
  }

  // the constraints between the parts
  bool constrain_between(const AssemblySweep& up) {
    AssemblySweep constraints;
    constraints.constrain = true;
    constraints.with_stiffness = up.with_stiffness;
    constraints.keep_sides = up.keep_sides;
    if (!loads_vary(plan_) && !fetch(kPoses)) return false;  // else they have been looked at
    each([&](int p) { kernels_.assemble(w_.joins[p], constraints); });
    return true;
  }

  // the parts, then what joins them; more: passed on by the way
  bool assemble(const AssemblySweep& up, unsigned more = kNothing) {
    each([&](int p) { rise(w_.parts[p], up, w_.part_status[p]); });
    if (!is_divided_) return true;
    if (up.constrain && !constrain_between(up)) return false;
    each([&](int p) { rise(w_.borders[p], up, w_.part_status[p]); });
    if (!pass(more | kRightHandSides | (up.factorise.wanted ? kCompliances : kNothing))) return false;
    if (more & kTwists)
      each([&](int p) { kernels_.disassemble(w_.joins[p], {false, {}, DisassemblySweep::Finish::velocities}); });
    AssemblySweep above = up;
    above.constrain = false;  // known already
    each([&](int p) { rise(w_.joins[p], above, w_.part_status[p]); });
    return true;
  }

  void rise(const StepArrays& a, const AssemblySweep& up, PartStatus& notice) {
    if (!kernels_.assemble(a, up)) notice.failed = true;
  }

  // what joins the parts, then these; what others must know of it is on its way at once
  void disassemble(Multiplier kind, DisassemblySweep::Finish finish, bool measure = true) {
    const DisassemblySweep down{true, kind, finish, measure};
    each([&](int p) {
      if (!is_divided_) return;
      StepMeasures& found = w_.part_status[p].found;
      // primal bodies, which constraints of the part need; those between the parts have not heard of the others yet
      found.increment = larger(kernels_.disassemble(w_.joins[p], down).increment, found.increment);
      add(kernels_.disassemble(w_.borders[p], down), found);
    });
    if (finish == DisassemblySweep::Finish::displacements) post(kPoses);
    if (finish == DisassemblySweep::Finish::accelerations) post(kMotions);
    each([&](int p) { add(kernels_.disassemble(w_.parts[p], down), w_.part_status[p].found); });
  }

  // the residuals of the constraints between the parts
  bool note_joins(Multiplier kind) {
    if (!is_divided_ || !is_first()) return true;
    if (!fetch(kMotions)) return false;
    add(kernels_.disassemble(w_.joins[0], {false, kind, DisassemblySweep::Finish::accelerations}),
        w_.part_status[0].found);
    return true;
  }

  // one pass leaves a residual of the order of the compliance, a second one its square
  bool sweep_again(RightHandSide rhs, Multiplier kind) {
    disassemble(kind, DisassemblySweep::Finish::motion);
    return assemble(solve(AssemblySweep::Start::same_motion, rhs));
  }

  const Plan& plan_;
  const Kernels& kernels_;
  const State& last_;
  const Inputs& inputs_;
  Workspace& w_;
  Team* team_;
  int part_;
  bool is_divided_;
  std::uint64_t stamp_;
  int spins_ = 0;  // waited so far
};

bool is_finite(const BodyState& b) {
  return std::isfinite(b.r.sum() + b.p.sum() + b.v.sum() + b.w_b.sum() + b.a.sum() + b.alpha_b.sum());
}

// first joint, coupling or driver that the step left open, or -1
int torn_joint(const Plan& plan, const Workspace& w) {
  for (int row = 0; row < plan.rows(); ++row) {
    const int c = plan.joint_of_row[row];
    const double Phi = row_value(plan, w.lanes.Phi, c, row - plan.first_row[c]);
    if (std::abs(Phi) > kTornJoint * (plan.is_length[row] ? plan.length : 1.0)) return c;
  }
  return -1;
}

int most_moved_body(const Plan& plan, const Workspace& w) {
  int most = -1;
  double largest = 0.0;
  for (int i = 0; i < static_cast<int>(plan.mechanism.bodies().size()); ++i) {
    const Vec6 d = motion(plan, w, i);
    const double size = std::max(d.head<3>().norm() / plan.length, d.tail<3>().norm());
    if (size > largest) largest = size, most = i;
  }
  return most;
}

// what the step says about itself
StepReport judge(const Plan& plan, const Workspace& w, const ResidualLimits& limits, const PartStatus& notice) {
  const Increment& last = notice.found.increment;
  StepReport report;
  report.last_increment = std::max(last.move, last.turn);
  if (std::max(last.move / plan.length, last.turn) > plan.settings.increment_tolerance)
    report.status = StepStatus::not_converged;
  measure_residuals(plan, w, notice.found.residuals, report);
  if (!limits.hold(report)) report.status = StepStatus::not_converged;
  if (last.turn > 1.0 || last.move > plan.length ||
      report.position_residual > kTornJoint * std::min(1.0, plan.length)) {
    const int torn = torn_joint(plan, w);
    if (torn >= 0 || last.turn > 1.0 || last.move > plan.length) {
      report.status = StepStatus::diverged;
      report.joint = torn;
      if (torn < 0) report.body = most_moved_body(plan, w);
    }
  }
  if (!notice.found.finite) {
    report.status = StepStatus::not_finite;
  } else if (notice.failed) {
    report.status = StepStatus::singular;
  }
  return report;
}

// Goes through a step that failed once more, slowly: the first body whose motion is not finite before the joints spread
// that over the mechanism, else the first joint or body of the result.
void find_origin(const Plan& plan, const State& last, const Inputs& inputs, Workspace& w, State& reached,
                 StepReport& report) {
  leave_lanes(plan, w, Instant::next, reached);
  report.body = report.joint = -1;
  for (std::size_t row = 0; row < reached.lambda.size() && report.joint < 0; ++row)
    if (!std::isfinite(reached.lambda[row])) report.joint = plan.joint_of_row[row];
  for (std::size_t i = 0; i < reached.body.size() && report.body < 0; ++i)
    if (!is_finite(reached.body[i])) report.body = static_cast<int>(i);
  int body = -1;
  Attempt::prepare(plan, last, inputs, w);
  Attempt(plan, last, inputs, w, nullptr, 0).iterate([&] {
    for (int i = 0; i < static_cast<int>(last.body.size()) && body < 0; ++i)
      if (!std::isfinite(motion(plan, w, i).sum())) body = i;
  });
  if (body < 0) return;
  report.body = body;
  report.joint = -1;
}

// The same for what could not be eliminated: the factor of the projections has taken the place of the iterations', so
// these are made once more. What moved most, or is torn, stands in where all pivots can be had.
void find_singular(const Plan& plan, const State& last, const Inputs& inputs, Workspace& w, StepReport& report) {
  Singular first, of_projections = what_is_singular(plan, w);
  Attempt::prepare(plan, last, inputs, w);
  Attempt(plan, last, inputs, w, nullptr, 0).iterate([&] {
    if (first.is_none()) first = what_is_singular(plan, w);
  });
  if (first.is_none()) first = of_projections;
  if (first.is_none()) return;
  report.body = first.body;
  report.joint = first.joint;
}

}  // namespace

Stepper::Stepper(const Mechanism& mechanism, const Settings& settings)
    : plan_(std::make_unique<Plan>(mechanism, settings)),
      workspace_(std::make_unique<Workspace>(*plan_)),
      state_(initial_state(*plan_, *workspace_)),
      limits_(index3::residual_limits(*plan_, state_)),
      failed_(state_) {
  enter_lanes(*plan_, state_, *workspace_);
  sensors_ = std::make_unique<Sensors>(*plan_, state_);
  const int threads = static_cast<int>(plan_->elimination.parts.size());
  if (threads == 1) return;
  spare_ = std::make_unique<Workspace>(*plan_);
  team_ = std::make_unique<Team>(threads);
}

Stepper::~Stepper() = default;
Stepper::Stepper(Stepper&&) noexcept = default;

const State& Stepper::state() const noexcept {
  if (!std::exchange(state_is_current_, true)) leave_lanes(*plan_, *workspace_, Instant::last, state_);
  return state_;
}
const Plan& Stepper::plan() const noexcept { return *plan_; }
std::size_t Stepper::bytes() const noexcept {
  return workspace_->bytes() + sensors_->bytes() + 2 * sizeof(double) * state_.flat_size();
}
int Stepper::threads() const noexcept { return team_ ? team_->threads() : 1; }

std::span<const pthread_t> Stepper::workers() const noexcept {
  return team_ ? team_->workers() : std::span<const pthread_t>();
}
const Workspace& Stepper::workspace() const noexcept { return *workspace_; }

void Stepper::restore(std::span<const double> flat, std::uint64_t step_index) noexcept {
  state_.restore(flat, step_index);
  state_is_current_ = true;
  evaluate_state(*plan_, state_, *workspace_);
  enter_lanes(*plan_, state_, *workspace_);
}

StepReport Stepper::step(const Inputs& inputs) noexcept {
  Team* team = team_ && team_->is_ready() ? team_.get() : nullptr;
  while (!attempt(inputs, team)) {
    go_on_alone();
    team = nullptr;
  }
  const StepReport report = judge(*plan_, *workspace_, limits_, all_of(*workspace_));
  return failed(report.status) ? reject(inputs, report) : commit(inputs, report);
}

bool Stepper::attempt(const Inputs& inputs, Team* team) noexcept {
  Attempt::prepare(*plan_, state_, inputs, *workspace_);
  const auto run = [&plan = *plan_, &last = state_, &inputs, &w = *workspace_, team](int part) {
    Attempt(plan, last, inputs, w, team, part).run();
  };
  if (team == nullptr)
    run(0);
  else if (!team->split(run))
    return false;
  return workspace_->part_status[0].complete;
}

// a late worker may still write: the step is made anew in memory that it does not know
void Stepper::go_on_alone() noexcept {
  enter_lanes(*plan_, state(), *spare_);
  evaluate_state(*plan_, state_, *spare_);
  std::swap(workspace_, spare_);
  ++late_workers_;
}

StepReport Stepper::step(const Inputs& inputs, Outputs& outputs) noexcept {
  StepReport report = step(inputs);
  if (failed(report.status)) return report;
  Outputs reached;
  sensors_->read(*this, report, reached);
  report.output = first_not_finite(reached);
  if (report.output < 0) {
    outputs = reached;
  } else {
    report.status = StepStatus::output_not_finite;
    take_back();
  }
  return report;
}

StepReport Stepper::commit(const Inputs& inputs, const StepReport& report) noexcept {
  gather_followed_poses(*plan_, *workspace_);
  workspace_->advance();
  if (plan_->shows_forces)
    apply_forces(*plan_, inputs, time_at(*plan_, state_.step + 1), state_.coordinate, *workspace_);
  failed_.coordinate = state_.coordinate;
  failed_.drive = state_.drive;
  follow_coordinates(*plan_, state_.coordinate, *workspace_);
  std::copy(workspace_->coordinate.begin(), workspace_->coordinate.end(), state_.coordinate.begin());
  std::copy(workspace_->drive.begin(), workspace_->drive.end(), state_.drive.begin());
  ++state_.step;
  state_is_current_ = false;
  return report;
}

// The step just committed is undone: the lanes still hold the instant before it.
void Stepper::take_back() noexcept {
  workspace_->advance();
  std::swap(state_.coordinate, failed_.coordinate);
  std::swap(state_.drive, failed_.drive);
  --state_.step;
  state_is_current_ = false;
  evaluate_state(*plan_, state(), *workspace_);
}

// the state stays; what sensors read belongs to it again
StepReport Stepper::reject(const Inputs& inputs, StepReport report) noexcept {
  if (report.status == StepStatus::not_finite) find_origin(*plan_, state_, inputs, *workspace_, failed_, report);
  if (report.status == StepStatus::singular) find_singular(*plan_, state_, inputs, *workspace_, report);
  evaluate_state(*plan_, state(), *workspace_);
  return report;
}

}  // namespace rigstep::index3
