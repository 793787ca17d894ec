// A joint of any kind at work, for tests that go through all of them.
#pragma once

#include <vector>

#include "tests/support/mechanisms.h"

namespace rigstep::test {

// Body "A" on the ground by a universal joint, and the joint "tested" between it and "B", whichever way round.
inline std::vector<Description::JointAtStart> joints_with(JointType type, bool turned_round) {
  auto joint = make_joint("tested", type, turned_round ? "B" : "A", turned_round ? "A" : "B", {1.0, 0.1, 0.0},
                          Vec3::UnitY(), Vec3::UnitX());
  joint.second_point = {1.0, 0.4, 0.3};
  joint.lead = 0.2;
  return {make_joint("base", JointType::universal, "ground", "A", Vec3::Zero(), Vec3::UnitX(), Vec3::UnitY()), joint};
}

}  // namespace rigstep::test
