// What a state says about itself: energy and constraint residuals (called in the loop), rank, redundancy and what is
// not unique for it (load time only).
#pragma once

#include <array>
#include <vector>

#include "core/index3/step/workspace.h"

namespace rigstep::index3 {

// w as left by the step that made x, or by evaluate_state.
Energy energy(const Plan& plan, const State& x, const Workspace& w) noexcept;

// Largest constraint rows at position, velocity and acceleration level of a state, one joint after the other.
void residuals(const Plan& plan, const State& x, StepReport& report) noexcept;

// The same of the step that the lanes have just made; found: by its kernels. Called in the loop.
void measure_residuals(const Plan& plan, Workspace& w, const Residuals& found, StepReport& report) noexcept;

// Limits for the residuals of the steps from this start on. Load time.
ResidualLimits residual_limits(const Plan& plan, const State& start);

// Eigenvalue of J M^-1 J' scaled to unit diagonal that counts as zero.
inline constexpr double kRankTolerance = 1e-11;

// Rank of the constraints at a pose, from the eigenvalues of J M^-1 J' scaled to unit diagonal: independent of units.
struct Rank {
  int rank = 0;
  int redundant = 0;                     // rows - rank
  int degrees_of_freedom = 0;            // 6 bodies - rank
  std::vector<double> redundancy_share;  // per constraint: its part in the redundant combinations; sums to `redundant`
  std::vector<std::array<bool, 6>> open_loads;  // per joint: which of fx fy fz tx ty tz of its load on the second body,
                                                // about its joint point, world frame, the motion leaves open
  std::vector<std::vector<int>> groups;  // constraints with redundant rows; no two groups share a redundant combination
  double margin = 1.0;                   // square root of the smallest eigenvalue that is not zero, 0..1; trees: 1
};
Rank rank_at(const Plan& plan, const State& x);

// A consistent pose near x, reached by a random motion that the joints allow: drivers do not hold it.
State regular_pose(const Plan& plan, const State& x);

// Rank at the start, and at a consistent pose nearby: a higher one there says that the start pose is singular. What is
// redundant at any pose shows nearby; at the start a symmetric pose may hide it.
struct StartRank {
  Rank start;
  Rank nearby;
  bool singular() const { return start.rank < nearby.rank; }
};
StartRank start_rank(const Plan& plan, const State& start);
StartRank start_rank(const Mechanism& mechanism);

// The groups of both: constraints whose multipliers are not unique at the start or nearby.
std::vector<std::vector<int>> open_groups(const StartRank& rank);

// (bodies) Largest distance of a joint point from the mass centre [m]; the mechanism's where a body has none.
std::vector<double> arms(const Plan& plan);

}  // namespace rigstep::index3
