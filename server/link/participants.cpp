#include "server/link/participants.h"

#include <sodium.h>

#include <algorithm>
#include <utility>

namespace rigstep::server {

std::string to_text(const UdpAddress& address) {
  const std::string host = address.address().to_string();
  const std::string port = std::to_string(address.port());
  return address.address().is_v6() ? "[" + host + "]:" + port : host + ":" + port;
}

bool permits(wire::KeyRole key, wire::Role session) noexcept {
  return session != wire::CONTROLLER || key == wire::KeyRole::controller;
}

Participants::Participants(UdpSockets& sockets, const std::function<void(const RigEvent&)>& on_event,
                           std::int64_t timeout_ns)
    : sockets_(sockets), on_event_(on_event), timeout_ns_(timeout_ns) {
  list_.reserve(kMaxParticipants);
  pending_.reserve(kMaxPending);
  ended_.reserve(kMaxEnded);
}

Participant* Participants::find(const UdpAddress& sender) {
  const auto found =
      std::find_if(list_.begin(), list_.end(), [&](const Participant& p) { return p.endpoint == sender; });
  return found == list_.end() ? nullptr : &*found;
}

Participant* Participants::controller() {
  const auto found =
      std::find_if(list_.begin(), list_.end(), [](const Participant& p) { return p.role == wire::CONTROLLER; });
  return found == list_.end() ? nullptr : &*found;
}

std::size_t Participants::count(wire::Role role) const {
  return static_cast<std::size_t>(
      std::count_if(list_.begin(), list_.end(), [role](const Participant& p) { return p.role == role; }));
}

Pending& Participants::add_pending(Pending pending, std::int64_t now_ns) {
  const auto has_key = [](const Pending& each) { return each.participant.has_key; };
  std::erase_if(pending_, [&](const Pending& each) {
    return each.participant.endpoint == pending.participant.endpoint ||
           now_ns - each.participant.last_heard_ns >= kJoinWithinNs;
  });
  if (has_key(pending) &&
      std::count_if(pending_.begin(), pending_.end(), has_key) == static_cast<std::ptrdiff_t>(kMaxPendingWithKey))
    pending_.erase(std::find_if(pending_.begin(), pending_.end(), has_key));
  if (pending_.size() == kMaxPending) pending_.erase(pending_.begin());
  pending_.push_back(std::move(pending));
  return pending_.back();
}

Pending* Participants::find_pending(const UdpAddress& sender, std::uint64_t session, std::int64_t now_ns) {
  const auto found = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& each) {
    return each.participant.end.session() == session && each.participant.endpoint == sender &&
           now_ns - each.participant.last_heard_ns < kJoinWithinNs;
  });
  return found == pending_.end() ? nullptr : &*found;
}

Pending* Participants::find_pending_hello(const UdpAddress& sender, std::uint64_t nonce, std::int64_t now_ns) {
  const auto found = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& each) {
    return each.participant.nonce == nonce && each.participant.endpoint == sender &&
           now_ns - each.participant.last_heard_ns < kJoinWithinNs;
  });
  return found == pending_.end() ? nullptr : &*found;
}

void Participants::forget(const Pending& pending) { pending_.erase(pending_.begin() + (&pending - pending_.data())); }

Ended* Participants::find_ended(const UdpAddress& sender, std::uint64_t session, std::int64_t now_ns) {
  const auto found = std::find_if(ended_.begin(), ended_.end(), [&](const Ended& each) {
    return each.participant.end.session() == session && each.participant.endpoint == sender &&
           now_ns - each.since_ns < kToldForNs;
  });
  return found == ended_.end() ? nullptr : &*found;
}

bool Participants::was_displaced(std::uint64_t session) const {
  return session != 0 && std::any_of(ended_.begin(), ended_.end(), [session](const Ended& each) {
           return each.participant.end.session() == session && each.reason == wire::TAKEN_OVER;
         });
}

// From its own address, or from another one after it was restarted. A name proves nothing.
bool Participants::may_displace(const Participant& owner, const Participant& other, std::span<const std::uint8_t> token,
                                std::int64_t now_ns) const {
  const bool proven = owner.has_key ? other.has_key && other.key_id == owner.key_id
                                    : !other.has_key && token.size() == owner.token.size() &&
                                          sodium_memcmp(token.data(), owner.token.data(), token.size()) == 0;
  return proven &&
         (owner.endpoint == other.endpoint || now_ns - owner.last_heard_ns >= timeout_ns_ / wire::kRestartShare);
}

Participant* Participants::admit(Pending& pending, std::int64_t now_ns) {
  Participant& fresh = pending.participant;
  const bool controls = fresh.role == wire::CONTROLLER;
  const auto socket = sockets_.connect(fresh.endpoint, controls ? LinkPriority::control : LinkPriority::observer);
  if (!socket) return nullptr;
  const auto makes_way = [&](const Participant& old) {
    return old.endpoint == fresh.endpoint || (controls && old.role == wire::CONTROLLER);
  };
  const bool anew = std::any_of(list_.begin(), list_.end(), makes_way);
  for (Participant& old : list_) {
    if (!makes_way(old)) continue;
    if (old.socket != *socket) sockets_.release(old.socket);
    end(old, wire::TAKEN_OVER,
        "another rig with its key or secret, at " + to_text(fresh.endpoint) + ", has taken its place", now_ns);
  }
  std::erase_if(list_, makes_way);
  fresh.socket = *socket;
  fresh.last_heard_ns = now_ns;
  if (controls && !fresh.has_key) randombytes_buf(fresh.token.data(), fresh.token.size());
  if (fresh.has_key) sodium_memzero(fresh.keys->accept.data(), fresh.keys->accept.size());
  list_.push_back(std::move(fresh));
  forget(pending);
  emit(anew ? RigEvent::Kind::reconnected : RigEvent::Kind::connected, list_.back());
  return &list_.back();
}

// It is erased next.
void Participants::end(Participant& participant, wire::GoodbyeReason reason, std::string words, std::int64_t now_ns) {
  if (ended_.size() == kMaxEnded) ended_.erase(ended_.begin());
  const UdpAddress endpoint = participant.endpoint;
  ended_.push_back(
      {.participant = std::move(participant), .reason = reason, .words = std::move(words), .since_ns = now_ns});
  participant.endpoint = endpoint;
}

void Participants::remove(Participant& participant, RigEvent::Kind how) {
  emit(how, participant);
  sockets_.release(participant.socket);
  list_.erase(list_.begin() + (&participant - list_.data()));
}

void Participants::keep_only(const wire::KeyRing& ring, std::int64_t now_ns,
                             const std::function<void(Participant&)>& tell) {
  const auto may_stay = [&ring](const Participant& each) {
    if (!each.has_key) return true;
    const wire::ParticipantKey* const key = ring.find(each.key_id);
    return key != nullptr && permits(key->role, each.role) &&
           (!each.commands || each.role == wire::CONTROLLER || key->role == wire::KeyRole::operator_);
  };
  std::erase_if(pending_, [&](const Pending& each) { return !may_stay(each.participant); });
  for (std::size_t i = list_.size(); i-- > 0;) {
    Participant& participant = list_[i];
    if (may_stay(participant)) continue;
    tell(participant);
    emit(RigEvent::Kind::key_removed, participant);
    sockets_.release(participant.socket);
    end(participant, wire::KEY_REMOVED, "its key is not in the key file any more, or has another role", now_ns);
    list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Participants::drop_silent(std::int64_t now_ns) {
  for (std::size_t i = list_.size(); i-- > 0;) {
    Participant& participant = list_[i];
    if (now_ns - participant.last_heard_ns < timeout_ns_) continue;
    emit(RigEvent::Kind::timed_out, participant);
    sockets_.release(participant.socket);
    end(participant, wire::TIMED_OUT, "it was silent for the time-out", now_ns);
    list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Participants::clear() {
  for (const Participant& participant : list_) sockets_.release(participant.socket);
  list_.clear();
  pending_.clear();
}

// Who only asks for the status comes and goes without a word.
void Participants::emit(RigEvent::Kind kind, const Participant& participant) const {
  if (!on_event_ || participant.role == wire::CONSOLE) return;
  on_event_({kind, participant.role == wire::OBSERVER, participant.name, participant.product_version,
             to_text(participant.endpoint)});
}

}  // namespace rigstep::server
