// What rounding adds up to over many steps.
#include <doctest/doctest.h>

#include <array>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/stepper.h"
#include "tests/support/mechanisms.h"

using namespace rigstep;
using namespace rigstep::test;

namespace {

struct Momenta {
  Vec3 linear = Vec3::Zero();  // [kg m/s]
  Vec3 centre = Vec3::Zero();  // mass centre [m]
};

Momenta momenta(const index3::Stepper& s) {
  Momenta sum;
  double mass = 0.0;
  for (std::size_t i = 0; i < s.state().body.size(); ++i) {
    const Body& body = s.mechanism().bodies()[i];
    const index3::BodyState& x = s.state().body[i];
    mass += body.mass;
    sum.linear += body.mass * x.v;
    sum.centre += body.mass * x.r;
  }
  sum.centre /= mass;
  return sum;
}

// Three tumbling bodies that nothing holds to the ground.
Description free_bodies(bool joined) {
  Description d;
  d.name = "free";
  for (int i = 0; i < 3; ++i) {
    Body b = make_body(body_name(i), {0.9 * i, 0.3 * i, 0.1}, 1.0 + 0.3 * i, Vec3(0.1, 0.15, 0.2).asDiagonal());
    b.velocity_0 = {0.1, 0.2, -0.05};
    b.angular_velocity_0 = {0.3, 0.2, 0.5};
    d.bodies.push_back(b);
  }
  if (!joined) return d;
  d.joints = {make_joint("ball", JointType::spherical, body_name(0), body_name(1), {0.45, 0.15, 0.1}),
              make_joint("hinge", JointType::revolute, body_name(1), body_name(2), {1.35, 0.45, 0.1})};
  return made_consistent(d);
}

struct Drift {
  double linear = 0.0, centre = 0.0;
};

// after each of these numbers of steps of 1 ms
template <std::size_t N>
std::array<Drift, N> drift_after(const Description& d, const std::array<int, N>& steps) {
  index3::Stepper s(build(d), {});
  const Momenta start = momenta(s);
  double mass = 0.0;
  for (const Body& b : d.bodies) mass += b.mass;
  std::array<Drift, N> drift;
  int step = 0;
  for (std::size_t k = 0; k < N; ++k) {
    for (; step < steps[k]; ++step) s.step(Inputs{});
    const Momenta now = momenta(s);
    const Vec3 moved = 1e-3 * step / mass * start.linear;
    drift[k] = {(now.linear - start.linear).norm(), (now.centre - start.centre - moved).norm()};
  }
  return drift;
}

}  // namespace

TEST_CASE("free bodies keep momentum to the bit, and their mass centre to the rounding of one sum") {
  const auto [drift] = drift_after(free_bodies(false), std::array{100'000});
  CHECK(drift.linear == 0.0);
  CHECK(drift.centre < 2e-14);
}

TEST_CASE("joined bodies lose momentum by less than the root of the steps times a rounding; nothing adds up") {
  const auto [drift] = drift_after(free_bodies(true), std::array{160'000});
  CHECK(drift.linear < 1e-13);
  CHECK(drift.centre < 4e-12);  // what the momentum lacks moves it on
}
