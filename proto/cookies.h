// The cookies of a server: what a Challenge holds, so that a Hello proves that its sender receives at its address. The
// server keeps nothing for who has not sent one back. Each serves once. Owned and used by the network thread; never
// allocates.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "proto/frame.h"

namespace rigstep::wire {

inline constexpr std::size_t kCookieBytes = 16;
inline constexpr std::int64_t kCookieSlotNs = 2'000'000'000;  // a cookie holds for one to two of these
inline constexpr std::size_t kMostUsedCookies = 1200;         // a slot

using Cookie = std::array<std::uint8_t, kCookieBytes>;

class Cookies {
 public:
  explicit Cookies(std::int64_t now_ns) noexcept;

  // address: bytes that stand for where the answer goes, address and port.
  Cookie issue(std::span<const std::byte> address, std::uint64_t nonce, std::int64_t now_ns) noexcept;

  enum class Check { wrong, good, used };
  Check check(std::span<const std::uint8_t> cookie, std::span<const std::byte> address, std::uint64_t nonce,
              std::int64_t now_ns) noexcept;
  // After Check::good. False: as many have been used as a slot can tell, and this one must not serve.
  bool use(std::span<const std::uint8_t, kCookieBytes> cookie, std::int64_t now_ns) noexcept;

 private:
  struct Slot {
    Key secret{};
    std::array<std::uint64_t, kMostUsedCookies> used{};
    std::size_t used_count = 0;
  };
  void turn(std::int64_t now_ns) noexcept;
  static void begin(Slot& slot) noexcept;
  static Cookie make(const Key& secret, std::span<const std::byte> address, std::uint64_t nonce) noexcept;

  std::array<Slot, 2> slots_;
  std::size_t newest_ = 0;
  std::int64_t since_ns_;
};

}  // namespace rigstep::wire
