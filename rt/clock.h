// Where the loop gets its time from: a monotonic clock to keep deadlines by, and the wall clock to date records with.
// Tests put a fake one in its place. May be called in the loop; reading is no system call (vDSO), sleeping is one.
#pragma once

#include <time.h>

#include <cerrno>
#include <concepts>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace rigstep::rt {

template <class C>
concept Clock = requires(C& clock, std::int64_t time_ns) {
  { clock.now_ns() }
  noexcept->std::same_as<std::int64_t>;  // never used as a date
  { clock.wall_ns() }
  noexcept->std::same_as<std::int64_t>;  // [ns since 1970], may jump
  { clock.sleep_until(time_ns) }
  noexcept;  // of now_ns(); returns at once if that is past
  { clock.spin_until(time_ns) }
  noexcept;  // the same without giving the core away
};

// Tells the processor that the calling thread spins.
inline void relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline constexpr std::int64_t kSecondNs = 1'000'000'000;

// A clock of the system [ns].
inline std::int64_t read_clock_ns(clockid_t id) noexcept {
  timespec time{};
  ::clock_gettime(id, &time);
  return time.tv_sec * kSecondNs + time.tv_nsec;
}

struct MonotonicClock {
  static std::int64_t now_ns() noexcept { return read_clock_ns(CLOCK_MONOTONIC); }
  static std::int64_t wall_ns() noexcept { return read_clock_ns(CLOCK_REALTIME); }

  static void sleep_until(std::int64_t time_ns) noexcept {
    const timespec until{.tv_sec = time_ns / kSecondNs, .tv_nsec = time_ns % kSecondNs};
    // a signal must not make a deadline early
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
  }

  static void spin_until(std::int64_t time_ns) noexcept {
    while (now_ns() < time_ns) relax();
  }
};

// How a tick came about; what drives the cycle fills it in.
struct TickTiming {
  std::uint64_t missed_deadlines = 0;  // skipped since the last tick
  std::uint64_t missed_asleep = 0;     // of these, those after the tick's own: it woke up so late
  std::int64_t scheduled_ns = 0;       // the deadline, or in lockstep the arrival of the datagram; monotonic [ns]
  std::int64_t wake_up_ns = 0;         // from there to the start of the tick [ns]
  std::int64_t log_time_ns = 0;        // wall clock at the start of the tick [ns since 1970]
};

}  // namespace rigstep::rt
