// The stepper with its default settings, whatever the size of things: lengths, masses, slenderness, step, number.
#include <doctest/doctest.h>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/stepper_access.h"
#include "core/mechanism/portable_math.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::test;

namespace {

struct Course {
  StepStatus worst = StepStatus::ok;
  double energy_lost = 0.0, energy_won = 0.0;  // largest changes against the start [J]
  double largest_kinetic = 0.0;                // [J]
  double velocity_residual = 0.0;
  double last_increment = 0.0;
};

Course course(const Description& d, std::int64_t dt_ns, double time) {
  index3::Stepper s(build(d), {.dt_ns = dt_ns});
  Course c;
  const auto energy = [&] { return index3::energy(index3::plan_of(s), s.state(), index3::workspace_of(s)); };
  const double start = energy().kinetic + energy().potential;
  for (int k = 0; k < static_cast<int>(std::lround(1e9 * time / static_cast<double>(dt_ns))); ++k) {
    const StepReport report = s.step(Inputs{});
    c.worst = std::max(c.worst, report.status);
    if (failed(report.status)) break;
    const index3::Energy e = energy();
    c.energy_lost = std::max(c.energy_lost, start - e.kinetic - e.potential);
    c.energy_won = std::max(c.energy_won, e.kinetic + e.potential - start);
    c.largest_kinetic = std::max(c.largest_kinetic, e.kinetic);
    c.velocity_residual = std::max(c.velocity_residual, report.velocity_residual);
    c.last_increment = std::max(c.last_increment, report.last_increment);
  }
  return c;
}

// The mechanism with all lengths and masses multiplied, and speeds such that it moves alike in time sqrt(length).
Description scaled(Description d, double length, double mass) {
  const double speed = std::sqrt(length);
  for (Body& b : d.bodies) {
    b.mass *= mass;
    b.inertia_b *= mass * length * length;
    b.position_0 *= length;
    b.velocity_0 *= speed;
    b.angular_velocity_0 *= speed / length;
  }
  for (auto& joint : d.joints) {
    joint.point *= length;
    joint.second_point *= length;
  }
  return d;
}

// largest difference of the two after so many steps: poses and velocities in units of their own lengths and times
double difference(const index3::Stepper& a, const index3::Stepper& b, double length) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.state().body.size(); ++i) {
    const index3::BodyState &x = a.state().body[i], &y = b.state().body[i];
    const double speed = std::sqrt(length);
    most = std::max({most, (x.r - y.r / length).norm(), (x.p - y.p).norm(), (x.v - y.v / speed).norm(),
                     (x.w_b - y.w_b * speed).norm()});
  }
  return most;
}

// links with the inertia of the paper's chain, thrown sideways at the start; axes of their joints lie across them
Description thrown_chain(int n, JointType type, const Mat3& inertia = Mat3::Identity()) {
  Description d = chain(n, type);
  for (auto& joint : d.joints) joint.second_axis = Vec3::UnitY();
  for (Body& b : d.bodies) {
    b.inertia_b = inertia;
    b.velocity_0 = {0.0, 0.0, 1.0};
    b.angular_velocity_0 = {0.5, 0.0, 0.3};
  }
  return made_consistent(d);
}

}  // namespace

TEST_CASE("mechanisms of 1 mm to 100 m move alike, in times that go with the root of their lengths") {
  struct Pair {
    double length, other_length;      // [m]
    std::int64_t dt_ns, other_dt_ns;  // with the ratio of the lengths' roots
  };
  const Pair pairs[] = {{0.1, 1e-3, kMs, kMs / 10}, {0.1, 10.0, kMs, 10 * kMs}, {1.0, 100.0, 5 * kMs, 50 * kMs}};
  for (const Description& d : {thrown_chain(8, JointType::spherical), thrown_chain(8, JointType::revolute),
                               four_bar(0.6), thrown_chain(5, JointType::universal)})
    for (const Pair& pair : pairs) {
      const double cube = std::pow(pair.other_length / pair.length, 3);
      index3::Stepper a(build(scaled(d, pair.length, 1.0)), {.dt_ns = pair.dt_ns});
      index3::Stepper b(build(scaled(d, pair.other_length, cube)), {.dt_ns = pair.other_dt_ns});
      CAPTURE(d.name);
      CAPTURE(pair.other_length);
      StepStatus worst = StepStatus::ok;
      for (int k = 0; k < 400; ++k) worst = std::max({worst, a.step(Inputs{}).status, b.step(Inputs{}).status});
      CHECK(worst == StepStatus::ok);
      CHECK(difference(a, b, pair.other_length / pair.length) < 1e-9);
    }
}

TEST_CASE("masses a million times those next to them keep the energy with order two at 1 ms: base, tip, every other") {
  const auto heavy_base = [](int i, int) { return i == 0; };
  const auto heavy_tip = [](int i, int n) { return i == n - 1; };
  const auto heavy_odd = [](int i, int) { return i % 2 == 1; };
  const auto heavy_even = [](int i, int) { return i % 2 == 0; };
  for (const JointType type : {JointType::spherical, JointType::revolute})
    for (const int n : {2, 8})
      for (const double ratio : {1e6, 1e-6})
        for (const auto heavy : {+heavy_base, +heavy_tip, +heavy_odd, +heavy_even}) {
          Description d = chain(n, type);
          for (int i = 0; i < n; ++i) {
            Body& body = d.bodies[i];
            body.mass = heavy(i, n) ? ratio : 1.0;
            body.inertia_b = body.mass / 12.0 * Mat3::Identity();
          }
          const Course coarse = course(d, kMs, 2.0), fine = course(d, kMs / 2, 2.0);
          CAPTURE(n);
          CAPTURE(ratio);
          CHECK(coarse.worst == StepStatus::ok);
          CHECK(coarse.energy_lost < 3e-5 * coarse.largest_kinetic);
          CHECK(coarse.energy_won < 1e-6 * coarse.largest_kinetic);
          CHECK(std::log2(coarse.energy_lost / fine.energy_lost) == doctest::Approx(2.0).epsilon(0.07));
          CHECK(coarse.velocity_residual < 1e-6);
        }
}

TEST_CASE("rods of 1e-9 kg m^2 about their own axis fall in their plane as thicker ones do") {
  for (const JointType type : {JointType::spherical, JointType::revolute})
    for (const std::int64_t dt : {kMs / 10, kMs, 10 * kMs}) {
      Description thin = chain(8, type), thick = chain(8, type);
      for (Body& body : thin.bodies) body.inertia_b = Vec3(1e-9, 1.0 / 12.0, 1.0 / 12.0).asDiagonal();
      for (Body& body : thick.bodies) body.inertia_b = 1.0 / 12.0 * Mat3::Identity();
      index3::Stepper a(build(thin), {.dt_ns = dt}), b(build(thick), {.dt_ns = dt});
      CAPTURE(dt);
      StepStatus worst = StepStatus::ok;
      for (std::int64_t t = 0; t < 800 * kMs; t += dt)
        worst = std::max({worst, a.step(Inputs{}).status, b.step(Inputs{}).status});
      CHECK(worst == StepStatus::ok);
      CHECK(difference(a, b, 1.0) < 10.0 * std::pow(1e-9 * static_cast<double>(dt), 2));
    }
}

TEST_CASE("rods of 1e-9 kg m^2 about their own axis swing in space as thicker ones do") {
  for (const JointType type : {JointType::spherical, JointType::revolute, JointType::universal, JointType::gimbal})
    for (const int n : {1, 2, 8})
      for (const std::int64_t dt : {kMs / 10, kMs, 10 * kMs}) {
        const Description thin = thrown_chain(n, type, Vec3(1e-9, 1.0 / 12.0, 1.0 / 12.0).asDiagonal());
        const Description thick = thrown_chain(n, type, Vec3(1e-4, 1.0 / 12.0, 1.0 / 12.0).asDiagonal());
        const Course c = course(thin, dt, 1.5), reference = course(thick, dt, 1.5);
        CAPTURE(n);
        CAPTURE(dt);
        CHECK(c.worst == StepStatus::ok);
        CHECK(c.energy_lost == doctest::Approx(reference.energy_lost).epsilon(0.01));
        CHECK(c.energy_won < 1e-6 * c.largest_kinetic);
        CHECK(c.velocity_residual < 1e-6);
      }
}

TEST_CASE("a tip of a million times the mass of the 8 to 64 links that carry it swings at 10 ms") {
  for (const int n : {8, 16, 64}) {
    Description d = chain(n, JointType::spherical);
    for (Body& body : d.bodies) body.inertia_b = body.mass / 12.0 * Mat3::Identity();
    d.bodies.back().mass *= 1e6, d.bodies.back().inertia_b *= 1e6;
    const Course c = course(d, 10 * kMs, 3.0);
    CAPTURE(n);
    CHECK_FALSE(failed(c.worst));
    CHECK(c.energy_lost < 1e-4 * c.largest_kinetic);
    CHECK(c.energy_won < 1e-9 * c.largest_kinetic);
    CHECK(c.last_increment < 1e-3);
  }
}

TEST_CASE("rows of four-bars and a ladder that folds flat keep their energy at 10 ms") {
  for (const int windows : {2, 4, 8}) {
    const Description planar = n_four_bar(windows, 1.3, -1.0);
    for (const Description& d : {planar, in_space(planar)}) {
      const Course c = course(d, 10 * kMs, 6.0);
      CAPTURE(windows);
      CHECK(c.worst == StepStatus::ok);
      CHECK(c.energy_lost < 2e-3 * c.largest_kinetic);
      CHECK(c.energy_won < 1e-9 * c.largest_kinetic);
    }
  }
  for (const Description& d : {ladder(4), in_space(ladder(4))}) {
    const Course c = course(d, 10 * kMs, 3.0);
    CHECK_FALSE(failed(c.worst));  // while it is pushed through its flat pose its residuals exceed their limits
    CHECK(c.energy_lost < 0.02 * c.largest_kinetic);
    CHECK(c.energy_won < 1e-4 * c.largest_kinetic);
  }
}

TEST_CASE("steps of 0.1 to 50 ms keep the energy with order two") {
  struct Case {
    Description description;
    double energy_over_dt2;  // [J/s^2]
  };
  for (const Case& each :
       {Case{double_pendulum(), 90.0}, Case{four_bar(0.25 * kPi), 180.0},
        Case{thrown_chain(8, JointType::spherical), 1050.0}, Case{thrown_chain(8, JointType::revolute), 1050.0}})
    for (const std::int64_t dt : {50 * kMs, 25 * kMs, 10 * kMs, kMs, kMs / 10}) {
      const Course c = course(each.description, dt, dt < kMs ? 0.5 : 3.0);
      CAPTURE(each.description.name);
      CAPTURE(dt);
      CHECK(c.worst == StepStatus::ok);
      CHECK(c.energy_lost < each.energy_over_dt2 * std::pow(1e-9 * static_cast<double>(dt), 2));
      CHECK(c.energy_won < 1e-9);
    }
}

// Gyroscopic terms are no part of the symmetric tangent: what three iterations leave of them shows in the top.
TEST_CASE("rotors, tops and tumbling bodies keep their energy at half and a fifth of a radian a step") {
  struct Case {
    Vec3 moments, spin;
    JointType type;
    double kept;  // of the kinetic energy
  };
  for (const Case& each : {Case{{0.01, 0.01, 0.01}, {0.0, 0.0, 500.0}, JointType::revolute, 1e-9},
                           Case{{0.01, 0.01, 0.02}, {20.0, 0.0, 200.0}, JointType::spherical, 1e-3},
                           Case{{0.01, 0.02, 0.025}, {10.0, 20.0, 200.0}, JointType::spherical, 1e-4}}) {
    Description d;
    d.bodies = {make_body("A", Vec3::Zero(), 1.0, each.moments.asDiagonal())};
    d.bodies[0].angular_velocity_0 = each.spin;
    d.joints = {make_joint("joint", each.type, "ground", "A", Vec3::Zero())};
    const Course c = course(d, kMs, 5.0);
    MESSAGE("energy lost " << c.energy_lost / c.largest_kinetic << ", won " << c.energy_won / c.largest_kinetic);
    CHECK(c.worst == StepStatus::ok);
    CHECK(c.energy_lost < each.kept * c.largest_kinetic);
    CHECK(c.energy_won < each.kept * c.largest_kinetic);
  }
}

TEST_CASE("a screw jack that spins up to half a radian a step moves by three iterations as by ten") {
  const Mechanism jack = mechanism("screw_jack");
  index3::Stepper three(jack, {.dt_ns = kMs}), ten(jack, {.dt_ns = kMs, .iterations = 10});
  StepStatus worst = StepStatus::ok;
  double turned = 0.0;  // in a step [rad]
  for (int k = 0; k < 1500; ++k) {
    const double before = three.state().coordinate[0];
    worst = std::max({worst, three.step(Inputs{}).status, ten.step(Inputs{}).status});
    turned = std::max(turned, std::abs(three.state().coordinate[0] - before));
  }
  CHECK(turned > 0.5);
  CHECK(worst == StepStatus::ok);
  CHECK(difference(three, ten, 1.0) < 1e-5);
}

TEST_CASE("the whip of 256 links costs energy of second order in the step") {
  Description d = chain(256, JointType::spherical);
  for (Body& b : d.bodies) b.inertia_b = Mat3::Identity();
  const double lost[] = {course(d, 20 * kMs, 10.0).energy_lost, course(d, 10 * kMs, 10.0).energy_lost,
                         course(d, 5 * kMs, 10.0).energy_lost};
  MESSAGE("256 links: energy lost " << lost[0] << ", " << lost[1] << ", " << lost[2] << " J at 20, 10, 5 ms");
  CHECK(std::log2(lost[0] / lost[1]) == doctest::Approx(2.0).epsilon(0.1));
  CHECK(std::log2(lost[1] / lost[2]) == doctest::Approx(2.0).epsilon(0.02));
}

TEST_CASE("a chain of 1024 links goes through its whip at 10 ms") {
  for (const JointType type : {JointType::spherical, JointType::revolute}) {
    Description d = chain(1024, type);
    for (Body& b : d.bodies) b.inertia_b = Mat3::Identity();
    const Course c = course(d, 10 * kMs, 20.0);
    MESSAGE("1024 links, " << to_string(type) << ": energy lost " << c.energy_lost << " J of " << c.largest_kinetic
                           << " J, last increment up to " << c.last_increment);
    CHECK_FALSE(failed(c.worst));
    CHECK(c.energy_lost < 2e-3 * c.largest_kinetic);
    CHECK(c.energy_won < 1e-6 * c.largest_kinetic);
    CHECK(c.largest_kinetic > 4e6);  // it did whip
    CHECK(c.last_increment < 2e-2);
    CHECK(c.velocity_residual < 1e-8);
  }
}

TEST_CASE(
    "chains of uniform rods go through their first whips at 10 ms, where links turn by half a radian a step and more") {
  for (const JointType type : {JointType::spherical, JointType::revolute})
    for (const int n : {32, 128, 256}) {
      Description d = chain(n, type);
      for (Body& b : d.bodies) b.inertia_b = b.mass / 12.0 * Mat3::Identity();
      const Course c = course(d, 10 * kMs, 10.0);
      CAPTURE(n);
      CHECK_FALSE(failed(c.worst));
      CHECK(c.energy_lost < 0.25 * c.largest_kinetic);
      CHECK(c.energy_won < 1e-9 * c.largest_kinetic);
      CHECK(c.last_increment < 0.1);
      CHECK(c.velocity_residual < 1e-6);
    }
}
