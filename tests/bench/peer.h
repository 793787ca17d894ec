// Other multibody engines on the mechanisms of `rigstep bench`, each in a file of its own and built only where its
// package is installed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "server/machine/timing.h"

namespace rigstep::bench {

struct Peer {
  const char* name;
  std::string (*version)();
  // At the start pose, for a fixed step [s]; constraints that are springs have this time constant [steps]. Throws
  // Unsupported.
  server::TimedSolver (*make)(const Mechanism& mechanism, double dt, double time_constant);
  // To choose from, the stiffest first; the one of engines without such constraints means nothing.
  std::vector<double> time_constants = {0.0};
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
  // columns; equal in the world at the start. z is the axis of a revolute or prismatic joint, x and y are the parent's
  // and the body's axis of a universal one
  Mat3 axes_in_parent, axes_in_body;
  bool is_driven = false;  // a driver holds its coordinate, that of a prismatic joint, at its start
};
struct JointTree {
  std::vector<TreeJoint> tree;   // one per body, parents before children; free bodies have floating joints
  std::vector<TreeJoint> loops;  // the same kind of joint between two bodies of the tree, or a body and the ground
  std::string left_out;          // of the mechanism; empty: nothing
};

// Throws Unsupported for joints other than spherical, revolute, prismatic, universal and floating, for loops that close
// by another one than a spherical joint or a revolute, for couplings and start velocities.
JointTree joint_tree(const Mechanism& mechanism);

// Where a mechanism has what only some engines take. Throws Unsupported.
void require_only_gravity_and_pins(const Mechanism& mechanism, const JointTree& tree);

// Largest distance of the two points of a loop joint [m]; point_0: of a body, from its mass centre, in the world.
double largest_gap(const JointTree& tree, const std::function<Vec3(int body, const Vec3& point_b)>& point_0);

// Deflection-free length of a spring between points, its preload included [m].
double free_length(const Spring& spring);

// Rotation from the body's frame to that of the world at the start; identity for the ground.
Mat3 start_rotation(const Mechanism& mechanism, int body);
Vec3 start_position(const Mechanism& mechanism, int body);

}  // namespace rigstep::bench
