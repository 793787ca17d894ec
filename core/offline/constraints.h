// What joints, couplings and drivers demand, in absolute coordinates, as scalar rows at three levels:
//
//   Phi = 0,    J v + Phi_t = 0,    J a = gamma,
//
// with v = (v_0, omega_0) of the bodies, a their accelerations. Multipliers as in [001] and [002]: M a + J' lambda = Q.
// Rows are in metres or, where they hold a direction, in radians as long as the joint is nearly closed. Offline only.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/offline/drives.h"
#include "core/offline/forces.h"

namespace rigstep::offline {

struct ConstraintRow {
  struct Part {
    int body = kGround;
    Vec6 J = Vec6::Zero();  // coefficients of its velocity (v_0, omega_0)
  };
  int constraint = 0;        // joints, then couplings, then drivers
  std::array<Part, 4> part;  // moving bodies, each once
  int parts = 0;
  double Phi = 0.0;
  double Phi_t = 0.0;
  double gamma = 0.0;

  double times(std::span<const Vec6> motion) const;  // J v, J a
};

class Constraints {
 public:
  // Couplings keep the value that they have at the mechanism's start pose.
  explicit Constraints(const Mechanism& mechanism);

  // coordinates of `at` as CoordinateFollower gives them; drives: (drivers) at that time.
  std::vector<ConstraintRow> rows(const Situation& at, std::span<const Prescribed> drives) const;

 private:
  const Mechanism* mechanism_;
  std::vector<double> coupling_constant_;
};

// (bodies) v_0 above omega_0
std::vector<Vec6> velocities(std::span<const BodyMotion> bodies);

// Loads of the joints on their second bodies from the multipliers of the rows.
std::vector<Reaction> reactions(const Mechanism& mechanism, std::span<const BodyMotion> bodies,
                                std::span<const ConstraintRow> rows, std::span<const double> lambda);

// (couplings, then drivers) Efforts along their coordinate, of a coupling the first, positive where they increase it.
std::vector<double> efforts(const Mechanism& mechanism, std::span<const ConstraintRow> rows,
                            std::span<const double> lambda);

// (bodies) What joints, couplings and drivers together exert on each body, force above torque about the mass centre,
// world frame: -J' lambda. The motion determines it also where constraints are redundant. `at` has reactions and
// efforts.
std::vector<Vec6> constraint_loads(const Mechanism& mechanism, const Instant& at);

}  // namespace rigstep::offline
