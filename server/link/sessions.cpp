#include "server/link/sessions.h"

#include <algorithm>
#include <optional>
#include <string>

#include "rt/clock.h"
#include "rt/cycle.h"
#include "server/link/live_status.h"
#include "server/link/requests.h"

namespace rigstep::server {

using wire::DecodeStatus;

namespace {

constexpr std::int64_t kTellAgainAfterNs = 100'000'000;
constexpr std::int64_t kSubscribedForNs = 2'000'000'000;

}  // namespace

Sessions::Sessions(wire::ServerCodec& codec, const UdpHooks& hooks, Settings settings, rt::Mailbox<InputSample>& inputs,
                   rt::Mailbox<Snapshot>& snapshots, Participants& participants, Outgoing& outgoing,
                   LinkCounters& counters)
    : codec_(codec),
      hooks_(hooks),
      settings_(settings),
      inputs_(inputs),
      snapshots_(snapshots),
      participants_(participants),
      outgoing_(outgoing),
      counters_(counters) {}

std::uint64_t Sessions::step() const noexcept { return lockstep_ != nullptr ? lockstep_->answer.step : snapshot_.step; }

DecodeStatus Sessions::handle(const wire::FrameHeader& header, const Arrival& arrival) {
  Participant* const participant = participants_.find(arrival.sender);
  if (participant != nullptr && participant->end.session() == header.session) {
    wire::Frame frame;
    if (const auto status = open(*participant, arrival, frame); status != DecodeStatus::ok) return status;
    return handle_in(*participant, frame, arrival);
  }
  if (Pending* const pending = participants_.find_pending(arrival.sender, header.session, arrival.came_ns))
    return handle_pending(*pending, arrival);
  if (Ended* const ended = participants_.find_ended(arrival.sender, header.session, arrival.came_ns))
    return handle_ended(*ended, arrival);
  return participant != nullptr ? DecodeStatus::wrong_session : DecodeStatus::unknown_source;
}

// Whether the datagram is what the other side of this session has sent, and now.
DecodeStatus Sessions::open(Participant& participant, const Arrival& arrival, wire::Frame& frame) {
  const wire::Key* const key = participant.keys ? &participant.keys->rig_to_server : nullptr;
  if (const auto status = wire::open_frame(arrival.datagram, wire::Sender::server, key, frame);
      status != DecodeStatus::ok)
    return status;
  // a replay must not keep a session alive
  return participant.end.accept(frame.header, arrival.came_ns);
}

DecodeStatus Sessions::handle_in(Participant& participant, const wire::Frame& frame, const Arrival& arrival) {
  participant.last_heard_ns = arrival.came_ns;
  // in lockstep sequences are those of the steps, whoever asked for them
  const auto last_sequence = lockstep_ == nullptr ? std::optional(participant.last_sequence) : std::nullopt;
  const DecodeStatus status = codec_.decode(frame.payload, last_sequence, request_);
  return status == DecodeStatus::ok ? handle_content(participant, frame.header, arrival.came_ns) : status;
}

// The first datagram of a session, under its keys: only now is it sure that the Hello was no repetition of an older
// one.
DecodeStatus Sessions::handle_pending(Pending& pending, const Arrival& arrival) {
  wire::Frame frame;
  if (const auto status = open(pending.participant, arrival, frame); status != DecodeStatus::ok) return status;
  // another may have come first
  if (const auto why = requests_->refusal(pending.participant, pending.token, arrival.came_ns)) {
    outgoing_.send_to_stranger(codec_.encode_refusal(why->reason, why->text), pending.participant);
    participants_.forget(pending);
    return why->status;
  }
  Participant* const owner = participants_.controller();
  if (pending.participant.role == wire::CONTROLLER && owner != nullptr && owner->endpoint != arrival.sender)
    outgoing_.send(codec_.encode_goodbye(
                       "another rig with its key or secret, at " + to_text(arrival.sender) + ", has taken its place",
                       wire::TAKEN_OVER),
                   *owner);
  Participant* const joined = participants_.admit(pending, arrival.came_ns);
  if (joined == nullptr) {
    outgoing_.send_to_stranger(codec_.encode_refusal(wire::FULL,
                                                     "the server's system gives no socket for this rig. See its limit "
                                                     "of open files and its routes to this address."),
                               pending.participant);
    participants_.forget(pending);
    return DecodeStatus::full;
  }
  status_->outdate();
  return handle_in(*joined, frame, arrival);
}

DecodeStatus Sessions::handle_ended(Ended& ended, const Arrival& arrival) {
  wire::Frame frame;
  if (const auto status = open(ended.participant, arrival, frame); status != DecodeStatus::ok) return status;
  if (arrival.came_ns - ended.told_ns >= kTellAgainAfterNs) {
    ended.told_ns = arrival.came_ns;
    outgoing_.send_to_stranger(codec_.encode_goodbye(ended.words, ended.reason), ended.participant);
  }
  return DecodeStatus::ended_session;
}

DecodeStatus Sessions::handle_content(Participant& participant, const wire::FrameHeader& header, std::int64_t came_ns) {
  switch (request_.content) {
    case wire::RigToServer::kInput:
      return handle_input(participant, header, came_ns);
    case wire::RigToServer::kJoin:
      welcome(participant, came_ns);
      return DecodeStatus::ok;
    case wire::RigToServer::kChannelQuery:
      outgoing_.send(codec_.encode_channel_page(request_.direction, request_.first), participant);
      return DecodeStatus::ok;
    case wire::RigToServer::kHeartbeat:
      return DecodeStatus::ok;
    case wire::RigToServer::kPoseSubscription:
      if (participant.role == wire::CONSOLE || hooks_.poses == nullptr) return DecodeStatus::unexpected_content;
      participant.poses_until_ns = came_ns + kSubscribedForNs;
      hooks_.poses->want(true);
      return DecodeStatus::ok;
    case wire::RigToServer::kMechanismQuery:
      if (participant.role == wire::CONSOLE || hooks_.mechanism_text.empty()) return DecodeStatus::unexpected_content;
      outgoing_.send(codec_.encode_mechanism_piece(hooks_.mechanism_text, request_.first), participant);
      return DecodeStatus::ok;
    case wire::RigToServer::kStatusQuery:
      outgoing_.send(codec_.encode_status(status_->report(came_ns)), participant);
      return DecodeStatus::ok;
    case wire::RigToServer::kResetFault:
    case wire::RigToServer::kWriteBlackBox:
    case wire::RigToServer::kCommand:
      return handle_command(participant, came_ns);
    case wire::RigToServer::kParameterSet:
      return handle_parameter_set(participant);
    case wire::RigToServer::kParameterQuery:
      tell_parameters(participant, request_.first, request_.parameter_request);
      return DecodeStatus::ok;
    case wire::RigToServer::kSnapshotQuery:
    case wire::RigToServer::kSnapshotPiece:
      return handle_snapshot(participant);
    case wire::RigToServer::kGoodbye:
      participants_.remove(participant, RigEvent::Kind::left);
      return DecodeStatus::ok;
    default:
      return DecodeStatus::unexpected_content;
  }
}

DecodeStatus Sessions::handle_input(Participant& participant, const wire::FrameHeader& header, std::int64_t came_ns) {
  if (participant.role != wire::CONTROLLER) {
    outgoing_.send(
        codec_.encode_refusal(wire::NOT_IN_CONTROL, "an observer cannot send inputs. Say Hello as a controller."),
        participant);
    return DecodeStatus::not_in_control;
  }
  if (lockstep_ != nullptr) return step_if_due(participant, came_ns);
  if (is_delayed(participant, header, came_ns)) return DecodeStatus::delayed;
  participant.last_sequence = request_.input.sequence;
  inputs_.publish(request_.input);
  return DecodeStatus::ok;
}

// Somebody on the way may have held it back.
bool Sessions::is_delayed(const Participant& participant, const wire::FrameHeader& header, std::int64_t came_ns) const {
  if (settings_.max_input_delay_ms == 0) return false;
  const auto delay_ns = participant.end.clock().longest_delay_ns(header.sent_ns, came_ns);
  return delay_ns && *delay_ns > std::int64_t{settings_.max_input_delay_ms} * 1'000'000;
}

// Who may not is told so.
bool Sessions::may_command(Participant& participant) {
  if (participant.commands) return true;
  outgoing_.send(codec_.encode_refusal(wire::NOT_PERMITTED,
                                       "only the rig in control or an operator may ask for this. Give a key whose "
                                       "role is operator."),
                 participant);
  return false;
}

DecodeStatus Sessions::handle_parameter_set(Participant& participant) {
  if (!may_command(participant)) return DecodeStatus::not_permitted;
  const std::string refusal = hooks_.set_parameters ? hooks_.set_parameters(request_.parameter_set)
                                                    : std::string("this server takes no changes of parameters.");
  if (!refusal.empty()) {
    outgoing_.send(codec_.encode_refusal(wire::PARAMETER, refusal), participant);
    return DecodeStatus::unexpected_content;
  }
  const std::uint64_t number = request_.parameter_set.request();
  if (hooks_.on_event && number != parameter_request_)
    hooks_.on_event({.kind = RigEvent::Kind::parameters, .address = to_text(participant.endpoint)});
  parameter_request_ = number;
  status_->outdate();
  tell_parameters(participant, 0, request_.parameter_set.request());
  return DecodeStatus::ok;
}

void Sessions::tell_parameters(Participant& participant, std::uint32_t first, std::uint64_t request) {
  wire::ParameterReport report;
  report.set_first(first);
  report.set_request(request);
  if (hooks_.describe_parameters) hooks_.describe_parameters(report);
  outgoing_.send(codec_.encode_parameters(std::move(report)), participant);
}

// A piece of a snapshot file, from here or to here.
DecodeStatus Sessions::handle_snapshot(Participant& participant) {
  if (!may_command(participant)) return DecodeStatus::not_permitted;
  const bool is_query = request_.content == wire::RigToServer::kSnapshotQuery;
  const std::uint64_t transfer = is_query ? request_.snapshot_query.transfer() : request_.snapshot_piece.transfer();
  wire::SnapshotPiece answer;
  std::string refusal = "this server has no snapshot files.";
  if (is_query && hooks_.save_snapshot) refusal = hooks_.save_snapshot(request_.snapshot_query, answer);
  if (!is_query && hooks_.load_snapshot) refusal = hooks_.load_snapshot(request_.snapshot_piece, answer);
  if (!refusal.empty()) {
    outgoing_.send(codec_.encode_refusal(is_query ? wire::STATE : wire::SNAPSHOT_FILE, refusal), participant);
    return DecodeStatus::unexpected_content;
  }
  if (is_query && hooks_.on_event && transfer != transfer_)
    hooks_.on_event({.kind = RigEvent::Kind::command,
                     .address = to_text(participant.endpoint),
                     .command = wire::Command::SNAPSHOT});
  transfer_ = transfer;
  status_->outdate();  // it is a transition
  outgoing_.send(codec_.encode_snapshot_piece(answer), participant);
  return DecodeStatus::ok;
}

// What an operator asks for, or the rig in control.
DecodeStatus Sessions::handle_command(Participant& participant, std::int64_t came_ns) {
  if (!may_command(participant)) return DecodeStatus::not_permitted;
  const Carried carried = carry_out();
  if (!carried.refusal.empty()) {
    outgoing_.send(codec_.encode_refusal(carried.reason, carried.refusal), participant);
    return DecodeStatus::unexpected_content;
  }
  if (hooks_.on_event && !carried.is_void)
    hooks_.on_event(
        {.kind = carried.kind, .address = to_text(participant.endpoint), .command = request_.command.kind()});
  status_->outdate();  // the next report shall tell
  outgoing_.send(codec_.encode_status(status_->report(came_ns)), participant);
  return DecodeStatus::ok;
}

// The command that stands in the request.
Sessions::Carried Sessions::carry_out() {
  if (request_.content == wire::RigToServer::kResetFault) {
    if (hooks_.reset_fault) hooks_.reset_fault(request_.number);
    return {.kind = RigEvent::Kind::reset_fault};
  }
  if (request_.content == wire::RigToServer::kWriteBlackBox) {
    const bool is_kept = hooks_.write_black_box && hooks_.write_black_box(request_.number);
    return {.kind = RigEvent::Kind::black_box,
            .reason = wire::NO_BLACK_BOX,
            .refusal = is_kept ? "" : "it keeps no black box. Give its rig file a `black_box { folder: ... }`."};
  }
  if (!hooks_.command)
    return {.kind = RigEvent::Kind::command, .reason = wire::STATE, .refusal = "this server takes no commands."};
  const auto refusal = hooks_.command(request_.command);
  return {.kind = RigEvent::Kind::command,
          .reason = wire::STATE,
          .refusal = refusal.value_or(""),
          .is_void = !refusal.has_value()};
}

void Sessions::welcome(Participant& participant, std::int64_t now_ns) {
  const Participant* const owner = participants_.controller();
  const wire::Participant in_control = owner != nullptr ? describe(*owner, now_ns) : wire::Participant();
  const bool has_token = participant.role == wire::CONTROLLER && !participant.has_key;
  outgoing_.send(codec_.encode_welcome({.timeout_steps = settings_.timeout_steps,
                                        .controller = owner != nullptr ? &in_control : nullptr,
                                        .lockstep = in_lockstep(),
                                        .step = step(),
                                        .token = has_token ? std::span<const std::uint8_t>(participant.token)
                                                           : std::span<const std::uint8_t>(),
                                        .max_input_delay_ms = in_lockstep() ? 0 : settings_.max_input_delay_ms}),
                 participant);
}

void Sessions::keep_only(const wire::KeyRing& ring) {
  participants_.keep_only(ring, rt::MonotonicClock::now_ns(), [this](Participant& participant) {
    outgoing_.send(codec_.encode_goodbye("its key is not in the server's key file any more, or has another role",
                                         wire::KEY_REMOVED),
                   participant);
  });
}

// Lockstep: the sequence of an input is the number of the step that it asks for.
DecodeStatus Sessions::step_if_due(Participant& participant, std::int64_t came_ns) {
  const std::uint64_t last = lockstep_->answer.step;
  const std::uint64_t asked = request_.input.sequence;
  if (asked == last) {
    snapshot_ = lockstep_->answer;
    outgoing_.send(codec_.encode_state(snapshot_), participant);
    return DecodeStatus::ok;
  }
  if (asked != last + 1) {
    outgoing_.send(codec_.encode_refusal(wire::SEQUENCE, "the input asks for step " + std::to_string(asked) +
                                                             ". The last step was " + std::to_string(last) +
                                                             ": go on with " + std::to_string(last + 1) + "."),
                   participant);
    return DecodeStatus::sequence;
  }
  inputs_.publish(request_.input);
  lockstep_->step({.scheduled_ns = came_ns,
                   .wake_up_ns = rt::MonotonicClock::now_ns() - came_ns,
                   .log_time_ns = rt::MonotonicClock::wall_ns()});
  snapshot_ = lockstep_->answer;
  send_state();
  lockstep_->keep();
  return DecodeStatus::ok;
}

void Sessions::send_newest_state() {
  const std::uint64_t last_step = snapshot_.step;
  if (!snapshots_.take(snapshot_)) return;
  if (snapshot_.written_ns != 0) hand_off_ns_.record(rt::MonotonicClock::now_ns() - snapshot_.written_ns);
  if (snapshot_.step > last_step + 1) counters_.count_overtaken(snapshot_.step - last_step - 1);
  send_state();
}

// To everybody, the controller first: it waits for it.
void Sessions::send_state() {
  if (participants_.empty()) return;
  const auto state = codec_.encode_state(snapshot_);
  if (Participant* const owner = participants_.controller(); owner != nullptr) {
    outgoing_.send(state, *owner);
    if (snapshot_.scheduled_ns != 0)
      rt::record_with_skipped(reply_ns_, rt::MonotonicClock::now_ns() - snapshot_.scheduled_ns, codec_.period_ns(),
                              snapshot_.missed_before, snapshot_.missed_asleep);
  }
  for (Participant& participant : participants_.all())
    if (participant.role == wire::OBSERVER) outgoing_.send(state, participant);
}

// First what the step tells, then one body after the other.
wire::PoseFields Sessions::next_pose_fields() {
  const std::size_t bodies = hooks_.poses->bodies();
  wire::PoseFields fields{.step = poses_->step,
                          .sim_time_ns = poses_->sim_time_ns,
                          .first_body = static_cast<std::uint32_t>(next_body_),
                          .bodies = static_cast<std::uint32_t>(bodies)};
  if (!has_told_step_) {
    has_told_step_ = true;
    fields.inputs = poses_->inputs;
    fields.wake_up_us = poses_->wake_up_us;
    fields.step_us = poses_->step_us;
    fields.position_residual = poses_->position_residual;
  } else {
    const std::size_t count = std::min(wire::kPosesPerFrame, bodies - next_body_);
    fields.numbers = std::span(poses_->numbers).subspan(rt::kNumbersPerPose * next_body_, rt::kNumbersPerPose * count);
    next_body_ += count;
  }
  return fields;
}

void Sessions::send_poses(std::int64_t now_ns, std::size_t most_frames) {
  if (hooks_.poses == nullptr) return;
  const auto watches = [now_ns](const Participant& participant) { return participant.poses_until_ns > now_ns; };
  std::vector<Participant>& all = participants_.all();
  if (std::none_of(all.begin(), all.end(), watches)) return hooks_.poses->want(false);
  if (poses_ == nullptr) {
    poses_ = hooks_.poses->take();
    next_body_ = 0;
    has_told_step_ = false;
  }
  for (std::size_t sent = 0; poses_ != nullptr && sent < most_frames; ++sent) {
    const auto frame = codec_.encode_poses(next_pose_fields());
    for (Participant& participant : all)
      if (watches(participant)) outgoing_.send(frame, participant);
    if (next_body_ >= hooks_.poses->bodies()) poses_ = nullptr;
  }
}

void Sessions::end_all(const char* why) {
  for (Participant& participant : participants_.all()) outgoing_.send(codec_.encode_goodbye(why), participant);
  participants_.clear();
}

}  // namespace rigstep::server
