// A bushing: description, checks, identity and output channels. In SI units.
#pragma once

#include "core/mechanism/elements/element.h"

namespace rigstep {

// An elastic mount between two frames, linear in the deflection x of the second frame against the first, (6) in the
// axes of the first frame, which turn with its body:
//   x[0..2]  from the first point to the second [m]
//   x[3..5]  1/2 sum a_i x b_i over the axes a of the first and b of the second frame [-]: the axial vector of the
//            relative rotation matrix, sin(angle) times the axis of rotation, which is the rotation vector [rad] as
//            long as that is small; elastic below 90 degrees
// Load on the second body -(stiffness x + damping dx/dt), force [N] at the second point, then torque [N m]; the first
// body takes the opposite one at the same point. The torque is the gradient's, conjugate to x[3..5]: with the stiffness
// alone the mount is conservative, of the energy 1/2 x' stiffness x. No source: the common linear mount, with a
// rotation measure that is smooth and needs no order of angles.
struct Bushing {
  static constexpr const char* kName = "bushing";  // in the schema
  static constexpr const char* kPlural = "bushings";
  static constexpr bool kIsScalar = false;
  std::string name;
  int first = -1;  // body index or kGround
  int second = -1;
  JointFrame in_first;
  JointFrame in_second;
  // (6 x 6) both symmetric, positive semidefinite, rows and columns in the order of x; blocks
  // [N/m] [N/rad; N m/m] [N m/rad] and [N s/m] [N s/rad; N m s/m] [N m s/rad]
  Mat6 stiffness = Mat6::Zero();
  Mat6 damping = Mat6::Zero();
};

// Without deflection at the start pose: point [m], axis (z) and normal (x) in the world frame; zero axis and normal:
// parallel to the world.
void connect(Bushing& bushing, MechanismBuilder& builder, const std::string& first, const std::string& second,
             const SideInBody& at_start);
// ... or as built into each body, in body coordinates (world for the ground).
void connect(Bushing& bushing, MechanismBuilder& builder, const std::string& first, const std::string& second,
             const SideInBody& in_first, const SideInBody& in_second);

void check_numbers(const Bushing& bushing);
std::span<const Number<Bushing>> numbers(const Bushing& bushing);
void add(ContentHash& hash, const Bushing& bushing);
std::vector<Channel> channels(const Bushing& bushing, const Mechanism& mechanism);

}  // namespace rigstep
