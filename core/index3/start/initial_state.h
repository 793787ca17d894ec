// A start state that satisfies the joints at all three levels, [001] 3.5 step 1. Load time only.
#pragma once

#include <string>
#include <vector>

#include "core/index3/step/workspace.h"

namespace rigstep::index3 {

// How far a joint is from being closed at the start.
struct JointGap {
  double distance = 0.0;     // between the points that should coincide [m]
  double angle = 0.0;        // between directions that should be parallel or perpendicular [rad]
  double velocity = 0.0;     // largest violated velocity constraint [m/s] or [rad/s]
  bool upside_down = false;  // axes point in opposite directions
  double length = 0.0;       // arm of the joint point on the bodies, to judge distance [m]
};

// One per joint, coupling and driver, at the start pose.
std::vector<JointGap> start_gaps(const Mechanism& mechanism);

// Start pose or velocity that contradicts a joint.
struct StartError : MechanismError {
  StartError(int joint, std::string field, std::string problem, std::string remedy);
  int joint;  // index of the constraint: joints, then couplings, then drivers
};

// Throws StartError for the worst joint if a gap is more than rounding in a written file: 1e-6 of the joint's arm,
// 1e-6 rad, or 1e-6 of the mechanism's velocities.
void require_consistent_start(const Mechanism& mechanism);

// The start pose as described, with the drives of the start.
State start_pose(const Plan& plan);

// The pose of x with its joints closed by the smallest mass-weighted motion; other quantities as in x.
State closed(const Plan& plan, State x, Workspace& w);

// The velocities nearest to those of x, weighted likewise, that the joints allow at its pose.
void close_velocities(const Plan& plan, State& x, Workspace& w);

// The state that the loop starts from: pose and velocities polished to rounding, accelerations and multipliers that
// satisfy M a + J' lambda = Q, J a = gamma at zero inputs. w holds the constraints of that state afterwards.
// Throws StartError as require_consistent_start.
State initial_state(const Plan& plan, Workspace& w);

}  // namespace rigstep::index3
