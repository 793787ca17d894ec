// How much the constraints give: what is added to the diagonal of J M^-1 J', 4 / (alpha dt^2) for the penalty factor
// alpha of [001]. Chosen at load time from the start pose.
//
// It must be small beside what a constraint's multiplier moves when everything else is closed, or the constraint gives
// way to its load; and large beside the rounding of J M^-1 J', or redundant multipliers become rounding.
//   In trees the first is all: one pass has to do. The measure is the least eigenvalue of the constraint's own block.
//   With closed loops the own block can be misleading. A rod with next to no inertia about its axis, or a link with
// next to no mass, has a block a billion times too large: what it transmits is held by its neighbours. So each body
// counts there with a part of the largest mass and moment of inertia of all the bodies that it is connected with. A
// load that pushes a loop through its flat pose moves the loop by as much as it gives: the smaller the compliance, the
// more energy is won there, so it is not chosen smaller than that.
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
