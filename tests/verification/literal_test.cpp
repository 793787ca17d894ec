// The paper's scheme as printed, errata corrected, against the stepper and against the references: two implementations
// that share nothing but the mechanism.
#include "core/offline/index3_literal.h"

#include <doctest/doctest.h>

#include "core/offline/literal_solver.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::test;

namespace {

offline::LiteralStepper literal(const Mechanism& m, std::int64_t dt_ns, double alpha = 1e10, int iterations = 3,
                                bool tuned = false) {
  offline::LiteralSettings settings;
  settings.tuned = tuned;
  settings.dt_ns = dt_ns;
  settings.alpha = alpha;
  settings.iterations = iterations;
  return {m, settings};
}

// Largest distance of a mass centre from the stepper's after `steps` steps [m], multiplied out as printed or tuned.
double distance(const Mechanism& m, std::int64_t dt_ns, int iterations, int steps) {
  index3::Settings settings;
  settings.dt_ns = dt_ns;
  settings.iterations = iterations;
  index3::Stepper a(m, settings);
  offline::LiteralStepper b = literal(m, dt_ns, 1e10, iterations);
  offline::LiteralStepper tuned = literal(m, dt_ns, 1e10, iterations, true);
  for (int k = 0; k < steps; ++k) {
    a.step(Inputs{});
    b.step();
    tuned.step();
  }
  double largest = 0.0;
  for (int i = 0; i < static_cast<int>(m.bodies().size()); ++i)
    for (const offline::LiteralStepper* form : {&b, &tuned})
      largest = std::max(largest, (a.state().body[i].r - form->position_0(i)).norm());
  return largest;
}

double pendulum_error(const Mechanism& m, const nlohmann::json& ref, std::int64_t dt_ns) {
  offline::LiteralStepper s = literal(m, dt_ns, 1e10, 10);
  double error = 0.0;
  for (const auto& sample : ref["reference"]) {
    const auto target =
        static_cast<std::uint64_t>(std::llround(sample["t"].get<double>() * 1e9 / static_cast<double>(dt_ns)));
    while (s.state().step < target) s.step();
    for (int i = 0; i < 2; ++i)
      error = std::max(error, (s.position_0(i) - vec3(sample["bodies"][m.bodies()[i].name]["r"])).norm());
  }
  return error;
}

double tip_error(const Mechanism& m, const nlohmann::json& ref, std::int64_t dt_ns, double until) {
  offline::LiteralStepper s = literal(m, dt_ns);
  const int last = static_cast<int>(m.bodies().size()) - 1;
  double error = 0.0;
  for (const auto& sample : ref["reference"]) {
    const double t = sample["t"].get<double>();
    if (t > until + 1e-9) break;
    while (1e-9 * static_cast<double>(s.state().step) * static_cast<double>(dt_ns) < t - 1e-9) s.step();
    const EulerParameters p = s.orientation(last);
    const Vec3 tip = s.position_0(last) + Eigen::Quaterniond(p[0], p[1], p[2], p[3]) * Vec3(0.5, 0.0, 0.0);
    error = std::max(error, (tip - vec3(sample["tip"]["r"])).norm());
  }
  return error;
}

}  // namespace

TEST_CASE("literal form: one step is the stepper's to the remainder of Newton's iteration") {
  const Mechanism pendulum = build(double_pendulum());
  CHECK(distance(pendulum, 10 * kMs, 3, 1) < 1e-13);
  for (const JointType type : {JointType::spherical, JointType::revolute})
    for (const int n : {1, 2, 3, 8, 32}) {
      CAPTURE(n);
      const Mechanism m = build(chain(n, type));
      CHECK(distance(m, 10 * kMs, 10, 1) < 1e-12);
      // later on they part with dt^3: the stepper's projections have a metric that holds geometric stiffness
      const double coarse = distance(m, 10 * kMs, 10, 50), fine = distance(m, 5 * kMs, 10, 100);
      CHECK(coarse < 1e-5);
      if (n <= 8) CHECK(slope(coarse, fine) > 2.5);
    }
}

TEST_CASE("literal form: tuned and multiplied out as printed are the same to rounding") {
  for (const JointType type : {JointType::spherical, JointType::revolute})
    for (const int n : {2, 8, 32}) {
      CAPTURE(n);
      const Mechanism m = build(chain(n, type));
      offline::LiteralStepper printed = literal(m, 10 * kMs), tuned = literal(m, 10 * kMs, 1e10, 3, true);
      for (int k = 0; k < 20; ++k) {
        printed.step();
        tuned.step();
        for (int i = 0; i < n; ++i) {
          CHECK((printed.state().q[i] - tuned.state().q[i]).norm() < 1e-13);
          CHECK((printed.state().qdd[i] - tuned.state().qdd[i]).norm() < 1e-9);
        }
      }
    }
}

TEST_CASE("literal form: random spatial chains of mixed joints go where the stepper goes") {
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    Random random(seed);
    Description d;
    d.name = "mixed";
    d.gravity = 9.81 * random.direction();
    Vec3 point = Vec3::Zero();
    for (int i = 0; i < 6; ++i) {
      const Vec3 next = point + random.direction();
      Body body = make_body(body_name(i), 0.5 * (point + next), random.uniform(0.5, 2.0), random.inertia(1.0, 0.5));
      body.orientation = random.orientation();
      body.velocity_0 = random.vector();
      body.angular_velocity_0 = random.vector(2.0);
      d.bodies.push_back(body);
      const JointType type = random.below(2) == 0 ? JointType::spherical : JointType::revolute;
      // either end may be the first
      const std::string a = body_name(i - 1), b = body_name(i);
      const bool swap = random.below(2) == 0;
      d.joints.push_back(
          make_joint("joint" + std::to_string(i), type, swap ? b : a, swap ? a : b, point, random.direction()));
      point = next;
    }
    const Mechanism m = build(made_consistent(d));
    CAPTURE(seed);
    CHECK(distance(m, kMs, 10, 1) < 1e-12);
    CHECK(distance(m, kMs, 10, 200) < 1e-6);
  }
}

TEST_CASE("literal form: four-bar closed on the ground, with redundant rows") {
  const Mechanism m = mechanism("four_bar");
  CHECK(distance(m, 10 * kMs, 10, 1) < 1e-11);
  CHECK(distance(m, 10 * kMs, 10, 40) < 1e-7);

  const nlohmann::json ref = reference("four_bar");
  offline::LiteralStepper s = literal(m, 10 * kMs, 1e9, 4);
  double error = 0.0;
  for (const auto& sample : ref["reference"]) {
    const auto target = static_cast<std::uint64_t>(std::llround(sample["t"].get<double>() * 100.0));
    while (s.state().step < target) s.step();
    for (int i = 0; i < 3; ++i)
      error = std::max(error, (s.position_0(i) - vec3(sample["bodies"][m.bodies()[i].name]["r"])).norm());
  }
  MESSAGE("literal four_bar: position error " << error << " m over 30 s at 10 ms");
  CHECK(error < 8e-3);
}

TEST_CASE("literal form: second order against the references of double pendulum and chain of 8") {
  const Mechanism pendulum = mechanism("double_pendulum");
  const nlohmann::json ref = reference("double_pendulum");
  const double a = pendulum_error(pendulum, ref, 10 * kMs), b = pendulum_error(pendulum, ref, 5 * kMs);
  MESSAGE("literal double_pendulum: position error " << a << " m at 10 ms, " << b << " m at 5 ms");
  CHECK(a < 4e-3);
  CHECK(slope(a, b) == doctest::Approx(2.0).epsilon(0.05));

  const Mechanism eight = mechanism("chain_8");
  const nlohmann::json tips = reference("chain_n8");
  const double c = tip_error(eight, tips, 4 * kMs, 2.0), d = tip_error(eight, tips, 2 * kMs, 2.0);
  MESSAGE("literal chain_8: tip error " << c << " m at 4 ms, " << d << " m at 2 ms, over 2 s");
  CHECK(slope(c, d) == doctest::Approx(2.0).epsilon(0.1));
}

TEST_CASE("literal form: the whip of 128 links costs 46.3 J at 10 ms, as without geometric stiffness") {
  const Mechanism m = mechanism("chain_128");
  offline::LiteralStepper s = literal(m, 10 * kMs);
  double dip = 0.0;
  for (int k = 0; k < 600; ++k) {
    REQUIRE(std::isfinite(s.step()));
    double energy = 0.0;
    for (int i = 0; i < 128; ++i)  // inertia 1 kg m^2 about each axis, mass 1 kg
      energy += 0.5 * s.velocity_0(i).squaredNorm() + 0.5 * s.angular_velocity_0(i).squaredNorm() +
                9.81 * s.position_0(i).y();
    dip = std::min(dip, energy);
  }
  MESSAGE("literal chain_128: energy dip " << dip << " J");
  CHECK(std::abs(dip + 46.3) < 0.5);
}

TEST_CASE("literal form: what it does not take is refused with a reason") {
  CHECK_THROWS_AS(literal(build(tree(7, 2, JointType::revolute)), kMs), MechanismError);
  CHECK_THROWS_AS(literal(build(chain(3, JointType::universal)), kMs), MechanismError);
  CHECK_THROWS_AS(literal(mechanism("mcpherson"), kMs), MechanismError);
}

TEST_CASE("literal form: modified Newton reaches the step of full Newton, with one factorisation") {
  for (const char* name : {"double_pendulum", "four_bar"}) {
    CAPTURE(name);
    const Mechanism m = mechanism(name);
    offline::LiteralSettings settings;
    settings.dt_ns = 5 * kMs;
    settings.iterations = 12;
    offline::LiteralStepper full(m, settings);
    settings.modified_newton = true;
    offline::LiteralStepper modified(m, settings);
    for (int k = 0; k < 100; ++k) {
      full.step();
      CHECK(modified.step() < 1e-12);
    }
    for (int i = 0; i < static_cast<int>(m.bodies().size()); ++i)
      CHECK((full.position_0(i) - modified.position_0(i)).norm() < 1e-10);
  }
}

// Section 5.1 of [001]: each level of the tree is a loop that threads share.
TEST_CASE("literal form: the same bits for any number of threads") {
  for (const char* name : {"double_pendulum", "four_bar", "chain_8"})
    for (const bool tuned : {false, true}) {
      const Mechanism m = mechanism(name);
      offline::LiteralSettings settings;
      settings.tuned = tuned;
      settings.alpha = 1e9;
      for (const int threads : {2, 3, 5}) {
        settings.threads = 1;
        offline::LiteralStepper alone(m, settings);
        settings.threads = threads;
        offline::LiteralStepper shared(m, settings);
        for (int k = 0; k < 20; ++k) CHECK(alone.step() == shared.step());
        const offline::LiteralState &a = alone.state(), &b = shared.state();
        CHECK(a.q == b.q);
        CHECK(a.qd == b.qd);
        CHECK(a.qdd == b.qdd);
        CHECK(a.lambda == b.lambda);
        CHECK(a.mu == b.mu);
      }
    }
}

TEST_CASE("literal reference solver: extrapolated to steps of zero it agrees with the references to 1e-8 m") {
  struct Case {
    const char *name, *reference;
    double until;
  };
  for (const Case& c : {Case{"double_pendulum", "double_pendulum", 2.0},
                        {"four_bar", "four_bar", 0.9},
                        {"four_bar_hanging", "four_bar_hanging", 0.5}}) {
    CAPTURE(c.name);
    const Mechanism m = mechanism(c.name);
    const nlohmann::json ref = reference(c.reference);
    offline::Scenario scenario;
    scenario.mechanism = &m;
    for (const auto& sample : ref["reference"])
      if (sample["t"].get<double>() <= c.until) scenario.instants.push_back(sample["t"]);
    REQUIRE(scenario.instants.size() > 1);
    const offline::Trajectory run = offline::literal_index3(scenario, {});
    for (std::size_t k = 0; k < run.instants.size(); ++k)
      for (std::size_t i = 0; i < m.bodies().size(); ++i)
        CHECK((run.instants[k].body[i].r_0 - vec3(ref["reference"][k]["bodies"][m.bodies()[i].name]["r"])).norm() <
              1e-8);
  }
}

TEST_CASE("literal reference solver: what it cannot do, and a tolerance of none, are refused") {
  CHECK(offline::literal_index3_unsupported_reason(mechanism("chain_8")).empty());
  CHECK(offline::literal_index3_unsupported_reason(mechanism("pipelayer")) != "");
  CHECK(offline::literal_index3_unsupported_reason(mechanism("stewart")) != "");
  offline::Scenario scenario;
  const Mechanism m = mechanism("mcpherson");
  scenario.mechanism = &m;
  scenario.instants = {0.0, 0.1};
  CHECK_THROWS_AS(offline::literal_index3(scenario, {}), offline::SolverError);
  offline::Options none;
  none.absolute_tolerance = 0.0;
  CHECK_THROWS_AS(offline::literal_index3(scenario, none), std::invalid_argument);
}
