#include "rt/lifecycle.h"

namespace rigstep::rt {

namespace {

constexpr std::uint32_t kTransitions = 0xFFFFFF;  // counted modulo one more

// From the lowest bit: transition 8, after 24, steps 32.
std::uint64_t pack_request(const LifecycleRequest& request) noexcept {
  return static_cast<std::uint64_t>(request.transition) |
         static_cast<std::uint64_t>(request.after & kTransitions) << 8 |
         static_cast<std::uint64_t>(request.steps) << 32;
}

LifecycleRequest unpack_request(std::uint64_t word) noexcept {
  return {.transition = static_cast<Transition>(word & 0xFF),
          .steps = static_cast<std::uint32_t>(word >> 32),
          .after = static_cast<std::uint32_t>(word >> 8) & kTransitions};
}

LifecycleState state_at(StartMode start) noexcept {
  return start == StartMode::at_once ? LifecycleState::running : LifecycleState::ready;
}

}  // namespace

const char* to_string(LifecycleState state) noexcept {
  switch (state) {
    case LifecycleState::ready:
      return "ready";
    case LifecycleState::running:
      return "running";
    case LifecycleState::holding:
      return "holding";
    case LifecycleState::faulted:
      return "faulted";
  }
  return "unknown";
}

Lifecycle::Lifecycle(StartMode start, ControlLost control_lost) noexcept
    : start_(start),
      control_lost_(control_lost),
      state_(state_at(start)),
      awaits_control_(start == StartMode::when_controlled),
      status_(static_cast<std::uint32_t>(state_)) {}

void Lifecycle::request(const LifecycleRequest& request) noexcept {
  request_.store(pack_request(request), std::memory_order_release);  // behind what it refers to
}

LifecycleStatus Lifecycle::status() const noexcept {
  const std::uint32_t word = status_.load(std::memory_order_relaxed);
  return {static_cast<LifecycleState>(word & 0xFF), word >> 8};
}

Transition Lifecycle::requested() noexcept {
  if (request_.load(std::memory_order_relaxed) == 0) return Transition::none;
  const LifecycleRequest request = unpack_request(request_.exchange(0, std::memory_order_acquire));
  if (request.after != transitions_ || !next_state(state_, request.transition)) return Transition::none;
  if (request.transition == Transition::run) counts_steps_ = false;
  if (request.transition == Transition::step) {
    counts_steps_ = true;
    steps_left_ = request.steps;
  }
  return request.transition;
}

Transition Lifecycle::due(bool has_input) noexcept {
  if (state_ == LifecycleState::running && counts_steps_ && steps_left_ == 0) {
    counts_steps_ = false;
    return Transition::steps_done;
  }
  if (const Transition transition = requested(); transition != Transition::none) return transition;
  const bool controlled = controlled_.load(std::memory_order_relaxed);
  const bool is_lost = was_controlled_ && !controlled;
  was_controlled_ = controlled;
  if (is_lost && state_ == LifecycleState::ready) awaits_control_ = start_ == StartMode::when_controlled;
  if (is_lost && state_ == LifecycleState::running && control_lost_ != ControlLost::go_on)
    return control_lost_ == ControlLost::hold ? Transition::control_lost : Transition::fault;
  return awaits_control_ && has_input && state_ == LifecycleState::ready ? Transition::control_gained
                                                                         : Transition::none;
}

void Lifecycle::make(Transition transition) noexcept {
  const auto to = next_state(state_, transition);
  if (!to) return;
  state_ = *to;
  transitions_ = (transitions_ + 1) & kTransitions;
  if (transition == Transition::reset_to_start)
    awaits_control_ = start_ == StartMode::when_controlled && !was_controlled_;
  else if (transition != Transition::snapshot)
    awaits_control_ = false;
  if (state_ != LifecycleState::running) counts_steps_ = false;
  status_.store(static_cast<std::uint32_t>(state_) | transitions_ << 8, std::memory_order_relaxed);
}

}  // namespace rigstep::rt
