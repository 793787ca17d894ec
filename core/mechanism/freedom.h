// Joint frames, and the freedoms that joints leave open: what joints and force elements share.
#pragma once

#include "core/mechanism/types.h"

namespace rigstep {

// One side of a joint or bushing. For the ground, body frame means world frame.
struct JointFrame {
  Vec3 point_b = Vec3::Zero();     // joint point, from the body's mass centre, body frame [m]
  Mat3 axes_b = Mat3::Identity();  // columns x, y, z in body coordinates, right-handed; z is the joint axis
};

// A joint frame as it is built into a body: point [m] from the mass centre, axis and a reference direction normal to
// it, in body coordinates (world for the ground).
struct SideInBody {
  Vec3 point = Vec3::Zero();
  Vec3 axis = Vec3::Zero();
  Vec3 normal = Vec3::Zero();  // zero: any normal, allowed where no angle is measured or held
};

// A scalar freedom that a joint leaves open, and along which efforts, springs, sensors, couplings and drivers act.
// Gimbal and floating: Cardan angles z-y'-x'', A_second = A_first Rz(first) Ry(second) Rx(third) in the joint frames.
// Regular where the frames coincide; singular at a second angle of +-90 degrees, beyond which it does not count.
enum class Freedom {
  displacement,    // along the first body's axis, of the second body's point from the first's [m]
  angle,           // of the second body against the first about the joint axis [rad]
  first_angle,     // universal: about the axis fixed in the first body; gimbal, floating: about the first's z [rad]
  second_angle,    // universal: about the axis fixed in the second body; gimbal, floating: about the turned y [rad]
  third_angle,     // gimbal, floating: about the second body's x [rad]
  displacement_x,  // of the second body's point from the first's, along x of the first body's joint frame [m]
  displacement_y,  // ... along y [m]
  displacement_z,  // ... along z [m]
};

// A freedom measured in metres; the others are angles.
inline bool is_length(Freedom freedom) {
  return freedom == Freedom::displacement || freedom >= Freedom::displacement_x;
}

}  // namespace rigstep
