// Who has a session: at most one controller, observers, and operators' consoles. Each has a socket of its own from when
// it has joined until it leaves. Beside them those that have not joined yet, and those that have lost their place and
// are to be told. Owned by the endpoint and used by its thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/codec.h"
#include "proto/frame.h"
#include "proto/key_file.h"
#include "server/link/hooks.h"
#include "server/link/session_keys.h"
#include "server/link/udp_sockets.h"

namespace rigstep::server {

inline constexpr std::size_t kMaxObservers = 8;
inline constexpr std::size_t kMaxConsoles = 4;
inline constexpr std::size_t kMaxParticipants = 1 + kMaxObservers + kMaxConsoles;
inline constexpr std::size_t kMaxPending = 256;  // sessions that have not joined yet
inline constexpr std::size_t kMaxPendingWithKey = 32;
inline constexpr std::size_t kMaxEnded = 16;  // sessions that are told that they have ended
static_assert(SessionKeyPool::kSize > kMaxPendingWithKey + kMaxParticipants + kMaxEnded);
inline constexpr std::int64_t kJoinWithinNs = 2'000'000'000;
inline constexpr std::int64_t kToldForNs = 300'000'000'000;

using Token = std::array<std::uint8_t, wire::kTokenBytes>;

// "10.0.0.7:40112"
std::string to_text(const UdpAddress& address);

// What a role in the key file permits.
bool permits(wire::KeyRole key, wire::Role session) noexcept;

struct Participant {
  UdpAddress endpoint;
  UdpSockets::Socket socket = 0;
  std::string name;
  std::string product_version;
  wire::Role role = wire::CONTROLLER;
  std::uint64_t nonce = 0;  // of its Hello
  wire::SessionEnd end;
  bool has_key = false;
  wire::KeyId key_id = {};
  std::string key_name = {};
  SessionKeyPool::Pointer keys = {};  // where it has a key
  bool commands = false;              // may reset faults and have black boxes written
  Token token = {};                   // of a controller without a key: who shows it may take its place
  std::uint64_t last_sequence = 0;
  std::int64_t poses_until_ns = 0;  // it has subscribed to poses until then
  std::int64_t last_heard_ns = 0;   // of one that has not joined: when it was accepted
};

// Has been accepted and has not joined.
struct Pending {
  Participant participant;
  wire::PublicKey server_public = {};
  std::vector<std::uint8_t> token = {};  // that its Hello has shown
  std::int64_t answered_ns = 0;
};

// Has lost its place.
struct Ended {
  Participant participant;
  wire::GoodbyeReason reason = wire::ENDED;
  std::string words;
  std::int64_t since_ns = 0, told_ns = 0;
};

class Participants {
 public:
  // Both outlive it. on_event: absent, or told who comes and goes.
  Participants(UdpSockets& sockets, const std::function<void(const RigEvent&)>& on_event, std::int64_t timeout_ns);

  bool empty() const noexcept { return list_.empty(); }
  std::vector<Participant>& all() noexcept { return list_; }
  Participant* find(const UdpAddress& sender);
  Participant* controller();
  std::size_t count(wire::Role role) const;
  bool keys_locked() const noexcept { return keys_.locked(); }

  // For one that has a key, and comes into add_pending() next.
  SessionKeyPool::Pointer take_keys() noexcept { return keys_.take(); }
  Pending& add_pending(Pending pending, std::int64_t now_ns);
  // One that has not waited for too long.
  Pending* find_pending(const UdpAddress& sender, std::uint64_t session, std::int64_t now_ns);
  Pending* find_pending_hello(const UdpAddress& sender, std::uint64_t nonce, std::int64_t now_ns);
  void forget(const Pending& pending);
  bool has_pending() const noexcept { return !pending_.empty(); }

  Ended* find_ended(const UdpAddress& sender, std::uint64_t session, std::int64_t now_ns);
  bool was_displaced(std::uint64_t session) const;

  // May who shows this key or this token take the place of `owner`, which is in control?
  bool may_displace(const Participant& owner, const Participant& other, std::span<const std::uint8_t> token,
                    std::int64_t now_ns) const;
  // Gives it its place. What its sender had before ends, and so does the controller whose place it takes.
  // Null: the system gives no socket for it.
  Participant* admit(Pending& pending, std::int64_t now_ns);
  void remove(Participant& participant, RigEvent::Kind how);
  // Those of a key that is not there any more, or that does not permit what they do; `tell` is called before.
  void keep_only(const wire::KeyRing& ring, std::int64_t now_ns, const std::function<void(Participant&)>& tell);
  void drop_silent(std::int64_t now_ns);
  void clear();

  std::int64_t timeout_ns() const noexcept { return timeout_ns_; }

 private:
  void emit(RigEvent::Kind kind, const Participant& participant) const;
  void end(Participant& participant, wire::GoodbyeReason reason, std::string words, std::int64_t now_ns);

  UdpSockets& sockets_;
  const std::function<void(const RigEvent&)>& on_event_;
  const std::int64_t timeout_ns_;
  SessionKeyPool keys_;
  std::vector<Participant> list_;
  std::vector<Pending> pending_;  // the oldest first
  std::vector<Ended> ended_;      // likewise
};

}  // namespace rigstep::server
