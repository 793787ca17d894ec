// Puts frames around what the link says and sends them: in a session, or as an answer outside of one.
// Owned by the endpoint and used by its thread.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "proto/frame.h"
#include "server/link/counters.h"
#include "server/link/participants.h"
#include "server/link/udp_sockets.h"

namespace rigstep::server {

class Outgoing {
 public:
  // All outlive it.
  Outgoing(UdpSockets& sockets, LinkCounters& counters) : sockets_(sockets), counters_(counters) {}

  void send(std::span<const std::byte> payload, Participant& receiver);
  // In a session that has no socket of its own: not any more, or not yet.
  void send_to_stranger(std::span<const std::byte> payload, Participant& receiver);
  // To whoever sent `request`, outside a session. proof_key: null where the payload has no proof.
  void answer(std::span<const std::byte> payload, const wire::FrameHeader& header, const Arrival& request,
              const wire::Key* proof_key = nullptr);
  // The same to a rig of another version.
  void answer_version(std::span<const std::byte> payload, std::uint8_t version, const wire::FrameHeader& header,
                      const Arrival& request);

 private:
  UdpSockets& sockets_;
  static wire::FrameHeader answering(const wire::FrameHeader& header, const Arrival& request);

  LinkCounters& counters_;
  std::array<std::byte, wire::kMaxDatagram> buffer_{};
};

}  // namespace rigstep::server
