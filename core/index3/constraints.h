// Joint constraints: what each kind demands, its Jacobian and its velocity-dependent terms, [001] (1)-(3).
//
// A joint is a short list of scalar rows, each of one of three forms, between frames fixed in its two bodies:
//   point   (P_A - P_B) . e_k                 e_k world axes
//   line    (P_A - P_B) . n_A                 n_A an axis fixed in the first body
//   cosine  u_A . h_B                         axes fixed in the first and in the second body
// Multipliers of all forms are loads that the joint exerts on the second body, world frame.
// Jacobians are with respect to displacement and rotation vector, world frame: delta = (dr, dtheta), 6 per body.
// Called in the loop.
#pragma once

#include <array>
#include <span>

#include "core/index3/kinematics.h"

namespace rigstep::index3 {

struct Row {
  enum class Form : unsigned char { point, line, cosine } form;
  unsigned char first_axis;   // line, cosine: column of the first body's joint frame; point: world axis
  unsigned char second_axis;  // cosine: column of the second body's joint frame
};

inline constexpr int kMaxJointRows = 6;

// The rows that a joint type is made of.
std::span<const Row> rows_of(JointType type) noexcept;

// Both sides of a joint in the world frame.
struct JointPlacement {
  Vec3 s_first, s_second;  // from the mass centre to the joint point [m]
  Mat3 axes_first, axes_second;
  Vec3 gap;  // P_A - P_B [m]
};
JointPlacement place(const Joint& joint, const Placement& first, const Placement& second) noexcept;

// One row: value, Jacobians of the two bodies.
struct RowValue {
  double Phi;
  Vec6 J_first, J_second;
};
RowValue evaluate(const Row& row, const JointPlacement& at) noexcept;

// J-dot v of one row: the acceleration constraint is J a + quadratic = 0, so gamma = -quadratic.
double quadratic(const Row& row, const JointPlacement& at, const Placement& first, const Placement& second) noexcept;

// Rotational own-body block of d(J' lambda)/d(theta), symmetric part, added to K_first and K_second [N m/rad]:
// the geometric stiffness of [001] 4.4 in closed form.
void add_geometric_stiffness(const Row& row, double lambda, const JointPlacement& at, Mat3& K_first,
                             Mat3& K_second) noexcept;

// A joint coordinate: value (angles in (-pi, pi]), rate, and its gradient with respect to both bodies' delta.
struct Coordinate {
  double value;
  double rate;
  Vec6 first, second;
};
Coordinate coordinate(Freedom freedom, const JointPlacement& at, const Placement& first,
                      const Placement& second) noexcept;

// Only the gradient: the direction in which an effort along the freedom acts on the two bodies.
void coordinate_gradient(Freedom freedom, const JointPlacement& at, Vec6& on_first, Vec6& on_second) noexcept;

// The angle nearest to `reference` that equals `angle` up to full turns [rad].
double unwrapped(double angle, double reference) noexcept;

}  // namespace rigstep::index3
