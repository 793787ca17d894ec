// A mechanism as a tree of bodies and hinges, section 2 of [003] (tree_methods.h): which hinge each body hangs on, what
// its coordinates are, and G, rho, A, A-dot, v^r and w^r from them.
//
// A hinge is a row of shifts, turns and balls between constant poses. It is one joint, or two that hold the same
// bodies, one their points and one their axes (the pipelayer's chassis: a line and a pair of perpendicular axes). The
// origin of a body is its point at its hinge. Balls have Euler parameters as coordinates and angular velocities in
// their outer axes as rates: (23) holds for such quasi-velocities too, and no pose is singular. A driver makes its
// freedom rheonomic: the motion along it is v^r, its direction no column of A. Owned by one run; offline only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/offline/drives.h"
#include "core/offline/solver.h"
#include "core/offline/tree_methods.h"

namespace rigstep::offline {

struct TreePose {
  Vec3 origin_0 = Vec3::Zero();  // of the body's axes, world frame [m]
  Mat3 axes_0 = Mat3::Identity();
};

// A motion of the outer part of a hinge against the inner one, or a constant pose.
struct HingeElement {
  enum class Kind { constant, screw, ball };
  Kind kind = Kind::constant;
  Vec3 shift = Vec3::Zero();     // constant: of the outer frame in the inner one; screw: per unit of its coordinate
  Mat3 turn = Mat3::Identity();  // constant
  Vec3 axis = Vec3::Zero();      // screw: unit, or zero for a shift
  bool inverted = false;         // ball: its turn is that from the outer to the inner frame
  int measured = 0;              // its place among what the joint frames tell
  int freedom_joint = -1;        // screw: what a driver calls it
  Freedom freedom = Freedom::angle;
  int coordinate = -1;  // where its coordinates begin; -1: driven
  int rate = -1;        // where its rates begin
  int driver = -1;
  double per_drive = 1.0;                 // coordinate per unit of what is driven
  double start = 0.0, drive_start = 0.0;  // values of both at the start
};

struct TreeHinge {
  int body = 0, inner = kGround;        // of the mechanism
  int position = -1, orientation = -1;  // joints, may be the same; -1: the body floats
  bool reversed = false;                // the body is the first one of the position joint
  Vec3 mass_centre = Vec3::Zero();      // from the origin, body axes [m]
  std::vector<HingeElement> elements;   // inner to outer
};

// Empty, or why a mechanism is no open tree of hinges.
std::string tree_unsupported_reason(const Mechanism& mechanism);

class TreeKinematics {
 public:
  // Throws SolverError where tree_unsupported_reason has something to say.
  explicit TreeKinematics(const Mechanism& mechanism);

  std::span<const TreeHinge> hinges() const { return hinges_; }  // (N) in the paper's order
  int coordinates() const { return coordinates_; }
  int rates() const { return rates_; }

  // Masses and structure filled in, everything else of the right size.
  TreeSystem<double> system() const;
  // The coordinates of a pose that agrees with the hinges, from which driven ones then count. driven: (drivers) values
  // of the joint coordinates there.
  std::vector<double> start(std::span<const BodyMotion> bodies, std::span<const double> driven);

  // G, rho, A, Z, A_plus and bias = v^r of the system, and the poses. drives: (drivers).
  void place(std::span<const double> q, std::span<const Prescribed> drives, TreeSystem<double>& system);
  // A-dot from rates, then w^r from the motions that system.v holds. Rates: (rates).
  void move(std::span<const double> rates, std::span<const Prescribed> drives, const TreeSystem<double>& system);
  // (coordinates) from rates (rates)
  void differentiate(std::span<const double> q, std::span<const double> rates, std::span<double> qd) const;

  const std::vector<TreePose>& poses() const { return poses_; }       // (N) by place
  const std::vector<Six<double>>& A_rate() const { return A_rate_; }  // (rates) columns of A-dot, by move
  // w^r of (33) for accelerations of the origins as an observer at rest sees them, by move (N)
  const std::vector<Six<double>>& acceleration_bias() const { return acceleration_bias_; }

 private:
  struct Column {
    Six<double> motion;
    int rate = -1;  // free, of the whole tree
    int element = 0;
  };
  const Mechanism* mechanism_;
  std::vector<TreeHinge> hinges_;
  int coordinates_ = 0, rates_ = 0;
  std::vector<TreePose> poses_;
  std::vector<std::vector<Column>> columns_;  // (N) inner to outer, driven ones too
  std::vector<Six<double>> A_rate_, acceleration_bias_;
};

}  // namespace rigstep::offline
