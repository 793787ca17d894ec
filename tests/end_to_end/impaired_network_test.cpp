// The proxy that impairs a network: its draws, the rigs it serves, and what a rig and a server make of it.
#include <doctest/doctest.h>

#include <asio.hpp>
#include <future>
#include <thread>

#include "server/rig/impair.h"
#include "tests/support/bare_rig.h"

namespace rigstep::server {
namespace {

using namespace loopback;

TEST_CASE("the bad network hits the same datagrams for the same seed, as many as was asked for") {
  const Impairment asked{.delay_s = 0.001, .jitter_s = 0.002, .loss = 0.1, .duplicate = 0.2, .corrupt = 0.3};
  ImpairedWay way(asked, 5), same(asked, 5), other(asked, 6);
  int lost = 0, twice = 0, damaged = 0, unlike = 0;
  for (int k = 0; k < 20'000; ++k) {
    const auto fate = way.next(), again = same.next();
    REQUIRE(fate.copies == again.copies);
    REQUIRE(fate.delay_s == again.delay_s);
    REQUIRE(fate.flip == again.flip);
    REQUIRE(fate.delay_s[0] >= 0.001);
    REQUIRE(fate.delay_s[0] <= 0.003);
    unlike += fate.copies != other.next().copies ? 1 : 0;
    lost += fate.copies == 0 ? 1 : 0;
    twice += fate.copies == 2 ? 1 : 0;
    damaged += fate.flip ? 1 : 0;
  }
  // six standard deviations of 20 000 draws
  CHECK(std::abs(lost - 2000) < 260);
  CHECK(std::abs(twice - 0.9 * 4000) < 330);
  CHECK(std::abs(damaged - 6000) < 390);
  CHECK(unlike > 1000);
}

TEST_CASE("losses in bursts are as long as was asked for, single ones stand alone") {
  const auto runs = [](const Impairment& asked) {
    ImpairedWay way(asked, 9);
    int lost = 0, bursts = 0;
    for (bool before = false; lost < 20'000;) {
      const bool now = way.next().copies == 0;
      lost += now ? 1 : 0;
      bursts += now && !before ? 1 : 0;
      before = now;
    }
    return static_cast<double>(lost) / bursts;
  };
  CHECK(runs({.burst_loss = 0.001, .burst_length = 20.0}) == doctest::Approx(20.0).epsilon(0.15));
  CHECK(runs({.loss = 0.01}) == doctest::Approx(1.01).epsilon(0.02));
}

TEST_CASE("a proxy serves so many rigs, counts what comes from others and goes on") {
  Server server;
  ImpairOptions impair;
  impair.port = server.port();
  std::promise<std::uint16_t> listening;
  impair.on_listening = [&](std::uint16_t port) { listening.set_value(port); };
  std::atomic<int> full{0};
  impair.on_full = [&] { ++full; };
  std::atomic<bool> stop{false};
  ImpairReport report;
  std::jthread proxy([&] { report = run_impair(impair, stop); });
  const asio::ip::udp::endpoint front(asio::ip::make_address("127.0.0.1"), listening.get_future().get());
  asio::io_context context;
  std::vector<asio::ip::udp::socket> rigs;
  const auto send = [&](std::size_t rig) { rigs[rig].send_to(asio::buffer("x", 1), front); };
  for (std::size_t k = 0; k < kMostRigs + 2; ++k) {
    rigs.emplace_back(context, asio::ip::udp::v4());
    send(k);
    if (k < kMostRigs) REQUIRE(becomes_true([&] { return server.counters().received == k + 1; }));
  }
  REQUIRE(becomes_true([&] { return full == 1; }));
  send(0);
  CHECK(becomes_true([&] { return server.counters().received == kMostRigs + 1; }));
  stop = true;
  proxy.join();
  CHECK(report.rigs == kMostRigs);
  CHECK(report.refused == 2);
  CHECK(full == 1);
}

TEST_CASE("a bad network loses and delays, and nothing wrong gets through") {
  Server server({.port = 0, .keys = keys().required()});
  ImpairOptions impair;
  impair.port = server.port();
  impair.seed = 11;
  impair.to_server = {.delay_s = 0.001,
                      .jitter_s = 0.002,
                      .loss = 0.05,
                      .burst_loss = 0.005,
                      .burst_length = 10.0,
                      .reorder = 0.05,
                      .duplicate = 0.05,
                      .corrupt = 0.05};
  impair.to_rig = impair.to_server;
  std::promise<std::uint16_t> listening;
  impair.on_listening = [&](std::uint16_t port) { listening.set_value(port); };
  std::atomic<bool> stop{false};
  ImpairReport impaired;
  std::jthread proxy([&] { impaired = run_impair(impair, stop); });

  RigOptions options = options_for(server);
  options.port = listening.get_future().get();
  options.key_file = keys().file("bench.key");
  options.drives = {"force=step:3,0"};
  options.duration_s = 2.0;
  options.on_state = [](const Snapshot& state) {
    if ((state.flags & kNoInputYet) == 0) REQUIRE(state.outputs.value[0] == 3.0);
  };
  const RigReport report = run_rig(options, kNeverStop);
  stop = true;
  proxy.join();
  // a shared machine may be busy: of 2000 datagrams either way at least some hundred pass here
  CHECK(report.states > 50);
  CHECK(report.lost > 5);
  CHECK(report.dropped[static_cast<std::size_t>(DecodeStatus::authentication)] > 0);
  CHECK(report.dropped[static_cast<std::size_t>(DecodeStatus::replayed)] > 0);
  CHECK(server.dropped(DecodeStatus::authentication) > 0);
  CHECK(server.dropped(DecodeStatus::replayed) > 0);
  CHECK(server.dropped(DecodeStatus::old_sequence) > 0);
  CHECK(impaired.to_server.lost > 5);
  CHECK(impaired.to_server.corrupted > 5);
  // the shortest exchange took 2 ms of delay, and one clock is one clock
  REQUIRE(report.clock);
  CHECK(report.clock->round_trip_ns > 2'000'000);
  CHECK(std::abs(report.clock->offset_ns) <= report.clock->uncertainty_ns);
}

}  // namespace
}  // namespace rigstep::server
