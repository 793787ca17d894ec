#include "proto/codec.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "core/mechanism/builder.h"
#include "proto/config_text.h"
#include "proto/limits.h"

namespace rigstep::wire {
namespace {

constexpr std::int64_t kPeriod = 1'000'000;

// One body with `inputs` force channels and `poses` poses of seven channels.
Mechanism block(int inputs, int poses) {
  MechanismBuilder builder("block");
  Body body;
  body.name = "body";
  body.mass = 2.0;
  body.inertia_b = Mat3::Identity();
  builder.add_body(body);
  for (int i = 0; i < inputs; ++i) {
    Input input;
    input.name = "force_" + std::to_string(i);
    builder.add_body_input(input, "body");
  }
  for (int i = 0; i < poses; ++i) {
    Output output;
    output.name = "pose_" + std::to_string(i);
    output.kind = Output::Kind::body_pose;
    builder.add_body_output(output, "body");
  }
  return builder.build();
}

std::vector<int> first_outputs(int count) {
  std::vector<int> outputs(count);
  std::iota(outputs.begin(), outputs.end(), 0);
  return outputs;
}

// Both ends of a link, connected.
struct Link {
  explicit Link(int inputs = 2, int poses = 1, std::vector<int> outputs = {6, 0, 3})
      : mechanism(block(inputs, poses)), server(mechanism, std::move(outputs), kPeriod, "1.2.3"), input_count(inputs) {
    REQUIRE(rig.decode(server.encode_welcome({.timeout_steps = 2000}), 0, state) == DecodeStatus::ok);
    welcome = rig.message()->welcome();
    rig.start(welcome);
  }

  InputSample sample(std::uint64_t sequence) const {
    InputSample made;
    made.sequence = sequence;
    made.rig_time_ns = 77;
    made.inputs.count = input_count;
    for (int i = 0; i < input_count; ++i) made.inputs.value[i] = 0.5 * i - 1.0;
    return made;
  }

  // What the server says to an InputFrame that was changed by `change`.
  template <class Change>
  DecodeStatus status_of_changed_input(Change change) {
    RigToServer message;
    const auto bytes = rig.encode_input(sample(8));
    REQUIRE(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    change(message);
    const std::string changed = message.SerializeAsString();
    return server.decode(std::as_bytes(std::span(changed)), 7, request);
  }

  // What the rig says to a StateFrame that was changed by `change`.
  template <class Change>
  DecodeStatus status_of_changed_state(Change change) {
    Snapshot sent;
    sent.step = 5;
    ServerToRig message;
    const auto bytes = server.encode_state(sent);
    REQUIRE(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    change(message);
    const std::string changed = message.SerializeAsString();
    return rig.decode(std::as_bytes(std::span(changed)), 4, state);
  }

  Mechanism mechanism;
  ServerCodec server;
  RigCodec rig;
  RigRequest request;
  Snapshot state;
  Welcome welcome;
  int input_count;
};

TEST_CASE("an input arrives as the rig sent it") {
  Link link;
  const InputSample sent = link.sample(1);
  REQUIRE(link.server.decode(link.rig.encode_input(sent), 0, link.request) == DecodeStatus::ok);
  CHECK(link.request.content == RigToServer::kInput);
  CHECK(link.request.input.sequence == 1);
  CHECK(link.request.input.rig_time_ns == 77);
  CHECK(link.request.input.inputs.count == 2);
  CHECK(link.request.input.inputs.value == sent.inputs.value);
}

TEST_CASE("a state carries the selected outputs in the order of selection") {
  Link link;
  Snapshot sent;
  sent.step = 12;
  sent.sim_time_ns = 12 * kPeriod;
  sent.sequence = 9;
  sent.rig_time_ns = -5;
  sent.status = StepStatus::not_converged;
  sent.flags = kOverrun | kNotConverged;
  sent.input_age_steps = 3;
  sent.outputs.count = 7;
  std::iota(sent.outputs.value.begin(), sent.outputs.value.begin() + 7, 100.0);
  REQUIRE(link.rig.decode(link.server.encode_state(sent), 11, link.state) == DecodeStatus::ok);
  CHECK(link.state.step == 12);
  CHECK(link.state.sim_time_ns == 12 * kPeriod);
  CHECK(link.state.sequence == 9);
  CHECK(link.state.rig_time_ns == -5);
  CHECK(link.state.status == StepStatus::not_converged);
  CHECK(link.state.flags == (kOverrun | kNotConverged));
  CHECK(link.state.input_age_steps == 3);
  REQUIRE(link.state.outputs.count == 3);
  CHECK(link.state.outputs.value[0] == 106.0);
  CHECK(link.state.outputs.value[1] == 100.0);
  CHECK(link.state.outputs.value[2] == 103.0);
}

TEST_CASE("the welcome says which mechanism runs, how fast and with how many channels") {
  const Link link;
  CHECK(link.welcome.product_version() == "1.2.3");
  CHECK(link.welcome.mechanism() == "block");
  CHECK(link.welcome.mechanism_id() == link.mechanism.id());
  CHECK(link.welcome.period_ns() == kPeriod);
  CHECK(link.welcome.input_channels() == 2);
  CHECK(link.welcome.output_channels() == 3);
  CHECK(link.welcome.timeout_steps() == 2000);
  CHECK_FALSE(link.welcome.has_controller());
}

TEST_CASE("every other message survives the way") {
  Link link;
  const KeyId key_id = {1, 2, 3};
  const PublicKey public_key = {4, 5, 6};
  REQUIRE(link.server.decode(link.rig.encode_hello({.product_version = "0.9",
                                                    .rig_name = "bench",
                                                    .role = OBSERVER,
                                                    .nonce = 77,
                                                    .cookie = "cake",
                                                    .key_id = &key_id,
                                                    .public_key = &public_key,
                                                    .former_session = 8,
                                                    .token = "tea"}),
                             0, link.request) == DecodeStatus::ok);
  CHECK(link.request.content == RigToServer::kHello);
  CHECK(link.request.product_version == "0.9");
  CHECK(link.request.rig_name == "bench");
  CHECK(link.request.role == OBSERVER);
  CHECK(link.request.nonce == 77);
  CHECK(std::string(link.request.cookie.begin(), link.request.cookie.end()) == "cake");
  CHECK(std::equal(key_id.begin(), key_id.end(), link.request.key_id.begin(), link.request.key_id.end()));
  CHECK(
      std::equal(public_key.begin(), public_key.end(), link.request.public_key.begin(), link.request.public_key.end()));
  CHECK(link.request.former_session == 8);
  CHECK(std::string(link.request.token.begin(), link.request.token.end()) == "tea");
  REQUIRE(link.server.decode(link.rig.encode_join(), 0, link.request) == DecodeStatus::ok);
  CHECK(link.request.content == RigToServer::kJoin);
  REQUIRE(link.server.decode(link.rig.encode_reset_fault(3), 0, link.request) == DecodeStatus::ok);
  CHECK(link.request.content == RigToServer::kResetFault);
  CHECK(link.request.number == 3);
  REQUIRE(link.server.decode(link.rig.encode_write_black_box(4), 0, link.request) == DecodeStatus::ok);
  CHECK(link.request.content == RigToServer::kWriteBlackBox);
  CHECK(link.request.number == 4);
  REQUIRE(link.server.decode(link.rig.encode_status_query(true), 0, link.request) == DecodeStatus::ok);
  CHECK(link.request.content == RigToServer::kStatusQuery);
  REQUIRE(link.server.decode(link.rig.encode_heartbeat(), 0, link.request) == DecodeStatus::ok);
  CHECK(link.request.content == RigToServer::kHeartbeat);
  REQUIRE(link.server.decode(link.rig.encode_channel_query(OUTPUT, 3), 0, link.request) == DecodeStatus::ok);
  CHECK(link.request.content == RigToServer::kChannelQuery);
  CHECK(link.request.direction == OUTPUT);
  CHECK(link.request.first == 3);
  REQUIRE(link.server.decode(link.rig.encode_goodbye("done"), 0, link.request) == DecodeStatus::ok);
  CHECK(link.request.content == RigToServer::kGoodbye);
  REQUIRE(link.rig.decode(link.server.encode_refusal(CONTROL_TAKEN, "busy"), 0, link.state) == DecodeStatus::ok);
  CHECK(link.rig.message()->refusal().reason() == CONTROL_TAKEN);
  CHECK(link.rig.message()->refusal().text() == "busy");
  REQUIRE(link.rig.decode(link.server.encode_refusal(FULL, "no", 9, true), 0, link.state) == DecodeStatus::ok);
  CHECK(link.rig.message()->refusal().nonce() == 9);
  CHECK(link.rig.message()->proof().size() == kProofBytes);
  REQUIRE(link.rig.decode(link.server.encode_goodbye("bye", TAKEN_OVER), 0, link.state) == DecodeStatus::ok);
  CHECK(link.rig.message()->goodbye().text() == "bye");
  CHECK(link.rig.message()->goodbye().reason() == TAKEN_OVER);
  CHECK(link.rig.message()->proof().empty());
  REQUIRE(link.rig.decode(link.server.encode_accept(10, 11, &public_key), 0, link.state) == DecodeStatus::ok);
  CHECK(link.rig.message()->accept().nonce() == 10);
  CHECK(link.rig.message()->accept().session() == 11);
  CHECK(link.rig.message()->accept().public_key().size() == public_key.size());
}

TEST_CASE("an input is refused for exactly the reason that it has") {
  Link link;
  CHECK(link.status_of_changed_input([](RigToServer&) {}) == DecodeStatus::ok);
  CHECK(link.status_of_changed_input([](RigToServer& m) { m.clear_content(); }) == DecodeStatus::unexpected_content);
  CHECK(link.status_of_changed_input([](RigToServer& m) { m.mutable_input()->set_mechanism_id(1); }) ==
        DecodeStatus::wrong_mechanism);
  CHECK(link.status_of_changed_input([](RigToServer& m) { m.mutable_input()->add_value(0.0); }) ==
        DecodeStatus::channel_count);
  CHECK(link.status_of_changed_input([](RigToServer& m) { m.mutable_input()->clear_value(); }) ==
        DecodeStatus::channel_count);
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    CHECK(link.status_of_changed_input([&](RigToServer& m) { m.mutable_input()->set_value(1, bad); }) ==
          DecodeStatus::not_finite);
  }
  for (const std::uint64_t old : {0, 6, 7}) {
    CHECK(link.status_of_changed_input([&](RigToServer& m) { m.mutable_input()->set_sequence(old); }) ==
          DecodeStatus::old_sequence);
  }
  CHECK(link.status_of_changed_input([](RigToServer& m) {
    m.mutable_channel_query()->set_direction(static_cast<Direction>(9));
  }) == DecodeStatus::unexpected_content);
  CHECK(link.status_of_changed_input([](RigToServer& m) { m.mutable_hello()->set_role(static_cast<Role>(7)); }) ==
        DecodeStatus::unexpected_content);
}

TEST_CASE("requests that come from an unproven address fill their frame, with any words in them") {
  Link link;
  const std::string long_name(200, 'x');
  for (const std::string& name : {std::string(), long_name}) {
    const KeyId key_id = {1};
    const PublicKey public_key = {2};
    const std::string cookie(kCookieBytes, 'c'), token(kTokenBytes, 't');
    const auto size_of = [&](const HelloFields& fields) { return link.rig.encode_hello(fields).size(); };
    CHECK(size_of({.product_version = name,
                   .rig_name = name,
                   .nonce = ~0ull,
                   .cookie = cookie,
                   .key_id = &key_id,
                   .public_key = &public_key,
                   .former_session = ~0ull}) == kMaxPayload);
    CHECK(size_of({.product_version = name, .rig_name = name, .cookie = cookie, .token = token}) == kMaxPayload);
    CHECK(size_of({.product_version = name, .rig_name = name, .role = CONSOLE}) == kMaxPayload);
  }
  CHECK(link.rig.encode_status_query(false).size() == kMaxPayload);
  CHECK(link.rig.encode_goodbye("").size() < 10);  // and nothing else does
}

TEST_CASE("a status report is one frame: observers that do not fit are left out, their number stays") {
  Link link;
  StatusReport report;
  report.set_observers(40);
  for (int k = 0; k < 40; ++k) {
    Participant& observer = *report.add_observer();
    observer.set_rig_name("observer " + std::to_string(k));
    observer.set_address("10.0.0." + std::to_string(k) + ":40000");
  }
  const auto bytes = link.server.encode_status(report);
  CHECK(bytes.size() <= kMaxPayload);
  REQUIRE(link.rig.decode(bytes, 0, link.state) == DecodeStatus::ok);
  const StatusReport& read = link.rig.message()->status();
  CHECK(read.mechanism() == "block");
  CHECK(read.product_version() == "1.2.3");
  CHECK(read.observers() == 40);
  CHECK(read.observer_size() > 20);
  CHECK(read.observer_size() < 40);
  CHECK(read.observer(0).rig_name() == "observer 0");
  CHECK(read.is_cut());
  CHECK_FALSE(link.server.encode_status({}).empty());
  REQUIRE(link.rig.decode(link.server.encode_status({}), 0, link.state) == DecodeStatus::ok);
  CHECK_FALSE(link.rig.message()->status().is_cut());
}

TEST_CASE("in a full status report texts are cut before any number is left out") {
  Link link;
  StatusReport report;
  for (std::string* text : {report.mutable_fault(), report.mutable_black_box(), report.mutable_recording_error()})
    *text = std::string(250, 'x');
  report.add_observer()->set_rig_name("observer");
  for (std::size_t k = 1; k < kDecodeStatusCount; ++k) {
    Counter& refused = *report.add_refused();
    refused.set_name(to_string(static_cast<DecodeStatus>(k)));
    refused.set_count(100 * k);
  }
  for (int k = 0; k < 12; ++k) {
    Counter& counter = *report.add_counter();
    counter.set_name("some_counter");
    counter.set_count(1'000'000);
  }
  REQUIRE(link.rig.decode(link.server.encode_status(report), 0, link.state) == DecodeStatus::ok);
  const StatusReport& read = link.rig.message()->status();
  CHECK(read.is_cut());
  CHECK(read.refused_size() == kDecodeStatusCount - 1);
  CHECK(read.counter_size() == 12);
  CHECK(read.recording_error().starts_with(std::string(60, 'x')));
  CHECK(read.recording_error().ends_with("..."));
}

TEST_CASE(
    "a status report that is too large for its observers alone goes without reasons, counters, distributions, never "
    "unsent") {
  Link link;
  StatusReport report;
  report.set_fault(std::string(250, 'f'));
  report.set_black_box(std::string(250, 'b'));
  for (int k = 0; k < 60; ++k) {
    report.add_counter()->set_name("counter_" + std::to_string(k));
    report.add_refused()->set_name("reason_" + std::to_string(k));
    report.add_observer()->set_rig_name("observer");
  }
  const auto bytes = link.server.encode_status(report);
  CHECK(bytes.size() > 0);
  CHECK(bytes.size() <= kMaxPayload);
  REQUIRE(link.rig.decode(bytes, 0, link.state) == DecodeStatus::ok);
  const StatusReport& read = link.rig.message()->status();
  CHECK(read.observer_size() == 0);
  CHECK(read.refused_size() < 60);
  CHECK(read.counter_size() > 20);
  CHECK(read.fault().size() == 63);
  CHECK(read.black_box().size() == 63);

  report.set_recording_error(std::string(250, 'r'));
  report.mutable_controller()->set_rig_name(std::string(kMaxNameBytes, 'n'));
  report.mutable_controller()->set_product_version(std::string(kMaxNameBytes, 'v'));
  report.mutable_controller()->set_address("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
  for (int k = 0; k < 5; ++k) {
    Distribution& distribution = *report.add_distribution();
    distribution.set_name("input_age_steps");
    distribution.set_count(1ull << 40);
    distribution.set_p50(1ull << 40);
    distribution.set_p99(1ull << 40);
    distribution.set_p999(1ull << 40);
    distribution.set_max(1ull << 40);
  }
  REQUIRE(link.rig.decode(link.server.encode_status(report), 0, link.state) == DecodeStatus::ok);
  const StatusReport& largest = link.rig.message()->status();
  CHECK(largest.refused_size() == 0);
  CHECK(largest.counter_size() > 0);
  CHECK(largest.controller().rig_name().size() == kMaxNameBytes);
  CHECK(largest.recording_error().size() == 63);
}

TEST_CASE("in lockstep any sequence is read, and Welcome tells where to go on") {
  Link link;
  for (const std::uint64_t sequence : {std::uint64_t{0}, std::uint64_t{8}, ~std::uint64_t{0}}) {
    REQUIRE(link.server.decode(link.rig.encode_input(link.sample(sequence)), std::nullopt, link.request) ==
            DecodeStatus::ok);
    CHECK(link.request.input.sequence == sequence);
  }
  REQUIRE(link.rig.decode(link.server.encode_welcome({.lockstep = true, .step = 41}), 0, link.state) ==
          DecodeStatus::ok);
  CHECK(link.rig.message()->welcome().lockstep());
  CHECK(link.rig.message()->welcome().step() == 41);
}

TEST_CASE("a refused input leaves the last accepted one as it was") {
  Link link;
  REQUIRE(link.server.decode(link.rig.encode_input(link.sample(8)), 7, link.request) == DecodeStatus::ok);
  link.status_of_changed_input([](RigToServer& m) {
    m.mutable_input()->set_value(0, 5.0);
    m.mutable_input()->set_value(1, std::numeric_limits<double>::quiet_NaN());
  });
  CHECK(link.request.input.inputs.value == link.sample(8).inputs.value);
}

TEST_CASE("a state is refused for exactly the reason that it has") {
  Link link;
  CHECK(link.status_of_changed_state([](ServerToRig&) {}) == DecodeStatus::ok);
  CHECK(link.status_of_changed_state([](ServerToRig& m) { m.clear_content(); }) == DecodeStatus::unexpected_content);
  CHECK(link.status_of_changed_state([](ServerToRig& m) { m.mutable_state()->set_mechanism_id(1); }) ==
        DecodeStatus::wrong_mechanism);
  CHECK(link.status_of_changed_state([](ServerToRig& m) { m.mutable_state()->add_value(0.0); }) ==
        DecodeStatus::channel_count);
  CHECK(link.status_of_changed_state([](ServerToRig& m) { m.mutable_state()->set_value(0, HUGE_VAL); }) ==
        DecodeStatus::not_finite);
  CHECK(link.status_of_changed_state([](ServerToRig& m) { m.mutable_state()->set_step(3); }) ==
        DecodeStatus::old_sequence);
  CHECK(link.status_of_changed_state([](ServerToRig& m) { m.mutable_state()->set_status(static_cast<Status>(6)); }) ==
        DecodeStatus::malformed);
  CHECK(link.status_of_changed_state([](ServerToRig& m) { m.mutable_welcome()->set_output_channels(129); }) ==
        DecodeStatus::channel_count);
}

TEST_CASE(
    "poses of many bodies survive the way in full frames, and are refused for exactly the reason that they have") {
  Link link;
  std::vector<float> numbers(7 * kPosesPerFrame);
  std::iota(numbers.begin(), numbers.end(), 0.5f);
  PoseFields fields{
      .step = ~0ull >> 1, .sim_time_ns = 1ll << 62, .first_body = 4060, .bodies = 4096, .numbers = numbers};
  const auto payload = link.server.encode_poses(fields);
  CHECK(payload.size() <= kMaxPayload);
  REQUIRE(link.rig.decode(payload, 0, link.state) == DecodeStatus::ok);
  const PoseFrame& frame = link.rig.message()->poses();
  CHECK(frame.step() == fields.step);
  CHECK(frame.sim_time_ns() == fields.sim_time_ns);
  CHECK(frame.first_body() == 4060);
  CHECK(std::equal(numbers.begin(), numbers.end(), frame.pose().begin(), frame.pose().end()));
  const auto status_of = [&](const PoseFields& wrong) {
    return link.rig.decode(link.server.encode_poses(wrong), 0, link.state);
  };
  fields.first_body = 4061;  // beyond the last body
  CHECK(status_of(fields) == DecodeStatus::malformed);
  fields.first_body = 0;
  fields.bodies = 35;
  CHECK(status_of(fields) == DecodeStatus::malformed);
  fields.bodies = 4096;
  fields.numbers = std::span(numbers).first(13);
  CHECK(status_of(fields) == DecodeStatus::malformed);
  fields.numbers = std::span(numbers).first(7);
  CHECK(status_of(fields) == DecodeStatus::ok);
  numbers[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(status_of(fields) == DecodeStatus::not_finite);
  fields.numbers = {};
  const std::vector<float> most_inputs(kMaxChannels, 1.5f);
  fields.inputs = most_inputs;  // not those of this mechanism
  CHECK(link.server.encode_poses(fields).size() <= kMaxPayload);
  CHECK(status_of(fields) == DecodeStatus::channel_count);
  fields.inputs = std::span(most_inputs).first(link.mechanism.input_channels().size());
  fields.step_us = 2.5f;
  REQUIRE(status_of(fields) == DecodeStatus::ok);
  CHECK(link.rig.message()->poses().input(0) == 1.5f);
  CHECK(link.rig.message()->poses().step_us() == 2.5f);
  fields.position_residual = std::numeric_limits<float>::infinity();
  CHECK(status_of(fields) == DecodeStatus::not_finite);
  REQUIRE(link.server.decode(link.rig.encode_pose_subscription(), 0, link.request) == DecodeStatus::ok);
  CHECK(link.request.content == RigToServer::kPoseSubscription);
  RigCodec fresh;
  CHECK(fresh.decode(link.server.encode_poses(fields), 0, link.state) == DecodeStatus::unexpected_content);
}

TEST_CASE("a rig accepts a repeated step, as a faulted server sends it") {
  Link link;
  CHECK(link.status_of_changed_state([](ServerToRig& m) { m.mutable_state()->set_step(4); }) == DecodeStatus::ok);
}

TEST_CASE("a state before the welcome is unexpected") {
  Link link;
  RigCodec stranger;
  CHECK(stranger.decode(link.server.encode_state({}), 0, link.state) == DecodeStatus::unexpected_content);
}

TEST_CASE("an empty message is unexpected") {
  Link link;
  CHECK(link.server.decode({}, 0, link.request) == DecodeStatus::unexpected_content);
  CHECK(link.request.content == RigToServer::CONTENT_NOT_SET);
}

TEST_CASE("the largest mechanism's messages fit their frame") {
  Link link(kMaxChannels, 18, first_outputs(126));
  Snapshot state;
  state.step = state.sequence = ~0ull;
  state.sim_time_ns = state.rig_time_ns = -1;
  state.flags = state.input_age_steps = ~0u;
  const std::size_t state_size = link.server.encode_state(state).size();
  CHECK(state_size > 126 * sizeof(double));
  CHECK(state_size <= kMaxPayload);
  InputSample input = link.sample(~0ull);
  input.rig_time_ns = -1;
  const std::size_t input_size = link.rig.encode_input(input).size();
  CHECK(input_size > kMaxChannels * sizeof(double));
  CHECK(input_size <= kMaxPayload);
}

TEST_CASE("outputs that do not fit one datagram are refused with the number that does") {
  const Mechanism mechanism = block(1, 18);
  std::vector<int> outputs = first_outputs(126);
  outputs.insert(outputs.end(), {0, 1, 2});
  try {
    ServerCodec codec(mechanism, outputs, kPeriod, "1.2.3");
    FAIL("129 outputs were taken");
  } catch (const config::ConfigError& error) {
    const std::string text = error.what();
    CHECK(text.find("129") != std::string::npos);
    CHECK(text.find("at most 128") != std::string::npos);
    CHECK(text.find("list fewer `output`s in the rig file") != std::string::npos);
  }
}

TEST_CASE("channel pages give every channel once, each page in one datagram") {
  Link link(3, 18, first_outputs(126));
  const std::vector<Channel>& channels = link.mechanism.output_channels();
  std::uint32_t known = 0;
  int pages = 0;
  while (known < 126) {
    const auto bytes = link.server.encode_channel_page(OUTPUT, known);
    REQUIRE(bytes.size() <= kMaxPayload);
    REQUIRE(link.rig.decode(bytes, 0, link.state) == DecodeStatus::ok);
    const ChannelPage& page = link.rig.message()->channel_page();
    REQUIRE(page.first() == known);
    REQUIRE(page.total() == 126);
    REQUIRE(page.channel_size() > 0);
    for (const ChannelDescription& channel : page.channel()) {
      CHECK(channel.name() == channels[known].name);
      CHECK(channel.unit() == channels[known].unit);
      ++known;
    }
    ++pages;
  }
  CHECK(pages > 1);
  REQUIRE(link.rig.decode(link.server.encode_channel_page(OUTPUT, ~0u), 0, link.state) == DecodeStatus::ok);
  CHECK(link.rig.message()->channel_page().channel_size() == 0);
  CHECK(link.rig.message()->channel_page().total() == 126);
}

TEST_CASE("pieces of snapshot files are taken within their bounds only, by both ends") {
  Link link;
  const auto status_of = [&](std::uint64_t transfer, std::uint32_t offset, std::uint32_t total, std::size_t size) {
    SnapshotPiece piece;
    piece.set_transfer(transfer);
    piece.set_offset(offset);
    piece.set_total(total);
    piece.set_data(std::string(size, 'x'));
    RigToServer to_server;
    *to_server.mutable_snapshot_piece() = piece;
    ServerToRig to_rig;
    *to_rig.mutable_snapshot_piece() = piece;
    const std::string there = to_server.SerializeAsString(), back = to_rig.SerializeAsString();
    const DecodeStatus at_server = link.server.decode(std::as_bytes(std::span(there)), 7, link.request);
    CHECK(link.rig.decode(std::as_bytes(std::span(back)), 0, link.state) == at_server);
    return at_server;
  };
  constexpr auto kMost = static_cast<std::uint32_t>(config::kLargestSnapshot);
  CHECK(status_of(1, 0, 3000, kSnapshotPieceBytes) == DecodeStatus::ok);
  CHECK(link.request.snapshot_piece.data().size() == kSnapshotPieceBytes);
  CHECK(status_of(1, 2976, 3000, 24) == DecodeStatus::ok);
  CHECK(status_of(1, kMost, kMost, 0) == DecodeStatus::ok);
  CHECK(status_of(0, 0, 3000, 10) == DecodeStatus::unexpected_content);
  CHECK(status_of(1, 0, 3000, kSnapshotPieceBytes + 1) == DecodeStatus::unexpected_content);
  CHECK(status_of(1, 2977, 3000, 24) == DecodeStatus::unexpected_content);
  CHECK(status_of(1, 3001, 3000, 0) == DecodeStatus::unexpected_content);
  CHECK(status_of(1, ~0u, ~0u, 0) == DecodeStatus::unexpected_content);
  CHECK(status_of(1, ~0u - 10, 3000, 1024) == DecodeStatus::unexpected_content);
  CHECK(status_of(1, 0, kMost + 1, 10) == DecodeStatus::unexpected_content);
  CHECK(link.server.decode(link.rig.encode_snapshot_query(0, 0), 7, link.request) == DecodeStatus::unexpected_content);
  CHECK(link.server.decode(link.rig.encode_snapshot_query(5, 1024), 7, link.request) == DecodeStatus::ok);
  CHECK(link.request.snapshot_query.offset() == 1024);
  CHECK(link.server.decode(link.rig.encode_command(Command::RESET_TO_FILE, 0, 3, 5), 7, link.request) ==
        DecodeStatus::ok);
  CHECK(link.request.command.transfer() == 5);
  // the largest piece fits one frame
  SnapshotPiece largest;
  largest.set_transfer(~0ull);
  largest.set_offset(kMost - static_cast<std::uint32_t>(kSnapshotPieceBytes));
  largest.set_total(kMost);
  largest.set_data(std::string(kSnapshotPieceBytes, 'x'));
  CHECK(link.server.encode_snapshot_piece(largest).size() > kSnapshotPieceBytes);
  CHECK(link.rig.encode_snapshot_piece(largest).size() > kSnapshotPieceBytes);
}

TEST_CASE("a mechanism file comes in pieces that lie within it, and whole") {
  Link link;
  std::string text, whole;
  for (int k = 0; k < 500; ++k) text += std::to_string(k) + '\n';
  while (whole.size() < text.size()) {
    const auto offset = static_cast<std::uint32_t>(whole.size());
    REQUIRE(link.server.decode(link.rig.encode_mechanism_query(offset), 7, link.request) == DecodeStatus::ok);
    CHECK(link.request.first == offset);
    REQUIRE(link.rig.decode(link.server.encode_mechanism_piece(text, offset), 0, link.state) == DecodeStatus::ok);
    const MechanismPiece& piece = link.rig.message()->mechanism_piece();
    REQUIRE(piece.data().size() == std::min(kMechanismPieceBytes, text.size() - whole.size()));
    CHECK(piece.total() == text.size());
    whole += piece.data();
  }
  CHECK(whole == text);
  REQUIRE(link.rig.decode(link.server.encode_mechanism_piece(text, ~0u), 0, link.state) == DecodeStatus::ok);
  CHECK(link.rig.message()->mechanism_piece().data().empty());
  CHECK(link.rig.message()->mechanism_piece().offset() == text.size());

  const auto status_of = [&](std::uint32_t offset, std::uint32_t total, std::size_t size) {
    ServerToRig message;
    MechanismPiece& piece = *message.mutable_mechanism_piece();
    piece.set_offset(offset);
    piece.set_total(total);
    piece.set_data(std::string(size, 'x'));
    const std::string bytes = message.SerializeAsString();
    return link.rig.decode(std::as_bytes(std::span(bytes)), 0, link.state);
  };
  constexpr auto kMost = static_cast<std::uint32_t>(config::kLargestConfigFile);
  CHECK(status_of(kMost - 10, kMost, 10) == DecodeStatus::ok);
  CHECK(status_of(0, kMost + 1, 10) == DecodeStatus::unexpected_content);
  CHECK(status_of(0, 3000, kMechanismPieceBytes + 1) == DecodeStatus::unexpected_content);
  CHECK(status_of(2995, 3000, 10) == DecodeStatus::unexpected_content);
  CHECK(status_of(~0u - 5, 3000, 10) == DecodeStatus::unexpected_content);
}

TEST_CASE("changes of parameters are taken with finite values, a number of their own and within their bound only") {
  Link link;
  const auto status_of = [&](std::uint64_t request, int settings, double value) {
    ParameterSet set;
    set.set_request(request);
    for (int k = 0; k < settings; ++k) {
      set.add_setting()->set_index(static_cast<std::uint32_t>(k));
      set.mutable_setting(k)->set_value(value);
    }
    RigToServer message;
    *message.mutable_parameter_set() = set;
    const std::string bytes = message.SerializeAsString();
    return link.server.decode(std::as_bytes(std::span(bytes)), 7, link.request);
  };
  CHECK(status_of(9, 3, 0.5) == DecodeStatus::ok);
  CHECK(link.request.parameter_set.setting_size() == 3);
  CHECK(status_of(9, kMaxParameters, 0.5) == DecodeStatus::ok);
  CHECK(status_of(9, kMaxParameters + 1, 0.5) == DecodeStatus::unexpected_content);
  CHECK(status_of(0, 3, 0.5) == DecodeStatus::unexpected_content);
  CHECK(status_of(9, 0, 0.5) == DecodeStatus::unexpected_content);
  CHECK(status_of(9, 1, std::numeric_limits<double>::quiet_NaN()) == DecodeStatus::not_finite);
  CHECK(status_of(9, 1, -std::numeric_limits<double>::infinity()) == DecodeStatus::not_finite);
}

TEST_CASE("hostile bytes are refused, never believed and never fatal") {
  Link link;
  const auto bytes = link.rig.encode_input(link.sample(8));
  const std::vector<std::byte> good(bytes.begin(), bytes.end());
  const auto try_both = [&](std::span<const std::byte> datagram) {
    link.rig.decode(datagram, 0, link.state);
    const DecodeStatus status = link.server.decode(datagram, 7, link.request);
    if (status == DecodeStatus::ok && link.request.content == RigToServer::kInput) {
      REQUIRE(link.request.input.sequence > 7);
      REQUIRE(link.request.input.inputs.count == 2);
      REQUIRE(std::isfinite(link.request.input.inputs.value[0]));
      REQUIRE(std::isfinite(link.request.input.inputs.value[1]));
    }
    return status;
  };

  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK(try_both(std::span(good).first(size)) != DecodeStatus::ok);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::vector<std::byte> flipped = good;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    try_both(flipped);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> noise(random() % 1300);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
    // half of them look like a message at first
    if (i % 2 == 0) std::copy_n(good.begin(), std::min<std::size_t>(6, noise.size()), noise.begin());
    try_both(noise);
  }
}

}  // namespace
}  // namespace rigstep::wire
