#include "core/mechanism/portable_math.h"

#include <cmath>

namespace rigstep {

double sine(double x) noexcept {
  // x = k pi + r with |r| <= pi/2; pi in three parts, so that k times each of the first two is exact
  const double k = std::nearbyint(x / kPi);
  const double r = ((x - k * 3.1415926218032837) - k * 3.178650942459171e-8) - k * 1.2246467864107189e-16;
  const double r2 = r * r;
  double sum = 0.0;
  for (int n = 21; n >= 3; n -= 2) sum = -r2 / (n * (n - 1)) * (1.0 + sum);  // the Taylor series in nested form
  const double s = r + r * sum;
  return std::fmod(k, 2.0) == 0.0 ? s : -s;
}

namespace {

// |t| <= 1
double arctangent_of_ratio(double t) {
  const bool large = std::abs(t) > 0.41421356237309503;  // tan(pi/8)
  const double sign = t < 0.0 ? -1.0 : 1.0;
  double z = large ? (std::abs(t) - 1.0) / (std::abs(t) + 1.0) : std::abs(t);
  z = z / (1.0 + std::sqrt(1.0 + z * z));  // half the angle
  const double z2 = z * z;
  double sum = 0.0;
  for (int n = 25; n >= 3; n -= 2) sum = -z2 * (1.0 / n + sum);
  const double half = z + z * sum;
  return sign * (2.0 * half + (large ? kPi / 4.0 : 0.0));
}

}  // namespace

double arctangent(double y, double x) noexcept {
  if (x == 0.0 && y == 0.0) return 0.0;
  if (std::abs(y) <= std::abs(x)) {
    const double a = arctangent_of_ratio(y / x);
    if (x > 0.0) return a;
    return y >= 0.0 ? a + kPi : a - kPi;
  }
  const double a = arctangent_of_ratio(x / y);
  return y > 0.0 ? kPi / 2.0 - a : -kPi / 2.0 - a;
}

}  // namespace rigstep
