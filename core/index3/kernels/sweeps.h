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

// Of the constraints: Phi (34) (Phi_restarted: as if lambda had not been carried over); Phi_t, which (52) lacks, since
// drivers are not in the paper; J-dot v + Phi_tt, the -gamma of (65).
enum class RightHandSide { Phi_restarted, Phi, rate, quadratic };

// Which compliance of the rows. They differ for element rows only, which take no part in the projections.
enum class ComplianceOf { iterations, projections };

// Which matrix is factorised, (26) (36)-(38): the tangent mass matrices of the bodies and the compliance of the rows.
struct Tangent {
  double geometric = 0.0;               // factor of the geometric stiffness
  bool with_force_derivatives = false;  // of applied and inertia forces; false: mass and inertia only. The geometric
                                        // stiffness is separate.
  ComplianceOf compliance = ComplianceOf::iterations;
};

// A sweep from the leaves to the root.
struct AssemblySweep {
  bool constrain = false;       // rows, Jacobians and forces of the point constraints, (1) (3)
  bool with_stiffness = false;  // ... and the geometric stiffness of their cosines; that of forces follows from arms
  bool keep_sides = false;      // ... and what quadratic terms and residuals need of them
  bool factorise = false;
  Tangent tangent;
  // The motion of the bodies without further joint loads: the free motion of an iteration, which the loads so far
  // cause, those of the joints included (27); the velocities (45) or accelerations (60) to be projected; or the one
  // that they have.
  enum class Start { nothing, free_motion, velocities, accelerations, same_motion } start = Start::nothing;
  bool right_hand_sides = false;  // (39)
  RightHandSide rhs = RightHandSide::Phi;
};

// What becomes of the solution Lambda. lambda: added to the multipliers, times 4/dt^2; sigma: an impulse [N s]; kappa:
// the first correction by the acceleration projection, more_kappa: a further one [N].
enum class Multiplier { lambda, sigma, kappa, more_kappa };

// A sweep from the root to the leaves.
struct DisassemblySweep {
  bool solutions = true;  // (35)
  Multiplier kind = Multiplier::sigma;
  // The motion of the bodies with their joints: kept as it is, or what follows from it. Displacements move the bodies
  // (24) (25), velocities are kept (43) (44) and give the quadratic terms, accelerations are kept (58) (59) and give
  // the residuals.
  enum class Finish { nothing, motion, displacements, velocities, accelerations } finish = Finish::nothing;
  bool is_last_iteration = true;  // displacements are measured, and summed apart from their rounding
};

// ---- the sweeps of a step; quarter_dt2: dt^2/4 [s^2]

// 3c-3f: constraints (1) (3), the tangent (26) (36)-(38) where it is renewed, free motion (27), right-hand sides (39)
// and the solve at the root
constexpr AssemblySweep newton_sweep(bool renew_tangent, RightHandSide rhs, double quarter_dt2) {
  AssemblySweep sweep;
  sweep.constrain = true;
  sweep.with_stiffness = renew_tangent;
  sweep.factorise = renew_tangent;
  if (renew_tangent)
    sweep.tangent = {.geometric = quarter_dt2, .with_force_derivatives = true, .compliance = ComplianceOf::iterations};
  sweep.start = AssemblySweep::Start::free_motion;
  sweep.right_hand_sides = true;
  sweep.rhs = rhs;
  return sweep;
}
// 3g, 3h: multipliers (35), displacements (24) (25)
constexpr DisassemblySweep newton_update(bool is_last_iteration) {
  return {true, Multiplier::lambda, DisassemblySweep::Finish::displacements, is_last_iteration};
}

// 4: the tangent of the converged pose without derivatives of forces, velocities (45), right-hand sides (54)
constexpr AssemblySweep velocity_sweep(double quarter_dt2) {
  AssemblySweep sweep;
  sweep.constrain = sweep.with_stiffness = sweep.keep_sides = true;
  sweep.factorise = true;
  sweep.tangent = {.geometric = quarter_dt2, .with_force_derivatives = false, .compliance = ComplianceOf::projections};
  sweep.start = AssemblySweep::Start::velocities;
  sweep.right_hand_sides = true;
  sweep.rhs = RightHandSide::rate;
  return sweep;
}
// multipliers (53), velocities (43) (44)
constexpr DisassemblySweep velocity_update() { return {true, Multiplier::sigma, DisassemblySweep::Finish::velocities}; }

// 5: accelerations (60), right-hand sides (69), with the factor of the velocities
constexpr AssemblySweep acceleration_sweep() {
  AssemblySweep sweep;
  sweep.start = AssemblySweep::Start::accelerations;
  sweep.right_hand_sides = true;
  sweep.rhs = RightHandSide::quadratic;
  return sweep;
}
// multipliers (66), accelerations (58) (59)
constexpr DisassemblySweep acceleration_update(Multiplier kind) {
  return {true, kind, DisassemblySweep::Finish::accelerations};
}

// A further pass of a projection from the motion that the one before has reached.
constexpr AssemblySweep further_pass(RightHandSide rhs) {
  AssemblySweep sweep;
  sweep.start = AssemblySweep::Start::same_motion;
  sweep.right_hand_sides = true;
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
  void (*update_rotations)(const StepArrays&);
  // kernels.cpp: constrain, fill_leaves, free_motion, then per front eliminate (front_elimination.cpp) and
  // solve_front_up (front_solution.cpp). Says whether all pivots are positive.
  bool (*assemble)(const StepArrays&, const AssemblySweep&);
  // solve_front_down, then update / close_velocities / close_accelerations (leaf_motion.h)
  StepMeasures (*disassemble)(const StepArrays&, const DisassemblySweep&);
};

// The fastest set that this processor runs; every set gives the same bits. `requested`: its name, or null for that.
const Kernels& kernels_for_this_processor(const char* requested = nullptr);

}  // namespace rigstep::index3
