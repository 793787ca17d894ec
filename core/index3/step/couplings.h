// Couplings: first coordinate + ratio * second = constant, of up to four bodies. Lanes evaluate the coordinates of all
// of them; each row is put together of two. Called in the loop, at the poses that the lanes show.
#pragma once

#include "core/index3/step/workspace.h"

namespace rigstep::index3 {

// Phi, Jacobians, loads J' lambda and, on request, geometric stiffness, (1) (3) (14).
enum class Gaps { written, kept };
void constrain_couplings(const Plan& plan, Workspace& w, bool with_stiffness, Gaps gaps = Gaps::written) noexcept;

// Nothing but Phi times a factor; nothing but J v, in the place of the quadratic terms.
void measure_gaps_of_couplings(const Plan& plan, double factor, Workspace& w) noexcept;
void measure_velocities_of_couplings(const Plan& plan, Workspace& w) noexcept;

// J-dot v of the velocities that the bodies have reached.
void find_quadratic_terms_of_couplings(const Plan& plan, Workspace& w) noexcept;

// The largest rows that the motion leaves, after the accelerations are found.
void measure_residuals_of_couplings(const Plan& plan, Workspace& w, StepReport& report) noexcept;

// A coupled coordinate with its rate, as it was measured last; angles are unwrapped from `last`.
Coordinate coupled_coordinate(const Plan& plan, const Workspace& w, int coordinate, double last) noexcept;

}  // namespace rigstep::index3
