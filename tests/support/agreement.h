// Positions of all bodies at the instants of a scenario: by the stepper and by reference solvers.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "core/offline/solver.h"
#include "tests/support/force_cases.h"

namespace rigstep::test {

inline std::vector<Vec3> positions_by(const char* solver, const offline::Scenario& scenario) {
  std::vector<Vec3> positions;
  for (const offline::Instant& at : offline::find_solver(solver)->simulate(scenario, {}).instants)
    for (const offline::BodyMotion& body : at.body) positions.push_back(body.r_0);
  return positions;
}

// Without inputs; fewer positions where a step fails.
inline std::vector<Vec3> positions_by_stepper(const offline::Scenario& scenario, double dt) {
  std::vector<Vec3> positions;
  index3::Stepper stepper(*scenario.mechanism, step_of(dt));
  for (const double time : scenario.instants) {
    if (!run(stepper, time - static_cast<double>(stepper.state().step) * dt)) return positions;
    for (const index3::BodyState& body : stepper.state().body) positions.push_back(body.r);
  }
  return positions;
}

// The largest [m]; infinite where one of them lacks some.
inline double largest_distance(const std::vector<Vec3>& a, const std::vector<Vec3>& b) {
  double most = a.size() == b.size() ? 0.0 : std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < std::min(a.size(), b.size()); ++k) most = std::max(most, (a[k] - b[k]).norm());
  return most;
}

}  // namespace rigstep::test
