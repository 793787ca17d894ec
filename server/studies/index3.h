// The test cases and the performance of sections 4 and 5 of
//
//   [001] P. Malczyk, J. Fraczek, F. Gonzalez, J. Cuadrado: Index-3 divide-and-conquer algorithm for efficient
//         multibody system dynamics simulations: theory and parallel implementation. Nonlinear Dynamics, 2019,
//
// done again with the printed form, beside the stepper that follows it in a dual form. Offline.
#pragma once

#include "server/studies/study.h"

namespace rigstep::server {

// Writes tables, figures and index3.md. Throws FileError, StepFailed, and what the loader and the solvers throw.
StudyPart study_index3(const StudyRequest& study);

// Its parts. Sections 4.2 to 4.4: figures 4 to 11.
StudyPart index3_cases(const StudyRequest& study);
// Section 4.4: penalty factors, modified Newton, tangents of the projections.
StudyPart index3_penalties(const StudyRequest& study);
// Section 5.2: increments, shares of the phases, figures 12 to 14.
StudyPart index3_speed(const StudyRequest& study);

}  // namespace rigstep::server
