// Everything about a stepper that never changes after loading.
#pragma once

#include <vector>

#include "core/index3/bushing.h"
#include "core/index3/elimination.h"
#include "core/index3/stepper.h"

namespace rigstep::index3 {

struct Plan {
  // Numbers the constraint rows, compiles the elimination and chooses each joint's compliance at the start pose.
  Plan(const Mechanism& mechanism, const Settings& settings);

  Mechanism mechanism;
  Settings settings;                      // with the automatic values filled in
  std::vector<Connection> connection;     // joints first; the bodies that rows connect
  std::vector<BushingRows> bushing_rows;  // (bushings)
  std::vector<int> first_row;             // (connections + 1) global row where each one begins
  std::vector<int> joint_of_row;          // (rows)
  std::vector<int> connection_of_row;     // (all rows)
  std::vector<double> compliance;         // (all rows) added to the diagonal of J M^-1 J'; element rows take no part
  std::vector<double> newton_compliance;  // ... in Newton's iterations: element rows have 1
  Elimination elimination;
  std::vector<bool> carries_spring;  // (bodies) has own-body blocks in the force tangent
  double length = 1.0;               // largest arm of a joint on a body; 1 where there is none [m]
  bool has_loops = false;            // some joint stands between parts that are connected already, the ground included

  int rows() const { return first_row[mechanism.joints().size()]; }         // of the joints: they have multipliers
  int all_rows() const { return first_row.back(); }                         // ... and of the elements after them
  double dt() const { return 1e-9 * static_cast<double>(settings.dt_ns); }  // [s]
};

}  // namespace rigstep::index3
