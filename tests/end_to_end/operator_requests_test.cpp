// What operators ask of a running server: its status, a reset of a fault, a black box.
#include <doctest/doctest.h>

#include "server/rig/status.h"
#include "tests/support/bare_rig.h"

namespace rigstep::server {
namespace {

using namespace loopback;

TEST_CASE("the status tells who is in control, who looks on, the clocks and what was refused") {
  Server server;
  RigOptions options = options_for(server);
  options.name = "bench 7";
  options.duration_s = 0.6;
  std::jthread rig([&] { run_rig(options, kNeverStop); });
  BareRig observer(server);
  REQUIRE(becomes_true([&] { return server.newest_sequence() > 20; }));
  observer.connect("screen", wire::OBSERVER);
  observer.send_bytes(std::vector<std::byte>(3));
  const wire::StatusReport report = query_status({.port = server.port()});
  CHECK(report.product_version() == "1.2.3");
  CHECK(report.mechanism() == "block");
  CHECK(report.step() > 0);
  CHECK(report.loop_state() == wire::RUNNING);
  CHECK(report.controller().rig_name() == "bench 7");
  // one machine, one clock
  REQUIRE(report.controller().has_clock());
  CHECK(static_cast<std::uint64_t>(std::abs(report.controller().clock().offset_ns())) <=
        report.controller().clock().uncertainty_ns());
  REQUIRE(report.observer_size() == 1);
  CHECK(report.observer(0).rig_name() == "screen");
  REQUIRE(report.refused_size() == 1);
  CHECK(report.refused(0).name() == "wrong_size");
  CHECK(report.refused(0).count() == 1);
}

TEST_CASE("a reset clears the fault it names, once, and not by a recorded datagram") {
  Server server({.port = 0, .keys = keys().for_operators()});
  server.faulted_ = true;
  const StatusTarget target{.port = server.port(), .key_file = keys().file("desk.key")};
  REQUIRE(query_status({.port = server.port()}).loop_state() == wire::FAULTED);
  CHECK(reset_fault(target, 7).loop_state() == wire::RUNNING);
  CHECK(server.event_kinds() == std::vector{RigEvent::Kind::reset_fault});

  BareRig desk(server, keys().file("desk.key"));
  desk.connect("desk", wire::CONSOLE);
  server.faulted_ = true;
  desk.send(desk.codec.encode_reset_fault(6));  // another one than is latched
  CHECK(desk.receives(wire::ServerToRig::kStatus));
  CHECK(server.faulted_);
  const auto recorded = desk.sealed(desk.end.next_header(1000), desk.codec.encode_reset_fault(7));
  desk.send_bytes(recorded);
  CHECK(desk.receives(wire::ServerToRig::kStatus));
  CHECK_FALSE(server.faulted_);
  server.faulted_ = true;
  desk.send_bytes(recorded);
  CHECK(server.dropped(DecodeStatus::replayed) == 1);
  CHECK(server.faulted_);
  // neither outside a session, nor by an observer
  BareRig stranger(server);
  stranger.request(stranger.codec.encode_reset_fault(7));
  stranger.connect("screen", wire::OBSERVER);
  stranger.send(stranger.codec.encode_reset_fault(7));
  CHECK(stranger.receives(wire::ServerToRig::kRefusal));
  CHECK(server.faulted_);
}

TEST_CASE("a black box is written for an operator or the rig in control, and who keeps none says so") {
  Server server({.port = 0, .keys = keys().for_operators()});
  const StatusTarget target{.port = server.port(), .key_file = keys().file("desk.key")};
  CHECK(write_black_box(target, query_status(target)).black_box() == "box 1");
  CHECK(server.event_kinds() == std::vector{RigEvent::Kind::black_box});
  BareRig rig(server), screen(server);
  rig.connect();
  rig.send(rig.codec.encode_write_black_box(1));
  REQUIRE(rig.receives(wire::ServerToRig::kStatus));
  CHECK(rig.codec.message()->status().black_boxes() == 2);
  screen.connect("screen", wire::OBSERVER);
  screen.send(screen.codec.encode_write_black_box(2));
  REQUIRE(screen.receives(wire::ServerToRig::kRefusal));
  CHECK(screen.codec.message()->refusal().reason() == wire::NOT_PERMITTED);
  CHECK(server.black_boxes_ == 2);

  server.keeps_black_box_ = false;
  CHECK_THROWS_WITH_AS(write_black_box(target, query_status(target)), doctest::Contains("it keeps no black box. Give"),
                       NetworkError);
}

}  // namespace
}  // namespace rigstep::server
