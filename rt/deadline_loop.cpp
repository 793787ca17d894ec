#include "rt/deadline_loop.h"

#include <utility>

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
  if (most_awake_ns_ >= kWindowNs) return spin_ns_;
  const std::int64_t from_ns = std::exchange(counted_ns_, now_ns);
  const std::int64_t elapsed_ns = from_ns > 0 ? now_ns - from_ns : 0;  // at first nothing is known
  const std::int64_t awake_ns = elapsed_ns - std::exchange(asleep_ns_, 0);
  // its share of the time, up to that of a window: a second holds ten of these, and what was saved before
  const std::int64_t earned_ns = std::min(elapsed_ns, kWindowNs) * most_awake_ns_ / kWindowNs;
  saved_ns_ = std::clamp(saved_ns_ + earned_ns - awake_ns, -most_awake_ns_, most_awake_ns_);
  const std::int64_t whole_ns = std::min(spin_ns_, most_awake_ns_);
  return saved_ns_ >= whole_ns ? whole_ns : 0;
}

}  // namespace rigstep::rt
