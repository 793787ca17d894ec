// What the plan and the loads of a step must know of inputs. Called at load time and in the loop.
#pragma once

#include "core/mechanism/mechanism.h"

namespace rigstep::index3 {

// An effort about an axis that is fixed in the ground: it loads its body alike in all poses.
inline bool turns_about_ground(const Mechanism& mechanism, const Input& input) noexcept {
  if (input.kind != Input::Kind::joint_effort) return false;
  const Joint& joint = mechanism.joints()[input.joint];
  return joint.type == JointType::revolute && joint.first == kGround;
}

}  // namespace rigstep::index3
