// Joint frames in motion, and the freedoms that they measure: what constraints, springs, motors, couplings and drivers
// of the absolute-coordinate reference solvers are made of. Offline only.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/offline/jet.h"
#include "core/offline/solver.h"

namespace rigstep::offline {

Mat3 rotation(const EulerParameters& p);  // body -> world, of p as if it had unit norm

std::vector<BodyMotion> start_motion(const Mechanism& mechanism);  // (bodies) as described

// Two frames, one on each body (kGround: the world itself), in the world frame.
struct JointMotion {
  JetVec3 gap;                        // from the first frame's point to the second's [m]
  std::array<JetVec3, 3> first_axes;  // x, y, z [-]
  std::array<JetVec3, 3> second_axes;
  Vec3 second_arm = Vec3::Zero();  // from the second body's mass centre to its point [m]
};
JointMotion joint_motion(int first, const JointFrame& in_first, int second, const JointFrame& in_second,
                         std::span<const BodyMotion> bodies);
JointMotion joint_motion(const Joint& joint, std::span<const BodyMotion> bodies);

// A freedom of the joint as its frames measure it; angles in (-pi, pi], that of a screw on the turn that its
// displacement tells. [m] or [rad]
Jet measured(const Joint& joint, Freedom freedom, const JointMotion& at);

// The mechanism's joint coordinates, angles unwrapped over a run: each value is the one nearest to where the rates of
// the last call and of this one lead. That must not be wrong by more than half a turn. The first values are those
// nearest to zero.
class CoordinateFollower {
 public:
  explicit CoordinateFollower(const Mechanism& mechanism);
  std::vector<Jet> follow(std::span<const BodyMotion> bodies, double t = 0.0);  // (coordinates) at time t [s]

 private:
  const Mechanism* mechanism_;
  std::vector<double> last_;  // as measured, unwrapped
  std::vector<double> last_rate_;
  double last_time_ = 0.0;  // [s]
  bool has_begun_ = false;
};

}  // namespace rigstep::offline
