// How far two motions of the same mechanism are apart, quantity by quantity and for each body, joint and effort: a
// large load in one place hides no wrong one in another. Offline only.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "core/offline/solver.h"

namespace rigstep::offline {

enum class Quantity {
  position,              // of bodies [m]
  orientation,           // angle between the two [rad]
  velocity,              // [m/s]
  angular_velocity,      // [rad/s]
  acceleration,          // [m/s^2]
  angular_acceleration,  // [rad/s^2]
  force,                 // of reactions [N]
  torque,                // about the joint points [N m]
  effort,                // of couplings and drivers [N] or [N m]
  body_force,            // of all joints, couplings and drivers on a body [N]
  body_torque,           // about its mass centre [N m]
};
inline constexpr std::size_t kQuantities = 11;
inline constexpr std::array<Quantity, kQuantities> kAllQuantities{
    Quantity::position,     Quantity::orientation,          Quantity::velocity,   Quantity::angular_velocity,
    Quantity::acceleration, Quantity::angular_acceleration, Quantity::force,      Quantity::torque,
    Quantity::effort,       Quantity::body_force,           Quantity::body_torque};

// A number of each quantity for each of its items: bodies, joints, or couplings and drivers.
class Values {
 public:
  Values() = default;
  explicit Values(const Mechanism& mechanism);  // zero

  std::vector<double>& operator[](Quantity q) { return item_[static_cast<std::size_t>(q)]; }
  const std::vector<double>& operator[](Quantity q) const { return item_[static_cast<std::size_t>(q)]; }
  double largest(Quantity q) const;

 private:
  std::array<std::vector<double>, kQuantities> item_;
};

// Of the rotation that takes the one into the other [rad].
double angle_between(const EulerParameters& p, const EulerParameters& q);

// What is not a number stays.
void keep_larger(double& largest, double value);

// Of which constraints (joints, then couplings, then drivers) the motion determines the load.
using Determined = std::vector<bool>;

// Largest difference over instants that both have, in the same order; the shorter one ends the comparison. Reactions
// and efforts where they are determined, what constraints together exert on bodies everywhere; empty: motions alone.
// What one of the two does not know at an instant is left out.
Values compare(const Mechanism& mechanism, std::span<const Instant> one, std::span<const Instant> other,
               const Determined& determined);

// No redundant combination of rows touches the constraint at the given pose.
Determined determined_constraints(const Scenario& scenario, std::span<const BodyMotion> bodies);

// Nearness to a singular pose, 0..1: the smallest pivot of the constraint Jacobian, its rows scaled to unit length,
// among as many as are independent at the start. `rank`: that many.
int constraint_rank(const Scenario& scenario, std::span<const BodyMotion> bodies);
double margin(const Scenario& scenario, std::span<const BodyMotion> bodies, int rank);

}  // namespace rigstep::offline
