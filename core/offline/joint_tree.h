// A mechanism in relative coordinates: a spanning tree of its joints, the others cut, and for each joint the subspaces
// of its motion, H, and of its constraint loads, D:
//
//   V_second - V_first = H qd,  H'H = 1,  D'D = 1,  D'H = 0                                     [000] (10) (11) (23)
//
// with V = (v, omega) at the joint point of the second body, in world axes. Columns of H and D are axes of the first
// body's joint frame; of the second one's where a universal or ball joint turns about them. Ball joints have Euler
// parameters as coordinates and the angular velocity in the second frame as rates, so no pose is singular. A body that
// no joint ties to the ground floats: a joint without constraints is put between them. Offline only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/offline/solver.h"

namespace rigstep::offline {

using Columns = Eigen::Matrix<double, 6, Eigen::Dynamic, Eigen::ColMajor, 6, 6>;

// What a joint leaves free, in terms of its frames.
struct Freeness {
  enum class Turn {
    none,
    about_axis,  // z
    about_both,  // universal: z of the first frame, z of the second
    ball,
  };
  bool shift[3] = {false, false, false};  // along x, y, z of the first frame
  Turn turn = Turn::none;
  double pitch = 0.0;  // screw: displacement per angle, instead of a free shift [m/rad]
  bool rod = false;    // distance: all but the approach of the two points
};

struct Link {
  int joint = -1;        // of the mechanism; -1: a body floats
  int first = kGround;   // bodies
  int second = kGround;  // reactions and momenta are those that it receives
  JointFrame in_first, in_second;
  Freeness freeness;
  bool cut = false;
  int outer = kGround;             // the body that hangs on it, unless cut: first or second
  int coordinate = 0, rate = 0;    // where its coordinates and rates begin
  int coordinates = 0, rates = 0;  // how many; none if cut
  int constraints = 0;             // columns of D

  bool outward() const { return outer == second; }
};

struct Pose {
  Vec3 r_0 = Vec3::Zero();    // mass centre, world frame [m]
  Mat3 A = Mat3::Identity();  // body -> world
};

struct Subspaces {
  Vec3 point_0 = Vec3::Zero();  // joint point of the second body, world frame [m]
  Columns H, D;
};

// How they change with the motion of the bodies.
struct SubspaceRates {
  Vec3 point_0 = Vec3::Zero();  // [m/s]
  Columns H, D;
};

class JointTree {
 public:
  explicit JointTree(const Mechanism& mechanism);

  // Those of the tree first, each after the one that carries its inner body; then the cut ones.
  std::span<const Link> links() const { return links_; }
  int tree_links() const { return tree_links_; }
  int coordinates() const { return coordinates_; }
  int rates() const { return rates_; }

  // Relative coordinates of a pose that the joints of the tree allow.
  std::vector<double> coordinates_of(std::span<const Pose> bodies) const;
  // (bodies)
  void place(std::span<const double> q, std::span<Pose> bodies) const;
  // Time derivatives of the coordinates from the rates.
  void differentiate(std::span<const double> q, std::span<const double> rates, std::span<double> qd) const;

 private:
  void grow(std::vector<Link> candidates, int bodies);
  void number();

  std::vector<Link> links_;
  int tree_links_ = 0, coordinates_ = 0, rates_ = 0;
};

// Why a mechanism has no joint tree whose links say all about it; empty: it has.
std::string joint_tree_unsupported_reason(const Mechanism& mechanism);

// Bodies by index, kGround at rest.
template <class Value>
Value of_body(std::span<const Value> values, int body, const Value& ground) {
  return body == kGround ? ground : values[static_cast<std::size_t>(body)];
}

Subspaces subspaces(const Link& link, const Pose& first, const Pose& second);

// The motions of the mass centres: (v_0, omega_0).
SubspaceRates subspace_rates(const Link& link, const Pose& first, const Vec6& first_motion, const Pose& second,
                             const Vec6& second_motion);

// Moves the point of a wrench (force, moment) or a momentum from `from` to `to`: S of [000] (14).
inline Vec6 shifted(const Vec6& wrench, const Vec3& from, const Vec3& to) {
  Vec6 moved = wrench;
  moved.tail<3>() += (from - to).cross(wrench.head<3>());
  return moved;
}

// Velocity of the point of a body that is at `point`, from that of the body's point at `from`.
inline Vec6 motion_at(const Vec6& motion, const Vec3& from, const Vec3& point) {
  Vec6 moved = motion;
  moved.head<3>() += motion.tail<3>().cross(point - from);
  return moved;
}

}  // namespace rigstep::offline
