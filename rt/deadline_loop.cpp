#include "rt/deadline_loop.h"

namespace rigstep::rt {

std::uint64_t Schedule::skip_missed(std::int64_t now_ns) noexcept {
  const std::int64_t late_ns = now_ns - deadline_ns_;
  if (late_ns < -period_ns_) {
    deadline_ns_ = now_ns + period_ns_;  // the clock fell back
    return 0;
  }
  if (late_ns <= 0) return 0;
  const std::int64_t skipped = (late_ns + period_ns_ - 1) / period_ns_;
  deadline_ns_ += skipped * period_ns_;
  return static_cast<std::uint64_t>(skipped);
}

std::int64_t BusyPoll::allowance(std::int64_t now_ns) noexcept {
  if (spin_ns_ == 0) return 0;
  if (now_ns - window_start_ns_ >= kWindowNs) {
    window_start_ns_ = now_ns;
    asleep_ns_ = 0;
  }
  if (most_awake_ns_ >= kWindowNs) return spin_ns_;
  const std::int64_t elapsed_ns = now_ns - window_start_ns_;
  const std::int64_t awake_ns = elapsed_ns - asleep_ns_;
  // its share of the time so far, not of the window: else work alone would exceed it once all spinning is used up
  return std::clamp<std::int64_t>(elapsed_ns * most_awake_ns_ / kWindowNs - awake_ns, 0, spin_ns_);
}

}  // namespace rigstep::rt
