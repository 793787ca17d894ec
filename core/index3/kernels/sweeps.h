// What a step asks of its kernels: sweeps over the tables of schedule.h from the leaves of the assembly tree to its
// root and back, [001] (26)-(39). The functions below name the sweeps that a step consists of; the kernels make
// whatever a sweep's fields say, in one pass over memory.
#pragma once

#include "core/index3/compile/schedule.h"

namespace rigstep::index3 {

// Largest constraint rows.
struct Residuals {
  double position;      // [m] and [-]
  double velocity;      // [m/s] and [1/s]
  double acceleration;  // [m/s^2] and [1/s^2]
};

// Largest displacement [m] and rotation [rad] of a body.
struct Increment {
  double displacement, rotation;
};

// Of the constraints: Phi (27), where Phi_restarted acts as if no multipliers had been carried over (34); Phi_t (45);
// J-dot v + Phi_tt (60).
enum class RightHandSide { Phi_restarted, Phi, rate, quadratic };

// Which matrix is factorised, (26) (36)-(38): the tangent mass matrices of the bodies and the compliance of the rows.
struct Tangent {
  double geometric = 0.0;  // factor of the geometric stiffness
  bool of_forces = false;  // with the derivatives of applied and inertia forces; else the mass matrix
  int stage = 0;           // compliance: 0 of the iterations, 1 of the projections
};

// A sweep from the leaves to the root.
struct AssemblySweep {
  bool constrain = false;       // rows, Jacobians and forces of the point constraints, (1) (3)
  bool with_stiffness = false;  // ... and the geometric stiffness of their cosines; that of forces follows from arms
  bool keep_sides = false;      // ... and what quadratic terms and residuals need of them
  bool factorise = false;
  Tangent tangent;
  // The motion of the bodies without their joints, (27) (45) (60), or the one that they have.
  enum class Start { nothing, free_motion, velocities, accelerations, same_motion } start = Start::nothing;
  bool assemble = false;  // right-hand sides, (39)
  RightHandSide rhs = RightHandSide::Phi;
};

// What becomes of the solution: it adds to the multipliers, is their first or a further correction by the acceleration
// projection, or is only an impulse.
enum class Multiplier { lambda, sigma, kappa, more_kappa };

// A sweep from the root to the leaves.
struct DisassemblySweep {
  bool disassemble = true;  // solutions, (34)
  Multiplier kind = Multiplier::sigma;
  // The motion of the bodies with their joints: kept as it is, or what follows from it. Displacements move the bodies
  // (24) (25), velocities are kept (54) and give the quadratic terms, accelerations are kept (69) and give the
  // residuals.
  enum class Finish { nothing, motion, displacements, velocities, accelerations } finish = Finish::nothing;
  bool is_last_iteration = true;  // displacements are measured, and summed apart from their rounding
};

// ---- the sweeps of a step; quarter_dt2: dt^2/4 [s^2]

// 3c-3e: constraints (17) (18), the tangent (26) (36)-(38) where it is renewed, free motion (27), right-hand sides (39)
constexpr AssemblySweep newton_sweep(bool renew_tangent, RightHandSide closing, double quarter_dt2) {
  AssemblySweep sweep;
  sweep.constrain = true;
  sweep.with_stiffness = renew_tangent;
  sweep.factorise = renew_tangent;
  if (renew_tangent) sweep.tangent = {.geometric = quarter_dt2, .of_forces = true, .stage = 0};
  sweep.start = AssemblySweep::Start::free_motion;
  sweep.assemble = true;
  sweep.rhs = closing;
  return sweep;
}
// 3g, 3h: multipliers (34), displacements (24) (25)
constexpr DisassemblySweep newton_update(bool is_last_iteration) {
  return {true, Multiplier::lambda, DisassemblySweep::Finish::displacements, is_last_iteration};
}

// 4: the tangent of the converged pose without applied forces, velocities (45)
constexpr AssemblySweep velocity_sweep(double quarter_dt2) {
  AssemblySweep sweep;
  sweep.constrain = sweep.with_stiffness = sweep.keep_sides = true;
  sweep.factorise = true;
  sweep.tangent = {.geometric = quarter_dt2, .of_forces = false, .stage = 1};
  sweep.start = AssemblySweep::Start::velocities;
  sweep.assemble = true;
  sweep.rhs = RightHandSide::rate;
  return sweep;
}
// (54)
constexpr DisassemblySweep velocity_update() { return {true, Multiplier::sigma, DisassemblySweep::Finish::velocities}; }

// 5: accelerations (60), with the factor of the velocities
constexpr AssemblySweep acceleration_sweep() {
  AssemblySweep sweep;
  sweep.start = AssemblySweep::Start::accelerations;
  sweep.assemble = true;
  sweep.rhs = RightHandSide::quadratic;
  return sweep;
}
// (69)
constexpr DisassemblySweep acceleration_update(Multiplier kind) {
  return {true, kind, DisassemblySweep::Finish::accelerations};
}

// A further pass of a projection from the motion that the one before has reached.
constexpr AssemblySweep further_pass(RightHandSide rhs) {
  AssemblySweep sweep;
  sweep.start = AssemblySweep::Start::same_motion;
  sweep.assemble = true;
  sweep.rhs = rhs;
  return sweep;
}
constexpr DisassemblySweep motion_update(Multiplier kind) { return {true, kind, DisassemblySweep::Finish::motion}; }

// ---- the kernels

struct StepMeasures {
  Increment increment{};
  bool finite = true;
  Residuals residuals{};
};

// The sweeps, compiled once per instruction set.
struct Kernels {
  const char* name;
  int lanes;  // of its widest batches
  void (*predict)(const StepArrays&);
  void (*place)(const StepArrays&);
  bool (*assemble)(const StepArrays&, const AssemblySweep&);  // says whether all pivots are positive
  StepMeasures (*disassemble)(const StepArrays&, const DisassemblySweep&);
};

// The fastest set that this processor runs; every set gives the same bits. `requested`: its name, or null for that.
const Kernels& kernels_for_this_processor(const char* requested = nullptr);

}  // namespace rigstep::index3
