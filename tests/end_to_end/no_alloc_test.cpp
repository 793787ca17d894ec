// The loop thread allocates nothing from the datagram that asks for a step to the one that answers, nor does a plugin
// between its creation and its end.
#include "tests/support/no_alloc.h"

#include <doctest/doctest.h>

#include <thread>

#include "rt/cycle.h"
#include "server/link/udp_endpoint.h"
#include "server/plugin/rigstep.h"
#include "server/rig/rig_client.h"
#include "tests/support/reference.h"
#include "tests/support/units.h"

namespace rigstep {

TEST_CASE("a thousand steps in lockstep, from datagram to datagram, allocate nothing" *
          doctest::skip(!test::kCountsAllocations)) {  // by a sanitizer's allocator, which cannot be counted
  constexpr std::uint64_t kWarm = 100, kCounted = 1000;
  const Mechanism four_bar = test::mechanism("four_bar");
  index3::Stepper stepper(four_bar, {});
  rt::Mailbox<InputSample> in;
  rt::Mailbox<Snapshot> out;
  rt::PoseMailbox poses(four_bar.bodies().size(), four_bar.input_channels().size(), 1'000'000);
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

TEST_CASE("plugin: the C library allocates nothing but at load time" * doctest::skip(!test::kCountsAllocations)) {
  const auto mechanism = test::unit_mechanism("templates/cart_pole/mechanism.textproto");
  rigstep_stepper* const cart =
      rigstep_create_from_text(mechanism.text.data(), mechanism.text.size(), nullptr, nullptr, 0);
  REQUIRE(cart != nullptr);
  std::vector<double> inputs(rigstep_count(cart, RIGSTEP_INPUT), 1.0), outputs(rigstep_count(cart, RIGSTEP_OUTPUT)),
      poses(7 * rigstep_count(cart, RIGSTEP_BODY)), rows(20 * outputs.size());
  std::vector<std::byte> state(rigstep_state_size(cart));
  rigstep_report report{};
  report.size = sizeof report;
  rigstep_info info{};
  info.size = sizeof info;
  bool as_told = true;
  const auto use_everything = [&] {
    const auto friction = static_cast<std::size_t>(rigstep_find(cart, RIGSTEP_PARAMETER, "rail_friction"));
    const auto is_ok = [&](rigstep_status status) { as_told = as_told && status == RIGSTEP_OK; };
    is_ok(rigstep_describe(cart, RIGSTEP_PARAMETER, friction, &info));
    is_ok(rigstep_set_inputs(cart, inputs.data(), inputs.size()));
    is_ok(rigstep_set_parameter(cart, friction, 3.0));
    is_ok(rigstep_step(cart, 20));
    is_ok(rigstep_save_state(cart, state.data(), state.size()));
    is_ok(rigstep_run(cart, 20, nullptr, rows.data()));
    is_ok(rigstep_restore_state(cart, state.data(), state.size()));
    is_ok(rigstep_get_outputs(cart, outputs.data(), outputs.size()));
    is_ok(rigstep_get_poses(cart, poses.data(), poses.size()));
    is_ok(rigstep_get_report(cart, &report));
    as_told = as_told && rigstep_set_parameter(cart, friction, -1.0) == RIGSTEP_BAD_ARGUMENT &&
              rigstep_last_error(cart)[0] != '\0';
    rigstep_reset(cart);
  };
  CHECK(test::allocations(use_everything) == 0);
  CHECK(as_told);
  rigstep_destroy(cart);
}

TEST_CASE("plugin: steps of units, and values between them, allocate nothing" *
          doctest::skip(!test::kCountsAllocations)) {
  for (const auto version : {server::FmiVersion::fmi2, server::FmiVersion::fmi3}) {
    const test::LoadedUnit unit(test::unit_mechanism("templates/cart_pole/mechanism.textproto"), version);
    const auto instance = unit.started();
    const std::vector<std::uint32_t> set{unit.reference("force"), unit.reference("rail_friction")},
        get{unit.reference("angle")};
    const std::vector<double> values{1.0, 3.0};
    std::vector<double> angle(1);
    bool is_ok = true;
    CHECK(test::allocations([&] {
            for (int k = 0; k < 100; ++k) {
              instance->set_reals(set, values);
              is_ok = is_ok && instance->step(0.001 * k, 0.001).status == server::FmuStatus::ok;
              instance->get_reals(get, angle);
            }
          }) == 0);
    CHECK((is_ok && angle[0] != 0.0));
  }
}

}  // namespace rigstep
