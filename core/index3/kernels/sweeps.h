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

// Which compliance of the rows. They differ for element and elastic rows, which take no part in the projections; and in
// closed loops midpoint steps have a larger one in their iterations and in their projection (compile/plan.cpp).
enum class ComplianceOf { iterations, projections, midpoint_projection };

// Which matrix is factorised, (26) (36)-(38): the tangent mass matrices of the bodies and the compliance of the rows.
struct Tangent {
  double geometric = 0.0;               // factor of the geometric stiffness
  bool with_force_derivatives = false;  // of applied and inertia forces; false: mass and inertia only. The geometric
                                        // stiffness is separate.
  ComplianceOf compliance = ComplianceOf::iterations;
};

// A sweep from the leaves to the root.
struct AssemblySweep {
  bool constrain = false;  // rows, Jacobians and forces of the point constraints, (1) (3)
  // Which of these: all; all but the gaps Phi; or nothing but the gaps, half of them, or the velocities J v of the
  // twists, which take the place of the quadratic terms.
  enum class Rows { all, without_gaps, gaps, half_gaps, velocities } rows = Rows::all;
  bool with_stiffness = false;  // ... and the geometric stiffness of their cosines; that of forces follows from arms
  bool keep_sides = false;      // ... and what quadratic terms and residuals need of them
  bool factorise = false;
  Tangent tangent;
  // The motion of the bodies without further joint loads: the free motion of an iteration, which the loads so far
  // cause, those of the joints included (27); the velocities (45) or accelerations (60) to be projected; the one that
  // they have; none; what the loads alone cause; or the accelerations without the joints, (12) (13).
  enum class Start {
    nothing,
    free_motion,
    velocities,
    accelerations,
    same_motion,
    rest,
    loads,
    free_accelerations
  } start = Start::nothing;
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
  // the residuals. Corrections are added to the poses or the velocities. Twists take over the velocities of the next
  // instant; quadratic terms follow from these.
  enum class Finish {
    nothing,
    motion,
    displacements,
    velocities,
    accelerations,
    corrected_poses,
    corrected_velocities,
    twists,
    quadratic_terms
  } finish = Finish::nothing;
  bool is_last_iteration = true;  // displacements are summed apart from their rounding
};

// Right-hand sides alone, with the factor that there is.
constexpr AssemblySweep right_hand_sides(AssemblySweep::Start start, RightHandSide rhs) {
  AssemblySweep sweep;
  sweep.start = start;
  sweep.right_hand_sides = true;
  sweep.rhs = rhs;
  return sweep;
}

// ---- the sweeps of a step; quarter_dt2: dt^2/4 [s^2]

// 3c-3f: constraints (1) (3), the tangent (26) (36)-(38) where it is renewed, free motion (27), right-hand sides (39)
// and the solve at the root
constexpr AssemblySweep newton_sweep(bool renew_tangent, RightHandSide rhs, double quarter_dt2) {
  AssemblySweep sweep = right_hand_sides(AssemblySweep::Start::free_motion, rhs);
  sweep.constrain = true;
  sweep.with_stiffness = renew_tangent;
  sweep.factorise = renew_tangent;
  if (renew_tangent)
    sweep.tangent = {.geometric = quarter_dt2, .with_force_derivatives = true, .compliance = ComplianceOf::iterations};
  return sweep;
}
// 3g, 3h: multipliers (35), displacements (24) (25)
constexpr DisassemblySweep newton_update(bool is_last_iteration) {
  return {true, Multiplier::lambda, DisassemblySweep::Finish::displacements, is_last_iteration};
}

// 4: where it is renewed, the tangent of the converged pose without derivatives of forces; velocities (45), right-hand
// sides (54)
constexpr AssemblySweep velocity_sweep(bool renew_tangent, double quarter_dt2) {
  AssemblySweep sweep = right_hand_sides(AssemblySweep::Start::velocities, RightHandSide::rate);
  sweep.constrain = sweep.keep_sides = true;
  sweep.with_stiffness = sweep.factorise = renew_tangent;
  sweep.tangent = {.geometric = quarter_dt2, .with_force_derivatives = false, .compliance = ComplianceOf::projections};
  return sweep;
}
// multipliers (53), velocities (43) (44)
constexpr DisassemblySweep velocity_update() { return {true, Multiplier::sigma, DisassemblySweep::Finish::velocities}; }

// 5: accelerations (60), right-hand sides (69), with the factor of the velocities
constexpr AssemblySweep acceleration_sweep() {
  return right_hand_sides(AssemblySweep::Start::accelerations, RightHandSide::quadratic);
}
// multipliers (66), accelerations (58) (59)
constexpr DisassemblySweep acceleration_update(Multiplier kind) {
  return {true, kind, DisassemblySweep::Finish::accelerations};
}

// A further pass of a projection from the motion that the one before has reached.
constexpr AssemblySweep further_pass(RightHandSide rhs) {
  return right_hand_sides(AssemblySweep::Start::same_motion, rhs);
}
constexpr DisassemblySweep motion_update(Multiplier kind) { return {true, kind, DisassemblySweep::Finish::motion}; }

// ---- the sweeps of a midpoint step (step/midpoint.h)

// Nothing but what stands in the rows of the point constraints.
constexpr AssemblySweep rows_alone(AssemblySweep::Rows rows) {
  AssemblySweep sweep;
  sweep.constrain = true;
  sweep.rows = rows;
  return sweep;
}
// An iteration: newton_sweep with the gaps that stand in the rows.
constexpr AssemblySweep midpoint_sweep(bool renew_tangent, double quarter_dt2) {
  AssemblySweep sweep = newton_sweep(renew_tangent, RightHandSide::Phi, quarter_dt2);
  sweep.rows = AssemblySweep::Rows::without_gaps;
  return sweep;
}
// The factor of the mass metric alone.
constexpr AssemblySweep projection_factor(AssemblySweep::Rows rows, ComplianceOf compliance) {
  AssemblySweep sweep;
  sweep.constrain = sweep.keep_sides = sweep.factorise = true;
  sweep.rows = rows;
  sweep.tangent.compliance = compliance;
  return sweep;
}
// ... of the tangent of forces, as an iteration's but without geometric stiffness
constexpr AssemblySweep force_factor() {
  AssemblySweep sweep = projection_factor(AssemblySweep::Rows::all, ComplianceOf::iterations);
  sweep.tangent = {.geometric = 0.0, .with_force_derivatives = true, .compliance = ComplianceOf::iterations};
  return sweep;
}
// What loads cause, rows closed whose right-hand sides are 0 in `quadratic`.
constexpr AssemblySweep response_to_loads() {
  return right_hand_sides(AssemblySweep::Start::loads, RightHandSide::quadratic);
}
// What closes a right-hand side, from rest.
constexpr AssemblySweep correction_sweep(RightHandSide rhs) {
  return right_hand_sides(AssemblySweep::Start::rest, rhs);
}
// (12) (13) without the joints, and what they hold of it
constexpr AssemblySweep equations_of_motion() {
  return right_hand_sides(AssemblySweep::Start::free_accelerations, RightHandSide::quadratic);
}

// What the midpoint rule does to the bodies between its sweeps (kernels/midpoint.h): the predictor of the middle; which
// pose of the step sweeps and force elements see, its end or its middle; the velocities of its end; its end as the
// state that is reached.
enum class MidpointPass { predict, show_end, show_middle, end_velocities, reach_end };

// Of the difference between a whole step and two half ones, the error of the half ones: 1 / (2^2 - 1).
inline constexpr double kExtrapolated = 1.0 / 3.0;

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
  // scalar_forces.h, tyres.h, bushings.h
  void (*evaluate_scalars)(const StepArrays&, const ScalarTables&);
  void (*evaluate_tyres)(const StepArrays&, const ElementTables&);
  void (*evaluate_bushings)(const StepArrays&, const ElementTables&);
  void (*evaluate_drags)(const StepArrays&, const ElementTables&);
  // actions.h: weights and actions into the loads of leaves, and their own-body blocks into the tangent, where it is
  // asked for. Says whether any block has changed by more than kSteady, where they are compared.
  bool (*sum_actions)(const StepArrays&, const ActionTables&);
  // constraint_rows.cpp
  void (*evaluate_coordinates)(const StepArrays&, const CoordinateTables&);
  // constrain (constraint_rows.cpp), fill_leaves, free_motion, then per front eliminate (front_elimination.cpp) and
  // solve_front_up (front_solution.cpp). Says whether all pivots are positive.
  bool (*assemble)(const StepArrays&, const AssemblySweep&);
  // solve_front_down, then update / close_velocities / close_accelerations (leaf_motion.h); of constraints
  // quadratic_terms and residuals (constraint_rows.cpp)
  StepMeasures (*disassemble)(const StepArrays&, const DisassemblySweep&);
  // midpoint.h
  void (*pass_midpoint)(const StepArrays&, MidpointPass);
  // The state that two half steps have reached, moved on by kExtrapolated of what it lies beyond that of a whole one.
  // Returns the largest of these differences.
  Increment (*extrapolate)(const StepArrays& half_steps, const StepArrays& whole_step);
};

// The fastest set that this processor runs; every set gives the same bits. `requested`: its name, or null for that.
const Kernels& kernels_for_this_processor(const char* requested = nullptr);

}  // namespace rigstep::index3
