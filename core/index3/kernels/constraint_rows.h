// What the constraints of a run are evaluated for.
#pragma once

#include "core/index3/kernels/sweeps.h"

namespace rigstep::index3::RIGSTEP_ISA {

// rows, Jacobians and loads, [001] (1) (3)
void constrain(const StepArrays&, const Run&, const AssemblySweep& what);

// J-dot v + Phi_tt of the velocities that the bodies have reached, the -gamma of (65)
void quadratic_terms(const StepArrays&, const Run&);

// joint coordinates that couplings hold
void evaluate_coordinates(const StepArrays&, const CoordinateTables&);

// the largest rows that the motion leaves
void residuals(const StepArrays&, const Run&, Residuals& largest);

}  // namespace rigstep::index3::RIGSTEP_ISA
