// Mechanisms that the tests build themselves, as descriptions that a test may change before they are built.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/mechanism/builder.h"
#include "core/mechanism/signals.h"
#include "tests/support/random.h"

namespace rigstep::test {

inline constexpr std::int64_t kMs = 1'000'000;  // [ns]

inline constexpr std::array kAllJointTypes{
    JointType::spherical,      JointType::revolute,       JointType::prismatic,
    JointType::cylindrical,    JointType::universal,      JointType::fixed,
    JointType::point_on_point, JointType::point_on_line,  JointType::perpendicular_axes,
    JointType::parallel_axes,  JointType::planar,         JointType::gimbal,
    JointType::screw,          JointType::point_on_plane, JointType::distance,
    JointType::floating};

// What a MechanismBuilder is fed with, in the order of the vectors.
struct Description {
  using JointAtStart = MechanismBuilder::JointAtStart;
  struct BodySpring {
    Spring spring;
    std::string first, second;
  };
  struct JointSpring {
    Spring spring;
    std::string joint;
    Freedom freedom;
  };
  struct BodyInput {
    Input input;
    std::string body;
  };
  struct JointInput {
    std::string name, joint;
    Freedom freedom;
  };
  std::string name = "test";
  Vec3 gravity = Vec3::Zero();
  std::vector<Body> bodies;
  std::vector<JointAtStart> joints;
  std::vector<BodySpring> springs;
  std::vector<JointSpring> joint_springs;
  std::vector<BodyInput> body_inputs;
  std::vector<JointInput> joint_inputs;
  struct JointFreedom {
    std::string joint;
    Freedom freedom;
  };
  struct Coupled {
    std::string name;
    JointFreedom first, second;
    double ratio;
  };
  struct Driven {
    Driver driver;
    JointFreedom at;
  };
  std::vector<Coupled> couplings;
  std::vector<Driven> drivers;
};

void add_forces(MechanismBuilder& builder, const Description& d);

// add_more(builder): what follows, e.g. outputs
Mechanism build(const Description& d, const std::function<void(MechanismBuilder&)>& add_more = nullptr);

int rows(JointType type);

int rows(const Description& d);

std::string body_name(int index);

Body make_body(const std::string& name, const Vec3& position, double mass = 1.0,
               const Mat3& inertia = Mat3::Identity());

Body make_rod(const std::string& name, const Vec3& from, const Vec3& to);

Description::JointAtStart make_joint(const std::string& name, JointType type, const std::string& first,
                                     const std::string& second, const Vec3& point, const Vec3& axis = Vec3::UnitZ(),
                                     const Vec3& other = Vec3::UnitX());

// The spatial double pendulum of [001] 4.2.
Description double_pendulum();

// The rhombus of [001] 4.3 with link A at angle phi from +x; four spatial revolutes, three redundant rows.
Description four_bar(double phi);

// n links of 1 m along x, each hung on the one before by a joint of the same type.
Description chain(int n, JointType type);

// Body i hangs on body (i - 1) / branching; the first one on the ground.
Description tree(int n, int branching, JointType type);

// The same with inputs that could push its first bodies out of any plane, so that no rows of what hangs together with
// them are idle (core/index3/compile/planar_motion.h).
Description in_space(Description d, std::size_t bodies = 1);

// A planar ladder of n square loops that hangs on one revolute: three redundant rows a loop.
Description ladder(int n);

// IFToMM's N-four-bar: n windows of uniform rods of 1 m and 1 kg, uprights at angle phi from +x that turn with `rate`
// [rad/s]; three redundant rows a window. All at phi = 0 or pi lies on one line: singular, with n + 1 freedoms.
Description n_four_bar(int n, double phi, double rate);

// A flat net of n x n plates in the plane z = 0, each joined to its neighbours halfway between them, that hangs on one
// corner. Singular as long as it is flat: loops share their joints' rows.
Description net(int n, JointType type);

// A primal body on a vertical axis (z) with n seats that hang on it by hinges along the rim; at rest.
Description carousel(int n);

Description::JointAtStart random_joint(Random& random, const std::string& name, JointType type,
                                       const std::string& first, const std::string& second, const Vec3& near);

Spring random_spring(Random& random, const std::string& name, Spring::Kind kind);

// Springs of all three kinds, where the mechanism has a joint with a freedom.
void add_random_springs(Random& random, Description& d);

// Each body hangs on an earlier one, or on the ground if it may, by a joint of any type: from n = 16 on all types
// occur. Start velocities are random and still to be made consistent. No springs.
Description random_bare_tree(unsigned seed, int n, bool on_ground = true);

// Equal chains of rods side by side on the ground, with free ends; the outer body first in each joint, or the inner
// one.
Description chains_side_by_side(int chains, int links, JointType type, bool outer_first);

// An arch of links, some hung the other way round, with side branches: free, or on the ground with one end
// or both.
Description random_chain(int seed, int links);

// Up to `count` couplings between the freedoms of random joints.
void add_random_couplings(unsigned seed, Description& d, int count);

// The same description with velocities that its joints allow.
Description made_consistent(Description d);

Description random_tree(unsigned seed, int n);

// A random tree whose freedoms are used up by further joints of any type, between any two parts, down to a few. Many
// rows are redundant; draws that happen to stand near a singular pose are drawn again.
Description random_loops(unsigned seed, int n);

// Smooth inputs of a few units at a step, the same for every run.
Inputs test_inputs(const Mechanism& m, std::uint64_t step);

// Names of the instruction sets that this processor runs.
std::vector<const char*> instruction_sets();

}  // namespace rigstep::test
