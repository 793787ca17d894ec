// Poses of all bodies, and what a step tells beside its outputs, for people who watch: written by the loop thread at
// most 60 times a second, and only while somebody wants them; read by the thread of the link. Neither waits. Owned by a
// session, sized at load time. Cost in the loop: one relaxed load a tick; while somebody watches, 7 numbers a body and
// one an input are copied every 60th of a second, about 5 ns a body, so 20 us at the very most.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "core/index3/state.h"
#include "core/mechanism/signals.h"

namespace rigstep::rt {

inline constexpr std::int64_t kPoseIntervalNs = 1'000'000'000 / 60;
inline constexpr std::size_t kMostWatchedBodies = 4096;  // of a larger mechanism no poses are given
inline constexpr std::size_t kNumbersPerPose = 7;        // x y z [m] e0 e1 e2 e3 [-]

struct PoseFrame {
  std::uint64_t step = 0;
  std::int64_t sim_time_ns = 0;
  std::vector<float> numbers;                                         // (bodies x 7)
  std::vector<float> inputs;                                          // that acted
  float wake_up_us = 0.0f, step_us = 0.0f, position_residual = 0.0f;  // [m]; as in StepRecord
};

class PoseMailbox {
 public:
  PoseMailbox(std::size_t bodies, std::size_t inputs, std::int64_t period_ns)
      : every_(static_cast<std::uint32_t>((kPoseIntervalNs + period_ns - 1) / period_ns)) {
    if (bodies > kMostWatchedBodies) bodies = 0;
    for (PoseFrame& frame : frame_) frame.numbers.resize(kNumbersPerPose * bodies), frame.inputs.resize(inputs);
  }

  std::size_t bodies() const noexcept { return frame_[0].numbers.size() / kNumbersPerPose; }

  // Reader: whether somebody watches.
  void want(bool wanted) noexcept { wanted_.store(wanted, std::memory_order_relaxed); }
  // Reader: a frame that was written since the last one, valid until the next take; null: there is none.
  const PoseFrame* take() noexcept {
    if ((middle_.load(std::memory_order_relaxed) & kFresh) == 0) return nullptr;
    front_ = middle_.exchange(front_, std::memory_order_acq_rel) & kIndex;
    return &frame_[front_];
  }

  // Writer, once a tick. newest: of the newest step; step, sim_time_ns: of the state.
  void offer(const index3::State& state, const StepRecord& newest, std::uint64_t step,
             std::int64_t sim_time_ns) noexcept {
    if (!wanted_.load(std::memory_order_relaxed) || ++ticks_ < every_) return;
    ticks_ = 0;
    PoseFrame& frame = frame_[back_];
    if (frame.numbers.empty()) return;
    frame.step = step;
    frame.sim_time_ns = sim_time_ns;
    float* to = frame.numbers.data();
    for (const index3::BodyState& body : state.body) {
      for (int k = 0; k < 3; ++k) *to++ = static_cast<float>(body.r[k]);
      for (int k = 0; k < 4; ++k) *to++ = static_cast<float>(body.p[k]);
    }
    for (std::size_t k = 0; k < frame.inputs.size(); ++k) frame.inputs[k] = static_cast<float>(newest.inputs.value[k]);
    frame.wake_up_us = 1e-3f * static_cast<float>(newest.wake_up_ns);
    frame.step_us = 1e-3f * static_cast<float>(newest.step_ns);
    frame.position_residual = static_cast<float>(newest.position_residual);
    back_ = middle_.exchange(static_cast<std::uint8_t>(back_ | kFresh), std::memory_order_acq_rel) & kIndex;
  }

 private:
  static constexpr std::uint8_t kIndex = 3;
  static constexpr std::uint8_t kFresh = 4;

  const std::uint32_t every_;  // ticks
  std::array<PoseFrame, 3> frame_;
  alignas(64) std::atomic<bool> wanted_{false};
  alignas(64) std::atomic<std::uint8_t> middle_{1};  // frame index, and kFresh if it was not taken yet
  alignas(64) std::uint32_t ticks_ = 0;              // writer's, and the next
  std::uint8_t back_ = 0;
  alignas(64) std::uint8_t front_ = 2;  // reader's
};

}  // namespace rigstep::rt
