// The frame around every datagram: version, session, number, both sides' clocks, and the tag that proves or protects
// it. Layout and order of checks: wire.proto. A frame is checked before its message is parsed.
//
// The tag is a keyed BLAKE2b, some 3 us for a full datagram, less than 1 us for a short one; without a key it is a
// CRC-32, a few hundredths of that, which a rig can be written with in any language.
// Plain values and functions without memory of their own; they do not allocate.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rigstep::wire {

inline constexpr std::uint8_t kProtocolVersion = 2;
inline constexpr std::size_t kMaxDatagram = 1200;  // [bytes]: one Ethernet frame, never a fragment
inline constexpr std::size_t kFrameHeaderBytes = 44;
inline constexpr std::size_t kTagBytes = 16;
inline constexpr std::size_t kMaxPayload = kMaxDatagram - kFrameHeaderBytes - kTagBytes;

// What a datagram was refused for.
enum class DecodeStatus : std::uint8_t {
  ok,
  wrong_size,          // more than kMaxDatagram, less than a frame, or a request that is not filled up
  malformed,           // no frame, or no message of wire.proto in it
  authentication,      // the tag is wrong: damaged, no key, or another one
  bad_version,         // another protocol version
  unknown_source,      // from an address without a session here
  wrong_session,       // of another session of that address
  replayed,            // a datagram that came before, or one too old to tell
  wrong_mechanism,     // for another mechanism, or for a changed one
  channel_count,       // not one value per channel
  not_finite,          // a value is NaN or infinite
  old_sequence,        // inputs not newer than what was accepted before
  sequence,            // lockstep: inputs for neither the last step nor the one after it
  not_in_control,      // inputs of an observer
  control_taken,       // Hello of a second controller
  full,                // Hello of one observer too many
  unproven_address,    // a cookie that does not hold any more
  unexpected_content,  // nothing in it, or not what belongs here
  too_frequent,        // a request without a session, beyond those that are answered
};
inline constexpr std::size_t kDecodeStatusCount = 19;

const char* to_string(DecodeStatus status) noexcept;

using Key = std::array<std::uint8_t, 32>;  // shared by both sides; see key_file.h

enum class Sender : std::uint8_t { rig = 'r', server = 's' };

struct FrameHeader {
  Sender sender = Sender::rig;
  std::uint64_t session = 0;      // 0: outside a session
  std::uint64_t number = 0;       // of this datagram in its session, from 1
  std::int64_t sent_ns = 0;       // the sender's clock
  std::int64_t echo_sent_ns = 0;  // the other side's clock, from the newest datagram that came from there; 0: none
  std::int64_t echo_came_ns = 0;  // the sender's clock when that one came
};

struct Frame {
  FrameHeader header;
  std::span<const std::byte> payload;  // into the datagram
};

// Checks size, form, tag and version, and that it was sent by the other side of `reader`. `frame` is set when the tag
// is right, also for bad_version. key: none for the checksum only.
DecodeStatus open_frame(std::span<const std::byte> datagram, Sender reader, const std::optional<Key>& key,
                        Frame& frame) noexcept;

// Writes header, payload and tag to `buffer`. payload: at most kMaxPayload bytes.
std::span<const std::byte> seal_frame(const FrameHeader& header, std::span<const std::byte> payload,
                                      const std::optional<Key>& key,
                                      std::span<std::byte, kMaxDatagram> buffer) noexcept;

// Lets each number through once, and none that is older than the newest by the window or more.
class ReplayWindow {
 public:
  bool take(std::uint64_t number) noexcept;

 private:
  static constexpr std::uint64_t kWindow = 1024;  // a second at 1 kHz
  std::uint64_t newest_ = 0;
  std::bitset<kWindow> taken_;  // by number modulo the window
};

// The other side's clock against one's own. Of the exchanges of the last ten to twenty seconds the one with the
// shortest round trip counts: the offset is known within half of it, whatever the ways there and back are.
class ClockOffset {
 public:
  struct Estimate {
    std::int64_t offset_ns = 0;       // other minus own
    std::int64_t uncertainty_ns = 0;  // half the round trip, and the drift since
    std::int64_t round_trip_ns = 0;   // without the other side's time between receiving and sending
  };

  // Four stamps of one exchange: sent and came on one's own clock, there_came and there_sent on the other side's.
  // Impossible ones are left out.
  void add(std::int64_t sent_ns, std::int64_t there_came_ns, std::int64_t there_sent_ns, std::int64_t came_ns) noexcept;
  std::optional<Estimate> estimate(std::int64_t now_ns) const noexcept;

 private:
  struct Exchange {
    std::int64_t offset_ns, round_trip_ns, at_ns;
  };
  static std::int64_t bound_ns(const Exchange& exchange, std::int64_t now_ns) noexcept;

  std::optional<Exchange> best_, best_before_;  // of this span of ten seconds and the one before
  std::int64_t span_start_ns_ = 0;
};

// One side of a session: numbers and stamps what goes out, checks what comes in.
class SessionEnd {
 public:
  SessionEnd() = default;
  SessionEnd(Sender self, std::uint64_t session) : self_(self), session_(session) {}

  std::uint64_t session() const noexcept { return session_; }
  FrameHeader next_header(std::int64_t now_ns) noexcept;
  // ok, wrong_session or replayed. now_ns: when it came.
  DecodeStatus accept(const FrameHeader& header, std::int64_t now_ns) noexcept;
  const ClockOffset& clock() const noexcept { return clock_; }

 private:
  Sender self_ = Sender::rig;
  std::uint64_t session_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t newest_ = 0;
  std::int64_t echo_sent_ns_ = 0;
  std::int64_t echo_came_ns_ = 0;
  ReplayWindow window_;
  ClockOffset clock_;
};

}  // namespace rigstep::wire
