// What happens within a session: inputs to the loop, states to the participants, in lockstep a step for each input.
// Owned by the endpoint and used by its thread.
#pragma once

#include <cstdint>

#include "core/mechanism/signals.h"
#include "proto/codec.h"
#include "rt/histogram.h"
#include "rt/mailbox.h"
#include "server/link/hooks.h"
#include "server/link/outgoing.h"
#include "server/link/participants.h"

namespace rigstep::server {

class Sessions {
 public:
  // All outlive it.
  Sessions(wire::ServerCodec& codec, rt::Mailbox<InputSample>& inputs, rt::Mailbox<Snapshot>& snapshots,
           Participants& participants, Outgoing& outgoing, LinkCounters& counters);

  // From now on inputs ask for steps; null: the server paces again.
  void set_lockstep(const Lockstep* lockstep) noexcept { lockstep_ = lockstep; }
  bool in_lockstep() const noexcept { return lockstep_ != nullptr; }
  std::uint64_t step() const noexcept;  // the newest

  wire::DecodeStatus handle(const wire::Frame& frame, const Arrival& arrival);
  void send_newest_state();  // of `snapshots`, where there is a new one
  void end_all(const char* why);

  const rt::Histogram& hand_off_ns() const noexcept { return hand_off_ns_; }
  const rt::Histogram& reply_ns() const noexcept { return reply_ns_; }

 private:
  wire::DecodeStatus handle_content(Participant& participant, std::int64_t came_ns);
  wire::DecodeStatus handle_input(Participant& participant, std::int64_t came_ns);
  wire::DecodeStatus step_if_due(Participant& participant, std::int64_t came_ns);
  void send_state();

  wire::ServerCodec& codec_;
  rt::Mailbox<InputSample>& inputs_;
  rt::Mailbox<Snapshot>& snapshots_;
  Participants& participants_;
  Outgoing& outgoing_;
  LinkCounters& counters_;

  const Lockstep* lockstep_ = nullptr;
  wire::RigRequest request_;
  Snapshot snapshot_;
  rt::Histogram hand_off_ns_, reply_ns_;
};

}  // namespace rigstep::server
