// A clock that stands until a test moves it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rt/clock.h"

namespace rigstep::test {

class FakeClock {
 public:
  explicit FakeClock(std::int64_t start_ns = 0) noexcept : now_ns_(start_ns) {}

  std::int64_t now_ns() const noexcept { return now_ns_; }
  std::int64_t wall_ns() const noexcept { return kWallOffsetNs + now_ns_ + wall_step_ns_; }

  // Wakes up exactly on time, or by oversleep_once() later.
  void sleep_until(std::int64_t time_ns) noexcept {
    now_ns_ = std::max(now_ns_, time_ns) + oversleep_ns_;
    oversleep_ns_ = 0;
  }

  void spin_until(std::int64_t time_ns) noexcept {
    spun_ns_ += std::max<std::int64_t>(time_ns - now_ns_, 0);
    now_ns_ = std::max(now_ns_, time_ns);
  }
  std::int64_t spun_ns() const noexcept { return spun_ns_; }  // in all

  void advance(std::int64_t duration_ns) noexcept { now_ns_ += duration_ns; }      // negative: falls back
  void oversleep_once(std::int64_t late_ns) noexcept { oversleep_ns_ = late_ns; }  // negative: falls back

  void step_wall(std::int64_t step_ns) noexcept { wall_step_ns_ += step_ns; }  // somebody sets the date

  static constexpr std::int64_t kWallOffsetNs = 1'700'000'000'000'000'000;

 private:
  std::int64_t now_ns_;
  std::int64_t oversleep_ns_ = 0;
  std::int64_t wall_step_ns_ = 0;
  std::int64_t spun_ns_ = 0;
};
static_assert(rt::Clock<FakeClock>);

}  // namespace rigstep::test
