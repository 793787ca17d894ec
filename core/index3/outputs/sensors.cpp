#include "core/index3/outputs/sensors.h"

#include <algorithm>

#include "core/index3/outputs/diagnostics.h"
#include "core/index3/step/evaluate_state.h"

namespace rigstep::index3 {

namespace {

using Kind = Output::Kind;

void write(double*& to, const Vec3& value) {
  for (int k = 0; k < 3; ++k) *to++ = value[k];
}

// acceleration minus gravity of a body-fixed point, body frame
Vec3 specific_force(const Mechanism& m, const Output& o, const BodyState& b) {
  const Vec3 rotational = b.alpha_b.cross(o.point_b) + b.w_b.cross(b.w_b.cross(o.point_b));
  return rotation_matrix(b.p).transpose() * (b.a - m.gravity_0()) + rotational;
}

double rate(const Mechanism& m, const State& x, const JointCoordinate& followed) {
  const Joint& joint = m.joints()[followed.joint];
  const Placement first = placement_in(x, joint.first), second = placement_in(x, joint.second);
  return coordinate(followed.freedom, place_joint(joint, first, second), first, second).rate;
}

void write(double*& to, const Vec3& first, const Vec3& second) {
  write(to, first);
  write(to, second);
}

bool asks_for(const Mechanism& m, Kind kind) {
  return std::any_of(m.outputs().begin(), m.outputs().end(), [kind](const Output& o) { return o.kind == kind; });
}

// (constraints) whose loads are outputs
std::vector<bool> shown_loads(const Plan& plan) {
  std::vector<bool> shown(static_cast<std::size_t>(plan.mechanism.constraints()), false);
  for (const Output& o : plan.mechanism.outputs()) {
    if (o.kind == Kind::joint_reaction) shown[o.joint] = true;
    if (o.kind == Kind::driver_effort) shown[plan.first_driver() + o.driver] = true;
  }
  return shown;
}

}  // namespace

Sensors::Sensors(const Plan& plan, const State& start) {
  const bool shows_margin = asks_for(plan.mechanism, Kind::singularity_margin);
  const bool shows_loads =
      asks_for(plan.mechanism, Kind::joint_reaction) || asks_for(plan.mechanism, Kind::driver_effort);
  if (shows_margin) closure_ = std::make_unique<LoopClosure>(plan, start);
  if (shows_loads) reactions_ = std::make_unique<Reactions>(plan, start, shown_loads(plan));
  if (closure_ || (reactions_ && reactions_->redistributes())) pose_ = std::make_unique<Workspace>(plan);
}

void Sensors::read(const Plan& plan, const Workspace& w, const State& x, const StepReport& report,
                   Outputs& outputs) noexcept {
  const Mechanism& m = plan.mechanism;
  if (pose_) evaluate_pose(plan, x, *pose_);
  if (reactions_) reactions_->read(x, pose_ ? *pose_ : w);
  outputs.count = static_cast<int>(m.output_channels().size());
  for (const Output& o : m.outputs()) {
    double* to = outputs.value.data() + o.first_channel;
    const BodyState& b = x.body[o.body];  // of outputs that show a body
    switch (o.kind) {
      case Kind::body_pose:
        write(to, b.r);
        for (int k = 0; k < 4; ++k) *to++ = b.p[k];
        break;
      case Kind::body_velocity:
        write(to, b.v, rotation_matrix(b.p) * b.w_b);
        break;
      case Kind::body_acceleration:
        write(to, b.a, rotation_matrix(b.p) * b.alpha_b);
        break;
      case Kind::specific_force:
        write(to, specific_force(m, o, b));
        break;
      case Kind::joint_coordinate:
        *to = x.coordinate[o.coordinate];
        break;
      case Kind::joint_rate:
        *to = rate(m, x, m.coordinates()[o.coordinate]);
        break;
      case Kind::driver_effort:
        *to = reactions_->of_driver(o.driver);
        break;
      case Kind::joint_reaction: {
        const Vec6 load = reactions_->of_joint(x, o.joint);
        for (int k = 0; k < 6; ++k) to[k] = load[k];
        break;
      }
      case Kind::energy: {
        const Energy e = energy(plan, x, w);
        to[0] = e.kinetic;
        to[1] = e.potential;
        to[2] = e.kinetic + e.potential;
        break;
      }
      case Kind::constraint_residual:
        to[0] = report.position_residual;
        to[1] = report.velocity_residual;
        to[2] = report.acceleration_residual;
        break;
      case Kind::force_element:
      case Kind::tyre:
      case Kind::bushing:
      case Kind::drag:
        visit_kind(o.element_kind, [&]<class Element>() { index3::write(w.reading<Element>()[o.element], to); });
        break;
      case Kind::singularity_margin:
        *to = closure_->margin(*pose_);
        break;
      case Kind::step_error:
        to[0] = report.position_error;
        to[1] = report.orientation_error;
        to[2] = report.error_body;
        break;
      case Kind::solver_status:
        to[0] = static_cast<double>(report.status);
        to[1] = report.last_increment;
        break;
    }
  }
}

std::size_t Sensors::bytes() const noexcept {
  return (pose_ ? pose_->bytes() : 0) + (closure_ ? closure_->bytes() : 0) + (reactions_ ? reactions_->bytes() : 0);
}

Vec6 joint_reaction(const Plan& plan, const State& x, int j) noexcept {
  const std::size_t row = static_cast<std::size_t>(plan.first_row[j]);
  double lambda[kMaxRows];
  for (int k = 0; k < plan.first_row[j + 1] - plan.first_row[j]; ++k)
    lambda[k] = x.lambda[row + static_cast<std::size_t>(k)] + x.kappa[row + static_cast<std::size_t>(k)];
  return load_on_second(plan, x, j, lambda);
}

double driver_effort(const Plan& plan, const State& x, int driver) noexcept {
  const int row = plan.first_row[plan.first_driver() + driver];
  return -(x.lambda[row] + x.kappa[row]);
}

}  // namespace rigstep::index3
