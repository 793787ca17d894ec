#include "server/link/participants.h"

#include <sodium.h>

#include <algorithm>
#include <optional>

namespace rigstep::server {

std::string to_text(const UdpAddress& address) {
  const std::string host = address.address().to_string();
  const std::string port = std::to_string(address.port());
  return address.address().is_v6() ? "[" + host + "]:" + port : host + ":" + port;
}

Participants::Participants(UdpSockets& sockets, const std::function<void(const RigEvent&)>& on_event,
                           std::int64_t timeout_ns)
    : sockets_(sockets), on_event_(on_event), timeout_ns_(timeout_ns) {
  list_.reserve(kMaxParticipants);
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

std::size_t Participants::observers() const {
  return static_cast<std::size_t>(
      std::count_if(list_.begin(), list_.end(), [](const Participant& p) { return p.role == wire::OBSERVER; }));
}

Participant* Participants::admit(const wire::RigRequest& hello, const UdpAddress& sender, std::int64_t now_ns) {
  const bool controls = hello.role == wire::CONTROLLER;
  const auto socket = sockets_.connect(sender, controls ? LinkPriority::control : LinkPriority::observer);
  if (!socket) return nullptr;
  const auto makes_way = [&](const Participant& old) {
    return old.endpoint == sender || (controls && old.role == wire::CONTROLLER);
  };
  for (const Participant& old : list_)
    if (makes_way(old) && old.socket != *socket) sockets_.release(old.socket);
  const bool anew = std::erase_if(list_, makes_way) > 0;
  std::uint64_t session = 0;
  while (session == 0) randombytes_buf(&session, sizeof session);
  list_.push_back({.endpoint = sender,
                   .socket = *socket,
                   .name = hello.rig_name,
                   .product_version = hello.product_version,
                   .role = hello.role,
                   .nonce = hello.nonce,
                   .end = wire::SessionEnd(wire::Sender::server, session),
                   .last_heard_ns = now_ns});
  emit(anew ? RigEvent::Kind::reconnected : RigEvent::Kind::connected, list_.back());
  return &list_.back();
}

void Participants::remove(Participant& participant, RigEvent::Kind how) {
  emit(how, participant);
  sockets_.release(participant.socket);
  list_.erase(list_.begin() + (&participant - list_.data()));
}

void Participants::drop_silent(std::int64_t now_ns) {
  for (std::size_t i = list_.size(); i-- > 0;)
    if (now_ns - list_[i].last_heard_ns >= timeout_ns_) remove(list_[i], RigEvent::Kind::timed_out);
}

void Participants::clear() {
  for (const Participant& participant : list_) sockets_.release(participant.socket);
  list_.clear();
}

void Participants::emit(RigEvent::Kind kind, const Participant& participant) const {
  if (!on_event_) return;
  on_event_({kind, participant.role == wire::OBSERVER, participant.name, participant.product_version,
             to_text(participant.endpoint)});
}

}  // namespace rigstep::server
