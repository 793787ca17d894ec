#include "rt/deadline_loop.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "tests/support/fake_clock.h"

namespace rigstep::rt {
namespace {

constexpr std::int64_t kPeriod = 1'000'000;  // [ns]

struct Tick {
  std::int64_t start_ns;  // clock when it began
  std::uint64_t missed;
  std::int64_t wake_up_ns;
  bool operator==(const Tick&) const = default;
};

// Runs so many ticks from time 0; during(n, clock) is the work of tick n.
template <class Work>
std::vector<Tick> run_ticks(std::size_t ticks, Work during, std::int64_t period_ns = kPeriod) {
  test::FakeClock clock;
  std::atomic<bool> stop{false};
  std::vector<Tick> seen;
  run_deadline_loop(clock, period_ns, stop, [&](const TickTiming& timing) noexcept {
    seen.push_back({clock.now_ns(), timing.missed_deadlines, timing.wake_up_ns});
    during(seen.size() - 1, clock);
    stop = seen.size() == ticks;
  });
  return seen;
}

std::uint64_t total_missed(const std::vector<Tick>& ticks) {
  std::uint64_t missed = 0;
  for (const Tick& tick : ticks) missed += tick.missed;
  return missed;
}

}  // namespace

TEST_CASE("ticks that are in time stand on the grid, whatever their work takes") {
  for (const std::int64_t period_ns : {kShortestPeriodNs, std::int64_t{250'000}, kPeriod, std::int64_t{2'000'000}}) {
    const auto ticks = run_ticks(
        100, [=](std::size_t n, auto& clock) { clock.advance(static_cast<std::int64_t>(n) * period_ns / 100); },
        period_ns);
    for (std::size_t n = 0; n < ticks.size(); ++n) {
      REQUIRE(ticks[n] == Tick{static_cast<std::int64_t>(n + 1) * period_ns, 0, 0});
    }
  }
}

TEST_CASE("a late wake-up within the period is measured from the deadline and shifts nothing") {
  const auto ticks = run_ticks(3, [](std::size_t n, auto& clock) {
    if (n == 0) clock.oversleep_once(300'000);
  });
  CHECK(ticks[1] == Tick{2'300'000, 0, 300'000});
  CHECK(ticks[2] == Tick{3'000'000, 0, 0});
}

TEST_CASE("work that ends past the next deadline: that deadline is skipped and counted, the grid stays") {
  const auto ticks = run_ticks(3, [](std::size_t n, auto& clock) {
    if (n == 0) clock.advance(1'000'001);
  });
  CHECK(ticks[0] == Tick{1'000'000, 0, 0});
  CHECK(ticks[1] == Tick{3'000'000, 1, 0});
  CHECK(ticks[2] == Tick{4'000'000, 0, 0});
}

TEST_CASE("work that ends exactly on the next deadline is in time") {
  const auto ticks = run_ticks(3, [](std::size_t n, auto& clock) {
    if (n == 0) clock.advance(kPeriod);
  });
  CHECK(ticks[1] == Tick{2'000'000, 0, 0});
  CHECK(ticks[2] == Tick{3'000'000, 0, 0});
}

TEST_CASE("work of many periods skips every deadline that is past and starts no burst") {
  const auto ticks = run_ticks(4, [](std::size_t n, auto& clock) {
    if (n == 0) clock.advance(250 * kPeriod + 1);
  });
  CHECK(ticks[1] == Tick{252 * kPeriod, 250, 0});
  CHECK(ticks[2] == Tick{253 * kPeriod, 0, 0});
  CHECK(ticks[3] == Tick{254 * kPeriod, 0, 0});
}

TEST_CASE("work of exactly many periods keeps the deadline it ends on") {
  const auto ticks = run_ticks(3, [](std::size_t n, auto& clock) {
    if (n == 0) clock.advance(5 * kPeriod);
  });
  CHECK(ticks[1] == Tick{6 * kPeriod, 4, 0});
  CHECK(ticks[2] == Tick{7 * kPeriod, 0, 0});
}

TEST_CASE("a wake-up many periods late serves its own deadline and tells those slept through at once") {
  const auto ticks = run_ticks(3, [](std::size_t n, auto& clock) {
    if (n == 0) clock.oversleep_once(3'500'000);
    if (n == 1) clock.advance(100'000);
  });
  CHECK(ticks[1] == Tick{5'500'000, 3, 3'500'000});
  CHECK(ticks[2] == Tick{6'000'000, 0, 0});
}

TEST_CASE("a late wake-up and long work together count each deadline once") {
  const auto ticks = run_ticks(3, [](std::size_t n, auto& clock) {
    if (n == 0) clock.oversleep_once(1'500'000);
    if (n == 1) clock.advance(2 * kPeriod);
  });
  CHECK(ticks[1] == Tick{3'500'000, 1, 1'500'000});
  CHECK(ticks[2] == Tick{6'000'000, 2, 0});
}

TEST_CASE("every deadline is either served or counted as missed") {
  std::uint64_t seed = 1;
  const auto ticks = run_ticks(2000, [&](std::size_t, auto& clock) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    clock.advance(static_cast<std::int64_t>(seed >> 33) % (3 * kPeriod));
    clock.oversleep_once(static_cast<std::int64_t>(seed >> 40) % (2 * kPeriod));
  });
  const std::int64_t last_deadline = ticks.back().start_ns - ticks.back().wake_up_ns;
  CHECK(static_cast<std::int64_t>(ticks.size() + total_missed(ticks)) * kPeriod >= last_deadline);
  for (std::size_t n = 1; n < ticks.size(); ++n) {
    const std::int64_t deadline = ticks[n].start_ns - ticks[n].wake_up_ns;
    const std::int64_t previous = ticks[n - 1].start_ns - ticks[n - 1].wake_up_ns;
    REQUIRE(deadline % kPeriod == 0);
    REQUIRE(deadline > previous);
    // no burst: what was past when the last tick began is not served any more
    REQUIRE(deadline >= ticks[n - 1].start_ns);
  }
}

TEST_CASE("a clock that jumps forward skips and counts, without a burst") {
  constexpr std::int64_t kHour = 3'600'000'000'000;
  const auto ticks = run_ticks(4, [](std::size_t n, auto& clock) {
    if (n == 1) clock.advance(kHour + 1);
  });
  CHECK(ticks[2] == Tick{kHour + 3 * kPeriod, 3'600'000, 0});
  CHECK(ticks[3] == Tick{kHour + 4 * kPeriod, 0, 0});
}

TEST_CASE("a clock that falls back starts a new grid within one period, without a burst") {
  const auto ticks = run_ticks(4, [](std::size_t n, auto& clock) {
    if (n == 1) clock.advance(-3'600'000'400'000);
  });
  const std::int64_t fallen_to = 2 * kPeriod - 3'600'000'400'000;
  CHECK(ticks[2] == Tick{fallen_to + kPeriod, 0, 0});
  CHECK(ticks[3] == Tick{fallen_to + 2 * kPeriod, 0, 0});
}

TEST_CASE("a clock that falls back during the sleep is never a negative lateness, nor a burst") {
  const auto ticks = run_ticks(4, [](std::size_t n, auto& clock) {
    if (n == 0) clock.oversleep_once(-50 * kPeriod);
  });
  CHECK(ticks[1] == Tick{-48 * kPeriod, 0, 0});
  CHECK(ticks[2] == Tick{-47 * kPeriod, 0, 0});
  CHECK(ticks[3] == Tick{-46 * kPeriod, 0, 0});
}

TEST_CASE("a tick is dated by the wall clock") {
  test::FakeClock clock;
  std::atomic<bool> stop{false};
  run_deadline_loop(clock, kPeriod, stop, [&](const TickTiming& timing) noexcept {
    CHECK(timing.log_time_ns == test::FakeClock::kWallOffsetNs + kPeriod);
    stop = true;
  });
}

TEST_CASE("somebody who sets the date, back or forth, moves the dates of ticks and no deadline") {
  constexpr std::int64_t kDay = 86'400'000'000'000;
  test::FakeClock clock;
  std::atomic<bool> stop{false};
  std::vector<std::int64_t> dates;
  run_deadline_loop(clock, kPeriod, stop, [&](const TickTiming& timing) noexcept {
    dates.push_back(timing.log_time_ns - test::FakeClock::kWallOffsetNs);
    CHECK(timing.scheduled_ns == static_cast<std::int64_t>(dates.size()) * kPeriod);
    CHECK(timing.missed_deadlines == 0);
    CHECK(timing.wake_up_ns == 0);
    if (dates.size() == 2) clock.step_wall(-kDay);
    if (dates.size() == 3) clock.step_wall(3 * kDay);
    stop = dates.size() == 4;
  });
  CHECK(dates == std::vector{kPeriod, 2 * kPeriod, 3 * kPeriod - kDay, 4 * kPeriod + 2 * kDay});
}

TEST_CASE("a loop told to stop before its first deadline never ticks") {
  test::FakeClock clock;
  const std::atomic<bool> stop{true};
  run_deadline_loop(clock, kPeriod, stop, [](const TickTiming&) noexcept { FAIL_CHECK("ticked"); });
  CHECK(clock.now_ns() <= kPeriod);
}

TEST_CASE("the real clock never wakes a tick before its deadline") {
  MonotonicClock clock;
  std::atomic<bool> stop{false};
  const std::int64_t start_ns = MonotonicClock::now_ns();
  std::int64_t end_ns = 0;
  std::int64_t late_ns = 0;
  int ticks = 0;
  run_deadline_loop(clock, kPeriod, stop, [&](const TickTiming& timing) noexcept {
    end_ns = MonotonicClock::now_ns();
    late_ns = timing.wake_up_ns;
    stop = ++ticks == 50;
  });
  CHECK(end_ns - late_ns - start_ns >= 50 * kPeriod);
}

TEST_CASE("of the missed deadlines, those slept through are told apart from those that work took") {
  test::FakeClock clock;
  std::atomic<bool> stop{false};
  std::vector<TickTiming> seen;
  run_deadline_loop(clock, kPeriod, stop, [&](const TickTiming& timing) noexcept {
    seen.push_back(timing);
    if (seen.size() == 1) {
      clock.advance(kPeriod + 1);       // the second deadline
      clock.oversleep_once(2'500'000);  // the fourth and the fifth
    }
    stop = seen.size() == 2;
  });
  CHECK(seen[1].scheduled_ns == 3 * kPeriod);
  CHECK(seen[1].missed_deadlines == 3);
  CHECK(seen[1].missed_asleep == 2);
}

TEST_CASE("the last microseconds before a deadline are spun through where that is asked for, and no more") {
  test::FakeClock clock;
  std::atomic<bool> stop{false};
  int ticks = 0;
  run_deadline_loop(
      clock, kPeriod, stop,
      [&](const TickTiming& timing) noexcept {
        CHECK(timing.wake_up_ns == 0);
        stop = ++ticks == 100;
      },
      BusyPoll(50'000, BusyPoll::kWindowNs));
  CHECK(clock.now_ns() == 101 * kPeriod);  // the end is seen at the next deadline
  CHECK(clock.spun_ns() == 101 * 50'000);
}

namespace {

constexpr std::int64_t kSpinningTicks = 2000;

// the clock after so many ticks of a loop that may be awake for 85 % of its time
test::FakeClock after_spinning(std::int64_t work_ns, std::int64_t spin_ns) {
  test::FakeClock clock;
  std::atomic<bool> stop{false};
  std::int64_t ticks = 0;
  run_deadline_loop(
      clock, kPeriod, stop,
      [&](const TickTiming&) noexcept {
        clock.advance(work_ns);
        stop = ++ticks == kSpinningTicks;
      },
      BusyPoll(spin_ns, BusyPoll::kWindowNs * 85 / 100));
  return clock;
}

}  // namespace

TEST_CASE("a loop that spins and works is awake for no more of its time than it may") {
  constexpr std::int64_t kWork = 600'000;
  const test::FakeClock clock = after_spinning(kWork, 390'000);
  const double awake =
      static_cast<double>(clock.spun_ns() + kSpinningTicks * kWork) / static_cast<double>(clock.now_ns());
  CHECK(awake <= 0.86);
  CHECK(awake >= 0.80);  // without the limit 0.99, without spinning 0.60
}

TEST_CASE("a wait of microseconds is spun through whole or slept through whole, and what a sleep costs counts") {
  constexpr std::int64_t kShort = 50'000, kWork = 15'000, kWait = kShort - kWork;
  test::FakeClock clock;
  std::atomic<bool> stop{false};
  std::int64_t spun_ns = 0, spun = 0, slept = 0;
  run_deadline_loop(
      clock, kShort, stop,
      [&](const TickTiming&) noexcept {
        const std::int64_t of_wait = clock.spun_ns() - spun_ns;
        spun_ns = clock.spun_ns();
        ++(of_wait == 0 ? slept : spun);
        if (of_wait != 0 && of_wait != kWait) spun = -kSpinningTicks;  // a part of it
        clock.advance(kWork);
        stop = spun + slept == kSpinningTicks || spun < 0;
      },
      BusyPoll(kShort - 1000, BusyPoll::kWindowNs * 85 / 100));
  REQUIRE(spun + slept == kSpinningTicks);
  const auto asleep = static_cast<double>(slept * (kWait - BusyPoll::kSleepCostNs));
  CHECK(asleep >= 0.14 * static_cast<double>(clock.now_ns()));
  CHECK(asleep <= 0.20 * static_cast<double>(clock.now_ns()));
}

TEST_CASE("a loop that may be awake for longer than it is spins through every wait") {
  constexpr std::int64_t kSpin = 300'000;
  CHECK(after_spinning(100'000, kSpin).spun_ns() >=
        (kSpinningTicks - 1) * kSpin);  // at its first wait it has saved nothing yet
}

TEST_CASE("the real clock spins to its time and not beyond it by much more than a sleep") {
  MonotonicClock clock;
  BusyPoll busy_poll(2'000'000, BusyPoll::kWindowNs);
  const std::int64_t until_ns = MonotonicClock::now_ns() + 1'000'000;
  wait_until(clock, until_ns, busy_poll);
  CHECK(MonotonicClock::now_ns() >= until_ns);
}

}  // namespace rigstep::rt
