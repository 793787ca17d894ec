#include "core/mechanism/signals.h"

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
  }
  return "unknown";
}

}  // namespace rigstep
