// Placements of bodies, moved a little: what derivatives are differenced over; and states that are not consistent.
#pragma once

#include "core/index3/physics/kinematics.h"
#include "core/index3/state.h"
#include "tests/support/random.h"

namespace rigstep::test {

using index3::Placement;

// error of a central difference with step 1e-5 on functions of size 1 to 10: 1e-10 truncation, 1e-10 rounding
inline constexpr double kStep = 1e-5;
inline constexpr double kError = 2e-9;

inline Placement moved(const Placement& at, const Vec3& dr, const Vec3& dtheta) {
  Placement to = at;
  to.r += dr;
  if (dtheta.norm() > 0.0) to.A = Eigen::AngleAxisd(dtheta.norm(), dtheta.normalized()) * at.A;
  return to;
}

inline Placement moved(const Placement& at, int component, double step) {
  const Vec3 d = step * Vec3::Unit(component % 3);
  return component < 3 ? moved(at, d, Vec3::Zero()) : moved(at, Vec3::Zero(), d);
}

inline Placement random_placement(Random& random) {
  return {random.vector(), random.rotation().toRotationMatrix(), random.vector(), random.vector()};
}

// Symmetric part of how a torque changes when its body turns, by differences to order 4; torque: f(rotation).
template <class F>
Mat3 symmetric_turning(const Mat3& A, const F& torque) {
  Mat3 K;
  for (int k = 0; k < 3; ++k) {
    const auto turned = [&](double angle) -> Vec3 {
      return torque(Mat3(Eigen::AngleAxisd(angle, Vec3::Unit(k)).toRotationMatrix() * A));
    };
    const auto slope = [&](double angle) -> Vec3 { return (turned(angle) - turned(-angle)) / (2.0 * angle); };
    constexpr double kTurn = 2e-3;
    K.col(k) = (4.0 * slope(0.5 * kTurn) - slope(kTurn)) / 3.0;
  }
  return 0.5 * (K + K.transpose());
}

// Open joints, moving bodies, drivers anywhere.
inline index3::State disturbed(index3::State x, Random& random) {
  for (index3::BodyState& body : x.body) {
    body.r += random.uniform(0.0, 0.1) * random.direction();
    body.p = index3::turned(body.p, random.uniform(0.0, 0.3) * random.direction());
    body.v = random.uniform(0.0, 2.0) * random.direction();
    body.w_b = random.uniform(0.0, 2.0) * random.direction();
  }
  for (index3::Prescribed& drive : x.drive) drive = {random.uniform(), random.uniform(), random.uniform()};
  return x;
}

}  // namespace rigstep::test
