// What happens within a session: joining it, inputs to the loop, states to the participants, in lockstep a step for
// each input, and what operators ask for. Owned by the endpoint and used by its thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/mechanism/signals.h"
#include "proto/codec.h"
#include "rt/histogram.h"
#include "rt/mailbox.h"
#include "server/link/hooks.h"
#include "server/link/outgoing.h"
#include "server/link/participants.h"

namespace rigstep::server {

class LiveStatus;
class Requests;

class Sessions {
 public:
  struct Settings {
    std::uint32_t timeout_steps = 0;
    std::uint32_t max_input_delay_ms = 0;  // 0: inputs may be as old as they are
  };
  // All outlive it.
  Sessions(wire::ServerCodec& codec, const UdpHooks& hooks, Settings settings, rt::Mailbox<InputSample>& inputs,
           rt::Mailbox<Snapshot>& snapshots, Participants& participants, Outgoing& outgoing, LinkCounters& counters);
  // They need each other; before the first datagram.
  void use(Requests& requests, LiveStatus& status) noexcept {
    requests_ = &requests;
    status_ = &status;
  }

  // From now on inputs ask for steps; null: the server paces again.
  void set_lockstep(const Lockstep* lockstep) noexcept { lockstep_ = lockstep; }
  bool in_lockstep() const noexcept { return lockstep_ != nullptr; }
  std::uint64_t step() const noexcept;  // the newest

  wire::DecodeStatus handle(const wire::FrameHeader& header, const Arrival& arrival);
  void send_newest_state();  // of `snapshots`, where there is a new one
  // To those who have subscribed, and a few datagrams at a time: the controller waits for its states meanwhile.
  void send_poses(std::int64_t now_ns, std::size_t most_frames);
  void end_all(const char* why);
  // Ends the sessions of keys that are not in the ring any more.
  void keep_only(const wire::KeyRing& ring);

  const rt::Histogram& hand_off_ns() const noexcept { return hand_off_ns_; }
  const rt::Histogram& reply_ns() const noexcept { return reply_ns_; }

 private:
  wire::PoseFields next_pose_fields();
  static wire::DecodeStatus open(Participant& participant, const Arrival& arrival, wire::Frame& frame);
  wire::DecodeStatus handle_in(Participant& participant, const wire::Frame& frame, const Arrival& arrival);
  wire::DecodeStatus handle_pending(Pending& pending, const Arrival& arrival);
  wire::DecodeStatus handle_ended(Ended& ended, const Arrival& arrival);
  wire::DecodeStatus handle_content(Participant& participant, const wire::FrameHeader& header, std::int64_t came_ns);
  wire::DecodeStatus handle_input(Participant& participant, const wire::FrameHeader& header, std::int64_t came_ns);
  wire::DecodeStatus handle_command(Participant& participant, std::int64_t came_ns);
  struct Carried {
    RigEvent::Kind kind = RigEvent::Kind::command;
    wire::RefusalReason reason = wire::REFUSAL_UNSPECIFIED;
    std::string refusal = {};  // why not, empty: it was carried out
    bool is_void = false;      // it was carried out before
  };
  Carried carry_out();
  bool may_command(Participant& participant);
  wire::DecodeStatus handle_parameter_set(Participant& participant);
  wire::DecodeStatus handle_snapshot(Participant& participant);
  void tell_parameters(Participant& participant, std::uint32_t first, std::uint64_t request);
  bool is_delayed(const Participant& participant, const wire::FrameHeader& header, std::int64_t came_ns) const;
  void welcome(Participant& participant, std::int64_t now_ns);
  wire::DecodeStatus step_if_due(Participant& participant, std::int64_t came_ns);
  void send_state();

  wire::ServerCodec& codec_;
  const UdpHooks& hooks_;
  const Settings settings_;
  rt::Mailbox<InputSample>& inputs_;
  rt::Mailbox<Snapshot>& snapshots_;
  Participants& participants_;
  Outgoing& outgoing_;
  LinkCounters& counters_;
  Requests* requests_ = nullptr;
  LiveStatus* status_ = nullptr;

  const Lockstep* lockstep_ = nullptr;
  wire::RigRequest request_;
  std::uint64_t parameter_request_ = 0;  // the newest one that was told of
  std::uint64_t transfer_ = 0;           // of a snapshot file, likewise
  Snapshot snapshot_;
  const rt::PoseFrame* poses_ = nullptr;  // that are being sent
  bool has_told_step_ = false;            // of them
  std::size_t next_body_ = 0;             // of these
  rt::Histogram hand_off_ns_, reply_ns_;
};

}  // namespace rigstep::server
