#include "tests/support/reference.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/stepper_access.h"

namespace rigstep::test {

std::string source_path(const std::string& relative) { return std::string(RIGSTEP_SOURCE_DIR) + "/" + relative; }

Mechanism mechanism(const std::string& name) {
  return config::load_mechanism(source_path("config/mechanisms/" + name + ".textproto")).mechanism;
}

nlohmann::json reference(const std::string& name) {
  std::ifstream file(source_path("tests/data/reference/" + name + ".json"));
  return nlohmann::json::parse(file);
}

Vec3 vec3(const nlohmann::json& v) { return {v[0].get<double>(), v[1].get<double>(), v[2].get<double>()}; }

namespace {

void compare_bodies(const Mechanism& m, const index3::State& x, const nlohmann::json& bodies, Deviation& d) {
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

void compare_joints(const index3::Stepper& s, const nlohmann::json& joints, Deviation& d) {
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

}  // namespace

Deviation deviation(const Mechanism& m, const nlohmann::json& ref, std::int64_t dt_ns, double until,
                    index3::Settings settings, bool forces) {
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

double slope(double coarse, double fine) { return std::log2(coarse / fine); }

offline::Options at_tolerance(double tolerance) {
  offline::Options options;
  options.relative_tolerance = options.absolute_tolerance = tolerance;
  return options;
}

}  // namespace rigstep::test
