// A quantity of two bodies with its derivatives: what lets every constraint and coordinate be written once, as a
// formula of points and axes, and yields Jacobian and velocity-dependent terms by the rules of calculus.
// Offline only.
#pragma once

#include <cmath>

#include "core/mechanism/types.h"

namespace rigstep::offline {

using Vec12 = Eigen::Matrix<double, 12, 1>;

// gradient: coefficients of (v_0, omega_0) of the first body, then of the second one, in `rate`; zero for the ground.
// curvature: second time derivative where the accelerations of both bodies are zero.
struct Jet {
  double value = 0.0;
  Vec12 gradient = Vec12::Zero();
  double rate = 0.0;
  double curvature = 0.0;

  Vec6 on_first() const { return gradient.head<6>(); }
  Vec6 on_second() const { return gradient.tail<6>(); }
};

struct JetVec3 {
  Vec3 value = Vec3::Zero();
  Eigen::Matrix<double, 3, 12> gradient = Eigen::Matrix<double, 3, 12>::Zero();
  Vec3 rate = Vec3::Zero();
  Vec3 curvature = Vec3::Zero();
};

// f(x): its value and two derivatives at x.value
inline Jet chain(const Jet& x, double f, double df, double ddf) {
  return {f, df * x.gradient, df * x.rate, ddf * x.rate * x.rate + df * x.curvature};
}

inline Jet operator+(const Jet& a, const Jet& b) {
  return {a.value + b.value, a.gradient + b.gradient, a.rate + b.rate, a.curvature + b.curvature};
}
inline Jet operator*(double factor, const Jet& a) {
  return {factor * a.value, factor * a.gradient, factor * a.rate, factor * a.curvature};
}
inline Jet operator-(const Jet& a, const Jet& b) { return a + -1.0 * b; }
inline Jet operator+(const Jet& a, double constant) {
  Jet sum = a;
  sum.value += constant;
  return sum;
}

inline JetVec3 operator-(const JetVec3& a, const JetVec3& b) {
  return {a.value - b.value, a.gradient - b.gradient, a.rate - b.rate, a.curvature - b.curvature};
}

inline Jet dot(const JetVec3& a, const JetVec3& b) {
  return {a.value.dot(b.value), a.gradient.transpose() * b.value + b.gradient.transpose() * a.value,
          a.rate.dot(b.value) + a.value.dot(b.rate),
          a.curvature.dot(b.value) + 2.0 * a.rate.dot(b.rate) + a.value.dot(b.curvature)};
}

// Not at zero, where the norm has no derivative.
inline Jet norm(const JetVec3& a) {
  const Jet square = dot(a, a);
  const double root = std::sqrt(square.value);
  return chain(square, root, 0.5 / root, -0.25 / (root * square.value));
}

// In (-pi, pi]; not at y = x = 0.
inline Jet atan2(const Jet& y, const Jet& x) {
  const double square = x.value * x.value + y.value * y.value;
  const double c = x.value / square, s = y.value / square;
  Jet angle;
  angle.value = std::atan2(y.value, x.value);
  angle.gradient = c * y.gradient - s * x.gradient;
  angle.rate = c * y.rate - s * x.rate;
  angle.curvature = c * y.curvature - s * x.curvature - 2.0 * angle.rate * (c * x.rate + s * y.rate);
  return angle;
}

}  // namespace rigstep::offline
