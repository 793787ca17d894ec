#include "rt/miss_guard.h"

#include <algorithm>

namespace rigstep::rt {

MissGuard::MissGuard(const MissLimits& limits, std::int64_t period_ns) noexcept
    : limits_(limits),
      deadlines_per_second_(static_cast<std::uint64_t>(std::max<std::int64_t>(1, 1'000'000'000 / period_ns))) {}

bool MissGuard::has_enough(std::uint64_t missed) noexcept {
  deadlines_ += missed + 1;
  missed_ += missed;
  const bool enough = (limits_.consecutive != 0 && missed >= limits_.consecutive) ||
                      (limits_.per_second != 0 && missed_ >= limits_.per_second);
  if (enough || deadlines_ >= deadlines_per_second_) deadlines_ = missed_ = 0;
  return enough;
}

}  // namespace rigstep::rt
