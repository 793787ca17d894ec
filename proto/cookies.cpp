#include "proto/cookies.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace rigstep::wire {
namespace {

// Cookies are hashes: their first bytes tell them apart.
std::uint64_t mark_of(std::span<const std::uint8_t> cookie) noexcept {
  std::uint64_t mark = 0;
  std::memcpy(&mark, cookie.data(), sizeof mark);
  return mark;
}

}  // namespace

Cookies::Cookies(std::int64_t now_ns) noexcept : since_ns_(now_ns) {
  for (Slot& slot : slots_) begin(slot);
}

void Cookies::begin(Slot& slot) noexcept {
  randombytes_buf(slot.secret.data(), slot.secret.size());
  slot.used_count = 0;
}

// What was held back on its way cannot be let go hours later.
void Cookies::turn(std::int64_t now_ns) noexcept {
  const std::int64_t age_ns = now_ns - since_ns_;
  if (age_ns < kCookieSlotNs) return;
  if (age_ns >= 2 * kCookieSlotNs) begin(slots_[newest_]);
  newest_ = 1 - newest_;
  begin(slots_[newest_]);
  since_ns_ = now_ns;
}

Cookie Cookies::make(const Key& secret, std::span<const std::byte> address, std::uint64_t nonce) noexcept {
  std::array<std::uint8_t, 8> number{};
  for (std::size_t k = 0; k < number.size(); ++k) number[k] = static_cast<std::uint8_t>(nonce >> (8 * k));
  Cookie cookie{};
  crypto_generichash_state state;
  crypto_generichash_init(&state, secret.data(), secret.size(), cookie.size());
  crypto_generichash_update(&state, reinterpret_cast<const std::uint8_t*>(address.data()), address.size());
  crypto_generichash_update(&state, number.data(), number.size());
  crypto_generichash_final(&state, cookie.data(), cookie.size());
  return cookie;
}

Cookie Cookies::issue(std::span<const std::byte> address, std::uint64_t nonce, std::int64_t now_ns) noexcept {
  turn(now_ns);
  return make(slots_[newest_].secret, address, nonce);
}

Cookies::Check Cookies::check(std::span<const std::uint8_t> cookie, std::span<const std::byte> address,
                              std::uint64_t nonce, std::int64_t now_ns) noexcept {
  turn(now_ns);
  if (cookie.size() != kCookieBytes) return Check::wrong;
  for (const Slot& slot : slots_) {
    if (sodium_memcmp(make(slot.secret, address, nonce).data(), cookie.data(), kCookieBytes) != 0) continue;
    const bool has_served = std::any_of(slots_.begin(), slots_.end(), [&](const Slot& each) {
      const auto used = std::span(each.used).first(each.used_count);
      return std::find(used.begin(), used.end(), mark_of(cookie)) != used.end();
    });
    return has_served ? Check::used : Check::good;
  }
  return Check::wrong;
}

// In the newest slot, which lives at least as long as the cookie.
bool Cookies::use(std::span<const std::uint8_t, kCookieBytes> cookie, std::int64_t now_ns) noexcept {
  turn(now_ns);
  Slot& slot = slots_[newest_];
  if (slot.used_count == slot.used.size()) return false;
  slot.used[slot.used_count++] = mark_of(cookie);
  return true;
}

}  // namespace rigstep::wire
