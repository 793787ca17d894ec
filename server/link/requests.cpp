#include "server/link/requests.h"

#include <sodium.h>

#include <string>
#include <utility>

#include "rt/clock.h"

namespace rigstep::server {

using wire::DecodeStatus;

namespace {

constexpr std::int64_t kAcceptAgainAfterNs = 50'000'000;  // a Hello that is repeated

std::span<const std::byte> bytes_of(const UdpAddress& address) {
  return {reinterpret_cast<const std::byte*>(address.data()), address.size()};
}

constexpr const char* kNeedsKey =
    "this server takes rigs only with a key that it knows, and this one shows none. Give the participant's file that "
    "`rigstep keygen` wrote with the server's key file.";
constexpr const char* kWrongKey =
    "this server takes rigs only with a key that it knows, and does not know this one. Give the participant's file "
    "that "
    "`rigstep keygen` wrote with the server's key file, as it is now.";
constexpr const char* kUsesNoKey =
    "this server uses no key for rigs, and does not know this one. Leave the key file away, or name the server's in "
    "its "
    "rig file.";

}  // namespace

Requests::Requests(wire::ServerCodec& codec, const LinkKeys& keys, std::uint32_t timeout_steps,
                   Participants& participants, Outgoing& outgoing, LiveStatus& status)
    : codec_(codec),
      keys_(keys),
      timeout_steps_(timeout_steps),
      participants_(participants),
      outgoing_(outgoing),
      status_(status),
      cookies_(rt::MonotonicClock::now_ns()) {
  handshakes_of_key_.fill(AnswerBudget(kHandshakesPerSecond, kHandshakesAtOnce));
}

DecodeStatus Requests::handle(const Arrival& arrival) {
  wire::Frame frame;
  const DecodeStatus opened = wire::open_frame(arrival.datagram, wire::Sender::server, nullptr, frame);
  // only what is filled up may be answered: the answer is never the larger one
  const bool full = arrival.datagram.size() == wire::kMaxDatagram;
  if (opened == DecodeStatus::bad_version || opened == DecodeStatus::authentication) {
    const bool other_version = arrival.datagram[2] != std::byte{wire::kProtocolVersion};
    if (full && other_version && hints_.take(arrival.came_ns)) {
      wire::read_header(arrival.datagram, wire::Sender::server, frame.header);
      frame.payload = arrival.datagram.subspan(wire::kFrameHeaderBytes, wire::kMaxPayload);
      codec_.decode(frame.payload, 0, request_);
      explain_version(opened == DecodeStatus::bad_version, frame.header, arrival);
    }
    return other_version ? DecodeStatus::bad_version : opened;
  }
  if (opened != DecodeStatus::ok) return opened;
  if (!full) return DecodeStatus::wrong_size;
  if (const auto status = codec_.decode(frame.payload, 0, request_); status != DecodeStatus::ok) return status;
  switch (request_.content) {
    case wire::RigToServer::kHello:
      return handle_hello(frame.header, arrival);
    case wire::RigToServer::kStatusQuery:
      if (keys_.required) return refuse_without_proof(kNeedsKey, frame.header, arrival);
      if (!answers_.take(arrival.came_ns)) return DecodeStatus::too_frequent;
      outgoing_.answer(codec_.encode_status(status_.report(arrival.came_ns)), frame.header, arrival);
      return DecodeStatus::ok;
    default:
      return DecodeStatus::unexpected_content;
  }
}

DecodeStatus Requests::handle_hello(const wire::FrameHeader& header, const Arrival& arrival) {
  if (request_.cookie.empty()) return challenge(header, arrival);
  switch (cookies_.check(request_.cookie, bytes_of(arrival.sender), request_.nonce, arrival.came_ns)) {
    case wire::Cookies::Check::wrong:
      challenge(header, arrival);
      return DecodeStatus::unproven_address;
    case wire::Cookies::Check::used:
      return handle_used_cookie(header, arrival);
    case wire::Cookies::Check::good:
      break;
  }
  return handle_proven_address(header, arrival);
}

DecodeStatus Requests::challenge(const wire::FrameHeader& header, const Arrival& arrival) {
  if (!answers_.take(arrival.came_ns)) return DecodeStatus::too_frequent;
  const auto cookie = cookies_.issue(bytes_of(arrival.sender), request_.nonce, arrival.came_ns);
  outgoing_.answer(codec_.encode_challenge(request_.nonce, cookie), header, arrival);
  return DecodeStatus::ok;
}

// The Accept was lost, or somebody repeats what he has captured.
DecodeStatus Requests::handle_used_cookie(const wire::FrameHeader& header, const Arrival& arrival) {
  Pending* const pending = participants_.find_pending_hello(arrival.sender, request_.nonce, arrival.came_ns);
  if (pending == nullptr || arrival.came_ns - pending->answered_ns < kAcceptAgainAfterNs) return DecodeStatus::replayed;
  send_accept(*pending, header, arrival);
  return DecodeStatus::ok;
}

DecodeStatus Requests::handle_proven_address(const wire::FrameHeader& header, const Arrival& arrival) {
  const wire::ParticipantKey* key = nullptr;
  if (!request_.key_id.empty()) {
    key = (*keys_).find(request_.key_id);
    if (key == nullptr) return refuse_without_proof(keys_.required ? kWrongKey : kUsesNoKey, header, arrival);
    if (!wire::is_proven(arrival.datagram, key->proof_key)) return refuse_without_proof(kWrongKey, header, arrival);
  } else if (keys_.required) {
    return refuse_without_proof(kNeedsKey, header, arrival);
  }
  if (!may_try(key, arrival.came_ns)) return DecodeStatus::too_frequent;
  if (!cookies_.use(std::span<const std::uint8_t, wire::kCookieBytes>(request_.cookie), arrival.came_ns))
    return DecodeStatus::too_frequent;
  return accept(key, header, arrival);
}

bool Requests::may_try(const wire::ParticipantKey* key, std::int64_t now_ns) {
  if (key == nullptr) return handshakes_.take(now_ns);
  return handshakes_of_key_[static_cast<std::size_t>(key - (*keys_).all().data())].take(now_ns);
}

// Who has asked is who he says, as far as this server can know.
DecodeStatus Requests::accept(const wire::ParticipantKey* key, const wire::FrameHeader& header,
                              const Arrival& arrival) {
  Pending fresh = read_hello(key, arrival);
  if (const auto why = refusal_of_hello(key, fresh, arrival.came_ns)) return refuse(*why, key, header, arrival);
  if (key != nullptr && !exchange_keys(*key, fresh, arrival)) return DecodeStatus::unexpected_content;
  send_accept(participants_.add_pending(std::move(fresh), arrival.came_ns), header, arrival);
  return DecodeStatus::ok;
}

Pending Requests::read_hello(const wire::ParticipantKey* key, const Arrival& arrival) const {
  Pending pending;
  Participant& fresh = pending.participant;
  std::uint64_t session = 0;
  while (session == 0) randombytes_buf(&session, sizeof session);
  fresh.endpoint = arrival.sender;
  fresh.name = request_.rig_name;
  fresh.product_version = request_.product_version;
  fresh.role = request_.role;
  fresh.nonce = request_.nonce;
  fresh.end = wire::SessionEnd(wire::Sender::server, session);
  fresh.last_heard_ns = arrival.came_ns;
  fresh.commands = fresh.role == wire::CONTROLLER || (key != nullptr && key->role == wire::KeyRole::operator_);
  pending.token = request_.token;
  if (key != nullptr) {
    fresh.has_key = true;
    fresh.key_id = key->id;
    fresh.key_name = key->name();
  }
  return pending;
}

std::optional<HelloRefusal> Requests::refusal_of_hello(const wire::ParticipantKey* key, const Pending& fresh,
                                                       std::int64_t now_ns) {
  if (participants_.was_displaced(request_.former_session))
    return HelloRefusal{DecodeStatus::control_taken, wire::DISPLACED,
                        "another rig with its key or secret has taken its place. Stop that one before this one is "
                        "started again."};
  if (key != nullptr && !permits(key->role, fresh.participant.role))
    return HelloRefusal{DecodeStatus::not_permitted, wire::NOT_PERMITTED,
                        "the role of the key \"" + fresh.participant.key_name + "\" is " + to_string(key->role) +
                            ", and to be in control takes that of a controller. Give such a key, or observe."};
  if (key == nullptr && fresh.participant.role == wire::CONSOLE)
    return HelloRefusal{DecodeStatus::not_permitted, wire::NOT_PERMITTED,
                        "a console takes a key. Give an operator's key."};
  return refusal(fresh.participant, fresh.token, now_ns);
}

// The server's half of X25519. False: the rig's public key is none.
bool Requests::exchange_keys(const wire::ParticipantKey& key, Pending& fresh, const Arrival& arrival) {
  wire::PublicKey other{};
  if (request_.public_key.size() != other.size()) return false;
  std::copy(request_.public_key.begin(), request_.public_key.end(), other.begin());
  fresh.participant.keys = participants_.take_keys();
  if (fresh.participant.keys == nullptr) return false;
  *pair_ = wire::make_key_pair();
  fresh.server_public = pair_->public_key;
  const bool derived = wire::derive_session_keys(
      key.key, pair_->secret, other, std::span<const std::byte, wire::kMaxDatagram>(arrival.datagram),
      fresh.participant.end.session(), fresh.server_public, *fresh.participant.keys);
  sodium_memzero(&*pair_, sizeof *pair_);
  return derived;
}

std::optional<HelloRefusal> Requests::refusal(const Participant& fresh, std::span<const std::uint8_t> token,
                                              std::int64_t now_ns) {
  const Participant* const owner = participants_.controller();
  if (fresh.role == wire::CONTROLLER && owner != nullptr && !participants_.may_displace(*owner, fresh, token, now_ns))
    return HelloRefusal{DecodeStatus::control_taken, wire::CONTROL_TAKEN,
                        "the rig \"" + owner->name + "\" at " + to_text(owner->endpoint) +
                            " is in control. Stop it, or wait until it has been silent for " +
                            std::to_string(timeout_steps_) + " steps; or connect as an observer."};
  const Participant* const known = participants_.find(fresh.endpoint);
  const bool has_place = known != nullptr && known->role == fresh.role;
  if (fresh.role == wire::OBSERVER && !has_place && participants_.count(wire::OBSERVER) >= kMaxObservers)
    return HelloRefusal{DecodeStatus::full, wire::FULL,
                        "there are " + std::to_string(kMaxObservers) + " observers already. Stop one of them."};
  if (fresh.role == wire::CONSOLE && !has_place && participants_.count(wire::CONSOLE) >= kMaxConsoles)
    return HelloRefusal{DecodeStatus::full, wire::FULL,
                        "there are " + std::to_string(kMaxConsoles) + " consoles already. Try again."};
  return std::nullopt;
}

DecodeStatus Requests::refuse(const HelloRefusal& why, const wire::ParticipantKey* key, const wire::FrameHeader& header,
                              const Arrival& arrival) {
  outgoing_.answer(codec_.encode_refusal(why.reason, why.text, request_.nonce, key != nullptr), header, arrival,
                   key != nullptr ? &key->proof_key : nullptr);
  return why.status;
}

void Requests::send_accept(Pending& pending, const wire::FrameHeader& header, const Arrival& arrival) {
  const Participant& accepted = pending.participant;
  const bool keyed = accepted.has_key;
  pending.answered_ns = arrival.came_ns;
  outgoing_.answer(
      codec_.encode_accept(accepted.nonce, accepted.end.session(), keyed ? &pending.server_public : nullptr), header,
      arrival, keyed ? &accepted.keys->accept : nullptr);
}

// Whoever this is may have no key: it takes this for a hint only.
DecodeStatus Requests::refuse_without_proof(const char* text, const wire::FrameHeader& header, const Arrival& arrival) {
  if (hints_.take(arrival.came_ns))
    outgoing_.answer(codec_.encode_refusal(wire::AUTHENTICATION, text, request_.nonce, false), header, arrival);
  return DecodeStatus::authentication;
}

// Version 2 with a key believes no reason but AUTHENTICATION; its tag is no checksum.
void Requests::explain_version(bool checksum_is_right, const wire::FrameHeader& header, const Arrival& arrival) {
  if (request_.content != wire::RigToServer::kHello && checksum_is_right) return;
  const bool named = request_.content == wire::RigToServer::kHello && !request_.product_version.empty();
  outgoing_.answer_version(
      codec_.encode_refusal(checksum_is_right ? wire::VERSION : wire::AUTHENTICATION,
                            "this server, Rigstep " + codec_.product_version() + ", speaks protocol version " +
                                std::to_string(wire::kProtocolVersion) + "; the rig's software" +
                                (named ? ", " + request_.product_version + "," : std::string()) +
                                " speaks another. Install the same release on both sides."),
      static_cast<std::uint8_t>(arrival.datagram[2]), header, arrival);
}

}  // namespace rigstep::server
