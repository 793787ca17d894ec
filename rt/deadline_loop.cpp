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

}  // namespace rigstep::rt
