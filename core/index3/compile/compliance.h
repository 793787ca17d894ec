// How much the constraints give: what is added to the diagonal of J M^-1 J', 4 / (alpha dt^2) for the penalty factor
// alpha of [001]. Chosen from the start pose, at load time and when a parameter changes a mass.
//
// It must be small beside what a constraint's multiplier moves when everything else is closed, or the constraint gives
// way to its load; and large beside the rounding of J M^-1 J', or redundant multipliers become rounding.
//   Trees: relative * least eigenvalue of the joint's own block, since one pass must suffice.
//   Loops: relative * mean diagonal of the block, every body with at least kPartOfLargest of the largest mass and
// principal moment among the bodies connected with it; else a link of next to no mass, or a rod of next to no inertia
// about its axis, makes the block arbitrarily large.
// Of the two values of `relative` (settings.h), 1e-7 is as large as it is for loops that a load pushes through their
// flat poses: the smaller it is, the more energy is won there (redundancy_test, "ladders whose loops are pushed ...",
// holds 1 % at 1 and 2 ms). 1e-10 was chosen: one pass leaves about that part of what would open the joint.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <span>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep::index3 {

// Rows of a constraint on one body. J: by columns, force [-] and torque [m] for a unit multiplier, world frame.
struct RowsOnBody {
  int body = kGround;
  Mat3 A = Mat3::Identity();                                          // body -> world
  Eigen::Matrix<double, 6, Eigen::Dynamic, Eigen::ColMajor, 6, 6> J;  // without allocation
};

class ComplianceChoice {
 public:
  ComplianceChoice() = default;
  // relative: to the scale that is chosen for each constraint, [-]
  ComplianceChoice(const Mechanism& mechanism, bool has_loops, double relative);

  // Takes over the masses and moments of inertia of this mechanism, in which nothing else is different. In the loop.
  void follow(const Mechanism& mechanism) noexcept;

  // Of rows in one unit on these bodies, the same for all of them: independent of the choice of the rows' axes. In the
  // loop, without allocation, where parameters of the mechanism change masses.
  double of(std::span<const RowsOnBody> rows) const;

 private:
  struct InverseMass {
    double translation;  // [1/kg]
    Mat3 rotation_b;     // [1/(kg m^2)]
  };
  // What a group of connected bodies has most of.
  struct Largest {
    double mass = 0.0;    // [kg]
    double moment = 0.0;  // principal moment of inertia [kg m^2]
  };
  template <class Rows, class Block>
  double of_blocks(std::span<const RowsOnBody> rows) const;

  bool has_loops_ = false;
  bool masses_change_ = false;  // while the loop runs: of() must not allocate
  double relative_ = 0.0;
  std::vector<std::size_t> group_of_;   // (bodies) which are connected
  std::vector<Largest> largest_;        // (groups)
  std::vector<InverseMass> own_;        // (bodies)
  std::vector<InverseMass> connected_;  // (bodies) with their part of the largest mass and moment of inertia
};

}  // namespace rigstep::index3
