// Joint constraints: what each kind demands, its Jacobian and its velocity-dependent terms, [001] (1)-(3).
//
// A joint is a short list of scalar rows (joint_traits.h), each of one of five forms, between frames fixed in its two
// bodies:
//   point     (P_A - P_B) . e_k               e_k world axes
//   line      (P_A - P_B) . n_A               n_A an axis fixed in the first body
//   cosine    u_A . h_B                       axes fixed in the first and in the second body
//   screw     displacement - pitch * angle    reduced to half a turn, so that it needs no memory of full turns
//   distance  (|P_A - P_B|^2 - L^2) / (2 L)   [m], with a gradient of length one where it is closed
// Beside the joints there are couplings, a row between two joint coordinates that acts on up to four bodies, and
// drivers, a row that holds one coordinate to a prescribed value.
// Multipliers of all forms are loads that the joint exerts on the second body, world frame.
// Jacobians are with respect to displacement and rotation vector, world frame: delta = (dr, dtheta), 6 per body.
// Called in the loop.
#pragma once

#include <array>

#include "core/index3/physics/joint_traits.h"
#include "core/index3/physics/kinematics.h"

namespace rigstep::index3 {

// Both sides of a joint in the world frame.
struct JointPlacement {
  Vec3 s_first, s_second;  // from the mass centre to the joint point [m]
  Mat3 axes_first, axes_second;
  Vec3 gap;        // P_A - P_B [m]
  double pitch;    // screw: lead / (2 pi) [m/rad]
  double length;   // distance: of the two points [m]
  JointType type;  // tells what first_angle and second_angle mean
};
JointPlacement place_joint(const Joint& joint, const Placement& first, const Placement& second) noexcept;

// Of a screw [m/rad].
double pitch_of(const Joint& joint) noexcept;

// Column of the first body's joint frame along which a displacement is measured.
unsigned char axis_of(Freedom freedom) noexcept;

// How an angle of a joint is measured: that of a direction of the second body about an axis of the first, from x of the
// first on; that of z of the first body about an axis of the second; or the middle one of three Cardan angles.
enum class AngleForm { in_first, in_second, middle };
AngleForm angle_form(Freedom freedom, JointType type) noexcept;

// One row: value, Jacobians of the two bodies.
struct RowValue {
  double Phi;
  Vec6 J_first, J_second;
};
RowValue evaluate(const Row& row, const JointPlacement& at) noexcept;

// J-dot v of one row: the acceleration constraint is J a + quadratic = 0, so gamma = -quadratic.
double quadratic(const Row& row, const JointPlacement& at, const Placement& first, const Placement& second) noexcept;

// A joint coordinate: value (angles in (-pi, pi], that of a screw unwrapped by its displacement), rate, and its
// gradient with respect to both bodies' delta. Exact also where the joint is open.
struct Coordinate {
  double value;
  double rate;
  Vec6 first, second;
};
Coordinate coordinate(Freedom freedom, const JointPlacement& at, const Placement& first,
                      const Placement& second) noexcept;

// Only the gradient: the direction in which an effort along the freedom acts on the two bodies.
void coordinate_gradient(Freedom freedom, const JointPlacement& at, Vec6& on_first, Vec6& on_second) noexcept;

// Rate of the gradient times the velocities: the coordinate's second derivative is gradient . a + this.
double coordinate_quadratic(Freedom freedom, const JointPlacement& at, const Placement& first,
                            const Placement& second) noexcept;

// The unwrapped value of a coordinate that measures `measured` now and was `last` at the last instant.
double followed(Freedom freedom, const JointPlacement& at, double measured, double last) noexcept;

// Coordinate minus prescribed value of a driver: angles count up to full turns.
double driver_gap(Freedom freedom, double measured, double prescribed) noexcept;

// The bodies that a coupling acts on, each once; kGround where there are fewer than four.
using CoupledBodies = std::array<int, 4>;
CoupledBodies coupled_bodies(const Joint& first, const Joint& second) noexcept;

// Jacobians of first coordinate + ratio * second coordinate with respect to `bodies`; zero for the ground.
using CoupledJacobians = std::array<Vec6, 4>;
CoupledJacobians coupled_jacobians(const CoupledBodies& bodies, const Joint& first_joint, const Coordinate& first,
                                   const Joint& second_joint, const Coordinate& second, double ratio) noexcept;

// The angle nearest to `reference` that equals `angle` up to full turns [rad].
double unwrapped(double angle, double reference) noexcept;

// At the start pose as described: a body's or the ground's placement, and a followed joint coordinate.
Placement placement_at_start(const Mechanism& mechanism, int body) noexcept;
Coordinate coordinate_at_start(const Mechanism& mechanism, int coordinate) noexcept;

}  // namespace rigstep::index3
