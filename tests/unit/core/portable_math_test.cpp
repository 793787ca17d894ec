#include "core/mechanism/portable_math.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/support/random.h"

namespace rigstep::index3 {
namespace {

// against the library's extended precision, whose own error is 1e-19
double sine_error(double x) {
  return std::abs(static_cast<double>(static_cast<long double>(sine(x)) - std::sin(static_cast<long double>(x))));
}

double arctangent_error(double y, double x) {
  const long double exact = std::atan2(static_cast<long double>(y), static_cast<long double>(x));
  return std::abs(static_cast<double>(static_cast<long double>(arctangent(y, x)) - exact));
}

}  // namespace

TEST_CASE("the sine is right to 1e-15 up to 1e5 rad") {
  double worst = 0.0;
  for (int k = -400'000; k <= 400'000; ++k) worst = std::max(worst, sine_error(k * 2.5e-5));  // within 10 rad
  test::Random random(1);
  for (int k = 0; k < 400'000; ++k) worst = std::max(worst, sine_error(random.uniform(-1e5, 1e5)));
  for (int k = -31'000; k <= 31'000; ++k)  // where the argument's reduction cancels most
    for (const double offset : {-1e-9, 0.0, 1e-9}) worst = std::max(worst, sine_error(k * kPi + offset));
  CAPTURE(worst);
  CHECK(worst < 1e-15);
}

TEST_CASE("the sine is odd, exact at zero and stays within one") {
  test::Random random(2);
  CHECK(sine(0.0) == 0.0);
  for (int k = 0; k < 100'000; ++k) {
    const double x = random.uniform(-100.0, 100.0);
    REQUIRE(sine(-x) == -sine(x));
    REQUIRE(std::abs(sine(x)) <= 1.0 + std::numeric_limits<double>::epsilon());
  }
  CHECK(sine(0.5 * kPi) == doctest::Approx(1.0).epsilon(1e-15));
}

TEST_CASE("the arctangent is right to 1e-15 all around, at any length of the vector") {
  double worst = 0.0;
  for (int k = -500'000; k <= 500'000; ++k) {
    const double angle = k * (kPi / 500'000.0);
    worst = std::max(worst, arctangent_error(std::sin(angle), std::cos(angle)));
  }
  test::Random random(3);
  for (int k = 0; k < 400'000; ++k) {
    const double size = std::pow(10.0, random.uniform(-100.0, 100.0));
    worst = std::max(worst, arctangent_error(size * random.uniform(), size * random.uniform()));
  }
  CAPTURE(worst);
  CHECK(worst < 1e-15);
}

TEST_CASE("the arctangent of the axes and diagonals is that of the library") {
  for (const double x : {-1.0, 0.0, 1.0})
    for (const double y : {-1.0, 0.0, 1.0}) {
      CAPTURE(x);
      CAPTURE(y);
      CHECK(arctangent(y, x) == doctest::Approx(x == 0.0 && y == 0.0 ? 0.0 : std::atan2(y, x)).epsilon(1e-15));
    }
  CHECK(arctangent(0.0, -1.0) == kPi);  // (-pi, pi]: the half-open end
  CHECK(arctangent(-0.0, -1.0) == kPi);
  CHECK(arctangent(-1e-300, -1.0) == -kPi);
}

TEST_CASE("what is not a number stays so") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(sine(nan)));
  CHECK(std::isnan(sine(std::numeric_limits<double>::infinity())));
  CHECK(std::isnan(arctangent(nan, 1.0)));
  CHECK(std::isnan(arctangent(1.0, nan)));
}

}  // namespace rigstep::index3
