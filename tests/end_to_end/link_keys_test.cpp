// Rigs with keys at the UDP endpoint: what a key proves and opens, and what a server without a known key refuses.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/config_text.h"
#include "server/rig/rig_client.h"
#include "server/rig/status.h"
#include "tests/support/bare_rig.h"

namespace rigstep::server {
namespace {

using namespace loopback;

TEST_CASE("a captured Hello of a keyed rig installs no ghost, and displaces nobody") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig rig(server, keys().file("bench.key"));
  rig.ask_for_cookie();
  const auto captured = rig.hello_datagram();
  rig.send_bytes(captured);
  REQUIRE(rig.receives(wire::ServerToRig::kAccept));
  std::this_thread::sleep_for(60ms);
  rig.send_bytes(captured);
  rig.send(rig.codec.encode_join());  // without the keys
  CHECK(server.events().empty());
  CHECK(query_status({.port = server.port(), .key_file = keys().file("desk.key")}).has_controller() == false);
  rig.connect();
  rig.send_input(1);
  rig.send(rig.codec.encode_goodbye("done"));
  REQUIRE(becomes_true([&] { return server.event_kinds().back() == RigEvent::Kind::left; }));
  rig.send_bytes(captured);
  CHECK_FALSE(rig.receives(wire::ServerToRig::kAccept, 100ms));
  CHECK(server.event_kinds() == std::vector{RigEvent::Kind::connected, RigEvent::Kind::left});
}

TEST_CASE("refusals name the nonce of the Hello that they answer, and prove it where there is a key") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig rig(server, keys().file("bench.key")), second(server, keys().file("bench.key"));
  rig.connect();
  REQUIRE(second.hello(wire::ServerToRig::kRefusal));
  CHECK(second.codec.message()->refusal().nonce() == second.nonce);
  CHECK(second.refusal_is_proven());
  BareRig without(server), wrong(server, keys().file("other.key"));
  for (BareRig* const stranger : {&without, &wrong}) {
    REQUIRE(stranger->hello(wire::ServerToRig::kRefusal));
    CHECK(stranger->codec.message()->refusal().reason() == wire::AUTHENTICATION);
    CHECK(stranger->codec.message()->refusal().nonce() == stranger->nonce);
    CHECK_FALSE(stranger->refusal_is_proven());
  }
  CHECK(server.dropped(DecodeStatus::authentication) == 2);
}

TEST_CASE("a role in the key file opens its sessions and no other") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig screen(server, keys().file("screen.key")), desk(server, keys().file("desk.key"));
  for (BareRig* const rig : {&screen, &desk}) {
    REQUIRE(rig->hello(wire::ServerToRig::kRefusal));
    CHECK(rig->codec.message()->refusal().reason() == wire::NOT_PERMITTED);
    rig->connect("looks on", wire::OBSERVER);
    rig->send(rig->codec.encode_reset_fault(7));
    REQUIRE(rig->receives(wire::ServerToRig::kRefusal) == (rig == &screen));
  }
  CHECK(server.dropped(DecodeStatus::not_permitted) == 3);
  server.faulted_ = true;
  CHECK_THROWS_WITH_AS(reset_fault({.port = server.port(), .key_file = keys().file("screen.key")}, 7),
                       doctest::Contains("only the rig in control or an operator may ask"), NetworkError);
  CHECK_THROWS_WITH_AS(reset_fault({.port = server.port(), .key_file = keys().file("bench.key")}, 7),
                       doctest::Contains("only the rig in control or an operator may ask"), NetworkError);
  CHECK(server.faulted_);
  CHECK(reset_fault({.port = server.port(), .key_file = keys().file("desk.key")}, 7).loop_state() == wire::RUNNING);
  server.faulted_ = true;
  RigClient rig({.port = server.port(), .key_file = keys().file("bench.key")});
  CHECK(rig.reset_fault(2.0));  // in its session
  CHECK_FALSE(server.faulted_);
}

TEST_CASE("keys change without a restart: new ones open sessions, sessions of removed ones end, the others stay") {
  for (const auto pace : {Server::Pace::server, Server::Pace::rig}) {
    Server server({.port = 0, .keys = keys().required()}, pace);
    BareRig rig(server, keys().file("bench.key")), screen(server, keys().file("screen.key")),
        other(server, keys().file("other.key"));
    rig.connect();
    screen.connect("screen", wire::OBSERVER);
    REQUIRE(other.hello(wire::ServerToRig::kRefusal));
    auto ring = std::make_shared<wire::Secret<wire::KeyRing>>();
    (*ring)->add("screen", wire::KeyRole::observer, (*screen.key())->key);
    (*ring)->add("other", wire::KeyRole::controller, (*other.key())->key);
    server.endpoint().offer_keys(ring);
    REQUIRE(rig.receives(wire::ServerToRig::kGoodbye));
    CHECK(rig.codec.message()->goodbye().reason() == wire::KEY_REMOVED);
    CHECK(becomes_true([&] { return server.events().back().kind == RigEvent::Kind::key_removed; }));
    rig.send_input(1);
    CHECK(rig.receives(wire::ServerToRig::kGoodbye));
    CHECK(server.newest_sequence() == 0);
    screen.send(screen.codec.encode_channel_query(wire::OUTPUT, 0));
    CHECK(screen.receives(wire::ServerToRig::kChannelPage));
    other.connect();
    REQUIRE(rig.hello(wire::ServerToRig::kRefusal));
    CHECK(rig.codec.message()->refusal().reason() == wire::AUTHENTICATION);
  }
}

TEST_CASE("without a key that the server knows nothing is accepted, and a rig is told what it lacks") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig rig(server, keys().file("bench.key"));
  rig.connect();
  rig.send_input(1);
  REQUIRE(becomes_true([&] { return server.newest_sequence() == 1; }));
  auto forged = rig.sealed(rig.end.next_header(1000), rig.codec.encode_input(BareRig::sample(50)));
  forged[50] ^= std::byte{1};
  rig.send_bytes(forged);
  CHECK(server.dropped(DecodeStatus::authentication) == 1);
  CHECK(server.newest_sequence() == 1);

  RigOptions options = options_for(server);
  options.timeout_s = 0.5;
  CHECK(error_of(options).find("takes rigs only with a key that it knows, and this one shows none") !=
        std::string::npos);
  options.key_file = keys().file("other.key");
  CHECK(error_of(options).find("that its key proves; what came without proof says: this server takes rigs only with a "
                               "key that it knows, and does not know this one") != std::string::npos);
  CHECK_THROWS_WITH_AS(query_status({.port = server.port(), .timeout_s = 0.5}), doctest::Contains("only with a key"),
                       NetworkError);
  Server open_server;
  options.port = open_server.port();
  CHECK(error_of(options).find("uses no key for rigs") != std::string::npos);
}

TEST_CASE("a rig with a key drives a server that knows it") {
  Server server({.port = 0, .keys = keys().required()});
  RigOptions options = options_for(server);
  options.key_file = keys().file("bench.key");
  options.duration_s = 0.3;
  const RigReport report = run_rig(options, kNeverStop);
  CHECK(report.states > 20);
  CHECK(report.round_trip.count > 10);
  const UdpCounters counters = server.counters();  // once: the last datagrams may still come in
  CHECK(sum(counters) == counters.accepted);
}

TEST_CASE("a key file that is a pipe, a folder or a device is refused at once, not waited for") {
  const std::string path = "/tmp/rigstep_pipe_" + std::to_string(::getpid());
  ::unlink(path.c_str());
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  for (const std::string& name : {path, std::string("/tmp"), std::string("/dev/null")})
    CHECK_THROWS_WITH_AS(wire::read_key_ring(name),
                         doctest::Contains(("key file " + name + ": is no regular file").c_str()), wire::KeyError);
  ::unlink(path.c_str());
}

TEST_CASE("an address that others can reach needs a key or the word that none is wanted") {
  CHECK_THROWS_WITH_AS(Server({.address = "0.0.0.0", .port = 0}), doctest::Contains("rigstep keygen"),
                       config::ConfigError);
  CHECK_NOTHROW(Server({.address = "0.0.0.0", .port = 0, .keys = keys().required()}));
  CHECK_NOTHROW(Server({.address = "0.0.0.0", .port = 0, .allow_unauthenticated = true}));
}

}  // namespace
}  // namespace rigstep::server
