// Puts frames around what the link says and sends them: in a session, or as an answer outside of one.
// Owned by the endpoint and used by its thread.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "proto/frame.h"
#include "server/link/counters.h"
#include "server/link/participants.h"
#include "server/link/udp_sockets.h"

namespace rigstep::server {

class Outgoing {
 public:
  // All outlive it. key: absent where datagrams are not authenticated.
  Outgoing(UdpSockets& sockets, const std::optional<wire::Key>& key, LinkCounters& counters)
      : sockets_(sockets), key_(key), counters_(counters) {}

  void send(std::span<const std::byte> payload, Participant& receiver);
  // To whoever sent `request`, outside a session.
  void answer(std::span<const std::byte> payload, const wire::FrameHeader& header, const Arrival& request);
  // The same without a key, for those who may have none: they take it for a hint only.
  void hint(std::span<const std::byte> payload, const Arrival& request);

 private:
  UdpSockets& sockets_;
  const std::optional<wire::Key>& key_;
  LinkCounters& counters_;
  std::array<std::byte, wire::kMaxDatagram> buffer_{};
};

}  // namespace rigstep::server
