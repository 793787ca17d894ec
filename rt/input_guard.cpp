#include "rt/input_guard.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace rigstep::rt {

InputGuard::InputGuard(std::span<const InputPolicy> policies, std::uint32_t fault_after_steps) noexcept
    : channels_(static_cast<int>(policies.size())), fault_after_steps_(fault_after_steps) {
  assert(policies.size() <= kMaxChannels);
  std::copy(policies.begin(), policies.end(), policy_.begin());
  for (const InputPolicy& policy : policies) least_age_steps_ = std::min(least_age_steps_, policy.max_age_steps);
}

Inputs InputGuard::at_rest() const noexcept {
  Inputs inputs;
  inputs.count = channels_;
  for (int c = 0; c < channels_; ++c) inputs.value[c] = policy_[c].safe;
  return inputs;
}

void InputGuard::note_rate(const Inputs& older, const Inputs& newer, std::uint32_t steps) noexcept {
  for (int c = 0; c < channels_; ++c)
    memory_.rate[c] = steps == 0 ? 0.0 : newer.value[c] / steps - older.value[c] / steps;
}

// stale_steps: 1 at the first step at which the rule applies
double InputGuard::stale_value(int channel, double newest, std::uint32_t stale_steps, double applied) noexcept {
  const InputPolicy& policy = policy_[channel];
  switch (policy.rule) {
    case StaleRule::hold:
    case StaleRule::fault:
      return newest;
    case StaleRule::zero:
      return 0.0;
    case StaleRule::rate: {
      const double further = newest + memory_.rate[channel] * std::min(stale_steps, policy.max_age_steps);
      return std::isfinite(further) ? further : applied;  // where numbers end it goes no further
    }
    case StaleRule::ramp:
      if (stale_steps == 1) memory_.ramp_start[channel] = applied;
      if (stale_steps >= policy.ramp_steps) return policy.safe;
      return std::lerp(memory_.ramp_start[channel], policy.safe, static_cast<double>(stale_steps) / policy.ramp_steps);
  }
  return newest;
}

InputGuard::Verdict InputGuard::apply(const Inputs* newest, std::uint32_t age_steps, Inputs& applied) noexcept {
  Verdict verdict;
  const bool may_stop = newest != nullptr && channels_ > 0 && fault_after_steps_ != 0;
  if (may_stop && age_steps >= fault_after_steps_) verdict.stale = verdict.stop = true;
  for (int c = 0; c < channels_; ++c) {
    const InputPolicy& policy = policy_[c];
    const double before = applied.value[c];
    double requested = newest != nullptr ? newest->value[c] : policy.safe;
    if (newest != nullptr && age_steps >= policy.max_age_steps) {
      verdict.stale = true;
      verdict.stop = verdict.stop || policy.rule == StaleRule::fault;
      requested = stale_value(c, requested, age_steps - policy.max_age_steps + 1, before);
    }
    // last the rate: between two values inside the range lies no value outside
    const double inside = std::clamp(requested, policy.minimum, policy.maximum);
    applied.value[c] = std::clamp(inside, before - policy.most_change_per_step, before + policy.most_change_per_step);
    verdict.limited = verdict.limited || applied.value[c] < requested || applied.value[c] > requested;
  }
  return verdict;
}

}  // namespace rigstep::rt
