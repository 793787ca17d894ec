#include "server/link/outgoing.h"

#include "rt/clock.h"

namespace rigstep::server {

void Outgoing::send(std::span<const std::byte> payload, Participant& receiver) {
  const wire::FrameHeader header = receiver.end.next_header(rt::MonotonicClock::now_ns());
  counters_.count_sent(sockets_.send(receiver.socket, wire::seal_frame(header, payload, key_, buffer_)));
}

void Outgoing::answer(std::span<const std::byte> payload, const wire::FrameHeader& header, const Arrival& request) {
  const wire::FrameHeader answer{.sender = wire::Sender::server,
                                 .sent_ns = rt::MonotonicClock::now_ns(),
                                 .echo_sent_ns = header.sent_ns,
                                 .echo_came_ns = request.came_ns};
  counters_.count_sent(sockets_.send_to_stranger(request.sender, wire::seal_frame(answer, payload, key_, buffer_)));
}

void Outgoing::hint(std::span<const std::byte> payload, const Arrival& request) {
  const wire::FrameHeader header{.sender = wire::Sender::server, .sent_ns = request.came_ns};
  counters_.count_sent(sockets_.send_to_stranger(request.sender, wire::seal_frame(header, payload, {}, buffer_)));
}

}  // namespace rigstep::server
