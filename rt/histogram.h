// Distribution of a non-negative quantity (nanoseconds, steps) over log-linear buckets fixed at compile time: exact
// below 256, within 1/128 up to 17 s, everything above in the last bucket.
// Owned by a session. record() belongs to one thread (the loop); the rest may be called live from any thread and
// does not disturb it: what is read is a moment's view, each number right on its own.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rigstep::rt {

class Histogram {
 public:
  // Negative values count as 0. times: as often.
  void record(std::int64_t value, std::uint64_t times = 1) noexcept;

  std::uint64_t count() const noexcept;
  std::uint64_t max() const noexcept;  // exact
  // Smallest value that at least `percent` of the recorded ones do not exceed, rounded up to its bucket's upper edge
  // but never above max(). 0 if nothing was recorded.
  std::uint64_t percentile(double percent) const noexcept;

  // Counts by quarters of octaves. Quarter q begins at 32 q, from q = 4 on at 2^(q / 4 + 6) (1 + (q mod 4) / 4), in
  // whole numbers.
  static constexpr int kQuarters = 112;
  std::array<std::uint64_t, kQuarters> quarters() const noexcept;

 private:
  static constexpr int kValueBits = 34;
  static constexpr int kSubBits = 7;  // 128 buckets per octave
  static constexpr std::size_t kBuckets = static_cast<std::size_t>(kValueBits - kSubBits + 1) << kSubBits;
  static constexpr int kInQuarter = 32;  // buckets
  static_assert(kBuckets == static_cast<std::size_t>(kQuarters) * kInQuarter);

  static std::size_t bucket_of(std::uint64_t value) noexcept;
  static std::uint64_t upper_edge(std::size_t bucket) noexcept;

  std::array<std::atomic<std::uint64_t>, kBuckets> count_;  // zeroed by their constructor
  std::atomic<std::uint64_t> max_{0};
};

// Without coordinated omission: records `latency_ns` of a tick, and for every deadline that was skipped the latency it
// would have had, from its own instant until what stood for it. `before` of them lie one, two, ... periods before the
// tick's deadline, `asleep` likewise after it. Of very many, every n-th is entered n times, so that the time it takes
// is bounded.
void record_with_skipped(Histogram& histogram, std::int64_t latency_ns, std::int64_t period_ns, std::uint64_t before,
                         std::uint64_t asleep) noexcept;

}  // namespace rigstep::rt
