// How many deadlines may be missed before stepping stops: what is stepped then has nothing to do with the time on the
// wall any more. Owned by the cycle and used by the stepping thread; allocates nothing.
#pragma once

#include <cstdint>

namespace rigstep::rt {

// 0: no limit.
struct MissLimits {
  std::uint32_t consecutive = 0;  // skipped one after the other
  std::uint32_t per_second = 0;   // within a second of deadlines, counted from second to second
};

class MissGuard {
 public:
  MissGuard(const MissLimits& limits, std::int64_t period_ns) noexcept;

  // Of every tick, with the deadlines skipped before it. True: as many as a limit says.
  bool has_enough(std::uint64_t missed) noexcept;

 private:
  MissLimits limits_;
  std::uint64_t deadlines_per_second_;
  std::uint64_t deadlines_ = 0;  // of this second so far, and how many of them were missed
  std::uint64_t missed_ = 0;
};

}  // namespace rigstep::rt
