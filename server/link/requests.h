// What comes outside a session: Hello, commands of an operator, questions about the status. Nobody is trusted here
// before the address is proven. Owned by the endpoint and used by its thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "proto/codec.h"
#include "server/link/cookies.h"
#include "server/link/hooks.h"
#include "server/link/live_status.h"
#include "server/link/outgoing.h"
#include "server/link/participants.h"
#include "server/link/sessions.h"

namespace rigstep::server {

inline constexpr std::int64_t kAnswersPerSecond = 500;  // to addresses that are not proven
inline constexpr std::int64_t kAnswersAtOnce = 100;

// A token bucket: a flood of requests must not keep the thread busy answering.
class AnswerBudget {
 public:
  // False: no answer to what came at `now_ns`.
  bool take(std::int64_t now_ns) noexcept {
    constexpr std::int64_t kGapNs = 1'000'000'000 / kAnswersPerSecond;
    spent_until_ns_ = std::max(spent_until_ns_, now_ns - kAnswersAtOnce * kGapNs);
    if (spent_until_ns_ + kGapNs > now_ns) return false;
    spent_until_ns_ += kGapNs;
    return true;
  }

 private:
  std::int64_t spent_until_ns_ = std::numeric_limits<std::int64_t>::min();
};

class Requests {
 public:
  // All outlive it.
  Requests(wire::ServerCodec& codec, const UdpHooks& hooks, std::uint32_t timeout_steps, bool has_key,
           Participants& participants, Sessions& sessions, Outgoing& outgoing, LiveStatus& status);

  // A frame with the right tag.
  wire::DecodeStatus handle(const wire::Frame& frame, const Arrival& arrival);
  // Tells somebody whose tag or version is wrong what it lacks.
  void explain(wire::DecodeStatus wrong, const wire::Frame& frame, const Arrival& arrival);

 private:
  wire::DecodeStatus handle_hello(const wire::FrameHeader& header, const Arrival& arrival);
  wire::DecodeStatus handle_command(const wire::FrameHeader& header, const Arrival& arrival);
  wire::DecodeStatus challenge(const wire::FrameHeader& header, const Arrival& arrival);
  std::optional<wire::DecodeStatus> refuse(const wire::FrameHeader& header, const Arrival& arrival);
  bool is_restarted(const Participant& old, const Arrival& arrival) const;
  wire::DecodeStatus admit(const wire::FrameHeader& header, const Arrival& arrival);
  void welcome(Participant& participant, std::int64_t now_ns);
  void explain_authentication(const Arrival& arrival);
  void explain_version(const wire::Frame& frame, const Arrival& arrival);

  wire::ServerCodec& codec_;
  const UdpHooks& hooks_;
  const std::uint32_t timeout_steps_;
  const bool has_key_;
  Participants& participants_;
  Sessions& sessions_;
  Outgoing& outgoing_;
  LiveStatus& status_;

  Cookies cookies_;
  wire::RigRequest request_;
  AnswerBudget answers_;  // to those who have the key, where there is one
  AnswerBudget hints_;    // to the others: their flood is no reason to keep silent to the former
};

}  // namespace rigstep::server
