#include "core/offline/outputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/offline/compare.h"

namespace rigstep::offline {

namespace {

void put(double*& to, std::initializer_list<double> values) {
  for (const double value : values) *to++ = value;
}

void put(double*& to, const Vec3& v) { put(to, {v[0], v[1], v[2]}); }

// Acceleration minus gravity of a body-fixed point, body frame.
Vec3 specific_force(const Output& output, const Vec3& gravity_0, const BodyMotion& body, const Vec6& acceleration) {
  const Mat3 A = rotation(body.p);
  const Vec3 arm = A * output.point_b, &omega = body.omega_0, alpha = acceleration.tail<3>();
  return A.transpose() * (acceleration.head<3>() + alpha.cross(arm) + omega.cross(omega.cross(arm)) - gravity_0);
}

void put_body(const Mechanism& mechanism, const Output& output, const Instant& instant, double* to) {
  const std::size_t i = static_cast<std::size_t>(output.body);
  const BodyMotion& body = instant.body[i];
  if (output.kind == Output::Kind::body_pose) {
    put(to, body.r_0);
    put(to, {body.p[0], body.p[1], body.p[2], body.p[3]});
  } else if (output.kind == Output::Kind::body_velocity) {
    put(to, body.v_0);
    put(to, body.omega_0);
  } else if (i < instant.acceleration.size() && output.kind == Output::Kind::body_acceleration) {
    put(to, instant.acceleration[i].head<3>());
    put(to, instant.acceleration[i].tail<3>());
  } else if (i < instant.acceleration.size()) {
    put(to, specific_force(output, mechanism.gravity_0(), body, instant.acceleration[i]));
  }
}

void put_reading(const ScalarReading& reading, double* to) {
  put(to, {reading.deflection, reading.along.rate, reading.effort});
}

void put_reading(const RopeReading& reading, double* to) {
  put(to, {reading.deflection, reading.rate, reading.effort});
}

void put_reading(const BushingReading& reading, double* to) {
  for (const Jet& x : reading.deflection) put(to, {x.value});
  put(to, reading.load.head<3>());
  put(to, reading.load.tail<3>());
}

void put_reading(const TyreReading& reading, double* to) {
  put(to, reading.force);
  put(to, {reading.slip, std::atan(reading.tangent_of_slip), reading.depth});
}

void put_reading(const DragReading& reading, double* to) {
  put(to, reading.force_0);
  put(to, {reading.speed});
}

void put_output(const Mechanism& mechanism, const Output& output, const Situation& at, const Instant& instant,
                double* to) {
  switch (output.kind) {
    case Output::Kind::body_pose:
    case Output::Kind::body_velocity:
    case Output::Kind::body_acceleration:
    case Output::Kind::specific_force:
      return put_body(mechanism, output, instant, to);
    case Output::Kind::joint_coordinate:
      return put(to, {at.coordinate[static_cast<std::size_t>(output.coordinate)].value});
    case Output::Kind::joint_rate:
      return put(to, {at.coordinate[static_cast<std::size_t>(output.coordinate)].rate});
    case Output::Kind::joint_reaction: {
      if (static_cast<std::size_t>(output.joint) >= instant.reaction.size()) return;
      const Reaction& reaction = instant.reaction[static_cast<std::size_t>(output.joint)];
      put(to, reaction.force_0);
      return put(to, reaction.torque_0);
    }
    case Output::Kind::driver_effort:
      if (static_cast<std::size_t>(output.driver) < instant.driver_effort.size())
        put(to, {instant.driver_effort[static_cast<std::size_t>(output.driver)]});
      return;
    case Output::Kind::energy:
      return put(to, {instant.kinetic_energy, instant.energy - instant.kinetic_energy, instant.energy});
    case Output::Kind::constraint_residual:
      return put(to, {instant.position_residual, instant.velocity_residual, instant.acceleration_residual});
    case Output::Kind::force_element:
    case Output::Kind::bushing:
    case Output::Kind::tyre:
    case Output::Kind::drag:
      return visit_kind(output.element_kind, [&]<class Element>() {
        put_reading(read(mechanism.all<Element>()[static_cast<std::size_t>(output.element)], at), to);
      });
    case Output::Kind::solver_status:
    case Output::Kind::singularity_margin:
    case Output::Kind::step_error:
      return;
  }
}

// (constraints) whose multipliers the motion determines at all three poses
std::vector<bool> determined(const Scenario& scenario, std::span<const Instant> run) {
  std::vector<bool> all(static_cast<std::size_t>(scenario.mechanism->constraints()), true);
  for (const Instant* instant : {&run.front(), &run[run.size() / 2], &run.back()}) {
    const std::vector<bool> here = determined_constraints(scenario, instant->body);
    for (std::size_t c = 0; c < all.size(); ++c) all[c] = all[c] && here[c];
  }
  return all;
}

bool is_known(const Mechanism& mechanism, std::size_t output, std::span<const Instant> run) {
  const std::vector<Output>& all = mechanism.outputs();
  const std::size_t begin = static_cast<std::size_t>(all[output].first_channel);
  const std::size_t end = output + 1 < all.size() ? static_cast<std::size_t>(all[output + 1].first_channel)
                                                  : mechanism.output_channels().size();
  for (const Instant& instant : run)
    for (std::size_t c = begin; c < end; ++c)
      if (c >= instant.output.size() || std::isnan(instant.output[c])) return false;
  return true;
}

}  // namespace

std::vector<double> output_values(const Mechanism& mechanism, const Situation& at, const Instant& instant) {
  std::vector<double> values(mechanism.output_channels().size(), std::numeric_limits<double>::quiet_NaN());
  for (const Output& output : mechanism.outputs())
    put_output(mechanism, output, at, instant, values.data() + output.first_channel);
  return values;
}

std::vector<std::string> output_unsupported_reasons(const Scenario& scenario, std::span<const Instant> run) {
  const Mechanism& mechanism = *scenario.mechanism;
  std::vector<std::string> unsupported_reasons(mechanism.outputs().size());
  if (run.empty()) return unsupported_reasons;
  const bool has_loads = std::any_of(mechanism.outputs().begin(), mechanism.outputs().end(), [](const Output& output) {
    return output.kind == Output::Kind::joint_reaction || output.kind == Output::Kind::driver_effort;
  });
  const std::vector<bool> unique = has_loads ? determined(scenario, run) : std::vector<bool>();
  const int first_driver = mechanism.constraints() - static_cast<int>(mechanism.drivers().size());
  for (std::size_t k = 0; k < unsupported_reasons.size(); ++k) {
    const Output& output = mechanism.outputs()[k];
    const int constraint = output.kind == Output::Kind::joint_reaction  ? output.joint
                           : output.kind == Output::Kind::driver_effort ? first_driver + output.driver
                                                                        : -1;
    if (output.kind == Output::Kind::solver_status || output.kind == Output::Kind::singularity_margin ||
        output.kind == Output::Kind::step_error)
      unsupported_reasons[k] = "only index3 has it";
    else if (constraint >= 0 && !unique[static_cast<std::size_t>(constraint)])
      unsupported_reasons[k] = "redundant constraints leave it open";
    else if (!is_known(mechanism, k, run))
      unsupported_reasons[k] = "this solver does not compute it";
  }
  return unsupported_reasons;
}

}  // namespace rigstep::offline
