// Every byte that a step may touch and that does not survive it, grouped by the phase that writes it.
// Sized once; starts as NaN, so that anything read before it is written shows at once.
#pragma once

#include <vector>

#include "core/index3/constraints.h"
#include "core/index3/plan.h"
#include "core/index3/tyre.h"

namespace rigstep::index3 {

// What the trapezoidal rule (15) (16) keeps of the last instant: qd = 2/dt q + h1, qdd = 4/dt^2 q + h2.
struct History {
  EulerParameters h1;  // -(2/dt p + pd)                 [1/s]
  EulerParameters h2;  // -(4/dt^2 p + 4/dt pd + pdd)    [1/s^2]
  Vec3 r;              // last position                  [m]
  Vec3 v;              // last velocity                  [m/s]
  Vec3 a;              // 4/dt v + a                     [m/s^2]
};

// What a force element along one scalar does.
struct ElementReading {
  double deflection;  // [m] or [rad]; friction and motor: the joint coordinate
  double rate;        // [m/s] or [rad/s]
  double effort;      // [N] or [N m]
};

struct BushingReading {
  Vec6 deflection;  // first frame's axes [m] and [-]
  Vec6 load;        // on the second body, first frame's axes [N] and [N m]
};

struct Workspace {
  explicit Workspace(const Plan& plan);
  std::size_t bytes() const noexcept;

  // written by predict
  std::vector<History> history;  // (bodies)

  // written by predict and update
  std::vector<Placement> placement;  // (bodies) of the current iterate

  // written by evaluate_constraints
  std::vector<JointPlacement> joint;  // (joints)
  std::vector<Vec6> J_first;          // (rows) Jacobian with respect to the first body   (3)
  std::vector<Vec6> J_second;         // (rows)                      the second body
  std::vector<double> Phi;            // (rows) position constraints [m] or [-]           (1)

  // written by apply_forces
  std::vector<Vec6> Q;                   // (bodies) force [N] and torque [N m], world frame
  std::vector<double> coordinate;        // (followed coordinates) unwrapped [m] or [rad]
  std::vector<ElementReading> spring;    // (springs)
  std::vector<ElementReading> friction;  // (joint frictions)
  std::vector<ElementReading> motor;     // (motors)
  std::vector<BushingReading> bushing;   // (bushings)
  std::vector<TyreReading> tyre;         // (tyres)

  // written by take_inputs
  std::vector<double> input;  // (input channels) of this step

  // written by factorise
  std::vector<Mat6> M_inverse;  // (bodies) inverse of the tangent mass matrix, world frame     (26)
  std::vector<Mat6> tangent;    // (bodies) force tangent h2 K + dt/2 C, world frame
  std::vector<Mat3> geometric;  // (bodies) geometric stiffness of the joint loads [N m/rad]
  std::vector<double> fronts;   // factor of every compound                         (36)-(38)

  // written by evaluate_residuals and the projections
  std::vector<Vec6> bias;        // (bodies) motion of the body if no joint held it              (27) (45) (60)
  std::vector<double> rhs_term;  // (rows) Phi | 0 | quadratic, by level                         (34) (52) (65)

  // written by assemble and disassemble
  std::vector<double> vectors;  // right-hand side of every compound                            (39)
  std::vector<double> Lambda;   // (rows) increment of the multipliers                          (34)

  // written by the step as a whole
  double last_move;     // largest displacement of a body in the last iteration [m]
  double last_turn;     // largest rotation [rad]
  int last_moved_body;  // ... of this body
  int failed_body;      // first body whose free motion was not finite, or -1
  int failed_row;       // first row without a positive pivot, or -1
};

}  // namespace rigstep::index3
