// Fixed-size linear algebra types shared by every solver, and the symbols used throughout.
//
//   paper      code        meaning
//   q, qd, qdd r p, v w, a alpha   position and Euler parameters of a body, and their rates
//   Phi        Phi         position-level constraint values
//   Phi_q      J           constraint Jacobian with respect to body displacement and rotation
//   -gamma     quadratic   velocity-dependent part of the acceleration constraints
//   lambda     lambda      Lagrange multipliers: the loads in the joints [N] or [N m]
//   sigma      sigma       those of the velocity projection, (dt^2/4) times the paper's: impulses [N s] or [N m s]
//   kappa      kappa       those of the acceleration projection, (dt^2/4) times the paper's [N] or [N m]
//   alpha      compliance  penalty factor, as its inverse 4 / (alpha dt^2)
//
// Frames: suffix _0 world (inertial) frame, _b body frame with origin at the mass centre.
// Euler parameters are scalar first, p = [e0 e1 e2 e3], and turn body coordinates into world ones.
#pragma once

#include <Eigen/Core>
#include <Eigen/Geometry>  // cross products

namespace rigstep {

inline constexpr int kGround = -1;  // body index of the ground (the world frame itself)

using Vec3 = Eigen::Vector3d;
using Vec6 = Eigen::Matrix<double, 6, 1>;
using Mat3 = Eigen::Matrix3d;
using Mat6 = Eigen::Matrix<double, 6, 6, Eigen::DontAlign>;

// Unaligned so that structures of doubles have no padding: they are hashed and recorded as they lie.
using EulerParameters = Eigen::Matrix<double, 4, 1, Eigen::DontAlign>;

}  // namespace rigstep
