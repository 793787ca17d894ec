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
#include "proto/cookies.h"
#include "proto/frame.h"
#include "proto/handshake.h"
#include "proto/printable.h"
#include "proto/wire.pb.h"

namespace rigstep::wire {

inline constexpr std::size_t kMaxTextBytes = 600;  // of a Refusal or Goodbye
inline constexpr std::size_t kTokenBytes = 16;
inline constexpr std::size_t kSnapshotPieceBytes = 1024;   // of a SnapshotPiece
inline constexpr std::size_t kMechanismPieceBytes = 1024;  // of a MechanismPiece

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
  std::uint64_t nonce = 0;                                          // kHello
  std::vector<std::uint8_t> cookie, key_id, public_key, token;      // kHello; as long as the rig made them
  std::uint64_t former_session = 0;                                 // kHello
  std::uint32_t number = 0;             // kResetFault: of the fault; kWriteBlackBox: of those written so far
  Command command;                      // kCommand
  Direction direction = INPUT;          // kChannelQuery
  std::uint32_t first = 0;              // kChannelQuery, kParameterQuery; kMechanismQuery: the first byte
  std::uint64_t parameter_request = 0;  // kParameterQuery
  ParameterSet parameter_set;           // kParameterSet; values are finite
  SnapshotQuery snapshot_query;         // kSnapshotQuery
  SnapshotPiece snapshot_piece;         // kSnapshotPiece; lies within its total
};

// Of a PoseFrame: as many bodies as fit, from `first_body` on; or none, then what it tells of the step.
inline constexpr std::size_t kPosesPerFrame = 36;
struct PoseFields {
  std::uint64_t step = 0;
  std::int64_t sim_time_ns = 0;
  std::uint32_t first_body = 0, bodies = 0;  // of all
  std::span<const float> numbers = {};       // 7 a body
  std::span<const float> inputs = {};        // one per input channel, or none
  float wake_up_us = 0.0f, step_us = 0.0f, position_residual = 0.0f;
};

// What a Welcome tells beside what its codec knows.
struct WelcomeFields {
  std::uint32_t timeout_steps = 0;
  const Participant* controller = nullptr;  // who is in control now, or nobody
  bool lockstep = false;
  std::uint64_t step = 0;  // steps taken so far
  std::span<const std::uint8_t> token = {};
  std::uint32_t max_input_delay_ms = 0;
};

// What a Hello asks for. The part with the cookie: empty at first.
struct HelloFields {
  std::string_view product_version, rig_name;
  Role role = CONTROLLER;
  std::uint64_t nonce = 0;
  std::string_view cookie = {};
  const KeyId* key_id = nullptr;  // with a key: the frame is sealed by seal_proven_frame()
  const PublicKey* public_key = nullptr;
  std::uint64_t former_session = 0;
  std::string_view token = {};
};

class ServerCodec {
 public:
  // outputs: indices of the output channels to send, in the order of sending. period_ns: step and reply period [ns].
  // Throws config::ConfigError when a StateFrame of these outputs, or a name, cannot fit into one frame.
  ServerCodec(const rigstep::Mechanism& mechanism, std::vector<int> outputs, std::int64_t period_ns,
              std::string product_version);

  // Reads and checks one message from a rig. last_sequence: of the newest input accepted from this rig, 0 before the
  // first; none: the caller checks the sequence itself. `request.content` is set even when the rest is refused, as long
  // as the bytes are a message.
  DecodeStatus decode(std::span<const std::byte> payload, std::optional<std::uint64_t> last_sequence,
                      RigRequest& request);

  // Each encode returns bytes that are valid until the next encode.
  std::span<const std::byte> encode_state(const Snapshot& snapshot);
  std::span<const std::byte> encode_poses(const PoseFields& fields);
  std::span<const std::byte> encode_welcome(const WelcomeFields& fields);
  std::span<const std::byte> encode_challenge(std::uint64_t nonce, std::span<const std::uint8_t, kCookieBytes> cookie);
  // public_key: null without a key; with one the frame is sealed by seal_proven_frame().
  std::span<const std::byte> encode_accept(std::uint64_t nonce, std::uint64_t session, const PublicKey* public_key);
  // Puts this server's and mechanism's own fields in. What does not fit is left out, from the last on: parameters,
  // observers, then reasons of refusals, then counters, then distributions.
  std::span<const std::byte> encode_status(StatusReport report);
  // In a session.
  std::span<const std::byte> encode_refusal(RefusalReason reason, std::string_view text);
  // Of a Hello. proven: the frame is sealed by seal_proven_frame().
  std::span<const std::byte> encode_refusal(RefusalReason reason, std::string_view text, std::uint64_t nonce,
                                            bool proven);
  // The channels from `first` on, as many as fit. Past the end: none, so that the rig learns the total.
  std::span<const std::byte> encode_channel_page(Direction direction, std::uint32_t first);
  // parameter: all from `first` on; those that fit are sent.
  std::span<const std::byte> encode_parameters(ParameterReport report);
  std::span<const std::byte> encode_snapshot_piece(const SnapshotPiece& piece);
  // What stands from `offset` on in the mechanism file; past the end nothing.
  std::span<const std::byte> encode_mechanism_piece(std::string_view text, std::uint32_t offset);
  std::span<const std::byte> encode_goodbye(std::string_view text, GoodbyeReason reason = ENDED);

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
  ServerToRig poses_;  // always holds a PoseFrame
  ServerToRig reply_;
  std::array<std::byte, kMaxPayload> buffer_{};
};

class RigCodec {
 public:
  // Each encode returns bytes that are valid until the next encode. Hello and a query outside a session fill a frame.
  std::span<const std::byte> encode_hello(const HelloFields& fields);
  std::span<const std::byte> encode_join();
  std::span<const std::byte> encode_status_query(bool in_session);
  std::span<const std::byte> encode_reset_fault(std::uint32_t fault_number);
  std::span<const std::byte> encode_write_black_box(std::uint32_t black_boxes);
  // transfer: of RESET_TO_FILE
  std::span<const std::byte> encode_command(Command::Kind kind, std::uint32_t steps, std::uint32_t transitions,
                                            std::uint64_t transfer = 0);
  std::span<const std::byte> encode_snapshot_query(std::uint64_t transfer, std::uint32_t offset);
  std::span<const std::byte> encode_snapshot_piece(const SnapshotPiece& piece);
  std::span<const std::byte> encode_mechanism_query(std::uint32_t offset);
  std::span<const std::byte> encode_parameter_set(const ParameterSet& set);
  std::span<const std::byte> encode_parameter_query(std::uint32_t first, std::uint64_t request);
  std::span<const std::byte> encode_heartbeat();
  std::span<const std::byte> encode_pose_subscription();
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
  DecodeStatus check_poses(const PoseFrame& frame) const;
  DecodeStatus read_state(const StateFrame& frame, std::uint64_t last_step, Snapshot& state) const;
  std::span<const std::byte> fill_up(bool proven);

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
