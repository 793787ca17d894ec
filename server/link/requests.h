// What comes outside a session: Hello, and questions about the status where no key is needed. Nobody is trusted here
// before the address is proven and, where there are keys, the key. Owned by the endpoint and used by its thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "proto/codec.h"
#include "proto/cookies.h"
#include "proto/key_file.h"
#include "server/link/live_status.h"
#include "server/link/outgoing.h"
#include "server/link/participants.h"

namespace rigstep::server {

inline constexpr std::int64_t kAnswersPerSecond = 500;  // to addresses that are not proven
inline constexpr std::int64_t kAnswersAtOnce = 100;
inline constexpr std::int64_t kHandshakesPerSecond = 20;  // of one key: each costs two multiplications of X25519
inline constexpr std::int64_t kHandshakesAtOnce = 20;

// A token bucket: a flood of requests must not keep the thread busy answering.
class AnswerBudget {
 public:
  explicit AnswerBudget(std::int64_t per_second = kAnswersPerSecond, std::int64_t at_once = kAnswersAtOnce)
      : gap_ns_(1'000'000'000 / per_second), at_once_(at_once) {}

  // False: no answer to what came at `now_ns`.
  bool take(std::int64_t now_ns) noexcept {
    spent_until_ns_ = std::max(spent_until_ns_, now_ns - at_once_ * gap_ns_);
    if (spent_until_ns_ + gap_ns_ > now_ns) return false;
    spent_until_ns_ += gap_ns_;
    return true;
  }

 private:
  std::int64_t gap_ns_, at_once_;
  std::int64_t spent_until_ns_ = std::numeric_limits<std::int64_t>::min();
};

// The keys that a server knows now, and whether a rig needs one.
struct LinkKeys {
  std::shared_ptr<const wire::Secret<wire::KeyRing>> ring = std::make_shared<wire::Secret<wire::KeyRing>>();
  bool required = false;

  const wire::KeyRing& operator*() const noexcept { return **ring; }
};

// Why a Hello gets no session.
struct HelloRefusal {
  wire::DecodeStatus status;
  wire::RefusalReason reason;
  std::string text;
};

class Requests {
 public:
  // All outlive it.
  Requests(wire::ServerCodec& codec, const LinkKeys& keys, std::uint32_t timeout_steps, Participants& participants,
           Outgoing& outgoing, LiveStatus& status);

  // A datagram whose header says that it belongs to no session.
  wire::DecodeStatus handle(const Arrival& arrival);
  // Where there is no place for this session.
  std::optional<HelloRefusal> refusal(const Participant& fresh, std::span<const std::uint8_t> token,
                                      std::int64_t now_ns);

 private:
  wire::DecodeStatus handle_hello(const wire::FrameHeader& header, const Arrival& arrival);
  wire::DecodeStatus handle_proven_address(const wire::FrameHeader& header, const Arrival& arrival);
  wire::DecodeStatus handle_used_cookie(const wire::FrameHeader& header, const Arrival& arrival);
  wire::DecodeStatus challenge(const wire::FrameHeader& header, const Arrival& arrival);
  bool may_try(const wire::ParticipantKey* key, std::int64_t now_ns);
  wire::DecodeStatus accept(const wire::ParticipantKey* key, const wire::FrameHeader& header, const Arrival& arrival);
  Pending read_hello(const wire::ParticipantKey* key, const Arrival& arrival) const;
  std::optional<HelloRefusal> refusal_of_hello(const wire::ParticipantKey* key, const Pending& fresh,
                                               std::int64_t now_ns);
  bool exchange_keys(const wire::ParticipantKey& key, Pending& fresh, const Arrival& arrival);
  wire::DecodeStatus refuse(const HelloRefusal& why, const wire::ParticipantKey* key, const wire::FrameHeader& header,
                            const Arrival& arrival);
  void send_accept(Pending& pending, const wire::FrameHeader& header, const Arrival& arrival);
  wire::DecodeStatus refuse_without_proof(const char* text, const wire::FrameHeader& header, const Arrival& arrival);
  void explain_version(bool checksum_is_right, const wire::FrameHeader& header, const Arrival& arrival);

  wire::ServerCodec& codec_;
  const LinkKeys& keys_;
  const std::uint32_t timeout_steps_;
  Participants& participants_;
  Outgoing& outgoing_;
  LiveStatus& status_;

  wire::Cookies cookies_;
  wire::RigRequest request_;
  AnswerBudget answers_;     // to addresses that are not proven
  AnswerBudget hints_;       // to those who lack a key: their flood is no reason to keep silent to the former
  AnswerBudget handshakes_;  // without a key
  std::array<AnswerBudget, wire::kMostKeys> handshakes_of_key_;
  wire::Secret<wire::KeyPair> pair_;
};

}  // namespace rigstep::server
