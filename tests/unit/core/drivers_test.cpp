#include "core/index3/physics/drivers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/index3/compile/plan.h"
#include "core/index3/stepper.h"
#include "tests/support/mechanisms.h"

namespace rigstep::index3 {
namespace {

Driver follows(TimeFunction function) {
  Driver d;
  d.function = std::move(function);
  return d;
}

const std::vector<double> kTimes{0.2, 0.5, 0.6, 1.1, 1.2}, kValues{1.0, 0.4, 0.5, -0.3, 2.0};

Driver filtered(double time_constant) {
  Driver d;
  d.from_input = Driver::FromInput::filtered;
  d.time_constant = time_constant;
  d.first_channel = 0;
  return d;
}

Inputs input(double value) {
  Inputs u;
  u.count = 1;
  u.value[0] = value;
  return u;
}

}  // namespace

TEST_CASE("rate and acceleration of a prescribed motion are the derivatives of its value") {
  const double h = 1e-5;
  const TimeFunction wave = harmonic(0.3, 0.7, 5.0, 0.4), cubic = polynomial({1.0, -2.0, 0.5, 0.3}),
                     points = table(kTimes, kValues);
  for (const TimeFunction& function : {wave, cubic, polynomial({0.7}), points, wave + points + cubic}) {
    const Driver d = follows(function);
    const DriverPlan plan = prepare(d, 1e-3);
    for (const double t : {0.1, 0.25, 0.55, 0.8, 1.15, 1.4}) {
      const Prescribed before = prescribed(d, plan, t - h), at = prescribed(d, plan, t),
                       after = prescribed(d, plan, t + h);
      CAPTURE(t);
      CHECK(at.rate == doctest::Approx((after.value - before.value) / (2.0 * h)).epsilon(1e-7));
      CHECK(at.acceleration == doctest::Approx((after.rate - before.rate) / (2.0 * h)).epsilon(1e-7));
    }
  }
}

TEST_CASE("a sum is the sum of its terms, of one term that term to the bit") {
  const TimeFunction wave = harmonic(0.3, 0.7, 5.0), cubic = polynomial({1.0, -2.0, 0.5, 0.3});
  const Driver one = follows(wave), other = follows(cubic), both = follows(wave + cubic);
  for (const double t : {0.0, 0.25, 0.7}) {
    const Prescribed a = prescribed(one, prepare(one, 1e-3), t), b = prescribed(other, prepare(other, 1e-3), t);
    const Prescribed sum = prescribed(both, prepare(both, 1e-3), t);
    CHECK(sum.value == a.value + b.value);
    CHECK(sum.rate == a.rate + b.rate);
    CHECK(sum.acceleration == a.acceleration + b.acceleration);
  }
  // minus zero, which stands in the hash of a state
  CHECK(std::signbit(prescribed(one, prepare(one, 1e-3), 0.0).acceleration));
}

TEST_CASE("an input beside a function is added to it, and rests where with it the start is met") {
  Driver d = filtered(0.02);
  d.function = polynomial({0.1, 2.0, 3.0});
  constexpr double dt = 1e-3;
  const DriverPlan plan = prepare(d, dt), alone = prepare(filtered(0.02), dt);
  Prescribed p = prescribed_at_start(d, plan, 0.5), q{0.4, 0.0, 0.0};
  CHECK(p.value == 0.5);
  CHECK(p.rate == 2.0);
  for (int k = 1; k <= 50; ++k) {
    p = prescribed_next(d, plan, p, input(0.9), k * dt);
    q = prescribed_next(filtered(0.02), alone, q, input(0.9), k * dt);
    const Prescribed from_time = prescribed(d, plan, k * dt);
    CHECK(p.value == doctest::Approx(q.value + from_time.value).epsilon(1e-13));
    CHECK(p.rate == doctest::Approx(q.rate + from_time.rate).epsilon(1e-12));
    CHECK(p.acceleration == doctest::Approx(q.acceleration + from_time.acceleration).epsilon(1e-11));
  }
}

TEST_CASE("a table is met at its points, smooth between them, and at rest outside") {
  const Driver d = follows(table(kTimes, kValues));
  const DriverPlan plan = prepare(d, 1e-3);
  for (std::size_t k = 0; k < kTimes.size(); ++k) {
    CHECK(prescribed(d, plan, kTimes[k]).value == doctest::Approx(kValues[k]).epsilon(1e-14));
    const Prescribed before = prescribed(d, plan, kTimes[k] - 1e-9), after = prescribed(d, plan, kTimes[k] + 1e-9);
    CHECK(std::abs(after.value - before.value) < 1e-7);
    CHECK(std::abs(after.rate - before.rate) < 1e-5);
    if (k > 0 && k + 1 < kTimes.size()) CHECK(std::abs(after.acceleration - before.acceleration) < 1e-4);
  }
  for (const double t : {-5.0, 0.1, 1.2, 7.0}) {
    const Prescribed at = prescribed(d, plan, t);
    CHECK(at.value == (t < 0.2 ? 1.0 : 2.0));
    CHECK(at.rate == 0.0);
    CHECK(at.acceleration == 0.0);
  }
}

TEST_CASE("a table of two points is the cubic between two rests") {
  const Driver d = follows(table({0.0, 2.0}, {1.0, 3.0}));
  const DriverPlan plan = prepare(d, 1e-3);
  for (const double t : {0.0, 0.3, 1.0, 1.9}) {
    const double x = t / 2.0;
    CHECK(prescribed(d, plan, t).value == doctest::Approx(1.0 + 2.0 * (3.0 * x * x - 2.0 * x * x * x)).epsilon(1e-14));
  }
}

TEST_CASE("an input of three channels is taken as it is") {
  Driver d;
  d.from_input = Driver::FromInput::motion;
  d.first_channel = 1;
  Inputs u;
  u.value[1] = 0.1;
  u.value[2] = 0.2;
  u.value[3] = 0.3;
  const Prescribed p = prescribed_next(d, prepare(d, 1e-3), {9.0, 9.0, 9.0}, u, 5.0);
  CHECK(p.value == 0.1);
  CHECK(p.rate == 0.2);
  CHECK(p.acceleration == 0.3);
}

TEST_CASE("a position input alone goes through three equal poles, exactly for a held input and any step") {
  constexpr double T = 0.02;
  for (const double dt : {1e-4, 1e-3, 0.05}) {
    const Driver d = filtered(T);
    const DriverPlan plan = prepare(d, dt);
    Prescribed p{0.5, 0.0, 0.0};
    for (int k = 1; k <= 40; ++k) {
      p = prescribed_next(d, plan, p, input(2.0), 0.0);
      const double x = k * dt / T, decay = std::exp(-x);
      CHECK(p.value == doctest::Approx(0.5 + 1.5 * (1.0 - decay * (1.0 + x + 0.5 * x * x))).epsilon(1e-12));
      CHECK(p.rate == doctest::Approx(1.5 / T * decay * 0.5 * x * x).epsilon(1e-10));
      CHECK(p.acceleration == doctest::Approx(1.5 / (T * T) * decay * (x - 0.5 * x * x)).epsilon(1e-9));
    }
  }
}

TEST_CASE("a filtered position lags a ramp by three time constants and does not overshoot a step") {
  const double T = 0.01, dt = 1e-3;
  const Driver d = filtered(T);
  const DriverPlan plan = prepare(d, dt);
  Prescribed ramp{0.0, 0.0, 0.0}, step{0.0, 0.0, 0.0};
  double highest = 0.0;
  for (int k = 1; k <= 1000; ++k) {
    ramp = prescribed_next(d, plan, ramp, input(k * dt), 0.0);
    step = prescribed_next(d, plan, step, input(1.0), 0.0);
    highest = std::max(highest, step.value);
  }
  // what is left of the held ramp's steps behind the filter: dt (T / dt)^-3 / (2 pi)^3 in value, 2 pi / dt of it in
  // rate
  CHECK(ramp.rate == doctest::Approx(1.0).epsilon(1e-4));
  CHECK(1.0 - ramp.value == doctest::Approx(3.0 * T - 0.5 * dt).epsilon(1e-6));  // a held ramp is ahead by half a step
  CHECK(highest <= 1.0 + 1e-14);
}

TEST_CASE("drives survive in the flat state, so that a restored run goes on with the same bits") {
  test::Description d = test::chain(2, JointType::revolute);
  Driver driver = filtered(0.01);
  driver.name = "crank";
  d.drivers = {{driver, {"joint0", Freedom::angle}}};
  const Mechanism m = test::build(d);
  REQUIRE(m.input_channels().size() == 1);
  CHECK(m.input_channels()[0].name == "crank.position");
  CHECK(m.input_channels()[0].unit == "rad");
  Stepper a(m, {}), b(m, {});
  for (int k = 0; k < 5; ++k) REQUIRE(a.step(input(0.1)).status == StepStatus::ok);
  std::vector<double> flat(a.state().flat_size());
  a.state().flatten(flat);
  b.restore(flat, a.state().step);
  CHECK(a.state().hash() == b.state().hash());
  for (int k = 0; k < 5; ++k) {
    REQUIRE(a.step(input(0.1)).status == StepStatus::ok);
    REQUIRE(b.step(input(0.1)).status == StepStatus::ok);
    CHECK(a.state().hash() == b.state().hash());
  }
  const std::uint64_t before = a.state().hash();
  REQUIRE(failed(a.step(input(std::nan(""))).status));
  CHECK(a.state().hash() == before);
  REQUIRE(a.step(input(0.1)).status == StepStatus::ok);
  REQUIRE(b.step(input(0.1)).status == StepStatus::ok);
  CHECK(a.state().hash() == b.state().hash());
}

}  // namespace rigstep::index3
