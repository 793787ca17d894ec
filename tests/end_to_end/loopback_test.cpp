// A rig and the UDP endpoint over the loopback device: from the first answer to the goodbye, and what is told where
// there is no way.
#include <doctest/doctest.h>

#include <thread>

#include "tests/support/loopback_server.h"

namespace rigstep::server {
namespace {

using namespace loopback;

TEST_CASE("a rig reads the channels, is answered every step and measures its round trip") {
  Server server;
  RigOptions options = options_for(server);
  options.duration_s = 1.0;
  options.drives = {"force=step:3,0"};
  double newest_output = 0.0;
  options.on_state = [&](const Snapshot& state) { newest_output = state.outputs.value[0]; };
  const RigReport report = run_rig(options, kNeverStop);
  CHECK(report.end == RigReport::End::duration_over);
  CHECK(report.link.mechanism == "block");
  CHECK(report.link.server_version == "1.2.3");
  CHECK(report.link.period_ns == kPeriod);
  REQUIRE(report.link.inputs.size() == 1);
  CHECK(report.link.inputs[0].name == "force");
  CHECK(report.link.outputs.size() == 3);
  // a shared machine may be busy: most of them, not all
  CHECK(report.states > 500);
  CHECK(report.inputs_sent > 500);
  CHECK(report.round_trip.count > 300);
  CHECK(report.round_trip.p50_us > 0.0);
  CHECK(report.round_trip.p50_us <= report.round_trip.p99_us);
  CHECK(report.round_trip.p99_us <= report.round_trip.max_us);
  CHECK(newest_output == 3.0);
  CHECK(becomes_true([&] { return server.events().size() == 2; }));
  CHECK(server.events()[0].kind == RigEvent::Kind::connected);
  CHECK(server.events()[0].rig_name == "rigstep rig");
  CHECK(server.events()[1].kind == RigEvent::Kind::left);
}

TEST_CASE("a server that stops says goodbye to its rig") {
  Server server;
  std::jthread stopper;
  RigOptions options = options_for(server);
  options.on_state = [&](const Snapshot& state) {
    if (state.sequence >= 20 && !stopper.joinable()) stopper = std::jthread([&] { server.stop(); });
  };
  const RigReport report = run_rig(options, kNeverStop);
  CHECK(report.end == RigReport::End::server_stopped);
  CHECK(report.goodbye == "the server was stopped");
}

TEST_CASE("a port that is taken, an address of another machine and no address are told apart") {
  const Server server;
  const auto problem = [](const std::string& address, std::uint16_t port) -> std::string {
    const Mechanism mechanism = block();
    wire::ServerCodec codec(mechanism, {0}, kPeriod, "1.2.3");
    rt::Mailbox<InputSample> inputs;
    rt::Mailbox<Snapshot> snapshots;
    try {
      UdpEndpoint endpoint({.address = address, .port = port, .allow_unauthenticated = true}, codec, inputs, snapshots,
                           {});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(problem("127.0.0.1", server.port()).find("Another program has this port") != std::string::npos);
  CHECK(problem("192.0.2.1", 0).find("This machine has no such address") != std::string::npos);
  CHECK(problem("localhost", 0).find("is no numeric address") != std::string::npos);
}

TEST_CASE("a rig without a server says where it looked and what to do") {
  RigOptions options;
  options.timeout_s = 0.3;
  {
    const Server server;
    options.port = server.port();
  }
  const std::string text = error_of(options);
  CHECK(text.find("no answer from 127.0.0.1:" + std::to_string(options.port)) != std::string::npos);
  CHECK(text.find("rigstep serve") != std::string::npos);
}

TEST_CASE("a drive that cannot be understood names itself and the channels there are") {
  Server server;
  RigOptions options = options_for(server);
  for (const char* drive : {"force", "force=", "torque=step:1", "force=sine:1", "force=step:x", "force=sine:1,nan",
                            "force=ramp:1", "force=/nonexistent.csv"}) {
    options.drives = {drive};
    const std::string text = error_of(options);
    CAPTURE(text);
    CHECK(text.find("drive \"" + std::string(drive) + "\"") != std::string::npos);
    CHECK(text.find("Input channels: force [N]") != std::string::npos);
  }
}

}  // namespace
}  // namespace rigstep::server
