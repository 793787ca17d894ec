// What strangers send to the UDP endpoint: counted under its reason, answered sparingly, without effect on others.
#include <doctest/doctest.h>

#include <limits>

#include "server/rig/status.h"
#include "tests/support/bare_rig.h"

namespace rigstep::server {
namespace {

using namespace loopback;

TEST_CASE("every hostile datagram is counted under its own reason and changes nothing") {
  Server server;
  BareRig rig(server);
  rig.connect();
  rig.send_input(10);
  REQUIRE(becomes_true([&] { return server.newest_sequence() == 10; }));
  const std::uint64_t accepted = server.counters().accepted;

  rig.send_bytes(std::vector<std::byte>(1201));
  rig.send_bytes(std::vector<std::byte>(5000));
  rig.send_bytes({});
  rig.send_bytes(std::vector<std::byte>(100, std::byte{0xFF}));
  rig.send(std::vector<std::byte>(40, std::byte{0xFF}));  // a good frame around noise
  auto damaged = rig.sealed(rig.end.next_header(1000), rig.codec.encode_input(BareRig::sample(11)));
  damaged[60] ^= std::byte{1};
  rig.send_bytes(damaged);
  auto replayed = rig.sealed(rig.end.next_header(1000), rig.codec.encode_input(BareRig::sample(10)));
  rig.send_bytes(replayed);  // an old sequence
  rig.send_bytes(replayed);  // and the very same datagram
  rig.send_bytes(replayed);
  const wire::SessionEnd mine = rig.end;
  rig.end = wire::SessionEnd(wire::Sender::rig, mine.session() + 1);
  rig.send_input(11);
  rig.end = mine;
  rig.send_changed(11, [](wire::RigToServer& m) { m.mutable_input()->set_mechanism_id(1); });
  rig.send_changed(11, [](wire::RigToServer& m) { m.mutable_input()->add_value(1.0); });
  rig.send_changed(
      11, [](wire::RigToServer& m) { m.mutable_input()->set_value(0, std::numeric_limits<double>::quiet_NaN()); });
  rig.send_input(9);
  rig.send_input(1);
  rig.send_changed(11, [](wire::RigToServer& m) { m.clear_content(); });
  const std::string small = "not filled up";
  rig.request(std::as_bytes(std::span(small)));

  REQUIRE(becomes_true([&] { return sum(server.counters()) == server.counters().received; }));
  CHECK(server.dropped(DecodeStatus::ok) == 0);
  CHECK(server.dropped(DecodeStatus::wrong_size) == 4);
  CHECK(server.dropped(DecodeStatus::malformed) == 2);
  CHECK(server.dropped(DecodeStatus::authentication) == 1);
  CHECK(server.dropped(DecodeStatus::replayed) == 2);
  CHECK(server.dropped(DecodeStatus::wrong_session) == 1);
  CHECK(server.dropped(DecodeStatus::wrong_mechanism) == 1);
  CHECK(server.dropped(DecodeStatus::channel_count) == 1);
  CHECK(server.dropped(DecodeStatus::not_finite) == 1);
  CHECK(server.dropped(DecodeStatus::old_sequence) == 3);
  CHECK(server.dropped(DecodeStatus::unexpected_content) == 1);
  CHECK(server.counters().accepted == accepted);
  CHECK(server.newest_sequence() == 10);

  rig.send_input(11);
  CHECK(becomes_true([&] { return server.newest_sequence() == 11; }));
}

TEST_CASE("what the system drops from a full queue is counted, too") {
  const Mechanism mechanism = block();
  wire::ServerCodec codec(mechanism, {0}, kPeriod, "1.2.3");
  rt::Mailbox<InputSample> inputs;
  rt::Mailbox<Snapshot> snapshots;
  UdpEndpoint endpoint({.port = 0}, codec, inputs, snapshots, {});
  asio::io_context context;
  asio::ip::udp::socket socket(context, asio::ip::udp::v4());
  socket.connect({asio::ip::make_address("127.0.0.1"), endpoint.local_port()});
  const std::array<std::byte, wire::kMaxDatagram> nonsense{};
  const auto send = [&] { socket.send(asio::buffer(nonsense.data(), nonsense.size())); };
  std::uint64_t sent = 20'000;  // more than the memory of any socket
  for (std::uint64_t k = 0; k < sent; ++k) send();
  endpoint.start();
  REQUIRE(becomes_true([&] {
    send();
    ++sent;
    return endpoint.counters().queue_overflows > 0;
  }));
  CHECK(becomes_true([&] {
    const UdpCounters now = endpoint.counters();
    return now.received + now.queue_overflows == sent;
  }));
}

TEST_CASE("inputs that somebody has held back are refused and counted, by the clocks and not by when they come") {
  Server server({.port = 0, .keys = keys().required(), .max_input_delay_ms = 500});
  BareRig rig(server, keys().file("bench.key"));
  rig.connect();
  const auto exchange = [&] {  // so that both clocks are known
    rig.stamp_ns = rt::MonotonicClock::now_ns();
    rig.send(rig.codec.encode_channel_query(wire::INPUT, 0));
    REQUIRE(rig.receives(wire::ServerToRig::kChannelPage));
    rig.end.accept(rig.frame.header, rt::MonotonicClock::now_ns());
  };
  for (int k = 0; k < 5; ++k) exchange();
  rig.stamp_ns = rt::MonotonicClock::now_ns();
  rig.send_input(1);
  REQUIRE(becomes_true([&] { return server.newest_sequence() == 1; }));
  rig.stamp_ns = rt::MonotonicClock::now_ns();
  const auto held = rig.sealed(rig.end.next_header(rig.stamp_ns), rig.codec.encode_input(BareRig::sample(2)));
  std::this_thread::sleep_for(600ms);
  rig.send_bytes(held);
  CHECK(server.dropped(DecodeStatus::delayed) == 1);
  rig.stamp_ns = rt::MonotonicClock::now_ns();
  rig.send_input(3);
  CHECK(becomes_true([&] { return server.newest_sequence() == 3; }));
  CHECK(server.dropped(DecodeStatus::delayed) == 1);
}

TEST_CASE("nobody makes the server send more bytes to an unproven address than were sent to the server") {
  for (const bool keyed : {false, true}) {
    Server server({.port = 0, .keys = keyed ? keys().required() : LinkKeys{}});
    const std::string key = keyed ? keys().file("bench.key") : std::string();
    BareRig in_control(server, key);
    in_control.connect(std::string(64, 'n'));
    for (const std::string& file : {key, std::string(), keys().file("other.key")}) {
      BareRig stranger(server, file);
      stranger.request(stranger.codec.encode_hello({.product_version = "", .rig_name = "x", .nonce = 1}));
      stranger.request(stranger.codec.encode_hello(
          {.product_version = "", .rig_name = "x", .nonce = 1, .cookie = "0123456789abcdef"}));
      stranger.request(stranger.codec.encode_status_query(false));
      stranger.ask_for_cookie();
      stranger.send_bytes(stranger.hello_datagram());
      stranger.receives(wire::ServerToRig::kGoodbye, 100ms);  // takes in whatever comes
      CHECK(stranger.bytes_received > 0);
      CHECK(stranger.bytes_received <= stranger.bytes_sent);
    }
    // small ones are not answered at all
    BareRig small(server);
    small.request(small.codec.encode_status_query(true));
    CHECK_FALSE(small.receives(wire::ServerToRig::kStatus, 50ms));
    CHECK(small.bytes_received == 0);
  }
}

TEST_CASE("answers to unproven addresses are so many a second, whatever is asked") {
  constexpr std::int64_t kSecond = 1'000'000'000;
  AnswerBudget budget;
  int answered = 0;
  for (std::int64_t now_ns = 0; now_ns <= 2 * kSecond; now_ns += 10'000) answered += budget.take(now_ns) ? 1 : 0;
  CHECK(answered == kAnswersAtOnce + 2 * kAnswersPerSecond);
  answered = 0;
  for (int k = 0; k < 1000; ++k) answered += budget.take(60 * kSecond) ? 1 : 0;  // rest does not save up for a burst
  CHECK(answered == kAnswersAtOnce);
}

TEST_CASE("a flood of requests is counted and left unanswered, and whoever has a cookie or a session notices nothing") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig rig(server, keys().file("bench.key")), guest(server, keys().file("screen.key")), flood(server);
  rig.connect();
  guest.ask_for_cookie();

  const std::uint64_t sent_before = server.counters().sent;
  const auto begin = std::chrono::steady_clock::now();
  // those without a key use up what hints there are, not what others are answered
  flood.ask_for_cookie();
  flood.send_many(flood.hello_datagram(), 1000);
  CHECK(server.dropped(DecodeStatus::authentication) == 1000);
  CHECK(server.dropped(DecodeStatus::too_frequent) == 0);
  CHECK(query_status({.port = server.port(), .key_file = keys().file("desk.key")}).authenticated());

  const auto again =
      flood.sealed({.sent_ns = 1}, flood.codec.encode_hello({.product_version = "", .rig_name = "", .nonce = 1}));
  REQUIRE(becomes_true(
      [&] {
        flood.send_many(again, 320);
        return server.dropped(DecodeStatus::too_frequent) >= 100;
      },
      10'000ms));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const auto most =
      2.0 * (static_cast<double>(kAnswersAtOnce) + static_cast<double>(kAnswersPerSecond) * seconds.count());
  // the states of the rig come on top, at most one per period
  CHECK(static_cast<double>(server.counters().sent - sent_before) <= most + 1000.0 * seconds.count() + 20.0);
  rig.send_input(1);
  CHECK(becomes_true([&] { return server.newest_sequence() == 1; }));
  if (seconds.count() < 1.5) {  // as long as a cookie holds
    guest.send_bytes(guest.hello_datagram("guest", wire::OBSERVER));
    CHECK(guest.receives(wire::ServerToRig::kAccept));
  }
}

TEST_CASE("proven handshakes are so many a second for each key, since they cost the server more than their sender") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig eager(server, keys().file("screen.key")), other(server, keys().file("bench.key"));
  REQUIRE(becomes_true(
      [&] {
        eager.ask_for_cookie();
        eager.send_bytes(eager.hello_datagram("eager", wire::OBSERVER));
        return server.dropped(DecodeStatus::too_frequent) > 0;
      },
      10'000ms));
  other.connect();
}

}  // namespace
}  // namespace rigstep::server
