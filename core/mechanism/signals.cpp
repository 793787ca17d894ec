#include "core/mechanism/signals.h"

#include <cmath>

namespace rigstep {

const char* to_string(StepStatus status) noexcept {
  switch (status) {
    case StepStatus::ok:
      return "ok";
    case StepStatus::not_converged:
      return "not converged";
    case StepStatus::diverged:
      return "diverged";
    case StepStatus::singular:
      return "singular";
    case StepStatus::not_finite:
      return "not finite";
    case StepStatus::output_not_finite:
      return "output not finite";
  }
  return "unknown";
}

const char* to_string(Transition transition) noexcept {
  constexpr const char* kNames[kTransitions] = {"none",           "control gained",    "run",          "hold",
                                                "step",           "steps done",        "control lost", "snapshot",
                                                "reset to start", "reset to snapshot", "fault",        "clear fault",
                                                "parameters",     "reset to file"};
  const auto k = static_cast<std::size_t>(transition);
  return k < kTransitions ? kNames[k] : "unknown";
}

int first_not_finite(const Outputs& outputs) noexcept {
  for (int c = 0; c < outputs.count; ++c)
    if (!std::isfinite(outputs.value[c])) return c;
  return -1;
}

}  // namespace rigstep
