// Reference solutions kept under tests/data/reference, and how far a stepper's run is from them.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/outputs/sensors.h"
#include "core/index3/stepper.h"
#include "core/index3/stepper_access.h"
#include "core/offline/solver.h"
#include "proto/load_mechanism.h"

namespace rigstep::test {

inline std::string source_path(const std::string& relative) { return std::string(RIGSTEP_SOURCE_DIR) + "/" + relative; }

inline Mechanism mechanism(const std::string& name) {
  return config::load_mechanism(source_path("config/mechanisms/" + name + ".textproto")).mechanism;
}

inline nlohmann::json reference(const std::string& name) {
  std::ifstream file(source_path("tests/data/reference/" + name + ".json"));
  return nlohmann::json::parse(file);
}

inline Vec3 vec3(const nlohmann::json& v) { return {v[0].get<double>(), v[1].get<double>(), v[2].get<double>()}; }

// Largest deviations over the reference times up to `until` [m, -, m/s, rad/s], and what the run said about itself.
struct Deviation {
  double position = 0.0;
  double orientation = 0.0;  // of Euler parameters, up to their common sign
  double velocity = 0.0;
  double angular_velocity = 0.0;
  double force = 0.0;  // of joint reactions, relative to the largest of that instant
  double lowest_energy_change = 0.0, highest_energy_change = 0.0;  // against the start [J]
  double position_residual = 0.0, velocity_residual = 0.0, acceleration_residual = 0.0;
  double last_increment = 0.0;
  StepStatus worst = StepStatus::ok;
};

inline void compare_bodies(const Mechanism& m, const index3::State& x, const nlohmann::json& bodies, Deviation& d) {
  for (std::size_t i = 0; i < m.bodies().size(); ++i) {
    if (!bodies.contains(m.bodies()[i].name)) continue;
    const auto& want = bodies[m.bodies()[i].name];
    const index3::BodyState& b = x.body[i];
    const Eigen::Quaterniond q(b.p[0], b.p[1], b.p[2], b.p[3]);
    d.position = std::max(d.position, (b.r - vec3(want["r"])).norm());
    d.velocity = std::max(d.velocity, (b.v - vec3(want["v"])).norm());
    if (!want.contains("p")) continue;
    const auto& p = want["p"];
    const EulerParameters wanted{p[0].get<double>(), p[1].get<double>(), p[2].get<double>(), p[3].get<double>()};
    d.orientation = std::max(d.orientation, std::min((b.p - wanted).norm(), (b.p + wanted).norm()));
    d.angular_velocity = std::max(d.angular_velocity, (q * b.w_b - vec3(want["w"])).norm());
  }
}

inline void compare_joints(const index3::Stepper& s, const nlohmann::json& joints, Deviation& d) {
  const Mechanism& m = s.mechanism();
  double scale = 1e-12, error = 0.0;
  for (std::size_t j = 0; j < m.joints().size(); ++j) {
    if (!joints.contains(m.joints()[j].name)) continue;
    const Vec3 want = vec3(joints[m.joints()[j].name]["force"]);
    scale = std::max(scale, want.norm());
    error = std::max(error, (s.joint_reaction(static_cast<int>(j)).head<3>() - want).norm());
  }
  d.force = std::max(d.force, error / scale);
}

// Runs `name` with step dt_ns and compares with the reference of the same name at every reference instant that the
// step hits.
inline Deviation deviation(const Mechanism& m, const nlohmann::json& ref, std::int64_t dt_ns, double until,
                           index3::Settings settings = {}, bool forces = false) {
  settings.dt_ns = dt_ns;
  index3::Stepper stepper(m, settings);
  const auto total = [&] {
    const index3::Energy e = index3::energy(index3::plan_of(stepper), stepper.state(), index3::workspace_of(stepper));
    return e.kinetic + e.potential;
  };
  const double start = total();
  Deviation d;
  const Inputs none{};
  for (const auto& sample : ref["reference"]) {
    const double t = sample["t"].get<double>();
    if (t > until * (1.0 + 1e-9)) break;
    const auto target = static_cast<std::uint64_t>(std::llround(t * 1e9 / static_cast<double>(dt_ns)));
    while (stepper.state().step < target) {
      const StepReport report = stepper.step(none);
      d.worst = std::max(d.worst, report.status);
      if (failed(report.status)) return d;
      d.position_residual = std::max(d.position_residual, report.position_residual);
      d.velocity_residual = std::max(d.velocity_residual, report.velocity_residual);
      d.acceleration_residual = std::max(d.acceleration_residual, report.acceleration_residual);
      d.last_increment = std::max(d.last_increment, report.last_increment);
      d.lowest_energy_change = std::min(d.lowest_energy_change, total() - start);
      d.highest_energy_change = std::max(d.highest_energy_change, total() - start);
    }
    if (std::abs(static_cast<double>(target) * static_cast<double>(dt_ns) * 1e-9 - t) > 1e-9) continue;
    if (sample.contains("bodies")) compare_bodies(m, stepper.state(), sample["bodies"], d);
    if (forces && sample.contains("joints")) compare_joints(stepper, sample["joints"], d);
  }
  return d;
}

// Slope of log(error) over log(dt) between two steps, where the second is half the first.
inline double slope(double coarse, double fine) { return std::log2(coarse / fine); }

inline offline::Options at_tolerance(double tolerance) {
  offline::Options options;
  options.relative_tolerance = options.absolute_tolerance = tolerance;
  return options;
}

}  // namespace rigstep::test
