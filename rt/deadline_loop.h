// Absolute deadlines t_k = t_0 + k * period, and what happens when one is missed:
//
//   - a deadline is missed when it is past before its tick could be waited for; being there exactly on time is not late
//   - missed deadlines are counted and skipped: the next tick waits for the first deadline that is not past, so there
//     is never a burst of ticks to catch up, and deadlines stay on the original grid
//   - lateness is measured from the deadline that was waited for, however many periods that is ago
//   - a clock that falls back by more than a period starts a new grid instead of waiting for the old one
//
// The loop sleeps, and where the rig file asks for it spins through the last microseconds before the deadline. Its only
// system call is that sleep; everything else is the tick's.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>

#include "rt/clock.h"

namespace rigstep::rt {

inline constexpr std::int64_t kShortestPeriodNs = 20'000;  // checked when the configuration is loaded

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

// How long a wait may be spun through instead of slept, so that a thread with SCHED_FIFO never uses up what the kernel
// grants real-time threads: it would be stopped for the rest of the second (/proc/sys/kernel/sched_rt_runtime_us). A
// wait is spun through as asked for or not at all, since a short sleep keeps the core nearly as busy.
class BusyPoll {
 public:
  static constexpr std::int64_t kWindowNs = 100'000'000;
  static constexpr std::int64_t kSleepCostNs = 10'000;  // what the kernel works for a sleep, counted as awake; chosen

  BusyPoll() = default;  // never spins
  // spin_ns: this per wait, or nothing. most_awake_ns: of each window, steps included; at least kWindowNs: no limit.
  BusyPoll(std::int64_t spin_ns, std::int64_t most_awake_ns) : spin_ns_(spin_ns), most_awake_ns_(most_awake_ns) {}

  // Of a wait that begins now [ns]: as asked for, or 0: sleep.
  std::int64_t allowance(std::int64_t now_ns) noexcept;
  // A sleep is over.
  void slept(std::int64_t from_ns, std::int64_t to_ns) noexcept {
    asleep_ns_ += std::max<std::int64_t>(0, to_ns - from_ns - kSleepCostNs);
  }

 private:
  std::int64_t spin_ns_ = 0;
  std::int64_t most_awake_ns_ = kWindowNs;
  std::int64_t counted_ns_ = 0;  // until when what follows is known
  std::int64_t saved_ns_ = 0;    // of the time that it might have been awake
  std::int64_t asleep_ns_ = 0;   // since then
};

// Sleeps until shortly before `time_ns` and spins through the rest.
template <Clock C>
void wait_until(C& clock, std::int64_t time_ns, BusyPoll& busy_poll) noexcept {
  const std::int64_t from_ns = clock.now_ns();
  const std::int64_t spin_ns = busy_poll.allowance(from_ns);
  clock.sleep_until(time_ns - spin_ns);
  busy_poll.slept(from_ns, clock.now_ns());
  if (spin_ns > 0) clock.spin_until(time_ns);
}

// Calls tick(const TickTiming&) at each deadline until `stop`, which ends it within one period. The calling thread is
// the loop thread. `tick` must be noexcept.
template <Clock C, class Tick>
void run_deadline_loop(C& clock, std::int64_t period_ns, const std::atomic<bool>& stop, Tick&& tick,
                       BusyPoll busy_poll = {}) noexcept {
  static_assert(noexcept(tick(TickTiming{})), "nothing may throw below the loop");
  Schedule schedule(clock.now_ns(), period_ns);
  std::uint64_t missed = 0;
  while (true) {
    const std::int64_t deadline_ns = schedule.deadline_ns();
    wait_until(clock, deadline_ns, busy_poll);
    if (stop.load(std::memory_order_acquire)) return;

    // deadlines slept through are told by this tick, those its own work takes too long for by the next one
    const std::int64_t now_ns = clock.now_ns();
    schedule.advance();
    const std::uint64_t missed_asleep = schedule.skip_missed(now_ns);
    tick(TickTiming{.missed_deadlines = missed + missed_asleep,
                    .missed_asleep = missed_asleep,
                    .scheduled_ns = deadline_ns,
                    .wake_up_ns = std::max<std::int64_t>(0, now_ns - deadline_ns),
                    .log_time_ns = clock.wall_ns()});
    missed = schedule.skip_missed(clock.now_ns());
  }
}

}  // namespace rigstep::rt
