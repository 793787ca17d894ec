// Everything that survives a step. State plus Inputs determines the next State, which is what makes replay and
// reset trivial. Sized once; flattens to doubles for the hash and the recording.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep::index3 {

// The seven coordinates q = (r, p) of a body and their two rates, the rates of p as angular velocity and acceleration.
struct BodyState {
  Vec3 r;             // mass centre, world frame [m]
  EulerParameters p;  // body -> world, unit norm [-]
  Vec3 v;             // world frame [m/s]
  Vec3 w_b;           // angular velocity, body frame [rad/s]
  Vec3 a;             // world frame [m/s^2]
  Vec3 alpha_b;       // angular acceleration, body frame [rad/s^2]
};
inline constexpr int kDoublesPerBody = 19;
static_assert(sizeof(BodyState) == kDoublesPerBody * sizeof(double), "hashed and recorded as it lies");

// What a driver prescribes at an instant.
struct Prescribed {
  double value;         // [m] or [rad]
  double rate;          // [m/s] or [rad/s]
  double acceleration;  // [m/s^2] or [rad/s^2]
};
inline Prescribed operator+(const Prescribed& a, const Prescribed& b) noexcept {
  return {a.value + b.value, a.rate + b.rate, a.acceleration + b.acceleration};
}
inline Prescribed operator-(const Prescribed& a, const Prescribed& b) noexcept {
  return {a.value - b.value, a.rate - b.rate, a.acceleration - b.acceleration};
}
inline constexpr int kDoublesPerDriver = 3;
static_assert(sizeof(Prescribed) == kDoublesPerDriver * sizeof(double), "hashed and recorded as it lies");

struct Energy {
  double kinetic;    // [J]
  double potential;  // of gravity and force elements [J]
};

struct State {
  State() = default;
  // Bodies at the mechanism's start pose with zero accelerations; everything else zero.
  State(const Mechanism& mechanism, int rows);

  std::vector<BodyState> body;
  std::vector<Vec3> r_low;     // (bodies) low part of r: r + r_low is the compensated sum of all displacements,
                               // |r_low| below half a unit in the last place of r [m]
  std::vector<double> lambda;  // multipliers of all constraint rows [N] or [N m]; the next step goes on from them in
                               // trees, begins again in loops (right_hand_side_of in step/newton.cpp)
  std::vector<double> kappa;   // what the projected accelerations add to lambda, for the reported reactions [N] or
                               // [N m]
  std::vector<double> coordinate;  // followed joint coordinates, unwrapped [m] or [rad]
  std::vector<Prescribed> drive;   // of every driver; the state of its filter where it has one
  std::uint64_t step = 0;

  // Number of doubles of the flat form: bodies, lambda, kappa, coordinates, drives, r_low.
  std::size_t flat_size() const noexcept;
  // The same without r_low, which recordings did not always have.
  std::size_t flat_size_without_low() const noexcept;
  // flat.size() == flat_size().
  void flatten(std::span<double> flat) const noexcept;
  // Of one of these two sizes; without r_low it is zero.
  void restore(std::span<const double> flat, std::uint64_t step_index) noexcept;
  // xxHash (XXH3, 64 bit) over the flat form and the step index. Equal states have equal hashes; zero signs count.
  std::uint64_t hash() const noexcept;
};

}  // namespace rigstep::index3
