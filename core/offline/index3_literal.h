// The index-3 divide-and-conquer algorithm as printed in
//
//   [001] P. Malczyk, J. Fraczek, F. Gonzalez, J. Cuadrado: Index-3 divide-and-conquer algorithm for efficient
//         multibody system dynamics simulations: theory and parallel implementation. Nonlinear Dynamics, 2019.
//
// with seven coordinates a body, its normalisation constraint and 7 x 7 blocks delta of every compound body on a
// binary assembly tree. Written from the paper: the twin of the real-time stepper for small cases, and the baseline
// that its speed is compared with. Only what makes the printed scheme run at all is corrected:
//
//   (4)-(6)    Psi = (p'p - 1) / 2, so that Psi_q = p' is its derivative; nu = -pd'pd
//   (22) (27)  the right-hand side is -(dt^2/4) (g + Psi_q' alpha Psi)
//   (37)       the first Jacobian needs a transpose
//   (21) (34)  lambda and mu are accumulated over iterations and carried over steps
//   3.2        every iteration has its own factorisation: with one for all, modified Newton, the whip of 128 links
//              costs 82 J instead of 46 J, and without 3.3 it diverges; on request
//   3.3, 6     delta is evaluated again at the converged pose for both projections; as printed, with that of the last
//              iteration, on request
//   3.4        gamma holds the projected velocities
//
// The tangent is M with the penalty of normalisation: gravity has no partials, those of the gyroscopic terms and of
// other loads are left out. Serial chains on the ground, their end free or on the ground too, of spherical and revolute
// joints. Load time and offline; a step under gravity alone allocates nothing. As a reference solver: literal_solver.h.
//
// Threads share it as in 5.1: every level of the binary tree is a loop over its compounds, divided among the threads in
// equal parts, and so are the loops over bodies and joints, with a barrier after each. Every number is made by one
// thread from the same operands, so that any number of threads gives the same bits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/offline/solver.h"

namespace rigstep::offline {

struct LiteralSettings {
  std::int64_t dt_ns = 10'000'000;          // step [ns]
  int iterations = 3;                       // Newton iterations per step
  bool modified_newton = false;             // one factorisation for all iterations of a step, not one for each
  double alpha = 1e10;                      // penalty factor of every constraint row [N/m], [N m] or [-]
  bool refactorise_for_projections = true;  // false: projections with the blocks of the last iteration, as printed
  // false: (26) and (35)-(39) multiplied out as printed, in matrices of Eigen as in the paper's implementation; true:
  // the same to rounding, M inverted in closed form, products that occur twice formed once, in vector registers
  bool tuned = false;
  int threads = 1;              // of OpenMP; 1 makes no call of its run-time
  bool measure_phases = false;  // reads the clock between the phases of a step: phases()
};

// Wall-clock time of all steps so far [s]; a tangent renewed for the projections belongs to the first one.
struct LiteralPhases {
  double newton = 0.0, velocities = 0.0, accelerations = 0.0;
};

using Vec7 = Eigen::Matrix<double, 7, 1>;

// Everything that survives a step, in the order of the chain from the ground on.
struct LiteralState {
  std::vector<Vec7> q;         // (bodies) r [m] and Euler parameters p [-]
  std::vector<Vec7> qd;        // (bodies) [m/s] [1/s]
  std::vector<Vec7> qdd;       // (bodies) [m/s^2] [1/s^2]
  std::vector<double> lambda;  // (rows) multipliers of the joints [N] or [N m]
  std::vector<double> mu;      // (bodies) multipliers of normalisation [N m]
  std::uint64_t step = 0;
};

class LiteralStepper {
 public:
  // Force and torque about the mass centre of every body, world frame [N] [N m], gravity included, where the bodies
  // are at the present iterate; both (bodies).
  using Loads = std::function<void(std::span<const BodyMotion> at, std::span<Vec6> wrenches)>;

  // Throws MechanismError for mechanisms that are no such chain; without `loads` also for those on which more than
  // gravity acts.
  LiteralStepper(const Mechanism& mechanism, const LiteralSettings& settings, Loads loads = {});
  ~LiteralStepper();
  LiteralStepper(LiteralStepper&&) noexcept;

  // Why the mechanism is no such chain; empty: it is one.
  static std::string unsupported_reason(const Mechanism& mechanism);

  // Advances by one dt. Returns the norm of the last increment of all q [m, -]; not finite once
  // the iteration has diverged.
  double step() noexcept;

  const LiteralState& state() const noexcept;
  // Goes on from a state of the same mechanism; allocates nothing.
  void restore(const LiteralState& state) noexcept;

  // Goes on from this motion of the bodies (bodies), accelerations and multipliers afresh (3.5 step 1).
  void start_afresh(std::span<const BodyMotion> bodies);
  void set_step(double dt, double alpha);  // and penalty of the steps to come [s] [N/m], [N m] or [-]

  BodyMotion motion(int body) const;  // p as it stands, of unit norm to the penalty's accuracy
  // By index into Mechanism::bodies().
  Vec3 position_0(int body) const;              // [m]
  EulerParameters orientation(int body) const;  // [-]
  Vec3 velocity_0(int body) const;              // [m/s]
  Vec3 angular_velocity_0(int body) const;      // [rad/s]
  Vec3 acceleration_0(int body) const;          // [m/s^2]
  Vec3 angular_acceleration_0(int body) const;  // [rad/s^2]

  const LiteralPhases& phases() const noexcept;  // zero without LiteralSettings::measure_phases
  std::size_t bytes() const noexcept;            // of state and intermediates

 private:
  struct Chain;
  std::unique_ptr<Chain> chain_;
};

}  // namespace rigstep::offline
