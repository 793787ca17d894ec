// The socket of a rig: what it waits for, and what ends a wait.
#include "server/rig/client_socket.h"

#include <doctest/doctest.h>

#include <asio.hpp>
#include <optional>

namespace rigstep::server {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// What stands in for a server: it answers whoever sent to it last.
class Peer {
 public:
  Peer() : socket_(context_, {asio::ip::make_address("127.0.0.1"), 0}) {}
  std::uint16_t port() const { return socket_.local_endpoint().port(); }
  void hear() {
    std::array<std::byte, 2048> datagram;
    socket_.receive_from(asio::buffer(datagram), rig_);
  }
  void answer(std::uint64_t number) {
    std::array<std::byte, wire::kMaxDatagram> buffer;
    const auto datagram =
        wire::seal_frame({.sender = wire::Sender::server, .session = 1, .number = number}, {}, nullptr, buffer);
    socket_.send_to(asio::buffer(datagram.data(), datagram.size()), rig_);
  }
  void answer_with_nothing() { socket_.send_to(asio::buffer("", 0), rig_); }

 private:
  asio::io_context context_;
  asio::ip::udp::socket socket_;
  asio::ip::udp::endpoint rig_;
};

void greet(ClientSocket& socket, Peer& peer) {
  REQUIRE(socket.send({.sender = wire::Sender::rig}, {}));
  peer.hear();
}

}  // namespace

TEST_CASE("a wait, however long, ends with the datagram that came, and the next receive gives it") {
  Peer peer;
  ClientSocket socket("127.0.0.1", peer.port());
  greet(socket, peer);
  for (const std::int64_t patience : {5 * kMs, 10'000 * kMs}) {  // in one call, and in two
    peer.answer(7);
    peer.answer(8);
    const std::int64_t begin = now_ns();
    socket.wait_until(begin + patience);
    socket.wait_until(begin + 10'000 * kMs);  // one is there already
    CHECK(now_ns() - begin < 5'000 * kMs);
    for (const std::uint64_t number : {7u, 8u}) {
      const auto arrival = socket.receive();
      REQUIRE(arrival);
      CHECK(arrival->status == wire::DecodeStatus::ok);
      CHECK(arrival->frame.header.number == number);
      CHECK(arrival->came_ns >= begin);
    }
    CHECK_FALSE(socket.receive());
  }
}

TEST_CASE("a wait for nothing lasts until its time, short or long") {
  Peer peer;
  ClientSocket socket("127.0.0.1", peer.port());
  greet(socket, peer);
  for (const std::int64_t patience : {2 * kMs, 30 * kMs}) {
    const std::int64_t until = now_ns() + patience;
    socket.wait_until(until);
    CHECK(now_ns() >= until);
    CHECK_FALSE(socket.receive());
  }
}

TEST_CASE("an empty datagram is one of the wrong size") {
  Peer peer;
  ClientSocket socket("127.0.0.1", peer.port());
  greet(socket, peer);
  peer.answer_with_nothing();
  socket.wait_until(now_ns() + 10'000 * kMs);
  const auto arrival = socket.receive();
  REQUIRE(arrival);
  CHECK(arrival->status == wire::DecodeStatus::wrong_size);
}

TEST_CASE("a wait ends when nobody listens there, and the error says so") {
  std::optional<Peer> peer(std::in_place);
  ClientSocket socket("127.0.0.1", peer->port());
  peer.reset();
  REQUIRE(socket.send({.sender = wire::Sender::rig}, {}));
  const std::int64_t begin = now_ns();
  socket.wait_until(begin + 10'000 * kMs);
  CHECK(now_ns() - begin < 5'000 * kMs);
  CHECK_FALSE(socket.receive());
  CHECK(socket.no_answer().find("nothing listens") != std::string::npos);
}

}  // namespace rigstep::server
