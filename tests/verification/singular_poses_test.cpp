// Parallelograms that start at, or swing through, the poses where all their rods lie on one line. There they may fold:
// the branch on which opposite rods stay parallel is the only one with continuous velocities. On it they are pendulums
// with one freedom, J angle'' = -c cos(angle), which is solved here to rounding.
#include <doctest/doctest.h>

#include "core/mechanism/portable_math.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::test;

namespace {

constexpr double kDegree = kPi / 180.0;

// J angle'' = -c cos(angle), by Runge and Kutta's method
struct Pendulum {
  double c_over_J;  // [1/s^2]
  double angle, rate;

  void advance(double time) {
    const int steps = static_cast<int>(std::ceil(time / 2e-4));
    const double h = time / steps;
    const auto pull = [this](double at) { return -c_over_J * std::cos(at); };
    for (int k = 0; k < steps; ++k) {
      const double k1 = pull(angle), v1 = rate;
      const double v2 = rate + 0.5 * h * k1, k2 = pull(angle + 0.5 * h * v1);
      const double v3 = rate + 0.5 * h * k2, k3 = pull(angle + 0.5 * h * v2);
      const double v4 = rate + h * k3, k4 = pull(angle + h * v3);
      angle += h / 6.0 * (v1 + 2.0 * v2 + 2.0 * v3 + v4);
      rate += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
    }
  }
};

// of the swinging rods A, C or V0, V1, ...; B and H1, H2, ... keep their direction
bool swings(const Body& body) { return body.name[0] != 'B' && body.name[0] != 'H'; }

double turn_about_z(const EulerParameters& p) { return 2.0 * std::atan2(p[3], p[0]); }

// What a run did over its whole time.
struct Passage {
  StepStatus worst = StepStatus::ok;
  double turn_error = 0.0;  // of any rod against the exact motion [rad]; the folded branch is of order 1 away
  double position_residual = 0.0, velocity_residual = 0.0;
};

Passage passage(const Mechanism& m, Pendulum exact, std::int64_t dt_ns, double time) {
  index3::Stepper s(m, {.dt_ns = dt_ns});
  const double dt = 1e-9 * static_cast<double>(dt_ns), start = exact.angle;
  Passage p;
  for (int k = 0; k < static_cast<int>(std::lround(time / dt)); ++k) {
    const StepReport report = s.step(Inputs{});
    p.worst = std::max(p.worst, report.status);
    if (failed(report.status)) return p;
    p.position_residual = std::max(p.position_residual, report.position_residual);
    p.velocity_residual = std::max(p.velocity_residual, report.velocity_residual);
    exact.advance(dt);
    for (std::size_t i = 0; i < m.bodies().size(); ++i) {
      const double want = swings(m.bodies()[i]) ? exact.angle - start : 0.0;
      const double turn = turn_about_z(s.state().body[i].p) - turn_about_z(m.bodies()[i].orientation);
      p.turn_error = std::max(p.turn_error, std::abs(std::remainder(turn - want, 2.0 * kPi)));
    }
  }
  return p;
}

// The worse of two passages: with the rows that hold rods in their plane, three a loop of them redundant, and without.
Passage passage(const Description& d, const Pendulum& exact, std::int64_t dt_ns, double time) {
  const Passage planar = passage(build(d), exact, dt_ns, time),
                spatial = passage(build(in_space(d)), exact, dt_ns, time);
  return {std::max(planar.worst, spatial.worst), std::max(planar.turn_error, spatial.turn_error),
          std::max(planar.position_residual, spatial.position_residual),
          std::max(planar.velocity_residual, spatial.velocity_residual)};
}

// The rhombus `degrees` before its singular pose at -90 degrees, where it rests (down) or stands on its head (up).
struct SingularStart {
  double degrees, rate;  // [deg], [rad/s]
  bool up;
};

Passage from(const SingularStart& start, std::int64_t dt_ns, double time) {
  const double phi = -0.5 * kPi + start.degrees * kDegree;
  Description d = four_bar(phi);
  const Vec3 along{-std::sin(phi), std::cos(phi), 0.0};
  for (Body& body : d.bodies) {
    body.velocity_0 = (swings(body) ? 0.5 : 1.0) * start.rate * along;
    if (swings(body)) body.angular_velocity_0 = {0.0, 0.0, start.rate};
  }
  if (start.up) d.gravity = -d.gravity;
  const double c = 2.0 * d.gravity.norm() * (start.up ? -1.0 : 1.0);
  return passage(d, {c / 3.5, phi, start.rate}, dt_ns, time);
}

Passage swing_of(int windows, std::int64_t dt_ns, double time) {
  const double J = (windows + 1) / 3.0 + windows, c = 9.81 * (0.5 * (windows + 1) + windows);
  return passage(n_four_bar(windows, 0.5 * kPi, -1.0), {c / J, 0.5 * kPi, -1.0}, dt_ns, time);
}

// of second order in the step [rad]
double bound(std::int64_t dt_ns) { return 80.0 * std::pow(1e-9 * static_cast<double>(dt_ns), 2); }

}  // namespace

TEST_CASE(
    "a four-bar started 1 degree from its singular pose stays on its branch with order two, at rest and at speed") {
  for (const bool up : {false, true})
    for (const double rate : {0.0, 3.0, -3.0}) {
      CAPTURE(up);
      CAPTURE(rate);
      std::vector<double> error;
      for (const std::int64_t dt : {10 * kMs, 5 * kMs, kMs, 50 * kMs}) {
        const Passage p = from({1.0, rate, up}, dt, 4.0);
        CAPTURE(dt);
        CHECK(p.worst == StepStatus::ok);
        CHECK(p.turn_error < bound(dt));
        CHECK(p.velocity_residual < 1e-10);
        error.push_back(p.turn_error);
      }
      CHECK(std::log2(error[0] / error[1]) == doctest::Approx(2.0).epsilon(0.05));
    }
}

TEST_CASE("a four-bar started 1e-6 degrees from its singular pose at speed stays on its branch") {
  for (const bool up : {false, true})
    for (const double rate : {3.0, -3.0})
      for (const std::int64_t dt : {kMs, 10 * kMs, 50 * kMs}) {
        const Passage p = from({1e-6, rate, up}, dt, 4.0);
        CAPTURE(up);
        CAPTURE(rate);
        CAPTURE(dt);
        CHECK(p.worst == StepStatus::ok);
        CHECK(p.turn_error < bound(dt));
        CHECK(p.velocity_residual < 1e-10);
      }
}

TEST_CASE("a four-bar started 1e-6 degrees from its singular pose at rest stays on its branch") {
  for (const std::int64_t dt : {kMs / 10, kMs, 10 * kMs, 50 * kMs}) {
    const Passage down = from({1e-6, 0.0, false}, dt, 4.0), up = from({1e-6, 0.0, true}, dt, 4.0);
    CAPTURE(dt);
    CHECK(down.worst == StepStatus::ok);
    CHECK(down.turn_error < 1.7e-8);  // as far as it swings
    CHECK(up.worst == StepStatus::ok);
    CHECK(up.turn_error < bound(dt) + 2e-6);  // it falls: rounding at the start grows by e^9
  }
}

TEST_CASE("windows of parallelograms in a row all swing as one pendulum, through the singular pose and back") {
  for (const int n : {1, 2, 3, 5, 12, 20, 40}) {
    CAPTURE(n);
    std::vector<double> error;
    for (const std::int64_t dt : {10 * kMs, 5 * kMs, kMs}) {
      const Passage p = swing_of(n, dt, 2.0);
      CAPTURE(dt);
      CHECK(p.worst == StepStatus::ok);
      CHECK(p.turn_error < bound(dt));
      CHECK(p.velocity_residual < 1e-6);
      error.push_back(p.turn_error);
    }
    CHECK(std::log2(error[0] / error[1]) == doctest::Approx(2.0).epsilon(0.05));
  }
}

TEST_CASE("IFToMM's N-four-bar converges to its exact solution with at least order two, over ten singular passages") {
  const nlohmann::json ref = reference("a02_n_four_bar");
  for (const auto& [n, is_planar] : {std::pair{1, true}, {2, true}, {1, false}, {2, false}}) {
    CAPTURE(is_planar);
    const Description d = n_four_bar(n, 0.5 * kPi, -1.0);
    const Mechanism m = build(is_planar ? d : in_space(d));
    const auto run = [&](std::int64_t dt) {
      return deviation(m, ref["cases"][static_cast<std::size_t>(n - 1)], dt, 10.0);
    };
    const test::Deviation coarse = run(kMs), fine = run(kMs / 8);
    MESSAGE(n << " windows: position error " << coarse.position << ", " << fine.position
              << " m at 1, 0.125 ms; energy changes by " << coarse.lowest_energy_change << " J at 1 ms");
    CHECK(coarse.worst == StepStatus::ok);
    CHECK(fine.worst == StepStatus::ok);
    CHECK(coarse.position < 3e-4);
    // over three halvings: the rods nearly stop on their way over the top, where the dissipation of higher order shows
    for (const double order :
         {std::log2(coarse.position / fine.position) / 3.0, std::log2(coarse.velocity / fine.velocity) / 3.0}) {
      CHECK(order > 1.9);
      CHECK(order < 2.4);
    }
  }
}
