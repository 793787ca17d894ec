// The reference solvers: offline solvers that share the mechanism's description with the stepper and nothing else, so
// that their agreement means something. A solver is a function; this is what goes in, what comes out, and the list of
// them. Offline only: they allocate, and throw.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep::offline {

// A solver that could not go on, or was asked for what it cannot do. The message names the solver, the time, the cause
// and what to do.
struct SolverError : Error {
  using Error::Error;
};

struct BodyMotion {
  Vec3 r_0 = Vec3::Zero();                // mass centre, world frame [m]
  EulerParameters p{1.0, 0.0, 0.0, 0.0};  // body -> world, unit norm [-]
  Vec3 v_0 = Vec3::Zero();                // of the mass centre, world frame [m/s]
  Vec3 omega_0 = Vec3::Zero();            // world frame [rad/s]
};

// What a joint exerts on its second body, world frame; the torque about the joint point of that body.
struct Reaction {
  Vec3 force_0 = Vec3::Zero();   // [N]
  Vec3 torque_0 = Vec3::Zero();  // [N m]
};

// One value per input channel, held until the next one's time. (The stepper holds inputs on (t_k, t_k+1]: the values
// that a step k -> k+1 applied have time t_k here.)
struct HeldInputs {
  double time = 0.0;          // [s]
  std::vector<double> value;  // (input channels)
};

struct Scenario {
  const Mechanism* mechanism = nullptr;
  std::vector<BodyMotion> start;   // (bodies) consistent with the constraints; empty: that of the mechanism
  std::vector<double> instants;    // ascending; the first is the start, at each of them a result is requested [s]
  std::vector<HeldInputs> inputs;  // ascending; zero before the first
};

// The state at an instant. What a solver does not know stays empty or NaN.
struct Instant {
  double time = 0.0;                  // [s]
  std::vector<BodyMotion> body;       // (bodies)
  std::vector<Vec6> acceleration;     // (bodies) of the mass centre, angular; world frame [m/s^2] [rad/s^2]
  std::vector<Reaction> reaction;     // (joints)
  std::vector<double> driver_effort;  // (drivers) along the freedom, positive increases it [N] or [N m]
  std::vector<double> effort;         // (couplings, then drivers) positive increases the (first) coordinate [N] [N m]
  double kinetic_energy = 0.0;        // [J]
  double energy = 0.0;                // kinetic and potential, as far as loads have one [J]
  double position_residual = 0.0;     // largest row of the constraints [m, rad]
  double velocity_residual = 0.0;     // [m/s, rad/s]
  double acceleration_residual = 0;   // [m/s^2, rad/s^2]
  std::vector<double> output;         // (output channels) [channel's unit]
};

struct Trajectory {
  std::vector<Instant> instants;  // as many as the scenario asks for, or those before Options::progress ended the run
  long right_hand_sides = 0;      // evaluations
  double right_hand_side_seconds = 0.0;
  double seconds = 0.0;  // wall clock, all of it
};

enum class Integrator {
  dormand_prince,  // explicit Runge-Kutta 5(4), with the step control of SUNDIALS
  ode45,           // the same pair, with MATLAB's step control
  ode23,           // explicit Runge-Kutta 3(2) of Bogacki and Shampine, likewise
  ode113,          // Adams-Bashforth-Moulton of variable order and step, likewise
};

struct Options {
  Integrator integrator = Integrator::dormand_prince;
  double relative_tolerance = 1e-10;
  double absolute_tolerance = 1e-10;
  int threads = 1;                            // of the divide-and-conquer solvers; the same bits for any number
  std::function<bool(double time)> progress;  // may be empty; false: the run ends with what it has; may throw
  double alpha = 0.0;  // penalty factor of index3_literal [N/m], [N m]; 0: one that grows as steps get shorter
};

struct Solver {
  std::string_view name;                                    // as on the command line
  std::string_view method;                                  // one line: what it is, and from which paper
  std::string (*unsupported_reason)(const Mechanism&);      // why it cannot do this mechanism; empty: it can
  Trajectory (*simulate)(const Scenario&, const Options&);  // throws SolverError, MechanismError
};

std::span<const Solver> solvers();
const Solver* find_solver(std::string_view name);  // null if there is none of that name
std::string solver_names();                        // separated by commas

}  // namespace rigstep::offline
