// The loop thread allocates nothing from the datagram that asks for a step to the one that answers.
#include "tests/support/no_alloc.h"

#include <doctest/doctest.h>

#include <thread>

#include "rt/cycle.h"
#include "server/link/udp_endpoint.h"
#include "server/rig/rig_client.h"
#include "tests/support/reference.h"

namespace rigstep {

TEST_CASE("a thousand steps in lockstep, from datagram to datagram, allocate nothing" *
          doctest::skip(!test::kCountsAllocations)) {  // by a sanitizer's allocator, which cannot be counted
  constexpr std::uint64_t kWarm = 100, kCounted = 1000;
  const Mechanism four_bar = test::mechanism("four_bar");
  index3::Stepper stepper(four_bar, {});
  rt::Mailbox<InputSample> in;
  rt::Mailbox<Snapshot> out;
  rt::PoseMailbox poses(four_bar.bodies().size(), 1'000'000);
  rt::Cycle cycle(stepper, {}, {.in = &in, .poses = &poses});
  wire::ServerCodec codec(four_bar, {0, 1, 2, 3, 4, 5, 6, 7, 8}, 1'000'000, "1.2.3");
  server::UdpEndpoint endpoint({.port = 0}, codec, in, out, {.poses = &poses});
  long count = -1;
  const auto step = [&](const rt::TickTiming& timing) {
    if (cycle.answer().step == kWarm) test::allocation_counter = {true, 0};
    cycle.advance(timing);
  };
  const auto keep = [&] {
    cycle.keep();
    if (cycle.answer().step != kWarm + kCounted + 1) return;
    test::allocation_counter.armed = false;
    count = test::allocation_counter.count;
  };
  std::thread loop([&] {
    const server::Lockstep lockstep{.step = step, .keep = keep, .answer = cycle.answer()};
    endpoint.serve_lockstep(lockstep, rt::BusyPoll(50'000, rt::BusyPoll::kWindowNs));
  });
  {
    server::RigClient client({.port = endpoint.local_port()});
    // somebody watches, all the while; only what asks for that, as any request but inputs, is allocated
    CHECK(client.control([&](const server::RigState& state, std::span<double> inputs) {
      inputs[0] = 0.1;
      if (state.step == kWarm / 2) client.subscribe_poses();
      return state.step < kWarm + kCounted + 1;
    }));
  }
  endpoint.stop();
  loop.join();
  CHECK(count == 0);
  CHECK(endpoint.reply_ns().count() == kWarm + kCounted + 1);
}

}  // namespace rigstep
