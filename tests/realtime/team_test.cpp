// The threads that share a step: everybody works, nobody waits without bound.
#include <doctest/doctest.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include "core/index3/compile/plan.h"
#include "core/index3/step/team.h"
#include "core/index3/stepper.h"
#include "core/index3/stepper_access.h"
#include "rt/thread_setup.h"
#include "tests/support/mechanisms.h"
#include "tests/support/primal_body_cases.h"

namespace rigstep::index3 {
namespace {

void wait_until_ready(const Team& team) {
  const auto since = std::chrono::steady_clock::now();
  while (!team.is_ready() && std::chrono::steady_clock::now() - since < std::chrono::seconds(10))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(team.is_ready());
}

}  // namespace

TEST_CASE("every part of a split is worked on exactly once, call after call, also after a long sleep") {
  Team team(3);
  std::array<std::atomic<int>, 3> calls{};
  for (int k = 0; k < 1000; ++k) {
    if (k == 500) std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the workers have gone to sleep
    wait_until_ready(team);
    team.split([&calls](int part) { ++calls[static_cast<std::size_t>(part)]; });
  }
  wait_until_ready(team);
  for (const auto& each : calls) CHECK(each == 1000);
}

TEST_CASE("a worker that comes late is not waited for, and is welcome again afterwards") {
  Team team(2);
  wait_until_ready(team);
  const auto since = std::chrono::steady_clock::now();
  const bool in_time = team.split([](int part) {
    if (part == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  const auto waited = std::chrono::steady_clock::now() - since;
  CHECK_FALSE(in_time);
  CHECK(waited < std::chrono::milliseconds(250));
  CHECK_FALSE(team.is_ready());
  wait_until_ready(team);
}

TEST_CASE("steps shared by any number of threads, some of them late, have the bits of one thread") {
  for (const JointType type : {JointType::spherical, JointType::revolute}) {
    const Mechanism m = test::build(test::chain(768, type));
    Settings settings;
    settings.dt_ns = 5'000'000;
    Stepper alone(m, settings);
    for (int k = 0; k < 60; ++k) alone.step(Inputs{});
    for (const int threads : {2, 3, 4}) {
      settings.threads = threads;
      Stepper shared(m, settings);
      CHECK(shared.threads() > 1);
      for (int k = 0; k < 60; ++k) CHECK(shared.step(Inputs{}).status == StepStatus::ok);
      CHECK(shared.state().hash() == alone.state().hash());
      MESSAGE(shared.threads() << " threads: " << shared.late_workers() << " of 60 steps made anew alone");
    }
  }
}

// A chain whose joints have end stops, and a rope through some of its links in the middle.
Mechanism limited_chain(int links) {
  const test::Description d = test::chain(links, JointType::revolute);
  return test::build(d, [&d](MechanismBuilder& builder) {
    Rope rope;
    rope.name = "rope";
    rope.length = 0.1;  // taut from the start
    rope.stiffness = 1e3;
    std::vector<std::string> bodies;
    for (std::size_t k = d.bodies.size() / 2 - 4; k < d.bodies.size() / 2 + 4; ++k) {
      rope.points.push_back({});
      bodies.push_back(d.bodies[k].name);
    }
    builder.add_element(rope, bodies, std::string());
    for (const auto& joint : d.joints) {
      Stop stop;
      stop.name = "stop_" + joint.name;
      stop.lower = -0.01, stop.upper = 0.001;
      stop.stiffness = 1e4;
      stop.damping = 1.0;
      builder.add_element(stop, joint.name, Freedom::angle);
    }
  });
}

// What passes between parts in every way: trees and loops, free chains, cut joints of every format, primal bodies with
// attachments in several parts, general constraints, drivers, couplings and force elements across the cut.
TEST_CASE("mechanisms of any topology, divided among threads, have the bits of one thread") {
  std::vector<Mechanism> all;
  for (const int n : {128, 200, 333}) all.push_back(test::build(test::chain(n, JointType::universal)));
  for (int seed = 1; seed <= 6; ++seed) all.push_back(test::build(test::random_chain(seed, 100 + 31 * seed)));
  for (const auto& [chains, links] : {std::pair{2, 64}, {3, 32}, {5, 16}, {2, 128}})
    for (const JointType type : {JointType::spherical, JointType::revolute})
      all.push_back(test::build(test::chains_side_by_side(chains, links, type, false)));
  all.push_back(test::build(test::tree(400, 3, JointType::revolute)));
  all.push_back(test::build(test::ladder(60)));
  all.push_back(test::build(test::in_space(test::ladder(60))));
  all.push_back(test::build(test::net(10, JointType::spherical)));
  for (const int branching : {2, 4, 7}) all.push_back(test::build(test::tree(300, branching, JointType::spherical)));
  all.push_back(test::build(test::star(40, 12)));
  all.push_back(test::build(test::carousel(40, 9)));
  all.push_back(test::build(test::carousel(20, 40)));  // a dual form that would be divided, too
  for (unsigned seed = 1; seed <= 3; ++seed) {
    all.push_back(test::build(test::random_tree(seed, 250)));
    test::Description coupled = test::random_bare_tree(seed, 250);
    test::add_random_couplings(seed, coupled, 5);
    all.push_back(test::build(test::made_consistent(coupled)));
  }
  all.push_back(limited_chain(300));
  CHECK(Stepper(all.back(), {.threads = 2}).threads() == 2);
  int divided = 0, with_primal_bodies = 0;
  for (const Mechanism& m : all) {
    CAPTURE(m.name());
    Settings settings;
    settings.dt_ns = 1'000'000;
    Stepper alone(m, settings);
    std::vector<std::uint64_t> hashes;
    std::vector<StepReport> reports;
    for (std::uint64_t k = 0; k < 20; ++k) {
      reports.push_back(alone.step(test::test_inputs(m, k)));
      hashes.push_back(alone.state().hash());
    }
    for (int threads = 2; threads <= 6; ++threads) {
      CAPTURE(threads);
      settings.threads = threads;
      Stepper shared(m, settings);
      REQUIRE(plan_of(shared).primal_choice.reason == plan_of(alone).primal_choice.reason);
      const Elimination& e = plan_of(shared).elimination;
      divided += e.parts.size() > 1;
      with_primal_bodies += e.parts.size() > 1 && !e.primal_bodies.empty();
      for (std::uint64_t k = 0; k < 20; ++k) {
        const StepReport report = shared.step(test::test_inputs(m, k));
        REQUIRE(report.status == reports[k].status);
        REQUIRE(report.joint == reports[k].joint);
        REQUIRE(report.body == reports[k].body);
        REQUIRE(report.last_increment == reports[k].last_increment);
        REQUIRE(report.position_residual == reports[k].position_residual);
        REQUIRE(report.velocity_residual == reports[k].velocity_residual);
        REQUIRE(report.acceleration_residual == reports[k].acceleration_residual);
        REQUIRE(shared.state().hash() == hashes[k]);
      }
    }
  }
  CHECK(divided >= 60);
  CHECK(with_primal_bodies >= 10);
}

TEST_CASE("the last allowed core is the last of the thread's own mask") {
  cpu_set_t before, one;
  CPU_ZERO(&before);
  CPU_ZERO(&one);
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  int last = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    if (last < 0) CPU_SET(cpu, &one);  // the first one
    last = cpu;
  }
  CHECK(rt::last_allowed_core() == last);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(CPU_ISSET(rt::last_allowed_core(), &one));
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
}

TEST_CASE("workers are pinned beside the loop's core, and the report says what the kernel says") {
  cpu_set_t pinned;
  CPU_ZERO(&pinned);
  const Team team(2);
  const rt::ThreadReport report = rt::set_up_team(team.workers(), 1, 1'000'000, {});
  REQUIRE(report.size() == 3);
  CHECK(report[0].granted);
  REQUIRE(team.workers().size() == 1);
  ::pthread_getaffinity_np(team.workers()[0], sizeof pinned, &pinned);
  CHECK(report[1].granted == (CPU_COUNT(&pinned) == 1 && !CPU_ISSET(rt::last_allowed_core(), &pinned)));
  int policy = -1;
  sched_param parameter{};
  ::pthread_getschedparam(team.workers()[0], &policy, &parameter);
  CHECK(report[2].granted == (policy == SCHED_FIFO));
  // workers spin for longer than a period: with throttling the kernel would stop them
  long runtime_us = -1;
  std::ifstream("/proc/sys/kernel/sched_rt_runtime_us") >> runtime_us;
  if (runtime_us >= 0) CHECK_FALSE(report[2].granted);
  // a worker that is missing is told
  CHECK_FALSE(rt::set_up_team({}, 1, 1'000'000, {})[0].granted);
  CHECK_THROWS_AS(rt::set_up_team({}, 1, 1'000'000, {.enforce = true, .cpu = {}}), rt::RealtimeError);
}

TEST_CASE("a thread without SCHED_FIFO spins as long as it is asked to, and the report says so") {
  rt::ThreadReport report;
  CHECK(rt::set_up_busy_poll(0, {}, report).allowance(0) == 0);
  CHECK(report.empty());
  CHECK(rt::set_up_busy_poll(50'000, {}, report).allowance(0) == 50'000);
  REQUIRE(report.size() == 1);
  CHECK(report[0].granted);
  CHECK(report[0].what == "busy-poll 50 us");
}

TEST_CASE("a mechanism with little work per step stays on one thread") {
  Settings settings;
  settings.threads = 4;
  CHECK(Stepper(test::build(test::four_bar(0.5)), settings).threads() == 1);
  CHECK(Stepper(test::build(test::chain(8, JointType::spherical)), settings).threads() == 1);
}

}  // namespace rigstep::index3
