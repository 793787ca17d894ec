// Poses of all bodies over the link: for who subscribes, in as many datagrams as it takes, none afterwards.
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "rt/cycle.h"
#include "server/link/udp_endpoint.h"
#include "server/rig/rig_client.h"
#include "tests/support/reference.h"

namespace rigstep {
namespace {

// Poses of an instant as they came together, and datagrams.
struct Watched {
  std::vector<float> numbers;
  std::size_t bodies = 0;
  int datagrams = 0;
};

Watched watch(server::RigClient& client, std::int64_t for_ns) {
  Watched seen;
  const std::int64_t end = rt::MonotonicClock::now_ns() + for_ns;
  while (rt::MonotonicClock::now_ns() < end) {
    client.wait_until(std::min(end, rt::MonotonicClock::now_ns() + 10'000'000));
    for (auto arrival = client.receive(); arrival != server::RigClient::Arrival::nothing; arrival = client.receive()) {
      if (arrival != server::RigClient::Arrival::poses) continue;
      const server::RigPoses& poses = client.poses();
      seen.numbers.resize(7 * poses.bodies);
      std::copy(poses.numbers.begin(), poses.numbers.end(),
                seen.numbers.begin() + 7 * static_cast<std::ptrdiff_t>(poses.first_body));
      seen.bodies += poses.numbers.size() / 7;
      ++seen.datagrams;
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("an observer that subscribes sees all bodies of a mechanism that no datagram holds, others see none") {
  const Mechanism chain = test::mechanism("chain_128");
  index3::Stepper stepper(chain, {});
  rt::Mailbox<InputSample> in;
  rt::Mailbox<Snapshot> out;
  rt::PoseMailbox poses(chain.bodies().size(), chain.input_channels().size(), 1'000'000);
  wire::ServerCodec codec(chain, {}, 1'000'000, "1.2.3");
  server::UdpEndpoint endpoint({.port = 0}, codec, in, out, {.poses = &poses});
  endpoint.start();
  rt::Cycle cycle(stepper, {.start = StartMode::at_once},
                  {.in = &in, .out = &out, .poses = &poses, .wake_fd = endpoint.wake_fd()});
  std::atomic<bool> stopping{false};
  std::thread loop([&] {
    while (!stopping) {
      cycle.advance({});
      cycle.keep();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  {
    server::RigClient watcher({.port = endpoint.local_port(), .observe = true});
    server::RigClient other({.port = endpoint.local_port(), .observe = true});
    CHECK(watch(watcher, 100'000'000).datagrams == 0);
    REQUIRE(watcher.subscribe_poses());
    const Watched seen = watch(watcher, 500'000'000);
    CHECK(seen.datagrams >= 4);
    CHECK(seen.bodies >= 128);
    REQUIRE(seen.numbers.size() == 7 * 128);
    for (std::size_t i = 0; i < 128; ++i) {
      const float* p = &seen.numbers[7 * i + 3];
      CHECK(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3] == doctest::Approx(1.0).epsilon(1e-5));
    }
    CHECK(watch(other, 50'000'000).datagrams == 0);
  }
  stopping = true;
  loop.join();
  endpoint.stop();
}

}  // namespace rigstep
