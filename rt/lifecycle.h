// The states of a run, and what leads from one to another. The table below is the one that runs.
//
// Owned by the cycle. request(), set_controlled() and status() may be called by any thread, the rest by the stepping
// thread. Nothing here allocates, locks or throws.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/mechanism/signals.h"

namespace rigstep::rt {

enum class LifecycleState : std::uint8_t {
  ready,    // before the first step from a start: time stands
  running,  // a step at each tick
  holding,  // time stands where it was
  faulted,  // likewise, until the fault is reset
};

struct LifecycleRule {
  LifecycleState from;
  Transition by;
  LifecycleState to;
};

// What is not here does not happen.
inline constexpr LifecycleRule kLifecycle[] = {
    {LifecycleState::ready, Transition::control_gained, LifecycleState::running},
    {LifecycleState::ready, Transition::run, LifecycleState::running},
    {LifecycleState::ready, Transition::step, LifecycleState::running},
    {LifecycleState::ready, Transition::snapshot, LifecycleState::ready},
    {LifecycleState::ready, Transition::reset_to_snapshot, LifecycleState::holding},
    {LifecycleState::ready, Transition::reset_to_file, LifecycleState::holding},
    {LifecycleState::running, Transition::hold, LifecycleState::holding},
    {LifecycleState::running, Transition::steps_done, LifecycleState::holding},
    {LifecycleState::running, Transition::control_lost, LifecycleState::holding},
    {LifecycleState::running, Transition::snapshot, LifecycleState::running},
    {LifecycleState::running, Transition::fault, LifecycleState::faulted},
    {LifecycleState::holding, Transition::run, LifecycleState::running},
    {LifecycleState::holding, Transition::step, LifecycleState::running},
    {LifecycleState::holding, Transition::snapshot, LifecycleState::holding},
    {LifecycleState::holding, Transition::reset_to_start, LifecycleState::ready},
    {LifecycleState::holding, Transition::reset_to_snapshot, LifecycleState::holding},
    {LifecycleState::holding, Transition::reset_to_file, LifecycleState::holding},
    {LifecycleState::faulted, Transition::clear_fault, LifecycleState::running},
    {LifecycleState::faulted, Transition::reset_to_start, LifecycleState::ready},
    {LifecycleState::faulted, Transition::reset_to_snapshot, LifecycleState::holding},
    {LifecycleState::faulted, Transition::reset_to_file, LifecycleState::holding},
};

// nullopt: not permitted.
constexpr std::optional<LifecycleState> next_state(LifecycleState from, Transition by) noexcept {
  for (const LifecycleRule& rule : kLifecycle)
    if (rule.from == from && rule.by == by) return rule.to;
  return std::nullopt;
}

const char* to_string(LifecycleState state) noexcept;  // "ready"

// Somebody asks for a transition.
struct LifecycleRequest {
  Transition transition = Transition::none;  // run, hold, step, snapshot or a reset of the state
  std::uint32_t steps = 0;                   // of `step`: after how many it holds; at least 1
  std::uint32_t after = 0;                   // LifecycleStatus.transitions: void if another one came first
};

struct LifecycleStatus {
  LifecycleState state = LifecycleState::running;
  std::uint32_t transitions = 0;  // so far, modulo 2^24
};

class Lifecycle {
 public:
  Lifecycle(StartMode start, ControlLost control_lost) noexcept;

  // Any thread. The newest of several requests within a tick counts.
  void request(const LifecycleRequest& request) noexcept;
  void set_controlled(bool controlled) noexcept { controlled_.store(controlled, std::memory_order_relaxed); }
  LifecycleStatus status() const noexcept;

  // Stepping thread.
  LifecycleState state() const noexcept { return state_; }
  bool stands() const noexcept { return state_ == LifecycleState::ready || state_ == LifecycleState::holding; }
  std::uint32_t transitions() const noexcept { return transitions_; }
  // The transition to make now; none: there is none. has_input: one came for this tick. Call it until there is none.
  Transition due(bool has_input) noexcept;
  // Does nothing where the table has no such transition.
  void make(Transition transition) noexcept;
  void count_step() noexcept {
    if (steps_left_ > 0) --steps_left_;
  }

 private:
  Transition requested() noexcept;

  const StartMode start_;
  const ControlLost control_lost_;
  LifecycleState state_;
  std::uint32_t transitions_ = 0;
  std::uint32_t steps_left_ = 0;  // of a request for steps
  bool counts_steps_ = false;
  bool awaits_control_;  // ready, and the next input starts it
  bool was_controlled_ = false;
  std::atomic<bool> controlled_{false};
  std::atomic<std::uint64_t> request_{0};  // packed; 0: none
  std::atomic<std::uint32_t> status_;      // packed
};

}  // namespace rigstep::rt
