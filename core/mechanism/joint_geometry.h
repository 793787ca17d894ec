// Joints between two poses: what they constrain and what they leave free, with derivatives, and the second pose from
// the coordinates. For the assembly of the start; load time. The same bits on every machine.
#pragma once

#include <array>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep {

struct Pose {
  Vec3 r_0 = Vec3::Zero();    // mass centre, world frame [m]
  Mat3 A = Mat3::Identity();  // body -> world
};

// A joint's two frames in the world.
struct JointAt {
  Vec3 gap = Vec3::Zero();  // from the first point to the second [m]
  Mat3 a = Mat3::Identity(), b = Mat3::Identity();
  Vec3 first_arm = Vec3::Zero(), second_arm = Vec3::Zero();  // from the mass centres [m]
};
JointAt joint_at(const Joint& joint, const Pose& first, const Pose& second);

// A scalar of a joint and its derivative with respect to the displacement and the rotation of each body, world frame.
struct JointScalar {
  double value = 0.0;  // [m], [rad] or [-]
  Vec6 first = Vec6::Zero(), second = Vec6::Zero();
  JointScalar& operator+=(const JointScalar& other);
  JointScalar scaled(double factor) const;
};

// What the joint holds at zero.
std::vector<JointScalar> joint_constraints(const Joint& joint, const JointAt& at);

// A freedom as the frames measure it; angles in (-pi, pi], that of a screw on the turn that its displacement tells.
JointScalar joint_freedom(const Joint& joint, Freedom freedom, const JointAt& at);

// The second frame in the first one.
struct RelativePose {
  Vec3 shift = Vec3::Zero();  // along the first frame's axes [m]
  Mat3 turn = Mat3::Identity();
};

// The joint closed, with its freedoms at these values (in the order of freedoms(type), as the frames measure them).
// What it leaves free beyond them stays as in `at`.
RelativePose closed_joint(const Joint& joint, const std::vector<double>& freedoms, const JointAt& at);

}  // namespace rigstep
