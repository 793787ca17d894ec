// Who waits for a session and who is told that his has ended: bounded in number and time, by any clock.
#include "server/link/participants.h"

#include <doctest/doctest.h>

#include "proto/cookies.h"
#include "server/link/requests.h"

namespace rigstep::server {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

UdpAddress at_port(std::uint16_t port) { return {asio::ip::address_v4::loopback(), port}; }

Pending pending_of(std::uint16_t port, bool has_key = false) {
  Pending pending;
  pending.participant.endpoint = at_port(port);
  pending.participant.role = wire::OBSERVER;
  pending.participant.nonce = port;
  pending.participant.end = wire::SessionEnd(wire::Sender::server, std::uint64_t{1000} + port);
  pending.participant.has_key = has_key;
  return pending;
}

struct Table {
  UdpSockets sockets;
  std::function<void(const RigEvent&)> on_event;
  Participants participants{sockets, on_event, 2 * kSecond};

  void add(std::uint16_t port, std::int64_t now_ns, bool has_key = false) {
    Pending pending = pending_of(port, has_key);
    pending.participant.last_heard_ns = now_ns;
    participants.add_pending(std::move(pending), now_ns);
  }
  bool waits(std::uint16_t port, std::int64_t now_ns) {
    const bool by_session = participants.find_pending(at_port(port), 1000U + port, now_ns) != nullptr;
    CHECK(by_session == (participants.find_pending_hello(at_port(port), port, now_ns) != nullptr));
    return by_session;
  }
};

TEST_CASE("a session that is not joined within two seconds is forgotten") {
  Table table;
  table.add(1, 0);
  CHECK(table.waits(1, 2 * kSecond - 1));
  CHECK(!table.waits(1, 2 * kSecond));
}

TEST_CASE("a session waits for its own address and number only") {
  Table table;
  table.add(1, 0);
  CHECK(table.participants.find_pending(at_port(2), 1001, 0) == nullptr);
  CHECK(table.participants.find_pending(at_port(1), 1002, 0) == nullptr);
}

TEST_CASE("however many handshakes there are, so many sessions wait, the newest, and one for each address") {
  Table table;
  for (std::uint16_t port = 1; port <= kMaxPending + 5; ++port) table.add(port, port);
  for (std::uint16_t port = 1; port <= kMaxPending + 5; ++port) CHECK(table.waits(port, kSecond) == (port > 5));
  table.add(9, kSecond);  // again: nobody else goes
  for (std::uint16_t port = 6; port <= kMaxPending + 5; ++port) CHECK(table.waits(port, kSecond));
}

TEST_CASE("sessions with a key that wait hold no more keys than there are, and push out nobody without one") {
  Table table;
  table.add(1, 0);
  for (std::uint16_t port = 2; port <= kMaxPendingWithKey + 4; ++port) table.add(port, port, true);
  CHECK(table.waits(1, kSecond));
  for (std::uint16_t port = 2; port <= kMaxPendingWithKey + 4; ++port) CHECK(table.waits(port, kSecond) == (port > 4));
}

// server/live/README.md and proto/README.md state them.
TEST_CASE("the link's numbers are those of its pages") {
  CHECK(kMaxObservers == 8);
  CHECK(kJoinWithinNs == 2 * kSecond);
  CHECK(wire::kCookieSlotNs == 2 * kSecond);
  CHECK(wire::kMaxDatagram == 1200);
  CHECK(wire::kRestartShare == 10);
  CHECK(kAnswersPerSecond == 500);
  AnswerBudget answers;
  int answered = 0;
  for (int k = 0; k < 100'000; ++k) answered += answers.take(k * 100'000LL) ? 1 : 0;  // 10 s
  CHECK(answered <= 10 * kAnswersPerSecond + kAnswersAtOnce);
  CHECK(answered >= 10 * kAnswersPerSecond);
}

}  // namespace
}  // namespace rigstep::server
