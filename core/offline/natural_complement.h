// Natural complements in absolute coordinates,
//
//   [002] M. Pekal, J. Fraczek: Comparison of natural complement formulations for multibody dynamics. Journal of
//         Theoretical and Applied Mechanics 54 (2016) 4.
//
// Bodies have q = (r, phi, theta, psi) with Euler angles z-x-z, so that the mass matrix is regular. The angles count
// from an orientation of their own per body, which is chosen again where sin(theta) gets small: no pose is singular.
// Rheonomic constraints; redundant ones as the paper treats each: pseudo-inverses, or a selection of independent rows
// that is checked after every step. Where paper and code differ:
//
//   3.2.3, 3.3.1  rows and coordinates are selected by Gauss elimination with complete pivoting, which serves both,
//                 instead of Gauss-Jordan elimination with partial pivoting
//   (3.20)        the Gauss elimination of PUTD-G pivots completely too
//   (3.36)        of rows that are redundant in closed poses only, P is the complement in the sense of least squares
//
// Offline only.
#pragma once

#include "core/offline/solver.h"

namespace rigstep::offline {

enum class Complement {
  zero_eigenvalue,   // (3.9)-(3.15)
  schur,             // (3.16)-(3.19)
  putd_householder,  // (3.20)-(3.23)
  putd_gauss,        // (3.20)-(3.23)
  svd,               // (3.24)-(3.28)
  qr,                // (3.29)-(3.36)
  partitioning,      // (3.37)-(3.39)
  wang_huston,       // (3.40)-(3.42)
};

enum class Stabilisation {
  none,
  baumgarte,       // Gamma - 2 alpha dPhi/dt - beta^2 Phi
  newton_raphson,  // of positions, then velocities, after a step that leaves them open by more than their tolerances
};

struct ComplementSettings {
  Complement method = Complement::qr;
  Stabilisation stabilisation = Stabilisation::newton_raphson;
  double alpha = 10.0;                // Baumgarte [1/s]
  double beta = 10.0;                 // Baumgarte [1/s]
  double position_tolerance = 1e-10;  // Newton-Raphson [m, rad]
  double velocity_tolerance = 1e-8;   // ... [m/s, rad/s]
};

struct ComplementRun {
  Trajectory trajectory;
  int charts = 0;                          // how often Euler angles were counted from a new orientation
  int selections = 0;                      // how often independent rows and coordinates were chosen again
  int corrections = 0;                     // steps with Newton-Raphson
  long rows = 0;                           // of the Jacobian
  long lowest_rank = 0, highest_rank = 0;  // as the method decided in the right-hand sides
};

// Throws SolverError, and std::invalid_argument for tolerances that are not positive.
ComplementRun natural_complement(const Scenario& scenario, const Options& options, const ComplementSettings& settings);

// Why the complements cannot do the mechanism; empty: they can.
std::string complement_unsupported_reason(const Mechanism& mechanism);

}  // namespace rigstep::offline
