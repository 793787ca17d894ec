// A scenario in absolute coordinates: what the natural complements and the DAE reference solver integrate, and how
// their results are reported. Owned by one run. Offline only.
#pragma once

#include <Eigen/Dense>
#include <span>
#include <vector>

#include "core/offline/constraints.h"

namespace rigstep::offline {

// M a + J' lambda = load, J a = gamma, of all bodies.
struct AbsoluteEquations {
  std::vector<Vec6> load;           // (bodies) wrenches less the gyroscopic torques [N] [N m]
  std::vector<ConstraintRow> rows;  // (constraint rows)
};

class AbsoluteSystem {
 public:
  // Polishes the start to rounding. Throws SolverError where it contradicts a constraint by more than 1e-5 m or rad, or
  // m/s or rad/s; `solver` is named in the message.
  AbsoluteSystem(const Scenario& scenario, std::string solver);

  const Mechanism& mechanism() const { return *scenario_->mechanism; }
  const Scenario& scenario() const { return *scenario_; }
  const std::string& solver() const { return solver_; }
  const std::vector<BodyMotion>& start() const { return start_; }
  std::vector<double> breaks() const;  // ascending times at which inputs or prescribed accelerations jump [s]

  void hold(double t);  // from t on with the inputs that the scenario has there; t ascends from call to call
  AbsoluteEquations at(double t, std::span<const BodyMotion> bodies);
  std::vector<Vec6> loads(double t, std::span<const BodyMotion> bodies);  // (bodies) wrenches [N] [N m]

  // What joint coordinates are unwrapped by; from whoever followed the motion between instants.
  CoordinateFollower& follower() { return follower_; }

  // The report of an instant; accelerations: (bodies) as the solver has them. Multipliers are those of least norm.
  Instant instant(double t, std::span<const BodyMotion> bodies, std::span<const Vec6> accelerations);

  // Accelerations from the equations themselves, with the pseudo-inverse of J M^-1 J' where rows are redundant.
  std::vector<Vec6> accelerations(double t, std::span<const BodyMotion> bodies);

 private:
  void polish();
  Situation situation(double t, std::span<const BodyMotion> bodies, std::span<const Jet> coordinates) const;

  const Scenario* scenario_;
  std::string solver_;
  std::vector<BodyMotion> start_;
  CoordinateFollower follower_;
  Constraints constraints_;
  Drives drives_;
  std::vector<double> input_;
};

Eigen::MatrixXd jacobian(std::span<const ConstraintRow> rows, std::size_t bodies);  // (rows x 6 bodies)

// The motion with each body displaced and turned by (dr, dtheta) in the world frame, velocities as they are.
void displace(std::vector<BodyMotion>& bodies, const Eigen::VectorXd& delta);

// Why no reference solver in absolute coordinates can do the mechanism; empty: they can.
std::string absolute_unsupported_reason(const Mechanism& mechanism);

}  // namespace rigstep::offline
