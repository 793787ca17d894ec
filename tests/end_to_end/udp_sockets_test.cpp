// The sockets of one port: the kernel sorts by sender, strangers have a share, nobody else gets the port.
#include "server/link/udp_sockets.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <asio.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rt/clock.h"

namespace rigstep::server {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

class Sender {
 public:
  Sender(const char* address, std::uint16_t port) { socket_.connect({asio::ip::make_address(address), port}); }
  void send(const std::string& text) { socket_.send(asio::buffer(text)); }
  UdpAddress address() const { return socket_.local_endpoint(); }
  std::string receive() {
    std::array<char, 100> text{};
    socket_.non_blocking(true);
    std::error_code error;
    return {text.data(), socket_.receive(asio::buffer(text), 0, error)};
  }

 private:
  asio::io_context context_;
  asio::ip::udp::socket socket_{context_};
};

std::string text_of(const Arrival& arrival) {
  return {reinterpret_cast<const char*>(arrival.datagram.data()), arrival.datagram.size()};
}

std::vector<std::string> received(UdpSockets& sockets) {
  std::vector<std::string> texts;
  sockets.receive_waiting([&](const Arrival& arrival) { texts.push_back(text_of(arrival)); });
  return texts;
}

// From a datagram of its own at `sockets`.
UdpAddress seen_address(UdpSockets& sockets, Sender& sender) {
  UdpAddress address;
  sender.send("?");
  REQUIRE_FALSE(sockets.wait(-1, kSecond));
  sockets.receive_waiting([&](const Arrival& arrival) { address = arrival.sender; });
  return address;
}

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_CASE("a flood of strangers leaves the queues of participants alone, on one address and on all") {
  for (const auto* const listen : {"127.0.0.1", "0.0.0.0", "::1", "::"}) {
    CAPTURE(listen);
    const bool v6 = std::string(listen).find(':') != std::string::npos;
    UdpSockets sockets;
    if (const auto error = sockets.open({asio::ip::make_address(listen), 0}, 3); error && v6) continue;  // no IPv6 here
    const char* const here = v6 ? "::1" : "127.0.0.1";
    Sender rig(here, sockets.local_port()), screen(here, sockets.local_port()), stranger(here, sockets.local_port());
    const auto control = sockets.connect(seen_address(sockets, rig), LinkPriority::control);
    const auto observer = sockets.connect(seen_address(sockets, screen), LinkPriority::observer);
    REQUIRE(control.has_value());
    REQUIRE(observer.has_value());
    for (int k = 0; k < 5000; ++k) stranger.send(std::string(1200, 'x'));
    screen.send("screen");
    rig.send("rig");
    const auto texts = received(sockets);
    REQUIRE(texts.size() >= 2);
    CHECK(texts[0] == "rig");
    CHECK(texts[1] == "screen");
    CHECK(sockets.drops() > 4000);
    CHECK(sockets.send(*control, bytes("to the rig")));
    CHECK(rig.receive() == "to the rig");
  }
}

TEST_CASE("strangers are read so often a second, and do not wake the thread beyond that") {
  UdpSockets sockets;
  REQUIRE_FALSE(sockets.open({asio::ip::make_address("127.0.0.1"), 0}, 1));
  Sender stranger("127.0.0.1", sockets.local_port());
  const std::int64_t begin_ns = rt::MonotonicClock::now_ns();
  std::size_t read = 0, turns = 0;
  while (rt::MonotonicClock::now_ns() - begin_ns < kSecond / 5) {
    for (int k = 0; k < 200; ++k) stranger.send("x");
    sockets.wait(-1, kSecond);
    read += received(sockets).size();
    ++turns;
  }
  const double seconds = static_cast<double>(rt::MonotonicClock::now_ns() - begin_ns) * 1e-9;
  const double spans = seconds * 1e9 / static_cast<double>(ReceiveBudget::kSpanNs) + 1.0;
  CHECK(read > 0);
  CHECK(static_cast<double>(read) <= 100.0 * spans);
  CHECK(static_cast<double>(turns) <= 20.0 * spans);
}

TEST_CASE("in a hundredth of a second 20 of each observer are read, 100 of strangers, and all of the controller") {
  std::map<std::string, int> read;
  std::int64_t took_ns = ReceiveBudget::kSpanNs;
  for (int time = 0; time < 100 && took_ns >= ReceiveBudget::kSpanNs; ++time) {  // the machine may hold it up
    UdpSockets sockets;
    REQUIRE_FALSE(sockets.open({asio::ip::make_address("127.0.0.1"), 0}, 3));
    Sender rig("127.0.0.1", sockets.local_port()), screen("127.0.0.1", sockets.local_port()),
        recorder("127.0.0.1", sockets.local_port()), stranger("127.0.0.1", sockets.local_port());
    REQUIRE(sockets.connect(rig.address(), LinkPriority::control));
    REQUIRE(sockets.connect(screen.address(), LinkPriority::observer));
    REQUIRE(sockets.connect(recorder.address(), LinkPriority::observer));
    for (int k = 0; k < 130; ++k) {
      rig.send("rig");
      screen.send("screen");
      recorder.send("recorder");
      stranger.send("stranger");
    }
    read.clear();
    const std::int64_t begin_ns = rt::MonotonicClock::now_ns();
    for (int turn = 0; turn < 20; ++turn)
      for (const std::string& text : received(sockets)) ++read[text];
    took_ns = rt::MonotonicClock::now_ns() - begin_ns;
  }
  REQUIRE(took_ns < ReceiveBudget::kSpanNs);
  CHECK(read["rig"] == 130);
  CHECK(read["screen"] == 20);
  CHECK(read["recorder"] == 20);
  CHECK(read["stranger"] == 100);
}

TEST_CASE(
    "an answer comes from the server's own address, where it listens to all from the one that the system chooses") {
  for (const auto* const listen : {"127.0.0.2", "0.0.0.0"}) {
    CAPTURE(listen);
    const std::string expected = listen == std::string("0.0.0.0") ? "127.0.0.1" : listen;
    UdpSockets sockets;
    REQUIRE_FALSE(sockets.open({asio::ip::make_address(listen), 0}, 1));
    asio::io_context context;
    asio::ip::udp::socket rig(context, {asio::ip::make_address("127.0.0.1"), 0});
    UdpAddress sender;
    const auto answered_from = [&] {
      std::array<char, 100> text{};
      std::error_code error;
      rig.non_blocking(true);
      rig.receive_from(asio::buffer(text), sender, 0, error);
      return error ? error.message() : sender.address().to_string();
    };
    rig.send_to(asio::buffer("?", 1), {asio::ip::make_address("127.0.0.2"), sockets.local_port()});
    REQUIRE(received(sockets) == std::vector<std::string>{"?"});
    REQUIRE(sockets.send_to_stranger(rig.local_endpoint(), bytes("!")));
    CHECK(answered_from() == expected);
    const auto socket = sockets.connect(rig.local_endpoint(), LinkPriority::control);
    REQUIRE(socket);
    REQUIRE(sockets.send(*socket, bytes("!")));
    CHECK(answered_from() == expected);
  }
}

TEST_CASE("sockets serve one participant after the other, and strangers are heard beside them") {
  for (const auto* const listen : {"127.0.0.1", "0.0.0.0"}) {
    CAPTURE(listen);
    UdpSockets sockets;
    REQUIRE_FALSE(sockets.open({asio::ip::make_address(listen), 0}, 2));
    for (int time = 0; time < 20; ++time) {
      Sender first("127.0.0.1", sockets.local_port()), second("127.0.0.1", sockets.local_port()),
          third("127.0.0.1", sockets.local_port());
      const auto socket = sockets.connect(first.address(), LinkPriority::control);
      const auto other = sockets.connect(second.address(), LinkPriority::observer);
      REQUIRE((socket && other && *socket != *other));
      CHECK(sockets.connect(first.address(), LinkPriority::control) == socket);
      CHECK_FALSE(sockets.connect(third.address(), LinkPriority::control).has_value());  // there are two only
      third.send("third");
      second.send("second");
      first.send("first");
      CHECK(received(sockets) == std::vector<std::string>{"first", "second", "third"});
      sockets.release(*socket);
      first.send("left");
      third.send("third");
      CHECK(received(sockets) == std::vector<std::string>{"left", "third"});
      CHECK(sockets.connect(first.address(), LinkPriority::control) == socket);  // it has come back
      sockets.release(*socket);
      sockets.release(*other);
    }
  }
}

TEST_CASE("a receiver that is gone does not keep the next datagram from being sent") {
  UdpSockets sockets;
  REQUIRE_FALSE(sockets.open({asio::ip::make_address("127.0.0.1"), 0}, 1));
  auto rig = std::make_unique<Sender>("127.0.0.1", sockets.local_port());
  const UdpAddress address = rig->address();
  const auto socket = sockets.connect(address, LinkPriority::control);
  REQUIRE(socket.has_value());
  rig.reset();
  CHECK(sockets.send(*socket, bytes("lost")));  // the system answers that nobody is there
  asio::io_context context;
  asio::ip::udp::socket again(context, address);
  CHECK(sockets.send(*socket, bytes("here")));
  CHECK(again.available() == 4);
}

TEST_CASE("a second server does not get the port, whatever options it gives") {
  UdpSockets sockets;
  REQUIRE_FALSE(sockets.open({asio::ip::make_address("127.0.0.1"), 0}, 2));
  const UdpAddress taken(asio::ip::make_address("127.0.0.1"), sockets.local_port());
  UdpSockets second;
  CHECK(second.open(taken, 2) == std::errc::address_in_use);
  UdpSockets second_on_all;
  CHECK(second_on_all.open({asio::ip::make_address("0.0.0.0"), sockets.local_port()}, 2) == std::errc::address_in_use);
  asio::io_context context;
  asio::ip::udp::socket reusing(context, asio::ip::udp::v4());
  reusing.set_option(asio::ip::udp::socket::reuse_address(true));
  std::error_code error;
  reusing.bind(taken, error);
  CHECK(error == asio::error::address_in_use);
}

}  // namespace rigstep::server
