#include "core/index3/stepper.h"

#include <algorithm>
#include <cmath>

#include "core/index3/diagnostics.h"
#include "core/index3/forces.h"
#include "core/index3/initial_state.h"
#include "core/index3/sweeps.h"
#include "core/index3/tangent.h"

namespace rigstep::index3 {

// The phases of one step; numbers in brackets are the equations of [001]. x is the state being made, w the workspace.
namespace {

constexpr double kTornJoint = 1e-2;  // opening of a joint that makes a step useless, against the largest arm

double time_at(const Plan& plan, std::uint64_t step) {
  return 1e-9 * static_cast<double>(static_cast<std::int64_t>(step) * plan.settings.dt_ns);
}

// velocities that the trapezoidal rule gives to the current iterate, (15)
void place_iterate(const Plan& plan, const State& x, Workspace& w) {
  const double two_over_dt = 2.0 / plan.dt();
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    const BodyState& b = x.body[i];
    const History& last = w.history[i];
    Placement& at = w.placement[i];
    at.r = b.r;
    at.A = rotation_matrix(b.p);
    at.v = two_over_dt * (b.r - last.r) - last.v;
    at.w = at.A * twice_G(b.p, last.h1);
  }
}

void predict(const Plan& plan, const State& last, State& x, Workspace& w) {
  const double dt = plan.dt();
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    const BodyState& b = last.body[i];
    const EulerParameters pd = half_G_transposed(b.p, b.w_b);
    const EulerParameters pdd = half_G_transposed(b.p, b.alpha_b) - 0.25 * b.w_b.squaredNorm() * b.p;
    History& h = w.history[i];
    h.h1 = -(2.0 / dt * b.p + pd);                          // (15)
    h.h2 = -(4.0 / (dt * dt) * b.p + 4.0 / dt * pd + pdd);  // (16)
    h.r = b.r;
    h.v = b.v;
    h.a = 4.0 / dt * b.v + b.a;
    x.body[i].r = b.r + dt * b.v + 0.5 * dt * dt * b.a;
    x.body[i].p = b.p + dt * pd + 0.5 * dt * dt * pdd;
    x.body[i].p /= x.body[i].p.norm();
  }
  std::copy(last.lambda.begin(), last.lambda.end(), x.lambda.begin());  // carried over
  x.step = last.step + 1;
  w.failed_body = w.failed_row = -1;
  place_iterate(plan, x, w);
  evaluate_constraints(plan, w);
}

// accelerations that the trapezoidal rule gives to the current iterate, (16): of the mass centre (world) and angular
// (body)
Vec3 acceleration(const Plan& plan, const BodyState& b, const History& last) {
  return 4.0 / (plan.dt() * plan.dt()) * (b.r - last.r) - last.a;
}
Vec3 angular_acceleration_b(const BodyState& b, const History& last) { return twice_G(b.p, last.h2); }

// g of (17) (18) on every body, and the free motion -(dt^2/4) M^-1 g that it causes, (27)
void evaluate_residuals(const Plan& plan, const State& last, const State& x, const Inputs& u, Workspace& w) {
  apply_forces(plan, u, time_at(plan, x.step), last.coordinate, w);
  const double h2 = 0.25 * plan.dt() * plan.dt();
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    const Body& body = plan.mechanism.bodies()[i];
    const History& h = w.history[i];
    const Vec3 w_b = twice_G(x.body[i].p, h.h1);
    const Vec3 momentum_b = body.inertia_b * w_b;
    const double p_dot_pd = 2.0 / plan.dt() + x.body[i].p.dot(h.h1);  // not quite 0 before convergence
    const Vec3 torque_b =
        body.inertia_b * angular_acceleration_b(x.body[i], h) + w_b.cross(momentum_b) + 2.0 * p_dot_pd * momentum_b;
    w.bias[i] << body.mass * acceleration(plan, x.body[i], h), w.placement[i].A * torque_b;
    w.bias[i] -= w.Q[i];
  }
  add_joint_loads(plan, w, x.lambda, w.bias);
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    w.bias[i] = -h2 * (w.M_inverse[i] * w.bias[i]);
    if (!std::isfinite(w.bias[i].sum()) && w.failed_body < 0) w.failed_body = static_cast<int>(i);
  }
  std::copy(w.Phi.begin(), w.Phi.end(), w.rhs_term.begin());
}

// closes the joints and accumulates the multipliers, (24) (25) (34)
void update(const Plan& plan, State& x, Workspace& w) {
  close_joints(plan, w);
  const double four_over_dt2 = 4.0 / (plan.dt() * plan.dt());
  for (std::size_t row = 0; row < x.lambda.size(); ++row) x.lambda[row] += four_over_dt2 * w.Lambda[row];
  w.last_move = w.last_turn = 0.0;
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    const Vec3 dr = w.bias[i].head<3>(), dtheta = w.bias[i].tail<3>();
    x.body[i].r += dr;
    x.body[i].p = turned(x.body[i].p, dtheta);
    if (std::max(dr.norm() / plan.length, dtheta.norm()) > std::max(w.last_move / plan.length, w.last_turn))
      w.last_moved_body = static_cast<int>(i);
    w.last_move = std::max(w.last_move, dr.norm());
    w.last_turn = std::max(w.last_turn, dtheta.norm());
  }
  place_iterate(plan, x, w);
  evaluate_constraints(plan, w);
}

// one pass leaves a residual of the order of the compliance, a second one its square
template <class AfterSweep>
void close_in_sweeps(const Plan& plan, Workspace& w, const AfterSweep& after_sweep) {
  for (int sweep = 0; sweep < plan.settings.sweeps; ++sweep) {
    assemble(plan, w);
    disassemble(plan, w);
    close_joints(plan, w);
    after_sweep();
  }
}

// (40)-(54): the nearest velocities, in the metric of the tangent, that satisfy J v = 0
void project_velocities(const Plan& plan, State& x, Workspace& w) {
  for (std::size_t i = 0; i < x.body.size(); ++i) w.bias[i] << w.placement[i].v, w.placement[i].w;  // (45)
  std::fill(w.rhs_term.begin(), w.rhs_term.end(), 0.0);
  close_in_sweeps(plan, w, [] {});
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    w.placement[i].v = x.body[i].v = w.bias[i].head<3>();
    w.placement[i].w = w.bias[i].tail<3>();
    x.body[i].w_b = w.placement[i].A.transpose() * w.placement[i].w;
  }
}

// (55)-(69): the nearest accelerations that satisfy J a = gamma, with gamma of the projected velocities
void project_accelerations(const Plan& plan, State& x, Workspace& w) {
  for (std::size_t i = 0; i < x.body.size(); ++i)  // (60)
    w.bias[i] << acceleration(plan, x.body[i], w.history[i]),
        w.placement[i].A * angular_acceleration_b(x.body[i], w.history[i]);
  evaluate_quadratic_terms(plan, w);
  std::fill(x.kappa.begin(), x.kappa.end(), 0.0);
  close_in_sweeps(plan, w, [&x, &w] {
    for (std::size_t row = 0; row < x.kappa.size(); ++row) x.kappa[row] += w.Lambda[row];
  });
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    x.body[i].a = w.bias[i].head<3>();
    x.body[i].alpha_b = w.placement[i].A.transpose() * w.bias[i].tail<3>();
  }
}

bool is_finite(const BodyState& b) {
  return std::isfinite(b.r.sum() + b.p.sum() + b.v.sum() + b.w_b.sum() + b.a.sum() + b.alpha_b.sum());
}

// A failed step names where it began: the joint that could not be eliminated, or the first body whose motion was not
// finite before the joints spread that over the mechanism.
void name_failure(const Plan& plan, const State& next, const Workspace& w, StepReport& report) {
  if (w.failed_row >= 0) {
    report.status = StepStatus::singular;
    report.body = -1;
    report.joint = w.failed_row < plan.rows() ? plan.joint_of_row[w.failed_row] : -1;
    return;
  }
  int body = -1, joint = -1;
  for (std::size_t i = 0; i < next.body.size(); ++i)
    if (!is_finite(next.body[i]) && body < 0) body = static_cast<int>(i);
  for (std::size_t row = 0; row < next.lambda.size(); ++row)
    if (!std::isfinite(next.lambda[row]) && joint < 0) joint = plan.joint_of_row[row];
  if (body < 0 && joint < 0) return;
  report.status = StepStatus::not_finite;
  report.body = body;
  report.joint = joint;
  if (w.failed_body >= 0) {
    report.body = w.failed_body;
    report.joint = -1;
  }
}

// first joint that the step left open, or -1
int torn_joint(const Plan& plan, const Workspace& w) {
  for (std::size_t j = 0; j < w.joint.size(); ++j) {
    int row = plan.first_row[j];
    for (const Row& r : rows_of(plan.mechanism.joints()[j].type)) {
      const double scale = r.form == Row::Form::cosine ? 1.0 : plan.length;
      if (std::abs(w.Phi[row++]) > kTornJoint * scale) return static_cast<int>(j);
    }
  }
  return -1;
}

// what the step says about itself; `next` is the state that would be committed
StepReport judge(const Plan& plan, const State& next, const Workspace& w) {
  StepReport report;
  report.last_increment = std::max(w.last_move, w.last_turn);
  if (std::max(w.last_move / plan.length, w.last_turn) > plan.settings.increment_tolerance)
    report.status = StepStatus::not_converged;
  residuals(plan, next, w, report);
  const int torn = torn_joint(plan, w);
  if (torn >= 0 || w.last_turn > 1.0 || w.last_move > plan.length) {
    report.status = StepStatus::diverged;
    report.joint = torn;
    if (torn < 0) report.body = w.last_moved_body;
  }
  name_failure(plan, next, w, report);
  return report;
}

}  // namespace

Stepper::Stepper(const Mechanism& mechanism, const Settings& settings)
    : plan_(std::make_unique<Plan>(mechanism, settings)),
      workspace_(std::make_unique<Workspace>(*plan_)),
      last_(initial_state(*plan_, *workspace_)),
      next_(last_) {}

Stepper::~Stepper() = default;
Stepper::Stepper(Stepper&&) noexcept = default;

const State& Stepper::state() const noexcept { return last_; }
const Plan& Stepper::plan() const noexcept { return *plan_; }
const Workspace& Stepper::workspace() const noexcept { return *workspace_; }

void Stepper::restore(std::span<const double> flat, std::uint64_t step_index) noexcept {
  last_.restore(flat, step_index);
  evaluate_state(*plan_, last_, *workspace_);
}

// [001] 3.5, figure 2: predictor, a fixed number of Newton iterations with one tangent, both projections with the
// tangent of the converged pose.
StepReport Stepper::step(const Inputs& inputs) noexcept {
  const Plan& plan = *plan_;
  Workspace& w = *workspace_;
  State& x = next_;
  const double h2 = 0.25 * plan.dt() * plan.dt(), half_dt = 0.5 * plan.dt();
  take_inputs(plan, inputs, w);
  predict(plan, last_, x, w);  // 3a, 3b   (15) (16)
  factorise(plan, x.lambda, {.geometric = h2, .stiffness = h2, .damping = half_dt},
            w);  // 3d, 3e   (26) (36)-(38), tangent at the predictor
  for (int k = 0; k < plan.settings.iterations; ++k) {
    evaluate_residuals(plan, last_, x, inputs, w);  // 3c       (17) (18)
    assemble(plan, w);                              // 3e       (27) (39), leaves to root
    disassemble(plan, w);                           // 3f-3h    (34), root to leaves
    update(plan, x, w);                             // 3h, 3b   (24) (25) (15) (16)
  }
  factorise(plan, x.lambda, {.geometric = h2},
            w);                       //          at the converged pose, no springs: they would take momentum
  project_velocities(plan, x, w);     // 4        (40)-(54)
  project_accelerations(plan, x, w);  // 5        (55)-(69)
  apply_forces(plan, inputs, time_at(plan, x.step), last_.coordinate, w);
  std::copy(w.coordinate.begin(), w.coordinate.end(), x.coordinate.begin());
  const StepReport report = judge(plan, x, w);
  if (failed(report.status))
    evaluate_state(plan, last_, w);  // what sensors read belongs to the last good state again
  else
    std::swap(last_, next_);  // commit
  return report;
}

}  // namespace rigstep::index3
