// Sessions of rigs with the UDP endpoint: who is in control, who observes, who is displaced, refused or timed out.
#include <doctest/doctest.h>

#include "server/rig/status.h"
#include "tests/support/bare_rig.h"

namespace rigstep::server {
namespace {

using namespace loopback;

TEST_CASE("inputs of a stranger are not used and do not age those of the rig") {
  Server server;
  BareRig rig(server);
  BareRig stranger(server);
  rig.connect();
  rig.send_input(1);
  stranger.codec.start(rig.welcome);
  stranger.end = rig.end;  // even one that knows the session
  stranger.send_input(50);
  stranger.send(stranger.codec.encode_channel_query(wire::INPUT, 0));
  stranger.send(stranger.codec.encode_goodbye("mine"));
  REQUIRE(becomes_true([&] { return server.dropped(DecodeStatus::unknown_source) == 3; }));
  CHECK_FALSE(stranger.receives(wire::ServerToRig::kChannelPage, 50ms));
  rig.send_input(2);
  CHECK(becomes_true([&] { return server.newest_sequence() == 2; }));
  CHECK(rig.receives(wire::ServerToRig::kState));
}

TEST_CASE("a second controller is refused with the name and the address of the first") {
  Server server;
  BareRig rig(server);
  rig.connect("bench 7");
  CHECK(rig.welcome.controller().rig_name() == "bench 7");
  BareRig second(server);
  REQUIRE(second.hello(wire::ServerToRig::kRefusal, "intruder"));
  CHECK(second.codec.message()->refusal().reason() == wire::CONTROL_TAKEN);
  const std::string text = second.codec.message()->refusal().text();
  CHECK(text.find("\"bench 7\" at " + rig.welcome.controller().address()) != std::string::npos);
  CHECK(server.dropped(DecodeStatus::control_taken) == 1);

  rig.send(rig.codec.encode_goodbye("done"));
  second.connect("intruder");
}

TEST_CASE("observers receive every state beside the controller, and their inputs are refused by name") {
  Server server;
  BareRig rig(server), observer(server);
  rig.connect("bench 7");
  observer.connect("screen", wire::OBSERVER);
  CHECK(observer.welcome.controller().rig_name() == "bench 7");
  rig.send_input(1);
  REQUIRE(becomes_true([&] { return server.newest_sequence() == 1; }));
  CHECK(observer.receives(wire::ServerToRig::kState));
  CHECK(rig.receives(wire::ServerToRig::kState));

  observer.send_input(2);
  REQUIRE(observer.receives(wire::ServerToRig::kRefusal));
  CHECK(observer.codec.message()->refusal().reason() == wire::NOT_IN_CONTROL);
  CHECK(server.dropped(DecodeStatus::not_in_control) == 1);
  CHECK(server.newest_sequence() == 1);

  observer.send(observer.codec.encode_goodbye("enough"));
  rig.send_input(2);
  CHECK(becomes_true([&] { return server.newest_sequence() == 2; }));
  CHECK(server.events().back().observer);
}

TEST_CASE("there is a limit to observers, and it is told") {
  Server server;
  std::vector<std::unique_ptr<BareRig>> observers;
  for (std::size_t k = 0; k < kMaxObservers; ++k) {
    observers.push_back(std::make_unique<BareRig>(server));
    observers.back()->connect("screen", wire::OBSERVER);
  }
  BareRig one_more(server);
  REQUIRE(one_more.hello(wire::ServerToRig::kRefusal, "screen", wire::OBSERVER));
  CHECK(one_more.codec.message()->refusal().reason() == wire::FULL);
  one_more.connect("rig");  // the controller's place is not theirs
}

TEST_CASE("a rig that is silent for the time-out loses control to the next, heartbeats keep it") {
  Server server({.port = 0, .timeout_steps = 300});
  BareRig silent(server), alive(server);
  silent.connect("silent");
  alive.connect("alive", wire::OBSERVER);
  const auto end = std::chrono::steady_clock::now() + 600ms;
  while (std::chrono::steady_clock::now() < end) {
    alive.send(alive.codec.encode_heartbeat());
    std::this_thread::sleep_for(30ms);
  }
  REQUIRE(server.events().size() >= 3);
  CHECK(server.events()[2].kind == RigEvent::Kind::timed_out);
  CHECK(server.events()[2].rig_name == "silent");
  RigOptions options = options_for(server);
  options.name = "next";
  options.duration_s = 0.1;
  CHECK(run_rig(options, kNeverStop).states > 0);
  CHECK(server.events()[3].rig_name == "next");
}

TEST_CASE(
    "a rig that was restarted takes its own place with the secret of its session, and nobody does with its name") {
  Server server({.port = 0, .timeout_steps = 10'000});
  BareRig before(server), after(server), thief(server);
  before.connect("bench 7");
  REQUIRE(before.token.size() == wire::kTokenBytes);
  after.token = before.token;
  CHECK(after.hello(wire::ServerToRig::kRefusal, "bench 7"));         // the first one is alive
  CHECK_FALSE(before.receives(wire::ServerToRig::kGoodbye, 1200ms));  // a tenth of the time-out
  for (const std::string& token : {std::string(), std::string(wire::kTokenBytes, '\0'), before.token.substr(1)}) {
    thief.token = token;
    CHECK(thief.hello(wire::ServerToRig::kRefusal, "bench 7"));
    CHECK(thief.codec.message()->refusal().reason() == wire::CONTROL_TAKEN);
  }
  after.connect("bench 7");
  CHECK(after.token != before.token);
  CHECK(server.events().back().kind == RigEvent::Kind::reconnected);
  while (before.receives(wire::ServerToRig::kState, 20ms)) continue;  // of the time before
  before.send_input(5);                                               // if it lives after all
  REQUIRE(before.receives(wire::ServerToRig::kGoodbye));
  CHECK(before.codec.message()->goodbye().reason() == wire::TAKEN_OVER);
  after.send_input(1);
  CHECK(becomes_true([&] { return server.newest_sequence() == 1; }));
}

TEST_CASE("a displaced rig is told with the answer to what it sends next, and its former session gives it nothing") {
  for (const bool keyed : {false, true}) {
    CAPTURE(keyed);
    const std::string key = keyed ? keys().file("bench.key") : std::string();
    Server server({.port = 0, .keys = keyed ? keys().required() : LinkKeys{}, .timeout_steps = 2000});
    BareRig before(server, key), after(server, key);
    before.connect("bench 7");
    std::this_thread::sleep_for(250ms);
    after.token = before.token;
    after.connect("bench 7");
    while (before.receives(wire::ServerToRig::kGoodbye, 50ms)) continue;
    before.send_input(5);
    REQUIRE(before.receives(wire::ServerToRig::kGoodbye));
    CHECK(before.codec.message()->goodbye().reason() == wire::TAKEN_OVER);
    CHECK(server.dropped(DecodeStatus::ended_session) == 1);
    CHECK(server.newest_sequence() == 0);
    // even with the key, and though the other one is silent by now
    std::this_thread::sleep_for(250ms);
    before.former_session = before.end.session();
    before.forget_session_keys();
    REQUIRE(before.hello(wire::ServerToRig::kRefusal, "bench 7"));
    CHECK(before.codec.message()->refusal().reason() == wire::DISPLACED);
    CHECK(before.refusal_is_proven() == keyed);
  }
}

TEST_CASE("a controller that sends inputs seldom keeps control, and a second one of its name never gets it") {
  Server server({.port = 0, .timeout_steps = 300});
  RigOptions options = options_for(server);
  options.name = "slow";
  options.rate_hz = 1.0;
  options.duration_s = 1.5;
  std::optional<RigReport> first;
  std::thread slow([&] { first = run_rig(options, kNeverStop); });
  REQUIRE(becomes_true([&] { return !server.events().empty(); }));
  BareRig twin(server);
  for (int k = 0; k < 10; ++k) {
    CHECK(twin.hello(wire::ServerToRig::kRefusal, "slow"));
    std::this_thread::sleep_for(100ms);
  }
  slow.join();
  CHECK(first->end == RigReport::End::duration_over);
  CHECK(first->inputs_sent >= 2);
  CHECK(becomes_true([&] {
    return server.event_kinds() == std::vector{RigEvent::Kind::connected, RigEvent::Kind::left};
  }));
}

TEST_CASE("a new hello of the same rig starts sequence and session anew, a repeated one changes nothing") {
  Server server;
  BareRig rig(server);
  rig.ask_for_cookie();
  const auto hello = rig.hello_datagram();
  rig.send_bytes(hello);
  REQUIRE(rig.receives(wire::ServerToRig::kAccept));
  const std::uint64_t session = rig.codec.message()->accept().session();
  std::this_thread::sleep_for(60ms);
  rig.send_bytes(hello);  // as if the Accept had been lost
  REQUIRE(rig.receives(wire::ServerToRig::kAccept));
  CHECK(rig.codec.message()->accept().session() == session);
  CHECK(server.events().empty());
  rig.connect();
  rig.send_input(100);
  rig.send_bytes(hello);
  CHECK(server.dropped(DecodeStatus::replayed) == 1);
  const std::uint64_t first = rig.end.session();
  rig.connect();
  CHECK(rig.end.session() != first);
  rig.send_input(1);
  CHECK(becomes_true([&] { return server.newest_sequence() == 1; }));
  CHECK(server.dropped(DecodeStatus::old_sequence) == 0);
  CHECK(server.event_kinds() == std::vector{RigEvent::Kind::connected, RigEvent::Kind::reconnected});
}

TEST_CASE("a cookie serves once, for one address, also where the Hello was refused; others keep theirs") {
  Server server;
  BareRig rig(server), second(server), thief(server), patient(server);
  patient.ask_for_cookie();
  rig.connect();
  REQUIRE(second.hello(wire::ServerToRig::kRefusal));
  const auto refused = second.hello_datagram();
  second.send_many(refused, 200);
  CHECK_FALSE(second.receives(wire::ServerToRig::kRefusal, 100ms));
  CHECK(server.dropped(DecodeStatus::replayed) == 200);
  rig.send(rig.codec.encode_goodbye("done"));
  rig.send_bytes(rig.hello_datagram());
  CHECK_FALSE(rig.receives(wire::ServerToRig::kAccept, 100ms));
  CHECK(server.dropped(DecodeStatus::replayed) == 201);
  rig.ask_for_cookie();
  thief.nonce = rig.nonce;
  thief.cookie = rig.cookie;
  thief.send_bytes(thief.hello_datagram());
  CHECK(thief.receives(wire::ServerToRig::kChallenge));
  CHECK(server.dropped(DecodeStatus::unproven_address) == 1);
  patient.send_bytes(patient.hello_datagram());
  CHECK(patient.receives(wire::ServerToRig::kAccept));  // whatever the others have done since
}

TEST_CASE("a rig that speaks another protocol is told both product versions, in a frame that it reads") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig rig(server);
  const auto hello =
      rig.sealed({.sent_ns = 1000}, rig.codec.encode_hello({.product_version = "9.8.7", .rig_name = "x", .nonce = 1}));
  std::array<std::byte, wire::kMaxDatagram> other{};
  std::copy(hello.begin(), hello.end(), other.begin());
  wire::with_version(other, 2, other);
  const auto refusal = [&]() -> const wire::Refusal& {
    CHECK_FALSE(rig.receives(wire::ServerToRig::kRefusal, 100ms));
    REQUIRE(rig.received.size() > wire::kFrameHeaderBytes);
    CHECK(rig.received[2] == std::byte{2});
    CHECK(wire::open_frame(rig.received, wire::Sender::rig, nullptr, rig.frame) == DecodeStatus::bad_version);
    REQUIRE(rig.codec.decode(rig.frame.payload, 0, rig.state) == DecodeStatus::ok);
    return rig.codec.message()->refusal();
  };
  rig.send_bytes(other);
  CHECK(refusal().reason() == wire::VERSION);
  CHECK(refusal().text().find("9.8.7") != std::string::npos);
  CHECK(refusal().text().find("1.2.3") != std::string::npos);
  CHECK(server.dropped(DecodeStatus::bad_version) == 1);
  // with its key, of which we know nothing: this is the one reason that it believes
  other[wire::kMaxDatagram - 1] ^= std::byte{1};
  rig.send_bytes(other);
  CHECK(refusal().reason() == wire::AUTHENTICATION);
  CHECK(refusal().text().find("speaks protocol version 3") != std::string::npos);
}

}  // namespace
}  // namespace rigstep::server
