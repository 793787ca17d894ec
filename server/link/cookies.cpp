#include "server/link/cookies.h"

#include <sodium.h>

#include <string>

#include "server/link/participants.h"

namespace rigstep::server {
namespace {

Cookies::Cookie cookie_of(const UdpAddress& sender, const wire::RigRequest& request, const wire::Key& secret) {
  const bool hello = request.content == wire::RigToServer::kHello;
  const std::string text = to_text(sender) + " " + std::to_string(request.nonce) + " " +
                           std::to_string(request.content) + (hello ? "" : " " + std::to_string(request.number));
  Cookies::Cookie cookie{};
  crypto_generichash(cookie.data(), cookie.size(), reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                     secret.data(), secret.size());
  return cookie;
}

}  // namespace

Cookies::Cookie Cookies::make(const UdpAddress& sender, const wire::RigRequest& request) const {
  return cookie_of(sender, request, secret_);
}

bool Cookies::fits(const UdpAddress& sender, const wire::RigRequest& request) const {
  const auto fits_to = [&](const wire::Key& secret) {
    const Cookie cookie = cookie_of(sender, request, secret);
    return request.cookie.size() == cookie.size() &&
           sodium_memcmp(request.cookie.data(), cookie.data(), cookie.size()) == 0;
  };
  return fits_to(secret_) || fits_to(last_secret_);
}

void Cookies::renew() {
  randombytes_buf(secret_.data(), secret_.size());
  randombytes_buf(last_secret_.data(), last_secret_.size());
}

void Cookies::age(std::int64_t now_ns) {
  if (now_ns - secret_since_ns_ < kCookieAgeNs) return;
  const bool both = now_ns - secret_since_ns_ >= 2 * kCookieAgeNs;
  last_secret_ = secret_;
  randombytes_buf(secret_.data(), secret_.size());
  if (both) randombytes_buf(last_secret_.data(), last_secret_.size());
  secret_since_ns_ = now_ns;
}

}  // namespace rigstep::server
