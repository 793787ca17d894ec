#include "proto/frame.h"

#include <libdeflate.h>
#include <sodium.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace rigstep::wire {
namespace {

constexpr std::int64_t kSpanNs = 10'000'000'000;
constexpr std::int64_t kNsPerDriftNs = 10'000;                 // 100 ppm: two quartz clocks of 50 ppm each
constexpr std::int64_t kLongestClock = std::int64_t{1} << 61;  // so that sums of stamps from outside cannot overflow

static_assert(kTagBytes == crypto_aead_chacha20poly1305_ietf_ABYTES);
static_assert(sizeof(Key) == crypto_aead_chacha20poly1305_ietf_KEYBYTES);

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

using Tag = std::array<std::uint8_t, kTagBytes>;

Tag checksum_of(std::span<const std::byte> bytes) noexcept {
  Tag tag{};
  const std::uint32_t crc = libdeflate_crc32(0, bytes.data(), bytes.size());
  for (std::size_t k = 0; k < sizeof crc; ++k) tag[k] = static_cast<std::uint8_t>(crc >> (8 * k));
  return tag;
}

// Each number is sent once in a direction of a session, and each of those has a key of its own.
std::array<std::uint8_t, crypto_aead_chacha20poly1305_ietf_NPUBBYTES> nonce_of(std::uint64_t number) noexcept {
  std::array<std::uint8_t, crypto_aead_chacha20poly1305_ietf_NPUBBYTES> nonce{};
  for (std::size_t k = 0; k < sizeof number; ++k) nonce[4 + k] = static_cast<std::uint8_t>(number >> (8 * k));
  return nonce;
}

template <class Byte>
auto* bytes_of(std::span<Byte> bytes) noexcept {
  using Unsigned = std::conditional_t<std::is_const_v<Byte>, const std::uint8_t, std::uint8_t>;
  return reinterpret_cast<Unsigned*>(bytes.data());
}

// Turns `body` into what it was before it was encrypted. False: the tag is wrong.
bool decrypt(std::span<const std::byte> header, std::span<std::byte> body, std::span<const std::byte> tag,
             const Key& key) noexcept {
  const auto nonce = nonce_of(get(header, 12));
  return crypto_aead_chacha20poly1305_ietf_decrypt_detached(bytes_of(body), nullptr, bytes_of(body), body.size(),
                                                            bytes_of(tag), bytes_of(header), header.size(),
                                                            nonce.data(), key.data()) == 0;
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
                                                                         "too_frequent",
                                                                         "delayed",
                                                                         "not_permitted",
                                                                         "ended_session"};
  const auto index = static_cast<std::size_t>(status);
  return index < kNames.size() ? kNames[index] : "unknown";
}

DecodeStatus read_header(std::span<const std::byte> datagram, Sender reader, FrameHeader& header) noexcept {
  if (datagram.size() > kMaxDatagram || datagram.size() < kFrameHeaderBytes + kTagBytes)
    return DecodeStatus::wrong_size;
  if (datagram[0] != std::byte{'R'} || datagram[1] != std::byte{'S'}) return DecodeStatus::malformed;
  const auto sender = static_cast<Sender>(datagram[3]);
  if ((sender != Sender::rig && sender != Sender::server) || sender == reader) return DecodeStatus::malformed;
  header = {.sender = sender,
            .session = get(datagram, 4),
            .number = get(datagram, 12),
            .sent_ns = static_cast<std::int64_t>(get(datagram, 20)),
            .echo_sent_ns = static_cast<std::int64_t>(get(datagram, 28)),
            .echo_came_ns = static_cast<std::int64_t>(get(datagram, 36))};
  return DecodeStatus::ok;
}

DecodeStatus open_frame(std::span<std::byte> datagram, Sender reader, const Key* key, Frame& frame) noexcept {
  FrameHeader header;
  if (const auto status = read_header(datagram, reader, header); status != DecodeStatus::ok) return status;
  const auto body = datagram.subspan(kFrameHeaderBytes, datagram.size() - kFrameHeaderBytes - kTagBytes);
  const auto tag = datagram.last(kTagBytes);
  const bool right = key != nullptr ? decrypt(datagram.first(kFrameHeaderBytes), body, tag, *key)
                                    : sodium_memcmp(checksum_of(datagram.first(datagram.size() - kTagBytes)).data(),
                                                    tag.data(), kTagBytes) == 0;
  if (!right) return DecodeStatus::authentication;
  frame = {header, body};
  return datagram[2] == std::byte{kProtocolVersion} ? DecodeStatus::ok : DecodeStatus::bad_version;
}

std::span<const std::byte> write_frame(const FrameHeader& header, std::span<const std::byte> payload,
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
  return buffer.first(size);
}

std::span<const std::byte> add_checksum(std::size_t size, std::span<std::byte, kMaxDatagram> buffer) noexcept {
  const auto tag = checksum_of(buffer.first(size));
  std::memcpy(buffer.data() + size, tag.data(), kTagBytes);
  return buffer.first(size + kTagBytes);
}

std::span<const std::byte> with_version(std::span<const std::byte> frame, std::uint8_t version,
                                        std::span<std::byte, kMaxDatagram> buffer) noexcept {
  assert(frame.data() == buffer.data());
  buffer[2] = std::byte{version};
  return add_checksum(frame.size() - kTagBytes, buffer);
}

std::span<const std::byte> seal_frame(const FrameHeader& header, std::span<const std::byte> payload, const Key* key,
                                      std::span<std::byte, kMaxDatagram> buffer) noexcept {
  const std::size_t size = write_frame(header, payload, buffer).size();
  if (key == nullptr) return add_checksum(size, buffer);
  const auto head = buffer.first(kFrameHeaderBytes);
  const auto body = buffer.subspan(kFrameHeaderBytes, size - kFrameHeaderBytes);
  const auto nonce = nonce_of(header.number);
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(bytes_of(body), bytes_of(buffer.subspan(size)), nullptr,
                                                     bytes_of(body), body.size(), bytes_of(head), head.size(), nullptr,
                                                     nonce.data(), key->data());
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
  const std::int64_t offset_ns = (there_came_ns - sent_ns) / 2 + (there_sent_ns - came_ns) / 2;
  const Exchange exchange{offset_ns, round_trip_ns, came_ns};
  if (const auto known = estimate(came_ns);
      known && std::abs(known->offset_ns - offset_ns) > known->uncertainty_ns + bound_ns(exchange, came_ns)) {
    best_.reset();
    best_before_.reset();
  }
  if (came_ns - span_start_ns_ >= kSpanNs) {
    best_before_ = came_ns - span_start_ns_ < 2 * kSpanNs ? best_ : std::nullopt;
    best_.reset();
    span_start_ns_ = came_ns;
  }
  if (!best_ || bound_ns(exchange, came_ns) <= bound_ns(*best_, came_ns)) best_ = exchange;
}

std::optional<ClockOffset::Estimate> ClockOffset::estimate(std::int64_t now_ns) const noexcept {
  const std::optional<Exchange>* best = &best_;
  if (best_before_ && (!best_ || bound_ns(*best_before_, now_ns) < bound_ns(*best_, now_ns))) best = &best_before_;
  if (!*best) return std::nullopt;
  return Estimate{(*best)->offset_ns, bound_ns(**best, now_ns), (*best)->round_trip_ns};
}

std::optional<std::int64_t> ClockOffset::longest_delay_ns(std::int64_t there_sent_ns,
                                                          std::int64_t now_ns) const noexcept {
  const auto known = estimate(now_ns);
  if (!known || !plausible(there_sent_ns)) return std::nullopt;
  return now_ns - (there_sent_ns - known->offset_ns) + known->uncertainty_ns;
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
