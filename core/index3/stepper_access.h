// What a stepper is made of, for tests, measurements and reports. Who embeds a stepper needs none of it.
#pragma once

#include "core/index3/outputs/sensors.h"
#include "core/index3/stepper.h"

namespace rigstep::index3 {

class StepperAccess {
 public:
  static const Plan& plan(const Stepper& stepper) noexcept;
  static const Workspace& workspace(const Stepper& stepper) noexcept;
};

inline const Plan& plan_of(const Stepper& stepper) noexcept { return StepperAccess::plan(stepper); }
// Of the last committed step, with what its force elements did; their loads Q are overwritten to find that.
inline const Workspace& workspace_of(const Stepper& stepper) noexcept { return StepperAccess::workspace(stepper); }

}  // namespace rigstep::index3
