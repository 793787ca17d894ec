// Bodies that never leave a plane, and constraint rows that have nothing to hold there. Load time, but for
// keep_planar().
//
// Where mass centres, joint points and loads lie exactly in one plane normal to a world axis, and axes of joints along
// that axis or across it, a mechanism equals its mirror image: what would move a body out of the plane is a sum of
// products with zero, in floating point, too. If joints hold the bodies in the plane as well, it has no other states.
// The cosines of a revolute joint then never open and have no multipliers, and the elimination leaves them out.
#pragma once

#include <vector>

#include "core/index3/physics/kinematics.h"
#include "core/index3/state.h"

namespace rigstep::index3 {

struct Plan;

struct PlanarMotion {
  std::vector<int> normal;    // (bodies) the world axis, 0 to 2, normal to the plane that it never leaves; -1: none
  std::vector<bool> is_idle;  // (rows) of joints on such bodies: it could only hold them in their plane
};

// Of a plan that knows its rows, the bodies of its constraints and its force elements. Bodies that joints, couplings,
// drivers and force elements connect, not counting the ground, are all planar or none is, over the ranges of tunable
// parameters. Each must be held: by a joint that lets it turn about the normal and slide in the plane alone, to the
// ground or to a body that is held. What bushings, tyres, drags and ropes act on counts as spatial.
PlanarMotion planar_motion(const Plan& plan);

// A displacement and rotation, or their rates, without what leaves the plane of the body; normal -1: all of it.
Vec6 in_plane(int normal, Vec6 motion) noexcept;
// The same of all bodies, one behind the other.
Eigen::VectorXd in_planes(const PlanarMotion& planar, Eigen::VectorXd motions);

// Bodies and multipliers of a state that have left their planes, by rounding where it was made consistent or because it
// comes from elsewhere and does not satisfy the joints, go back. What has not keeps its bits.
void keep_planar(const Mechanism& mechanism, const PlanarMotion& planar, State& x) noexcept;

}  // namespace rigstep::index3
