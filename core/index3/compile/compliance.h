// How much the constraints give: what is added to the diagonal of J M^-1 J', 4 / (alpha dt^2) for the penalty factor
// alpha of [001]. Chosen at load time from the start pose.
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
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep::index3 {

// Rows of a constraint on one body. J: by columns, force [-] and torque [m] for a unit multiplier, world frame.
struct RowsOnBody {
  int body;
  Mat3 A;  // body -> world
  Eigen::Matrix<double, 6, Eigen::Dynamic> J;
};

class ComplianceChoice {
 public:
  // relative: to the scale that is chosen for each constraint, [-]
  ComplianceChoice(const Mechanism& mechanism, bool has_loops, double relative);

  // Of rows in one unit on these bodies, the same for all of them: independent of the choice of the rows' axes.
  double of(const std::vector<RowsOnBody>& rows) const;

 private:
  struct InverseMass {
    double translation;  // [1/kg]
    Mat3 rotation_b;     // [1/(kg m^2)]
  };
  // J M^-1 J' of all bodies
  static Eigen::MatrixXd block(const std::vector<RowsOnBody>& rows, const std::vector<InverseMass>& inverse);

  bool has_loops_;
  double relative_;
  std::vector<InverseMass> own_;        // (bodies)
  std::vector<InverseMass> connected_;  // (bodies) with their part of the largest mass and moment of inertia
};

}  // namespace rigstep::index3
