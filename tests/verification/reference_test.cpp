// The stepper against independent solutions: mechanisms in config/mechanisms, answers in tests/data/reference.
#include <doctest/doctest.h>

#include "core/index3/outputs/diagnostics.h"
#include "core/index3/outputs/reactions.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/stepper_access.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::test;

namespace {

// Largest error of a joint's load as reported, of least norm, over the reference instants up to `until`: forces [N] and
// torques [N m], relative to the largest force of that instant.
double reaction_error(const Mechanism& m, const nlohmann::json& ref, std::int64_t dt_ns, double until) {
  index3::Settings settings;
  settings.dt_ns = dt_ns;
  index3::Stepper s(m, settings);
  index3::Workspace w(index3::plan_of(s));
  index3::Reactions reactions(index3::plan_of(s), s.state(), std::vector<bool>(m.joints().size(), true));
  double worst = 0.0;
  for (const auto& sample : ref["reference"]) {
    const double t = sample["t"].get<double>();
    if (t > until + 1e-9) break;
    while (1e-9 * static_cast<double>(s.state().step) * static_cast<double>(dt_ns) < t - 1e-9) s.step(Inputs{});
    index3::evaluate_pose(index3::plan_of(s), s.state(), w);
    reactions.read(s.state(), w);
    double scale = 0.0, error = 0.0;
    for (std::size_t j = 0; j < m.joints().size(); ++j) {
      const auto& want = sample["joints"][m.joints()[j].name];
      const Vec6 load = reactions.of_joint(s.state(), static_cast<int>(j));
      scale = std::max(scale, vec3(want["force"]).norm());
      error = std::max(error, (load.head<3>() - vec3(want["force"])).norm());
      if (want.contains("torque")) error = std::max(error, (load.tail<3>() - vec3(want["torque"])).norm());
    }
    worst = std::max(worst, error / scale);
  }
  return worst;
}

// Order two in every quantity between dt, dt/2 and dt/4.
void check_order_two(const std::string& name, const std::string& reference_name, std::int64_t dt_ns, double until,
                     double tolerance) {
  const Mechanism m = mechanism(name);
  const nlohmann::json ref = reference(reference_name);
  const test::Deviation a = deviation(m, ref, dt_ns, until), b = deviation(m, ref, dt_ns / 2, until),
                        c = deviation(m, ref, dt_ns / 4, until);
  CAPTURE(name);
  REQUIRE(c.position > 0.0);
  MESSAGE(name << ": position error " << a.position << ", " << b.position << ", " << c.position << " m at "
               << 1e-6 * static_cast<double>(dt_ns) << " ms, half and a quarter of it; order "
               << slope(a.position, b.position) << ", " << slope(b.position, c.position));
  for (const double order : {slope(a.position, b.position), slope(b.position, c.position),
                             slope(a.velocity, b.velocity), slope(b.velocity, c.velocity)})
    CHECK(order == doctest::Approx(2.0).epsilon(tolerance / 2.0));
  CHECK(a.worst == StepStatus::ok);
}

}  // namespace

TEST_CASE("double pendulum: the position error over 10 s is second order and 3.8e-3 m at 10 ms") {
  check_order_two("double_pendulum", "double_pendulum", 10 * kMs, 10.0, 0.1);

  // at every step, against the same stepper at a step whose own error is 1600 times smaller
  const Mechanism m = mechanism("double_pendulum");
  index3::Settings coarse, fine;
  coarse.dt_ns = 10 * kMs;
  fine.dt_ns = kMs / 4;
  index3::Stepper a(m, coarse), b(m, fine);
  double largest = 0.0;
  for (int k = 0; k < 1000; ++k) {
    a.step(Inputs{});
    for (int i = 0; i < 40; ++i) b.step(Inputs{});
    for (int body = 0; body < 2; ++body)
      largest = std::max(largest, (a.state().body[body].r - b.state().body[body].r).norm());
  }
  MESSAGE("double_pendulum: largest error at any step " << largest << " m at 10 ms");
  CHECK(largest == doctest::Approx(3.75e-3).epsilon(0.02));
}

TEST_CASE("double pendulum: joint reactions are second order too") {
  const Mechanism m = mechanism("double_pendulum");
  const nlohmann::json ref = reference("double_pendulum");
  const test::Deviation a = deviation(m, ref, 10 * kMs, 10.0, {}, true), b = deviation(m, ref, 5 * kMs, 10.0, {}, true);
  CHECK(slope(a.force, b.force) == doctest::Approx(2.0).epsilon(0.1));
  CHECK(b.force < 2e-3);
}

TEST_CASE("reactions of redundant joints, those that are not unique included, converge with order two") {
  for (const auto& [name, until] : {std::pair{"mcpherson_redundant", 2.0}, std::pair{"four_bar", 3.0}}) {
    const Mechanism m = mechanism(name);
    const nlohmann::json ref = reference(name);
    const double a = reaction_error(m, ref, 4 * kMs, until), b = reaction_error(m, ref, 2 * kMs, until),
                 c = reaction_error(m, ref, kMs, until);
    MESSAGE(std::string(name) << ": largest error of a reaction, torques included, " << a << ", " << b << ", " << c
                              << " of the largest load at 4, 2 and 1 ms");
    CHECK(slope(a, b) == doctest::Approx(2.0).epsilon(0.15));
    CHECK(slope(b, c) == doctest::Approx(2.0).epsilon(0.15));
    CHECK(c < 1e-3);
  }
}

TEST_CASE("chain of 128: the whip costs 46.85 J at 10 ms, and the tip goes where it should") {
  const Mechanism m = mechanism("chain_128");
  const nlohmann::json ref = reference("chain_n128");
  index3::Settings settings;
  settings.dt_ns = 10 * kMs;
  index3::Stepper s(m, settings);
  double dip = 0.0, largest_kinetic = 0.0, when = 0.0, tip_error = 0.0;
  std::size_t sample = 0;
  for (int k = 0; k <= 600; ++k) {
    if (k > 0) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
    const index3::Energy e = index3::energy(index3::plan_of(s), s.state(), index3::workspace_of(s));
    dip = std::min(dip, e.kinetic + e.potential);
    if (e.kinetic > largest_kinetic) {
      largest_kinetic = e.kinetic;
      when = 0.01 * k;
    }
    if (k % 10 != 0 || k > 500) continue;
    while (ref["reference"][sample]["t"].get<double>() < 0.01 * k - 1e-9) ++sample;
    const index3::BodyState& last = s.state().body.back();
    const Vec3 tip = last.r + index3::rotation_matrix(last.p) * Vec3(0.5, 0.0, 0.0);
    tip_error = std::max(tip_error, (tip - vec3(ref["reference"][sample]["tip"]["r"])).norm());
  }
  MESSAGE("chain_128: energy dip " << dip << " J, largest kinetic energy at " << when << " s, tip error to 5 s "
                                   << tip_error << " m");
  CHECK(std::abs(dip + 46.85) < 0.5);
  CHECK(when >= 5.219);
  CHECK(when <= 5.231);
  CHECK(tip_error < 1e-4 * 128.0);  // up to 5 s, when the whip begins
}

TEST_CASE("chain of 8: the tip converges to the reference with order two") {
  const Mechanism m = mechanism("chain_8");
  const nlohmann::json ref = reference("chain_n8");
  const auto tip_error = [&](std::int64_t dt_ns) {
    index3::Settings settings;
    settings.dt_ns = dt_ns;
    index3::Stepper s(m, settings);
    double error = 0.0;
    for (const auto& sample : ref["reference"]) {
      const double t = sample["t"].get<double>();
      if (t > 2.0 + 1e-9) break;
      while (1e-9 * static_cast<double>(s.state().step) * static_cast<double>(dt_ns) < t - 1e-9) s.step(Inputs{});
      const index3::BodyState& last = s.state().body.back();
      const Vec3 tip = last.r + index3::rotation_matrix(last.p) * Vec3(0.5, 0.0, 0.0);
      error = std::max(error, (tip - vec3(sample["tip"]["r"])).norm());
    }
    return error;
  };
  const double a = tip_error(2 * kMs), b = tip_error(kMs), c = tip_error(kMs / 2);
  CHECK(slope(a, b) == doctest::Approx(2.0).epsilon(0.1));
  CHECK(slope(b, c) == doctest::Approx(2.0).epsilon(0.05));
}

TEST_CASE("four-bars: 30 s through the singular pose on the right branch, with closed joints and kept energy") {
  for (const char* name : {"four_bar", "four_bar_hanging"}) {
    for (const std::int64_t dt : {10 * kMs, 5 * kMs, kMs}) {
      CAPTURE(name);
      CAPTURE(dt);
      const test::Deviation d = deviation(mechanism(name), reference(name), dt, 30.0);
      MESSAGE(std::string(name) << " at " << 1e-6 * static_cast<double>(dt) << " ms: position error " << d.position
                                << " m, residuals " << d.position_residual << " " << d.velocity_residual << " "
                                << d.acceleration_residual << ", energy " << d.lowest_energy_change << " J");
      CHECK(d.worst == StepStatus::ok);
      CHECK(d.position < 5e-3);  // the other branch is order 1 m away
      CHECK(d.position_residual <= 1e-13);
      CHECK(d.velocity_residual <= 1e-10);
      CHECK(d.acceleration_residual <= 1e-7);
      CHECK(d.lowest_energy_change > -0.03);
      CHECK(d.highest_energy_change < 0.03);
    }
  }
}

TEST_CASE("Andrews' squeezer: converges to the published end values at 0.03 s with order two") {
  const Mechanism m = mechanism("andrews");
  const nlohmann::json ref = reference("a03_andrews");
  // crank angle beta and its rate, published to 1e-9 by the IVP test set
  const double beta = ref["published"]["q"][0].get<double>(), rate = ref["published"]["qd"][0].get<double>();
  std::vector<double> angle_error, rate_error;
  for (const std::int64_t dt : {100'000, 50'000, 25'000, 12'500}) {
    index3::Settings settings;
    settings.dt_ns = dt;
    index3::Stepper s(m, settings);
    StepReport report;
    while (static_cast<std::int64_t>(s.state().step) * dt < 30 * kMs) report = s.step(Inputs{});
    REQUIRE(report.status == StepStatus::ok);
    const index3::BodyState& crank = s.state().body[0];
    const double angle = 2.0 * std::atan2(crank.p[3], crank.p[0]);
    angle_error.push_back(std::abs(std::remainder(angle - beta, 2.0 * M_PI)));
    rate_error.push_back(std::abs(crank.w_b[2] - rate));
  }
  MESSAGE("andrews: crank angle error " << angle_error[0] << ", " << angle_error[1] << ", " << angle_error[2] << ", "
                                        << angle_error[3] << " rad at 0.1, 0.05, 0.025, 0.0125 ms");
  for (int k = 1; k < 3; ++k) {
    CHECK(slope(angle_error[k], angle_error[k + 1]) == doctest::Approx(2.0).epsilon(0.1));
    CHECK(slope(rate_error[k], rate_error[k + 1]) == doctest::Approx(2.0).epsilon(0.1));
  }
  CHECK(angle_error.back() < 3e-4);
}

TEST_CASE("McPherson struts: the redundant and the simplified one agree to 1e-9 m over 2 s") {
  index3::Settings settings;
  settings.dt_ns = kMs;
  index3::Stepper simplified(mechanism("mcpherson"), settings), redundant(mechanism("mcpherson_redundant"), settings);
  double largest = 0.0;
  for (int k = 0; k < 2000; ++k) {
    REQUIRE(simplified.step(Inputs{}).status == StepStatus::ok);
    REQUIRE(redundant.step(Inputs{}).status == StepStatus::ok);
    for (std::size_t i = 0; i < 5; ++i)
      largest = std::max(largest, (simplified.state().body[i].r - redundant.state().body[i].r).norm());
  }
  MESSAGE("mcpherson: simplified and redundant differ by " << largest << " m at most");
  CHECK(largest < 1e-9);
}

TEST_CASE("suspension, crane and coupled loops converge to their references with order two") {
  check_order_two("mcpherson", "mcpherson_simplified", 10 * kMs, 2.0, 0.1);
  check_order_two("mcpherson_redundant", "mcpherson_redundant", 10 * kMs, 2.0, 0.1);
  check_order_two("pipelayer", "pipelayer", 5 * kMs, 10.0, 0.1);
  check_order_two("hdca_case1", "hdca_case1", 10 * kMs, 10.0, 0.1);
  check_order_two("hdca_case3", "hdca_case3", 5 * kMs, 4.0, 0.2);
}
