// Who has a session: at most one controller, and observers. Each has a socket of its own from when it is admitted until
// it leaves. Owned by the endpoint and used by its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "proto/codec.h"
#include "proto/frame.h"
#include "server/link/hooks.h"
#include "server/link/udp_sockets.h"

namespace rigstep::server {

inline constexpr std::size_t kMaxObservers = 8;
inline constexpr std::size_t kMaxParticipants = kMaxObservers + 1;

// "10.0.0.7:40112"
std::string to_text(const UdpAddress& address);

struct Participant {
  UdpAddress endpoint;
  UdpSockets::Socket socket = 0;
  std::string name;
  std::string product_version;
  wire::Role role = wire::CONTROLLER;
  std::uint64_t nonce = 0;  // of its Hello
  wire::SessionEnd end;
  std::uint64_t last_sequence = 0;
  std::int64_t last_heard_ns = 0;
};

class Participants {
 public:
  // Both outlive it. on_event: absent, or told who comes and goes.
  Participants(UdpSockets& sockets, const std::function<void(const RigEvent&)>& on_event, std::int64_t timeout_ns);

  bool empty() const noexcept { return list_.empty(); }
  std::vector<Participant>& all() noexcept { return list_; }
  Participant* find(const UdpAddress& sender);
  Participant* controller();
  std::size_t observers() const;

  // Gives the Hello a session. What its sender had before ends, and so does the controller whose place it takes.
  // Null: the system gives no socket for it.
  Participant* admit(const wire::RigRequest& hello, const UdpAddress& sender, std::int64_t now_ns);
  void remove(Participant& participant, RigEvent::Kind how);
  void drop_silent(std::int64_t now_ns);
  void clear();

  std::int64_t timeout_ns() const noexcept { return timeout_ns_; }

 private:
  void emit(RigEvent::Kind kind, const Participant& participant) const;

  UdpSockets& sockets_;
  const std::function<void(const RigEvent&)>& on_event_;
  const std::int64_t timeout_ns_;
  std::vector<Participant> list_;
};

}  // namespace rigstep::server
