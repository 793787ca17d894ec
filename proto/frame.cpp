#include "proto/frame.h"

#include <libdeflate.h>
#include <sodium.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace rigstep::wire {
namespace {

constexpr std::int64_t kSpanNs = 10'000'000'000;
constexpr std::int64_t kNsPerDriftNs = 10'000;                 // 100 ppm: two quartz clocks of 50 ppm each
constexpr std::int64_t kLongestClock = std::int64_t{1} << 61;  // so that sums of stamps from outside cannot overflow

static_assert(kTagBytes >= crypto_generichash_BYTES_MIN);
static_assert(sizeof(Key) == crypto_generichash_KEYBYTES);

template <class Integer>
void put(std::span<std::byte> to, std::size_t offset, Integer value) noexcept {
  const auto bits = static_cast<std::uint64_t>(value);
  for (std::size_t k = 0; k < 8; ++k) to[offset + k] = static_cast<std::byte>(bits >> (8 * k));
}

std::uint64_t get(std::span<const std::byte> from, std::size_t offset) noexcept {
  std::uint64_t bits = 0;
  for (std::size_t k = 0; k < 8; ++k) bits |= std::to_integer<std::uint64_t>(from[offset + k]) << (8 * k);
  return bits;
}

std::array<std::uint8_t, kTagBytes> tag_of(std::span<const std::byte> bytes, const std::optional<Key>& key) noexcept {
  std::array<std::uint8_t, kTagBytes> tag{};
  if (!key) {
    const std::uint32_t crc = libdeflate_crc32(0, bytes.data(), bytes.size());
    for (std::size_t k = 0; k < sizeof crc; ++k) tag[k] = static_cast<std::uint8_t>(crc >> (8 * k));
    return tag;
  }
  // fails only for sizes that the assertions above rule out
  crypto_generichash(tag.data(), tag.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(),
                     key->data(), key->size());
  return tag;
}

bool plausible(std::int64_t time_ns) noexcept { return time_ns > -kLongestClock && time_ns < kLongestClock; }

}  // namespace

const char* to_string(DecodeStatus status) noexcept {
  static constexpr std::array<const char*, kDecodeStatusCount> kNames = {"ok",
                                                                         "wrong_size",
                                                                         "malformed",
                                                                         "authentication",
                                                                         "bad_version",
                                                                         "unknown_source",
                                                                         "wrong_session",
                                                                         "replayed",
                                                                         "wrong_mechanism",
                                                                         "channel_count",
                                                                         "not_finite",
                                                                         "old_sequence",
                                                                         "sequence",
                                                                         "not_in_control",
                                                                         "control_taken",
                                                                         "full",
                                                                         "unproven_address",
                                                                         "unexpected_content",
                                                                         "too_frequent"};
  const auto index = static_cast<std::size_t>(status);
  return index < kNames.size() ? kNames[index] : "unknown";
}

DecodeStatus open_frame(std::span<const std::byte> datagram, Sender reader, const std::optional<Key>& key,
                        Frame& frame) noexcept {
  if (datagram.size() > kMaxDatagram || datagram.size() < kFrameHeaderBytes + kTagBytes)
    return DecodeStatus::wrong_size;
  if (datagram[0] != std::byte{'R'} || datagram[1] != std::byte{'S'}) return DecodeStatus::malformed;
  const auto body = datagram.first(datagram.size() - kTagBytes);
  const auto tag = tag_of(body, key);
  if (sodium_memcmp(tag.data(), datagram.last(kTagBytes).data(), kTagBytes) != 0) return DecodeStatus::authentication;
  const auto sender = static_cast<Sender>(datagram[3]);
  if ((sender != Sender::rig && sender != Sender::server) || sender == reader) return DecodeStatus::malformed;
  frame.header = {.sender = sender,
                  .session = get(body, 4),
                  .number = get(body, 12),
                  .sent_ns = static_cast<std::int64_t>(get(body, 20)),
                  .echo_sent_ns = static_cast<std::int64_t>(get(body, 28)),
                  .echo_came_ns = static_cast<std::int64_t>(get(body, 36))};
  frame.payload = body.subspan(kFrameHeaderBytes);
  return datagram[2] == std::byte{kProtocolVersion} ? DecodeStatus::ok : DecodeStatus::bad_version;
}

std::span<const std::byte> seal_frame(const FrameHeader& header, std::span<const std::byte> payload,
                                      const std::optional<Key>& key,
                                      std::span<std::byte, kMaxDatagram> buffer) noexcept {
  assert(payload.size() <= kMaxPayload);
  const std::size_t size = kFrameHeaderBytes + std::min(payload.size(), kMaxPayload);
  buffer[0] = std::byte{'R'};
  buffer[1] = std::byte{'S'};
  buffer[2] = std::byte{kProtocolVersion};
  buffer[3] = static_cast<std::byte>(header.sender);
  put(buffer, 4, header.session);
  put(buffer, 12, header.number);
  put(buffer, 20, header.sent_ns);
  put(buffer, 28, header.echo_sent_ns);
  put(buffer, 36, header.echo_came_ns);
  std::copy_n(payload.begin(), size - kFrameHeaderBytes, buffer.begin() + kFrameHeaderBytes);
  const auto tag = tag_of(buffer.first(size), key);
  std::memcpy(buffer.data() + size, tag.data(), kTagBytes);
  return buffer.first(size + kTagBytes);
}

bool ReplayWindow::take(std::uint64_t number) noexcept {
  if (number == 0 || number + kWindow <= newest_ || number + kWindow < number) return false;
  if (number > newest_) {
    if (number - newest_ >= kWindow) taken_.reset();
    // what was skipped may still come
    else
      for (std::uint64_t skipped = newest_ + 1; skipped < number; ++skipped) taken_.reset(skipped % kWindow);
    newest_ = number;
  } else if (taken_.test(number % kWindow)) {
    return false;
  }
  taken_.set(number % kWindow);
  return true;
}

std::int64_t ClockOffset::bound_ns(const Exchange& exchange, std::int64_t now_ns) noexcept {
  return (exchange.round_trip_ns + 1) / 2 + (now_ns - exchange.at_ns) / kNsPerDriftNs;
}

void ClockOffset::add(std::int64_t sent_ns, std::int64_t there_came_ns, std::int64_t there_sent_ns,
                      std::int64_t came_ns) noexcept {
  if (!plausible(sent_ns) || !plausible(there_came_ns) || !plausible(there_sent_ns) || !plausible(came_ns)) return;
  const std::int64_t round_trip_ns = (came_ns - sent_ns) - (there_sent_ns - there_came_ns);
  if (sent_ns > came_ns || there_came_ns > there_sent_ns || round_trip_ns < 0) return;
  if (came_ns - span_start_ns_ >= kSpanNs) {
    best_before_ = came_ns - span_start_ns_ < 2 * kSpanNs ? best_ : std::nullopt;
    best_.reset();
    span_start_ns_ = came_ns;
  }
  const std::int64_t offset_ns = (there_came_ns - sent_ns) / 2 + (there_sent_ns - came_ns) / 2;
  const Exchange exchange{offset_ns, round_trip_ns, came_ns};
  if (!best_ || bound_ns(exchange, came_ns) <= bound_ns(*best_, came_ns)) best_ = exchange;
}

std::optional<ClockOffset::Estimate> ClockOffset::estimate(std::int64_t now_ns) const noexcept {
  const std::optional<Exchange>* best = &best_;
  if (best_before_ && (!best_ || bound_ns(*best_before_, now_ns) < bound_ns(*best_, now_ns))) best = &best_before_;
  if (!*best) return std::nullopt;
  return Estimate{(*best)->offset_ns, bound_ns(**best, now_ns), (*best)->round_trip_ns};
}

FrameHeader SessionEnd::next_header(std::int64_t now_ns) noexcept {
  return {.sender = self_,
          .session = session_,
          .number = ++sent_,
          .sent_ns = now_ns,
          .echo_sent_ns = echo_sent_ns_,
          .echo_came_ns = echo_came_ns_};
}

DecodeStatus SessionEnd::accept(const FrameHeader& header, std::int64_t now_ns) noexcept {
  if (header.session != session_) return DecodeStatus::wrong_session;
  if (!window_.take(header.number)) return DecodeStatus::replayed;
  if (header.number > newest_) {
    newest_ = header.number;
    echo_sent_ns_ = header.sent_ns;
    echo_came_ns_ = now_ns;
  }
  if (header.echo_sent_ns != 0) clock_.add(header.echo_sent_ns, header.echo_came_ns, header.sent_ns, now_ns);
  return DecodeStatus::ok;
}

}  // namespace rigstep::wire
