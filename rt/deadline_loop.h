// Absolute deadlines t_k = t_0 + k * period, and what happens when one is missed:
//
//   - a deadline is missed when it is past before its tick could be waited for; being there exactly on time is not late
//   - missed deadlines are counted and skipped: the next tick waits for the first deadline that is not past, so there
//     is never a burst of ticks to catch up, and deadlines stay on the original grid
//   - lateness is measured from the deadline that was waited for, however many periods that is ago
//   - a clock that falls back by more than a period starts a new grid instead of waiting for the old one
//
// The loop sleeps and never spins. Its only system call is that sleep; everything else is the tick's.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>

#include "rt/clock.h"

namespace rigstep::rt {

inline constexpr std::int64_t kShortestPeriodNs = 100'000;  // checked when the configuration is loaded

// The deadlines alone, without waiting for them.
class Schedule {
 public:
  // First deadline: one period after the start.
  Schedule(std::int64_t start_ns, std::int64_t period_ns) noexcept
      : period_ns_(period_ns), deadline_ns_(start_ns + period_ns) {
    assert(period_ns > 0);
  }

  std::int64_t deadline_ns() const noexcept { return deadline_ns_; }

  // The deadline is being served: on to the one after it.
  void advance() noexcept { deadline_ns_ += period_ns_; }

  // Moves to the first deadline not before now and returns how many were skipped on the way.
  std::uint64_t skip_missed(std::int64_t now_ns) noexcept;

 private:
  std::int64_t period_ns_;
  std::int64_t deadline_ns_;
};

// Calls tick(const TickTiming&) at each deadline until `stop`, which ends it within one period. The calling thread is
// the loop thread. `tick` must be noexcept.
template <Clock C, class Tick>
void run_deadline_loop(C& clock, std::int64_t period_ns, const std::atomic<bool>& stop, Tick&& tick) noexcept {
  static_assert(noexcept(tick(TickTiming{})), "nothing may throw below the loop");
  Schedule schedule(clock.now_ns(), period_ns);
  std::uint64_t missed = 0;
  while (true) {
    const std::int64_t deadline_ns = schedule.deadline_ns();
    clock.sleep_until(deadline_ns);
    if (stop.load(std::memory_order_acquire)) return;

    // deadlines slept through are told by this tick, those its own work takes too long for by the next one
    const std::int64_t now_ns = clock.now_ns();
    schedule.advance();
    missed += schedule.skip_missed(now_ns);
    tick(TickTiming{.missed_deadlines = missed,
                    .wake_up_ns = std::max<std::int64_t>(0, now_ns - deadline_ns),
                    .log_time_ns = clock.wall_ns()});
    missed = schedule.skip_missed(clock.now_ns());
  }
}

}  // namespace rigstep::rt
