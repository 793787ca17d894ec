// Messages of wire.proto <-> Inputs and Snapshot, for both ends of the link: ServerCodec for Rigstep, RigCodec for a
// rig. What they read and write is the payload of a frame, at most kMaxPayload bytes; frame.h puts the frame around it.
// Each codec is owned and used by one thread. It keeps its messages and its memory from one datagram to the next, so
// that InputFrame and StateFrame cost no allocation after the first few. Contract of the bytes: wire.proto.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "core/mechanism/signals.h"
#include "proto/frame.h"
#include "proto/printable.h"
#include "proto/wire.pb.h"

namespace rigstep::wire {

inline constexpr std::size_t kMaxTextBytes = 600;  // of a Refusal or Goodbye
inline constexpr std::size_t kCookieBytes = 16;

// Parts of the time-out: after so long a silence a restarted rig may take its own place, and so often a controller says
// something, that it may lose one heartbeat before.
inline constexpr std::int64_t kRestartShare = 10, kHeartbeatShare = 25;
static_assert(kHeartbeatShare >= 2 * kRestartShare);

// Memory of the message decoded last. Kept in a block of its own, so that a new datagram reuses it.
class DecodeArena {
 public:
  // An empty message that is valid until the next call.
  template <class Message>
  Message* fresh() {
    arena_.Reset();
    return google::protobuf::Arena::CreateMessage<Message>(&arena_);
  }

 private:
  alignas(16) std::array<char, 16384> block_;
  google::protobuf::Arena arena_{block_.data(), block_.size()};
};

// A message from a rig, as far as it could be read.
struct RigRequest {
  RigToServer::ContentCase content = RigToServer::CONTENT_NOT_SET;  // says which fields below count
  InputSample input;                                                // kInput
  std::string rig_name;                                             // kHello; printable, at most kMaxNameBytes
  std::string product_version;                                      // kHello; likewise
  Role role = CONTROLLER;                                           // kHello
  std::uint64_t nonce = 0;                                          // kHello, kResetFault, kWriteBlackBox
  std::string cookie;                                               // kHello, kResetFault, kWriteBlackBox
  std::uint32_t number = 0;     // kResetFault: of the fault; kWriteBlackBox: of those written so far
  Direction direction = INPUT;  // kChannelQuery
  std::uint32_t first = 0;      // kChannelQuery
};

class ServerCodec {
 public:
  // outputs: indices of the output channels to send, in the order of sending. period_ns: step and reply period [ns].
  // Throws ConfigError when a StateFrame of these outputs, or a name, cannot fit into one frame.
  ServerCodec(const Mechanism& mechanism, std::vector<int> outputs, std::int64_t period_ns,
              std::string product_version);

  // Reads and checks one message from a rig. last_sequence: of the newest input accepted from this rig, 0 before the
  // first; none: the caller checks the sequence itself. `request.content` is set even when the rest is refused, as long
  // as the bytes are a message.
  DecodeStatus decode(std::span<const std::byte> payload, std::optional<std::uint64_t> last_sequence,
                      RigRequest& request);

  // Each encode returns bytes that are valid until the next encode.
  std::span<const std::byte> encode_state(const Snapshot& snapshot);
  // nonce: of the Hello. controller: who is in control now, or null. step: steps taken so far.
  std::span<const std::byte> encode_welcome(std::uint64_t nonce, std::uint32_t timeout_steps,
                                            const Participant* controller, bool lockstep = false,
                                            std::uint64_t step = 0);
  std::span<const std::byte> encode_challenge(std::uint64_t nonce, std::span<const std::uint8_t, kCookieBytes> cookie);
  // Puts this server's and mechanism's own fields in. What does not fit is left out, from the last on: observers,
  // then reasons of refusals, then counters, then distributions.
  std::span<const std::byte> encode_status(StatusReport report);
  std::span<const std::byte> encode_refusal(RefusalReason reason, std::string_view text);
  // The channels from `first` on, as many as fit. Past the end: none, so that the rig learns the total.
  std::span<const std::byte> encode_channel_page(Direction direction, std::uint32_t first);
  std::span<const std::byte> encode_goodbye(std::string_view text);

  const std::string& product_version() const { return product_version_; }
  std::int64_t period_ns() const { return period_ns_; }

 private:
  DecodeStatus read_input(const InputFrame& frame, std::optional<std::uint64_t> last_sequence,
                          InputSample& sample) const;
  static DecodeStatus read_hello(const Hello& hello, RigRequest& request);
  void check_sizes();

  std::string mechanism_name_;
  std::uint64_t mechanism_id_;
  std::vector<Channel> input_channels_;
  std::vector<Channel> output_channels_;  // the selected ones, in the order of sending
  std::vector<int> outputs_;
  std::int64_t period_ns_;
  std::string product_version_;

  DecodeArena arena_;
  ServerToRig state_;  // always holds a StateFrame
  ServerToRig reply_;
  std::array<std::byte, kMaxPayload> buffer_{};
};

class RigCodec {
 public:
  // Each encode returns bytes that are valid until the next encode. Hello and requests outside a session fill a frame.
  // cookie: of the newest Challenge, empty before it.
  std::span<const std::byte> encode_hello(std::string_view product_version, std::string_view rig_name, Role role,
                                          std::uint64_t nonce, std::string_view cookie);
  std::span<const std::byte> encode_status_query();
  std::span<const std::byte> encode_reset_fault(std::uint32_t fault_number, std::uint64_t nonce,
                                                std::string_view cookie);
  std::span<const std::byte> encode_write_black_box(std::uint32_t black_boxes, std::uint64_t nonce,
                                                    std::string_view cookie);
  std::span<const std::byte> encode_heartbeat();
  std::span<const std::byte> encode_channel_query(Direction direction, std::uint32_t first);
  // Only after start().
  std::span<const std::byte> encode_input(const InputSample& sample);
  std::span<const std::byte> encode_goodbye(std::string_view text);

  // Takes over what the server said about itself: from now on states of this mechanism are accepted.
  void start(const Welcome& welcome);

  // Reads and checks one message from the server. last_step: of the newest state accepted; an older one is refused,
  // an equal one is not, because a faulted or holding server repeats its step. Writes `state` if it is a StateFrame;
  // its outputs are the selected channels in the order of sending.
  DecodeStatus decode(std::span<const std::byte> payload, std::uint64_t last_step, Snapshot& state);

  // The message decoded last, until the next decode. Null before the first and after malformed.
  const ServerToRig* message() const { return message_; }

 private:
  DecodeStatus read_state(const StateFrame& frame, std::uint64_t last_step, Snapshot& state) const;
  std::span<const std::byte> fill_up();

  bool started_ = false;
  std::uint64_t mechanism_id_ = 0;
  std::uint32_t input_channels_ = 0;
  std::uint32_t output_channels_ = 0;

  DecodeArena arena_;
  const ServerToRig* message_ = nullptr;
  RigToServer input_;  // always holds an InputFrame
  RigToServer request_;
  std::array<std::byte, kMaxPayload> buffer_{};
};

}  // namespace rigstep::wire
