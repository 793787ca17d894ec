// Small mechanisms for one force element each.
#pragma once

#include "core/index3/forces.h"
#include "core/index3/plan.h"
#include "core/index3/stepper.h"
#include "core/index3/workspace.h"
#include "tests/support/mechanisms.h"

namespace rigstep::test {

// A body on a slide along x without gravity, named "block".
inline MechanismBuilder slide(double mass, double speed = 0.0, const Vec3& gravity = Vec3::Zero()) {
  MechanismBuilder builder("slide");
  builder.set_gravity(gravity);
  Body block = make_body("block", Vec3::Zero(), mass);
  block.velocity_0 = {speed, 0.0, 0.0};
  builder.add_body(block);
  builder.add_joint(make_joint("rail", JointType::prismatic, "ground", "block", Vec3::Zero(), Vec3::UnitX()));
  return builder;
}

inline index3::Settings step_of(double dt) {
  index3::Settings settings;
  settings.dt_ns = static_cast<std::int64_t>(dt * 1e9 + 0.5);
  return settings;
}

inline Inputs inputs_of(std::initializer_list<double> values) {
  Inputs u;
  for (const double value : values) u.value[static_cast<std::size_t>(u.count++)] = value;
  return u;
}

// Steps to `time` and returns whether every step was committed.
inline bool run(index3::Stepper& stepper, double time, const Inputs& inputs = {}) {
  const auto steps = static_cast<std::uint64_t>(time / stepper.plan().dt() + 0.5);
  for (std::uint64_t k = 0; k < steps; ++k)
    if (failed(stepper.step(inputs).status)) return false;
  return true;
}

}  // namespace rigstep::test
