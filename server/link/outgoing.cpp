#include "server/link/outgoing.h"

#include "rt/clock.h"

namespace rigstep::server {

void Outgoing::send(std::span<const std::byte> payload, Participant& receiver) {
  const wire::FrameHeader header = receiver.end.next_header(rt::MonotonicClock::now_ns());
  const wire::Key* const key = receiver.keys ? &receiver.keys->server_to_rig : nullptr;
  counters_.count_sent(sockets_.send(receiver.socket, wire::seal_frame(header, payload, key, buffer_)));
}

void Outgoing::send_to_stranger(std::span<const std::byte> payload, Participant& receiver) {
  const wire::FrameHeader header = receiver.end.next_header(rt::MonotonicClock::now_ns());
  const wire::Key* const key = receiver.keys ? &receiver.keys->server_to_rig : nullptr;
  counters_.count_sent(sockets_.send_to_stranger(receiver.endpoint, wire::seal_frame(header, payload, key, buffer_)));
}

wire::FrameHeader Outgoing::answering(const wire::FrameHeader& header, const Arrival& request) {
  return {.sender = wire::Sender::server,
          .sent_ns = rt::MonotonicClock::now_ns(),
          .echo_sent_ns = header.sent_ns,
          .echo_came_ns = request.came_ns};
}

void Outgoing::answer(std::span<const std::byte> payload, const wire::FrameHeader& header, const Arrival& request,
                      const wire::Key* proof_key) {
  const wire::FrameHeader answer = answering(header, request);
  const auto datagram = proof_key != nullptr ? wire::seal_proven_frame(answer, payload, *proof_key, buffer_)
                                             : wire::seal_frame(answer, payload, nullptr, buffer_);
  counters_.count_sent(sockets_.send_to_stranger(request.sender, datagram));
}

void Outgoing::answer_version(std::span<const std::byte> payload, std::uint8_t version, const wire::FrameHeader& header,
                              const Arrival& request) {
  const auto datagram = wire::seal_frame(answering(header, request), payload, nullptr, buffer_);
  counters_.count_sent(sockets_.send_to_stranger(request.sender, wire::with_version(datagram, version, buffer_)));
}

}  // namespace rigstep::server
