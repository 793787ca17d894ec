#include "rt/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rigstep::rt {

std::size_t Histogram::bucket_of(std::uint64_t value) noexcept {
  const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - kSubBits - 1);
  // for shift > 0, value >> shift lies in [128, 255]: each octave goes on where the one below ended
  const std::uint64_t bucket = (static_cast<std::uint64_t>(shift) << kSubBits) + (value >> shift);
  return std::min<std::size_t>(bucket, kBuckets - 1);
}

std::uint64_t Histogram::upper_edge(std::size_t bucket) noexcept {
  const int shift = std::max(0, static_cast<int>(bucket >> kSubBits) - 1);
  const std::uint64_t leading = bucket - (static_cast<std::size_t>(shift) << kSubBits);
  return ((leading + 1) << shift) - 1;
}

void Histogram::record(std::int64_t value, std::uint64_t times) noexcept {
  const std::uint64_t clamped = value < 0 ? 0 : static_cast<std::uint64_t>(value);
  // one writer: load and store instead of a locked increment
  if (clamped > max_.load(std::memory_order_relaxed)) max_.store(clamped, std::memory_order_relaxed);
  std::atomic<std::uint64_t>& count = count_[bucket_of(clamped)];
  count.store(count.load(std::memory_order_relaxed) + times, std::memory_order_relaxed);
}

std::uint64_t Histogram::count() const noexcept {
  std::uint64_t total = 0;
  for (const auto& count : count_) total += count.load(std::memory_order_relaxed);
  return total;
}

std::uint64_t Histogram::max() const noexcept { return max_.load(std::memory_order_relaxed); }

std::uint64_t Histogram::percentile(double percent) const noexcept {
  const double requested = std::ceil(static_cast<double>(count()) * std::clamp(percent, 0.0, 100.0) / 100.0);
  const std::uint64_t rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(requested));
  std::uint64_t seen = 0;
  // the last bucket has no upper edge of its own
  for (std::size_t bucket = 0; bucket + 1 < kBuckets; ++bucket) {
    seen += count_[bucket].load(std::memory_order_relaxed);
    if (seen >= rank) return std::min(upper_edge(bucket), max());
  }
  return max();
}

std::array<std::uint64_t, Histogram::kQuarters> Histogram::quarters() const noexcept {
  std::array<std::uint64_t, kQuarters> counts{};
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket)
    counts[bucket / kInQuarter] += count_[bucket].load(std::memory_order_relaxed);
  return counts;
}

void record_with_skipped(Histogram& histogram, std::int64_t latency_ns, std::int64_t period_ns, std::uint64_t before,
                         std::uint64_t asleep) noexcept {
  constexpr std::uint64_t kMostEntries = 256;
  histogram.record(latency_ns);
  const auto skipped = [&](std::uint64_t deadlines, std::int64_t signed_period_ns) {
    const std::uint64_t stride = (deadlines + kMostEntries - 1) / kMostEntries;
    for (std::uint64_t k = 1; k <= deadlines; k += stride)
      histogram.record(latency_ns + static_cast<std::int64_t>(k) * signed_period_ns,
                       std::min(stride, deadlines - k + 1));
  };
  skipped(before, period_ns);
  skipped(asleep, -period_ns);
}

}  // namespace rigstep::rt
