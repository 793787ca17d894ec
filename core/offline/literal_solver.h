// The literal index-3 scheme of [001] (index3_literal.h) as a reference solver: run with ever shorter steps and
// extrapolated to steps of zero until two extrapolations agree to the tolerance. Offline only.
#pragma once

#include "core/offline/index3_literal.h"

namespace rigstep::offline {

// Serial chains on the ground and single loops of spherical and revolute joints, under any load that is not stiff.
// Options::integrator and threads are not used; a right-hand side is a Newton iteration. With Options::alpha steps of
// any length have that penalty factor: one pass of a projection then leaves 4 / (alpha dt^2) of a violation relative to
// the constraints' compliance, so that one which is too small shows as a motion that differs or does not converge.
// Throws SolverError, and std::invalid_argument for tolerances that are not positive.
Trajectory literal_index3(const Scenario& scenario, const Options& options);

std::string literal_index3_unsupported_reason(const Mechanism& mechanism);

// As the paper runs it: steps of settings.dt_ns from each instant to the next, with settings.alpha, not extrapolated.
// Throws SolverError where Newton's method diverges, and where an instant is no whole number of steps after the one
// before.
Trajectory literal_index3_at_fixed_step(const Scenario& scenario, const Options& options,
                                        const LiteralSettings& settings);

}  // namespace rigstep::offline
