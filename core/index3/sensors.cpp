#include "core/index3/sensors.h"

#include "core/index3/diagnostics.h"
#include "core/index3/workspace.h"

namespace rigstep::index3 {

namespace {

using Kind = Output::Kind;

void write(double*& to, const Vec3& value) {
  for (int k = 0; k < 3; ++k) *to++ = value[k];
}

// acceleration minus gravity of a body-fixed point, body frame
Vec3 specific_force(const Mechanism& m, const Output& o, const BodyState& b, const Mat3& A) {
  const Vec3 rotational = b.alpha_b.cross(o.point_b) + b.w_b.cross(b.w_b.cross(o.point_b));
  return A.transpose() * (b.a - m.gravity_0()) + rotational;
}

Placement placement_in(const State& x, int body) { return body == kGround ? Placement{} : placement_of(x.body[body]); }

double rate(const Mechanism& m, const State& x, const JointCoordinate& followed) {
  const Joint& joint = m.joints()[followed.joint];
  const Placement first = placement_in(x, joint.first), second = placement_in(x, joint.second);
  return coordinate(followed.freedom, place(joint, first, second), first, second).rate;
}

void read_body(const Mechanism& m, const Output& o, const BodyState& b, const Mat3& A, double* to) {
  switch (o.kind) {
    case Kind::body_pose:
      write(to, b.r);
      for (int k = 0; k < 4; ++k) *to++ = b.p[k];
      return;
    case Kind::body_velocity:
      write(to, b.v);
      write(to, A * b.w_b);
      return;
    case Kind::body_acceleration:
      write(to, b.a);
      write(to, A * b.alpha_b);
      return;
    default:
      write(to, specific_force(m, o, b, A));
      return;
  }
}

}  // namespace

Vec6 joint_reaction(const Stepper& stepper, int j) noexcept {
  const Plan& plan = stepper.plan();
  const State& x = stepper.state();
  const Joint& joint = plan.mechanism.joints()[j];
  const JointPlacement at = place(joint, placement_in(x, joint.first), placement_in(x, joint.second));
  // on the second body: -J_second' (lambda + kappa), in balance with the projected accelerations
  Vec6 load = Vec6::Zero();
  int row = plan.first_row[j];
  for (const Row& r : rows_of(joint.type)) {
    load -= (x.lambda[row] + x.kappa[row]) * evaluate(r, at).J_second;
    ++row;
  }
  load.tail<3>() -= at.s_second.cross(load.head<3>());
  return load;
}

double driver_effort(const Stepper& stepper, int driver) noexcept {
  const Plan& plan = stepper.plan();
  const int row = plan.first_row[plan.first_driver() + driver];
  return -(stepper.state().lambda[row] + stepper.state().kappa[row]);
}

void read_outputs(const Stepper& stepper, const StepReport& report, Outputs& outputs) noexcept {
  const Plan& plan = stepper.plan();
  const Mechanism& m = plan.mechanism;
  const State& x = stepper.state();
  const Workspace& w = stepper.workspace();
  outputs.count = static_cast<int>(m.output_channels().size());
  for (const Output& o : m.outputs()) {
    double* to = outputs.value.data() + o.first_channel;
    switch (o.kind) {
      case Kind::joint_coordinate:
        *to = x.coordinate[o.coordinate];
        break;
      case Kind::joint_rate:
        *to = rate(m, x, m.coordinates()[o.coordinate]);
        break;
      case Kind::driver_effort:
        *to = driver_effort(stepper, o.driver);
        break;
      case Kind::joint_reaction: {
        const Vec6 load = joint_reaction(stepper, o.joint);
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
      case Kind::force_element: {
        const auto& readings = o.element_kind == Output::Element::spring  ? w.spring
                               : o.element_kind == Output::Element::motor ? w.motor
                                                                          : w.friction;
        const ElementReading& element = readings[o.element];
        to[0] = element.deflection;
        to[1] = element.rate;
        to[2] = element.effort;
        break;
      }
      case Kind::tyre: {
        const TyreReading& tyre = w.tyre[o.element];
        for (const double value : {tyre.fx, tyre.fy, tyre.fz, tyre.slip, tyre.slip_angle, tyre.deflection})
          *to++ = value;
        break;
      }
      case Kind::bushing:
        for (int k = 0; k < 6; ++k) to[k] = w.bushing[o.element].deflection[k];
        for (int k = 0; k < 6; ++k) to[6 + k] = w.bushing[o.element].load[k];
        break;
      case Kind::solver_status:
        to[0] = static_cast<double>(report.status);
        to[1] = report.last_increment;
        break;
      default:
        read_body(m, o, x.body[o.body], rotation_matrix(x.body[o.body].p), to);
    }
  }
}

}  // namespace rigstep::index3
