// Other multibody engines on the mechanisms of `rigstep bench`, each in a file of its own and built only where its
// package is installed.
#pragma once

#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "server/machine/timing.h"

namespace rigstep::bench {

struct Peer {
  const char* name;
  std::string (*version)();
  // At the start pose, for a fixed step [s]. Throws Unsupported.
  server::TimedSolver (*make)(const Mechanism& mechanism, double dt);
};

// What an engine, or its file here, does not take.
struct Unsupported : Error {
  using Error::Error;
};

// Those that were built.
std::vector<Peer> mujoco_peers();
std::vector<Peer> bullet_peers();
std::vector<Peer> simbody_peers();

// A mechanism as engines in joint coordinates want it: every body hangs on a parent, further joints close loops.
struct TreeJoint {
  int parent = kGround, body = 0;  // indices into Mechanism::bodies(); the parent comes first
  JointType type = JointType::spherical;
  Vec3 point_in_parent, point_in_body;  // from the mass centre, body frame; ground: world frame [m]
  Mat3 axes_in_parent, axes_in_body;    // columns; equal in the world at the start, z is the axis of a revolute
};
struct JointTree {
  std::vector<TreeJoint> tree;   // one per body, parents before children
  std::vector<TreeJoint> loops;  // the same kind of joint between two bodies of the tree, or a body and the ground
};

// Throws Unsupported for joints other than spherical and revolute, and for springs, loads and start velocities.
JointTree joint_tree(const Mechanism& mechanism);

// Rotation from the body's frame to that of the world at the start; identity for the ground.
Mat3 start_rotation(const Mechanism& mechanism, int body);
Vec3 start_position(const Mechanism& mechanism, int body);

}  // namespace rigstep::bench
