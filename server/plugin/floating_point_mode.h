// The floating-point mode that decides bits, against whatever mode the host has set. In the loop.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace rigstep::plugin {

// As long as it lives: round to nearest, no traps, denormal numbers flushed to zero, as in
// rt::set_floating_point_mode(). Then the host's mode again, its flags of past exceptions included.
class FloatingPointMode {
 public:
#if defined(__x86_64__)
  FloatingPointMode() noexcept : before_(_mm_getcsr()) { _mm_setcsr(0x9fc0U); }
  ~FloatingPointMode() { _mm_setcsr(before_); }
#elif defined(__aarch64__)
  FloatingPointMode() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{1} << 24));
  }
  ~FloatingPointMode() { asm volatile("msr fpcr, %0" : : "r"(before_)); }
#endif
  FloatingPointMode(const FloatingPointMode&) = delete;
  FloatingPointMode& operator=(const FloatingPointMode&) = delete;

 private:
#if defined(__x86_64__)
  unsigned before_;
#else
  std::uint64_t before_ = 0;
#endif
};

}  // namespace rigstep::plugin
