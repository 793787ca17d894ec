// Cookies: what only somebody who receives at an address can know. A request with a cookie proves its address.
// Owned by the requests outside a session and used by their thread.
#pragma once

#include <array>
#include <cstdint>

#include "proto/codec.h"
#include "proto/frame.h"
#include "server/link/udp_sockets.h"

namespace rigstep::server {

inline constexpr std::int64_t kCookieAgeNs = 2'000'000'000;  // a cookie is worth something for one to two of these

class Cookies {
 public:
  using Cookie = std::array<std::uint8_t, wire::kCookieBytes>;

  Cookies() { renew(); }
  // For this request of this sender and no other.
  Cookie make(const UdpAddress& sender, const wire::RigRequest& request) const;
  bool fits(const UdpAddress& sender, const wire::RigRequest& request) const;
  // A used cookie is worth nothing any more.
  void renew();
  // Nor is an old one: what was held back on its way cannot be let go hours later.
  void age(std::int64_t now_ns);

 private:
  wire::Key secret_{}, last_secret_{};  // renewed whenever a cookie was used, and with time
  std::int64_t secret_since_ns_ = 0;
};

}  // namespace rigstep::server
