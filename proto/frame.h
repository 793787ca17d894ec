// The frame around every datagram: version, session, number, both sides' clocks, and the tag that proves or protects
// it. Layout and order of checks: wire.proto. A frame is checked before its message is parsed.
//
// In a keyed session a frame is encrypted and proven by ChaCha20-Poly1305, some 2 us for a full datagram; else it has a
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

inline constexpr std::uint8_t kProtocolVersion = 3;
inline constexpr std::size_t kMaxDatagram = 1200;  // [bytes]: one Ethernet frame, never a fragment
inline constexpr std::size_t kFrameHeaderBytes = 44;
inline constexpr std::size_t kTagBytes = 16;
inline constexpr std::size_t kMaxPayload = kMaxDatagram - kFrameHeaderBytes - kTagBytes;

// What a datagram was refused for.
enum class DecodeStatus : std::uint8_t {
  ok,
  wrong_size,          // more than kMaxDatagram, less than a frame, or a request that is not filled up
  malformed,           // no frame, or no message of wire.proto in it
  authentication,      // the tag or the proof is wrong: damaged, no key, or another one
  bad_version,         // another protocol version
  unknown_source,      // from an address without a session here
  wrong_session,       // of another session of that address
  replayed,            // a datagram or cookie that came before, or one too old to tell
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
  delayed,             // inputs that were on their way for too long
  not_permitted,       // the role of the key, or of the session, is another one
  ended_session,       // of a session that has ended
};
inline constexpr std::size_t kDecodeStatusCount = 22;

const char* to_string(DecodeStatus status) noexcept;

using Key = std::array<std::uint8_t, 32>;  // of a participant, see key_file.h, or of a session, see handshake.h

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

// The header of a datagram of the right size and form that the other side of `reader` may have sent. Nothing in it is
// proven: it says with which key open_frame() is to be called.
DecodeStatus read_header(std::span<const std::byte> datagram, Sender reader, FrameHeader& header) noexcept;

// Checks size, form, tag and version, and that it was sent by the other side of `reader`. `frame` is set when the tag
// is right, also for bad_version. key: of the session for what the other side sends, and the payload is decrypted in
// its place; null for the checksum only.
DecodeStatus open_frame(std::span<std::byte> datagram, Sender reader, const Key* key, Frame& frame) noexcept;

// Writes header, payload and tag to `buffer`. payload: at most kMaxPayload bytes. key: of the session for what this
// side sends; null for the checksum only.
std::span<const std::byte> seal_frame(const FrameHeader& header, std::span<const std::byte> payload, const Key* key,
                                      std::span<std::byte, kMaxDatagram> buffer) noexcept;

// The two halves of sealing without a key: what is between them is covered by the checksum.
std::span<const std::byte> write_frame(const FrameHeader& header, std::span<const std::byte> payload,
                                       std::span<std::byte, kMaxDatagram> buffer) noexcept;
std::span<const std::byte> add_checksum(std::size_t size, std::span<std::byte, kMaxDatagram> buffer) noexcept;
// As another version writes it, for who speaks only that: the version byte is changed, and the checksum with it.
std::span<const std::byte> with_version(std::span<const std::byte> frame, std::uint8_t version,
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
  // Impossible ones are left out. One that no delay explains shows that a clock was set: what came before is forgotten.
  void add(std::int64_t sent_ns, std::int64_t there_came_ns, std::int64_t there_sent_ns, std::int64_t came_ns) noexcept;
  std::optional<Estimate> estimate(std::int64_t now_ns) const noexcept;
  // The longest that a datagram with this stamp of the other side can have taken until now, whoever held it back; none
  // before the first estimate.
  std::optional<std::int64_t> longest_delay_ns(std::int64_t there_sent_ns, std::int64_t now_ns) const noexcept;

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
