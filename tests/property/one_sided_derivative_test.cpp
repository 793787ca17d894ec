// The slopes of forces that act over a step are the derivatives of their efforts.
#include <doctest/doctest.h>

#include <cmath>

#include "core/index3/physics/elements/rope.h"
#include "core/index3/physics/elements/stop.h"
#include "tests/support/random.h"

namespace rigstep::index3 {
namespace {

// f(x): effort and minus its slope; away from the kinks at `kinks`
template <class F>
void check_slope(const F& f, double x, std::initializer_list<double> kinks) {
  constexpr double kDifference = 1e-7;
  for (const double kink : kinks)
    if (std::abs(x - kink) < 2.0 * kDifference) return;
  const double slope = -(f(x + kDifference).effort - f(x - kDifference).effort) / (2.0 * kDifference);
  CHECK(f(x).stiffness == doctest::Approx(slope).epsilon(1e-5).scale(1e5));
  CHECK(f(x).stiffness >= 0.0);
}

}  // namespace

TEST_CASE("a stop's stiffness over a step is minus the derivative of its effort, wherever the step begins and ends") {
  test::Random random(11);
  for (int k = 0; k < 500; ++k) {
    Stop stop;
    stop.lower = random.uniform(-0.2, 0.0);
    stop.upper = random.uniform(0.0, 0.2);
    stop.stiffness = 1e5;
    stop.damping = k % 2 ? random.uniform(0.0, 2.0) : 0.0;
    const double dt = 1e-2;
    const OverStep over = at_start(random.uniform(-0.3, 0.3), random.uniform(-10.0, 10.0));
    const double still = stop.damping > 0.0 ? dt / stop.damping : 1e9;  // a faster retreat pushes no more
    check_slope([&](double x) { return stop_effort_over_step(stop, over, x, dt); }, random.uniform(-0.3, 0.3),
                {stop.lower, stop.upper, over.start_x, over.start_x - still, over.start_x + still});
  }
}

TEST_CASE("a stop's mean effort over a step takes from the motion what its spring gains, and more with damping") {
  test::Random random(12);
  for (int k = 0; k < 500; ++k) {
    Stop stop;
    stop.lower = random.uniform(-0.2, 0.0);
    stop.upper = random.uniform(0.0, 0.2);
    stop.stiffness = 1e7;
    stop.damping = k % 2 ? random.uniform(0.0, 2.0) : 0.0;
    const OverStep over = at_start(random.uniform(-0.3, 0.3), random.uniform(-10.0, 10.0));
    const double x = random.uniform(-0.3, 0.3);
    const auto energy = [&](double at) { return 0.5 * stop.stiffness * std::pow(depth_beyond(stop, at), 2); };
    const double mean = 0.5 * (stop_effort_over_step(stop, over, x, 1e-2).effort + over.start_effort);
    const double taken = -mean * (x - over.start_x), gained = energy(x) - energy(over.start_x);
    if (stop.damping == 0.0)
      CHECK(taken == doctest::Approx(gained).epsilon(1e-9).scale(1.0));
    else
      CHECK(taken >= gained - 1e-6);
  }
}

TEST_CASE("a rope's stiffness over a step is minus the derivative of its effort, which takes what its spring gains") {
  test::Random random(13);
  for (int k = 0; k < 500; ++k) {
    Rope rope;
    rope.stiffness = 1e5;
    rope.damping = k % 2 ? random.uniform(0.0, 1e3) : 0.0;
    const double dt = 1e-2, unstretched = random.uniform(0.5, 2.0);
    const OverStep over = at_start(random.uniform(-0.3, 0.3), random.uniform(-10.0, 0.0));
    const double end = random.uniform(-0.3, 0.3);
    const auto effort = [&](double stretch) { return rope_effort_over_step(rope, unstretched, over, stretch, dt); };
    const bool is_clipped = effort(end).effort == -over.start_effort;
    if (!is_clipped) check_slope(effort, end, {0.0, over.start_x});
    const auto energy = [&](double stretch) {
      return 0.5 * rope.stiffness / unstretched * std::pow(std::max(0.0, stretch), 2);
    };
    const double mean = 0.5 * (effort(end).effort + over.start_effort);
    CHECK(mean <= 0.0);
    CHECK(-mean * (end - over.start_x) >= energy(end) - energy(over.start_x) - 1e-6);
  }
}

}  // namespace rigstep::index3
