// Linear and angular momentum of all bodies of a stepper.
#pragma once

#include "core/index3/stepper.h"

namespace rigstep::test {

struct Momentum {
  Vec3 linear = Vec3::Zero();
  Vec3 angular = Vec3::Zero();                     // about the world's origin
  double linear_scale = 0.0, angular_scale = 0.0;  // sums of the bodies' shares regardless of direction
};

inline Momentum momentum(const index3::Stepper& s) {
  Momentum sum;
  for (std::size_t i = 0; i < s.state().body.size(); ++i) {
    const Body& b = s.mechanism().bodies()[i];
    const index3::BodyState& x = s.state().body[i];
    const Vec3 angular = b.mass * x.r.cross(x.v) + index3::rotation_matrix(x.p) * (b.inertia_b * x.w_b);
    sum.linear += b.mass * x.v;
    sum.angular += angular;
    sum.linear_scale += b.mass * x.v.norm();
    sum.angular_scale += angular.norm();
  }
  return sum;
}

}  // namespace rigstep::test
