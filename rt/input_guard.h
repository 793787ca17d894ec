// What the rig's inputs go through before they are applied: the rule of each channel for when they are too old, its
// range, and the most it may change in a step. What comes out is what is recorded, so a replay needs none of this.
// Owned by the cycle; construction is load time, the rest belongs to the stepping thread and does not allocate.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/mechanism/signals.h"

namespace rigstep::rt {

class InputGuard {
 public:
  struct Verdict {
    bool stale = false;    // a channel follows its rule
    bool limited = false;  // a channel was outside its range or rate
    bool stop = false;     // the rule of a stale channel is `fault`, or inputs are too old for any rule
  };

  // What its rules remember from step to step.
  struct Memory {
    std::array<double, kMaxChannels> rate{};        // of each channel per step
    std::array<double, kMaxChannels> ramp_start{};  // where `ramp` began
  };

  // policies: one per channel, at most kMaxChannels; `safe` lies in the range. fault_after_steps: age from which
  // stepping stops whatever the rules; 0: never.
  explicit InputGuard(std::span<const InputPolicy> policies, std::uint32_t fault_after_steps = 0) noexcept;

  // The safe values: what is applied before the first sample.
  Inputs at_rest() const noexcept;
  // A sample has replaced `older` after so many steps; steps == 0: it is the first one.
  void note_rate(const Inputs& older, const Inputs& newer, std::uint32_t steps) noexcept;
  bool is_stale(std::uint32_t age_steps) const noexcept { return age_steps >= least_age_steps_; }

  const Memory& memory() const noexcept { return memory_; }
  void resume(const Memory& memory) noexcept { memory_ = memory; }

  // applied: values of the last step, replaced by those of this one. newest: the last sample, null before the first.
  Verdict apply(const Inputs* newest, std::uint32_t age_steps, Inputs& applied) noexcept;

 private:
  double stale_value(int channel, double newest, std::uint32_t stale_steps, double applied) noexcept;

  std::array<InputPolicy, kMaxChannels> policy_{};
  int channels_ = 0;
  std::uint32_t least_age_steps_ = ~0u;
  std::uint32_t fault_after_steps_;
  Memory memory_;
};

}  // namespace rigstep::rt
