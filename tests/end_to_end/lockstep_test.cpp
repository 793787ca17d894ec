// The UDP endpoint in lockstep: each datagram of the rig in control makes one step.
#include <doctest/doctest.h>

#include <cmath>
#include <future>
#include <thread>

#include "server/rig/impair.h"
#include "server/rig/rig_client.h"
#include "server/rig/status.h"
#include "tests/support/bare_rig.h"

namespace rigstep::server {
namespace {

using namespace loopback;

TEST_CASE("in lockstep each datagram makes its step once, however often it comes, and anything else changes nothing") {
  Server server({.port = 0}, Server::Pace::rig);
  BareRig rig(server);
  rig.connect();
  CHECK(rig.welcome.lockstep());
  CHECK(rig.welcome.step() == 0);
  rig.send_input(0);  // the start as it is
  REQUIRE(rig.receives(wire::ServerToRig::kState));
  CHECK(rig.state.step == 0);
  CHECK((rig.state.flags & kNoInputYet) != 0);
  for (std::uint64_t step = 1; step <= 5; ++step) {
    for (int time = 0; time < 3; ++time) {  // as after lost answers
      rig.send_input(step);
      REQUIRE(rig.receives(wire::ServerToRig::kState));
      CHECK(rig.state.step == step);
      CHECK(rig.state.sequence == step);
      CHECK(rig.state.sim_time_ns == static_cast<std::int64_t>(step) * kPeriod);
    }
  }
  for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{4}, std::uint64_t{7}, ~std::uint64_t{0}}) {
    rig.send_input(wrong);
    REQUIRE(rig.receives(wire::ServerToRig::kRefusal));
    CHECK(rig.codec.message()->refusal().reason() == wire::SEQUENCE);
    CHECK(rig.codec.message()->refusal().text().find("go on with 6") != std::string::npos);
  }
  CHECK(server.dropped(DecodeStatus::sequence) == 4);
  CHECK(server.newest_sequence() == 5);
  CHECK_FALSE(server.kept_early());
  CHECK(query_status({.port = server.port()}).step() == 5);
  CHECK(query_status({.port = server.port()}).lockstep());
}

TEST_CASE("in lockstep a new controller goes on where the last one was, and observers see every step") {
  Server server({.port = 0, .timeout_steps = 300}, Server::Pace::rig);
  BareRig first(server), next(server), screen(server);
  first.connect("first");
  screen.connect("screen", wire::OBSERVER);
  for (std::uint64_t step = 1; step <= 3; ++step) first.send_input(step);
  CHECK(becomes_true([&] { return screen.receives(wire::ServerToRig::kState, 10ms) && screen.state.step == 3; }));
  screen.send_input(4);
  REQUIRE(screen.receives(wire::ServerToRig::kRefusal));
  const auto end = std::chrono::steady_clock::now() + 500ms;
  while (std::chrono::steady_clock::now() < end) {
    screen.send(screen.codec.encode_heartbeat());
    std::this_thread::sleep_for(30ms);
  }
  CHECK(server.event_kinds() ==
        std::vector{RigEvent::Kind::connected, RigEvent::Kind::connected, RigEvent::Kind::timed_out});
  next.connect("next");
  CHECK(next.welcome.step() == 3);
  next.send_input(4);
  REQUIRE(next.receives(wire::ServerToRig::kState));
  CHECK(next.state.step == 4);
  next.send(next.codec.encode_goodbye("done"));
  CHECK(becomes_true([&] { return server.event_kinds().back() == RigEvent::Kind::left; }));
}

TEST_CASE("in lockstep a latched fault is answered as such, and a reset lets the same step be made") {
  Server server({.port = 0, .keys = keys().for_operators()}, Server::Pace::rig);
  BareRig rig(server);
  rig.connect();
  rig.send_input(1);
  REQUIRE(rig.receives(wire::ServerToRig::kState));
  server.faulted_ = true;
  for (int time = 0; time < 2; ++time) {
    rig.send_input(2);
    REQUIRE(rig.receives(wire::ServerToRig::kState));
    CHECK(rig.state.step == 1);
    CHECK(rig.state.sequence == 2);
    CHECK((rig.state.flags & kFaulted) != 0);
  }
  const StatusTarget target{.port = server.port(), .key_file = keys().file("desk.key")};
  CHECK(reset_fault(target, 7).loop_state() == wire::RUNNING);  // though no step is asked for
  rig.send_input(2);
  REQUIRE(rig.receives(wire::ServerToRig::kState));
  CHECK(rig.state.step == 2);
}

TEST_CASE("a rig in lockstep loses no step in a bad network, and takes each once") {
  Server server({.port = 0}, Server::Pace::rig);
  ImpairOptions impair;
  impair.port = server.port();
  impair.seed = 3;
  impair.to_server = {.loss = 0.05, .duplicate = 0.1, .corrupt = 0.05};
  impair.to_rig = impair.to_server;
  std::promise<std::uint16_t> listening;
  impair.on_listening = [&](std::uint16_t port) { listening.set_value(port); };
  std::atomic<bool> stop{false};
  std::jthread proxy([&] { run_impair(impair, stop); });
  RigOptions options = options_for(server);
  options.port = listening.get_future().get();
  options.rate_hz = 1e4;
  options.duration_s = 1.5;
  options.drives = {"force=sine:2,5"};
  std::uint64_t last = 0;
  options.on_state = [&last](const Snapshot& state) {
    REQUIRE(state.step <= last + 1);  // an answer may come twice
    last = std::max(last, state.step);
    // drives follow simulated time: the value of a step is the same in every run
    REQUIRE(state.outputs.value[0] ==
            2.0 * std::sin(2.0 * M_PI * 5.0 * (1e-9 * static_cast<double>(state.sim_time_ns))));
  };
  const RigReport report = run_rig(options, kNeverStop);
  stop = true;
  CHECK(report.link.lockstep);
  CHECK(last > 100);
  CHECK(report.lost == 0);
  CHECK(report.asked_again > 5);
  CHECK(server.dropped(DecodeStatus::sequence) == 0);
}

TEST_CASE("the rig library's loop drives a server in lockstep, begun with the state as it is") {
  Server server({.port = 0}, Server::Pace::rig);
  RigClient client({.port = server.port()});
  CHECK(client.server().lockstep);
  std::vector<std::uint64_t> steps;
  CHECK(client.control([&](const RigState& state, std::span<double> inputs) {
    steps.push_back(state.step);
    inputs[0] = 1.0;
    return steps.size() < 50;
  }));
  for (std::uint64_t k = 0; k < steps.size(); ++k) CHECK(steps[k] == k);
}

}  // namespace
}  // namespace rigstep::server
