#include "server/link/sessions.h"

#include <optional>
#include <string>

#include "rt/clock.h"
#include "rt/cycle.h"

namespace rigstep::server {

using wire::DecodeStatus;

Sessions::Sessions(wire::ServerCodec& codec, rt::Mailbox<InputSample>& inputs, rt::Mailbox<Snapshot>& snapshots,
                   Participants& participants, Outgoing& outgoing, LinkCounters& counters)
    : codec_(codec),
      inputs_(inputs),
      snapshots_(snapshots),
      participants_(participants),
      outgoing_(outgoing),
      counters_(counters) {}

std::uint64_t Sessions::step() const noexcept { return lockstep_ != nullptr ? lockstep_->answer.step : snapshot_.step; }

DecodeStatus Sessions::handle(const wire::Frame& frame, const Arrival& arrival) {
  Participant* participant = participants_.find(arrival.sender);
  if (participant == nullptr) return DecodeStatus::unknown_source;
  // a replay must not keep a session alive
  if (const auto status = participant->end.accept(frame.header, arrival.came_ns); status != DecodeStatus::ok)
    return status;
  participant->last_heard_ns = arrival.came_ns;
  // in lockstep sequences are those of the steps, whoever asked for them
  const auto last_sequence = lockstep_ == nullptr ? std::optional(participant->last_sequence) : std::nullopt;
  const DecodeStatus status = codec_.decode(frame.payload, last_sequence, request_);
  return status == DecodeStatus::ok ? handle_content(*participant, arrival.came_ns) : status;
}

DecodeStatus Sessions::handle_content(Participant& participant, std::int64_t came_ns) {
  switch (request_.content) {
    case wire::RigToServer::kInput:
      return handle_input(participant, came_ns);
    case wire::RigToServer::kChannelQuery:
      outgoing_.send(codec_.encode_channel_page(request_.direction, request_.first), participant);
      return DecodeStatus::ok;
    case wire::RigToServer::kHeartbeat:
      return DecodeStatus::ok;
    case wire::RigToServer::kGoodbye:
      participants_.remove(participant, RigEvent::Kind::left);
      return DecodeStatus::ok;
    default:
      return DecodeStatus::unexpected_content;
  }
}

DecodeStatus Sessions::handle_input(Participant& participant, std::int64_t came_ns) {
  if (participant.role != wire::CONTROLLER) {
    outgoing_.send(
        codec_.encode_refusal(wire::NOT_IN_CONTROL, "an observer cannot send inputs. Say Hello as a controller."),
        participant);
    return DecodeStatus::not_in_control;
  }
  if (lockstep_ != nullptr) return step_if_due(participant, came_ns);
  participant.last_sequence = request_.input.sequence;
  inputs_.publish(request_.input);
  return DecodeStatus::ok;
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

void Sessions::end_all(const char* why) {
  for (Participant& participant : participants_.all()) outgoing_.send(codec_.encode_goodbye(why), participant);
  participants_.clear();
}

}  // namespace rigstep::server
