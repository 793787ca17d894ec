// Orientations as Euler parameters, from the ways in which people give them. Load time.
#pragma once

#include "core/mechanism/types.h"

namespace rigstep {

// All with unit norm where their arguments have it, and with the same bits on every machine.

// Turned about the unit vector `axis` by `angle` [rad], right-handed; at most 1e5 rad.
EulerParameters turned_about(const Vec3& axis, double angle);

// `inner` in a frame that is itself turned by `outer`: the matrices' product outer inner.
EulerParameters product(const EulerParameters& outer, const EulerParameters& inner);

// The body's axes in the world, as columns.
Mat3 axes_of(const EulerParameters& p);

// Of the body's axes, the columns of a rotation matrix.
EulerParameters from_axes(const Mat3& axes_0);

}  // namespace rigstep
