#include "server/link/requests.h"

#include <string>

namespace rigstep::server {

using wire::DecodeStatus;

Requests::Requests(wire::ServerCodec& codec, const UdpHooks& hooks, std::uint32_t timeout_steps, bool has_key,
                   Participants& participants, Sessions& sessions, Outgoing& outgoing, LiveStatus& status)
    : codec_(codec),
      hooks_(hooks),
      timeout_steps_(timeout_steps),
      has_key_(has_key),
      participants_(participants),
      sessions_(sessions),
      outgoing_(outgoing),
      status_(status) {}

DecodeStatus Requests::handle(const wire::Frame& frame, const Arrival& arrival) {
  // only what is filled up may be answered: the answer is never the larger one
  if (arrival.datagram.size() != wire::kMaxDatagram) return DecodeStatus::wrong_size;
  cookies_.age(arrival.came_ns);
  if (const auto status = codec_.decode(frame.payload, 0, request_); status != DecodeStatus::ok) return status;
  if (!cookies_.fits(arrival.sender, request_) && !answers_.take(arrival.came_ns)) return DecodeStatus::too_frequent;
  switch (request_.content) {
    case wire::RigToServer::kHello:
      return handle_hello(frame.header, arrival);
    case wire::RigToServer::kResetFault:
    case wire::RigToServer::kWriteBlackBox:
      return handle_command(frame.header, arrival);
    case wire::RigToServer::kStatusQuery:
      outgoing_.answer(codec_.encode_status(status_.report(arrival.came_ns)), frame.header, arrival);
      return DecodeStatus::ok;
    default:
      return DecodeStatus::unexpected_content;
  }
}

DecodeStatus Requests::handle_hello(const wire::FrameHeader& header, const Arrival& arrival) {
  if (Participant* same = participants_.find(arrival.sender); same != nullptr && same->nonce == request_.nonce) {
    welcome(*same, arrival.came_ns);  // the first one was lost
    return DecodeStatus::ok;
  }
  if (!cookies_.fits(arrival.sender, request_)) return challenge(header, arrival);
  if (const auto refused = refuse(header, arrival)) return *refused;
  return admit(header, arrival);
}

DecodeStatus Requests::challenge(const wire::FrameHeader& header, const Arrival& arrival) {
  const auto cookie = cookies_.make(arrival.sender, request_);
  outgoing_.answer(codec_.encode_challenge(request_.nonce, cookie), header, arrival);
  return request_.cookie.empty() ? DecodeStatus::ok : DecodeStatus::unproven_address;
}

// Where there is no place for the Hello in hand: tells its sender, and why.
std::optional<DecodeStatus> Requests::refuse(const wire::FrameHeader& header, const Arrival& arrival) {
  const Participant* owner = participants_.controller();
  if (request_.role == wire::CONTROLLER && owner != nullptr && !is_restarted(*owner, arrival)) {
    outgoing_.answer(codec_.encode_refusal(wire::CONTROL_TAKEN,
                                           "the rig \"" + owner->name + "\" at " + to_text(owner->endpoint) +
                                               " is in control. Stop it, or wait until it has been silent for " +
                                               std::to_string(timeout_steps_) + " steps; or connect as an observer."),
                     header, arrival);
    return DecodeStatus::control_taken;
  }
  const Participant* known = participants_.find(arrival.sender);
  const bool observes_already = known != nullptr && known->role == wire::OBSERVER;
  if (request_.role == wire::OBSERVER && !observes_already && participants_.observers() >= kMaxObservers) {
    outgoing_.answer(codec_.encode_refusal(wire::FULL, "there are " + std::to_string(kMaxObservers) +
                                                           " observers already. Stop one of them."),
                     header, arrival);
    return DecodeStatus::full;
  }
  return std::nullopt;
}

// The rig of `old` says Hello anew: from its own port, or from another one after it was restarted.
bool Requests::is_restarted(const Participant& old, const Arrival& arrival) const {
  if (old.endpoint == arrival.sender) return true;
  return old.endpoint.address() == arrival.sender.address() && old.name == request_.rig_name &&
         arrival.came_ns - old.last_heard_ns >= participants_.timeout_ns() / wire::kRestartShare;
}

DecodeStatus Requests::admit(const wire::FrameHeader& header, const Arrival& arrival) {
  Participant* const owner = participants_.controller();
  if (request_.role == wire::CONTROLLER && owner != nullptr && owner->endpoint != arrival.sender)
    outgoing_.send(
        codec_.encode_goodbye("another rig of the same name, at " + to_text(arrival.sender) + ", has taken its place"),
        *owner);  // one that still lives must not wonder
  cookies_.renew();
  Participant* const admitted = participants_.admit(request_, arrival.sender, arrival.came_ns);
  if (admitted == nullptr) {
    outgoing_.answer(codec_.encode_refusal(wire::FULL,
                                           "the server's system gives no socket for this rig. See its "
                                           "limit of open files and its routes to this address."),
                     header, arrival);
    return DecodeStatus::full;
  }
  welcome(*admitted, arrival.came_ns);
  return DecodeStatus::ok;
}

// What an operator asks for.
DecodeStatus Requests::handle_command(const wire::FrameHeader& header, const Arrival& arrival) {
  if (!cookies_.fits(arrival.sender, request_)) return challenge(header, arrival);
  cookies_.renew();
  const bool resets = request_.content == wire::RigToServer::kResetFault;
  if (resets && hooks_.reset_fault) hooks_.reset_fault(request_.number);
  if (!resets && !(hooks_.write_black_box && hooks_.write_black_box(request_.number))) {
    outgoing_.answer(codec_.encode_refusal(wire::NO_BLACK_BOX,
                                           "it keeps no black box. Give its rig file a `black_box { folder: ... }`."),
                     header, arrival);
    return DecodeStatus::unexpected_content;
  }
  const auto kind = resets ? RigEvent::Kind::reset_fault : RigEvent::Kind::black_box;
  if (hooks_.on_event) hooks_.on_event({.kind = kind, .address = to_text(arrival.sender)});
  status_.outdate();  // the next report shall tell
  outgoing_.answer(codec_.encode_status(status_.report(arrival.came_ns)), header, arrival);
  return DecodeStatus::ok;
}

void Requests::welcome(Participant& participant, std::int64_t now_ns) {
  const Participant* owner = participants_.controller();
  const wire::Participant in_control = owner != nullptr ? describe(*owner, now_ns) : wire::Participant();
  outgoing_.send(codec_.encode_welcome(participant.nonce, timeout_steps_, owner != nullptr ? &in_control : nullptr,
                                       sessions_.in_lockstep(), sessions_.step()),
                 participant);
}

void Requests::explain(DecodeStatus wrong, const wire::Frame& frame, const Arrival& arrival) {
  const bool told = wrong == DecodeStatus::authentication || wrong == DecodeStatus::bad_version;
  if (!told || arrival.datagram.size() != wire::kMaxDatagram || !hints_.take(arrival.came_ns)) return;
  if (wrong == DecodeStatus::authentication)
    explain_authentication(arrival);
  else
    explain_version(frame, arrival);
}

void Requests::explain_authentication(const Arrival& arrival) {
  outgoing_.hint(
      codec_.encode_refusal(wire::AUTHENTICATION,
                            has_key_ ? "this server takes datagrams only with its key, and the tag of this one does "
                                       "not fit. Give the key file of the server's rig file."
                                     : "this server uses no key, and the tag of this datagram does not fit. Leave the "
                                       "key file away, or name it in the server's rig file, too."),
      arrival);
}

void Requests::explain_version(const wire::Frame& frame, const Arrival& arrival) {
  codec_.decode(frame.payload, 0, request_);
  if (request_.content != wire::RigToServer::kHello) return;
  outgoing_.answer(
      codec_.encode_refusal(wire::VERSION, "this server, Rigstep " + codec_.product_version() +
                                               ", speaks protocol version " + std::to_string(wire::kProtocolVersion) +
                                               "; the rig's software, " + request_.product_version +
                                               ", speaks another. Install the same release on both sides."),
      frame.header, arrival);
}

}  // namespace rigstep::server
