// The UDP endpoint over the loopback device against rigs: well-behaved, lossy, hostile and silent ones. A thread that
// only counts steps stands in for the mechanism.
#include <doctest/doctest.h>
#include <unistd.h>

#include <asio.hpp>
#include <limits>
#include <mutex>
#include <thread>

#include "server/rig.h"
#include "server/udp_endpoint.h"

namespace rigstep::server {
namespace {

using namespace std::chrono_literals;
using wire::DecodeStatus;

constexpr std::int64_t kPeriod = 1'000'000;  // [ns]

Mechanism block() {
  MechanismBuilder builder("block");
  Body body;
  body.name = "body";
  body.mass = 2.0;
  body.inertia_b = Mat3::Identity();
  builder.add_body(body);
  Input input;
  input.name = "force";
  builder.add_body_input(input, "body");
  Output output;
  output.name = "pose";
  output.kind = Output::Kind::body_pose;
  builder.add_body_output(output, "body");
  return builder.build();
}

// An endpoint on a free port and a thread that answers every period with the newest input as the first output.
class Server {
 public:
  explicit Server(std::uint16_t port = 0)
      : endpoint_({.address = "127.0.0.1", .port = port}, codec_, inputs_, snapshots_,
                  [this](const RigEvent& event) { note(event); }) {
    endpoint_.start();
    stepping_ = std::thread([this] { step_until_stopped(); });
  }
  ~Server() { stop(); }

  void stop() {
    stopping_ = true;
    if (stepping_.joinable()) stepping_.join();
    endpoint_.stop();
  }
  std::uint16_t port() const { return endpoint_.local_port(); }
  UdpCounters counters() const { return endpoint_.counters(); }
  std::uint64_t dropped(DecodeStatus status) const { return counters().dropped[static_cast<std::size_t>(status)]; }
  std::uint64_t newest_sequence() const { return newest_sequence_; }
  std::vector<RigEvent> events() {
    const std::lock_guard lock(events_mutex_);
    return events_;
  }
  wire::ServerCodec& codec() { return codec_; }

 private:
  void step_until_stopped() {
    Snapshot snapshot;
    snapshot.flags = kNoInputYet;
    snapshot.outputs.count = 7;
    auto deadline = std::chrono::steady_clock::now();
    for (InputSample input; !stopping_;) {
      std::this_thread::sleep_until(deadline += std::chrono::nanoseconds(kPeriod));
      ++snapshot.input_age_steps;
      if (inputs_.take(input)) {
        newest_sequence_ = snapshot.sequence = input.sequence;
        snapshot.rig_time_ns = input.rig_time_ns;
        snapshot.input_age_steps = 0;
        snapshot.flags = 0;
        snapshot.outputs.value[0] = input.inputs.value[0];
      }
      snapshot.sim_time_ns = static_cast<std::int64_t>(++snapshot.step) * kPeriod;
      snapshots_.publish(snapshot);
      const std::uint64_t one = 1;
      CHECK(::write(endpoint_.wake_fd(), &one, sizeof one) == sizeof one);
    }
  }
  void note(const RigEvent& event) {
    const std::lock_guard lock(events_mutex_);
    events_.push_back(event);
  }

  Mechanism mechanism_ = block();
  wire::ServerCodec codec_{mechanism_, {0, 1, 2}, kPeriod, "1.2.3"};
  rt::Mailbox<InputSample> inputs_;
  rt::Mailbox<Snapshot> snapshots_;
  std::mutex events_mutex_;
  std::vector<RigEvent> events_;
  std::atomic<std::uint64_t> newest_sequence_{0};
  std::atomic<bool> stopping_{false};
  UdpEndpoint endpoint_;
  std::thread stepping_;
};

bool becomes_true(auto&& condition, std::chrono::milliseconds limit = 1000ms) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// A socket that sends what it is told to.
class BareRig {
 public:
  explicit BareRig(const Server& server) : server_(server) {
    socket_.connect({asio::ip::make_address("127.0.0.1"), server.port()});
    socket_.non_blocking(true);
  }

  void send(std::span<const std::byte> datagram) {
    const std::uint64_t before = server_.counters().received;
    socket_.send(asio::buffer(datagram.data(), datagram.size()));
    REQUIRE(becomes_true([&] { return server_.counters().received > before; }));
  }
  void send_changed(std::uint64_t sequence, void (*change)(wire::RigToServer&)) {
    wire::RigToServer message;
    const auto bytes = codec.encode_input(sample(sequence));
    REQUIRE(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    change(message);
    const std::string changed = message.SerializeAsString();
    send(std::as_bytes(std::span(changed)));
  }
  void send_input(std::uint64_t sequence) { send(codec.encode_input(sample(sequence))); }

  // Waits for a datagram with this content.
  bool receives(wire::ServerToRig::ContentCase content, std::chrono::milliseconds limit = 1000ms) {
    return becomes_true(
        [&] {
          std::error_code error;
          const auto size = socket_.receive(asio::buffer(buffer_), 0, error);
          return !error && codec.decode(std::span(buffer_).first(size), 0, state) == DecodeStatus::ok &&
                 codec.message()->content_case() == content;
        },
        limit);
  }
  void connect(const std::string& name = "bare") {
    send(codec.encode_hello("1.2.3", name));
    REQUIRE(receives(wire::ServerToRig::kWelcome));
    codec.start(codec.message()->welcome());
  }

  wire::RigCodec codec;
  Snapshot state;

 private:
  static InputSample sample(std::uint64_t sequence) {
    InputSample made;
    made.sequence = sequence;
    made.inputs.count = 1;
    made.inputs.value[0] = 4.0;
    return made;
  }

  const Server& server_;
  asio::io_context context_;
  asio::ip::udp::socket socket_{context_, asio::ip::udp::v4()};
  std::array<std::byte, 2048> buffer_{};
};

std::uint64_t sum(const UdpCounters& counters) {
  std::uint64_t all = counters.accepted + counters.unknown_source + counters.second_rig;
  for (const std::uint64_t dropped : counters.dropped) all += dropped;
  return all;
}

RigOptions options_for(const Server& server) {
  RigOptions options;
  options.port = server.port();
  options.product_version = "1.2.3";
  return options;
}

const std::atomic<bool> kNeverStop{false};

std::string error_of(const RigOptions& options) {
  try {
    run_rig(options, kNeverStop);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

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

TEST_CASE("every hostile datagram is counted under its own reason and changes nothing") {
  Server server;
  BareRig rig(server);
  rig.connect();
  rig.send_input(10);
  REQUIRE(becomes_true([&] { return server.newest_sequence() == 10; }));

  rig.send(std::vector<std::byte>(1201));
  rig.send(std::vector<std::byte>(5000));
  rig.send(std::vector<std::byte>(40, std::byte{0xFF}));
  rig.send({});
  rig.send_changed(11, [](wire::RigToServer& m) { m.set_protocol_version(2); });
  rig.send_changed(11, [](wire::RigToServer& m) { m.mutable_input()->set_mechanism_id(1); });
  rig.send_changed(11, [](wire::RigToServer& m) { m.mutable_input()->add_value(1.0); });
  rig.send_changed(
      11, [](wire::RigToServer& m) { m.mutable_input()->set_value(0, std::numeric_limits<double>::quiet_NaN()); });
  rig.send_input(10);
  rig.send_input(9);
  rig.send_input(1);
  rig.send_changed(11, [](wire::RigToServer& m) { m.clear_content(); });

  REQUIRE(becomes_true([&] { return sum(server.counters()) == server.counters().received; }));
  CHECK(server.dropped(DecodeStatus::ok) == 0);
  CHECK(server.dropped(DecodeStatus::too_large) == 2);
  CHECK(server.dropped(DecodeStatus::malformed) == 1);
  CHECK(server.dropped(DecodeStatus::bad_version) == 2);
  CHECK(server.dropped(DecodeStatus::wrong_mechanism) == 1);
  CHECK(server.dropped(DecodeStatus::channel_count) == 1);
  CHECK(server.dropped(DecodeStatus::not_finite) == 1);
  CHECK(server.dropped(DecodeStatus::old_sequence) == 3);
  CHECK(server.dropped(DecodeStatus::unexpected_content) == 1);
  CHECK(server.counters().accepted == 2);
  CHECK(server.newest_sequence() == 10);

  rig.send_input(11);
  CHECK(becomes_true([&] { return server.newest_sequence() == 11; }));
}

TEST_CASE("inputs of a stranger are not used and do not age those of the rig") {
  Server server;
  BareRig rig(server);
  BareRig stranger(server);
  rig.connect();
  rig.send_input(1);
  stranger.codec.start(rig.codec.message()->welcome());
  stranger.send_input(50);
  stranger.send(stranger.codec.encode_channel_query(wire::INPUT, 0));
  stranger.send(stranger.codec.encode_goodbye("mine"));
  REQUIRE(becomes_true([&] { return server.counters().unknown_source == 3; }));
  CHECK_FALSE(stranger.receives(wire::ServerToRig::kChannelPage, 50ms));
  rig.send_input(2);
  CHECK(becomes_true([&] { return server.newest_sequence() == 2; }));
  CHECK(rig.receives(wire::ServerToRig::kState));
}

TEST_CASE("a second rig is refused with the name of the first") {
  Server server;
  BareRig rig(server);
  rig.connect("bench 7");
  BareRig second(server);
  second.send(second.codec.encode_hello("1.2.3", "intruder"));
  REQUIRE(second.receives(wire::ServerToRig::kRefusal));
  CHECK(second.codec.message()->refusal().reason() == wire::OTHER_RIG);
  CHECK(second.codec.message()->refusal().text().find("bench 7") != std::string::npos);
  CHECK(server.counters().second_rig == 1);

  rig.send(rig.codec.encode_goodbye("done"));
  second.connect("intruder");
}

TEST_CASE("a rig that was silent for two seconds loses control to the next") {
  Server server;
  BareRig silent(server);
  silent.connect("silent");
  RigOptions options = options_for(server);
  options.name = "next";
  options.duration_s = 0.1;
  const RigReport report = run_rig(options, kNeverStop);
  CHECK(report.states > 0);
  REQUIRE(server.events().size() >= 3);
  CHECK(server.events()[1].kind == RigEvent::Kind::timed_out);
  CHECK(server.events()[1].rig_name == "silent");
  CHECK(server.events()[2].kind == RigEvent::Kind::connected);
  CHECK(server.events()[2].rig_name == "next");
}

TEST_CASE("a repeated hello is answered again and starts the sequence anew") {
  Server server;
  BareRig rig(server);
  rig.connect();
  rig.send_input(100);
  rig.connect();
  rig.send_input(1);
  CHECK(becomes_true([&] { return server.newest_sequence() == 1; }));
  CHECK(server.dropped(DecodeStatus::old_sequence) == 0);
  CHECK(server.events().size() == 1);
}

TEST_CASE("a rig that speaks another protocol is told both product versions") {
  Server server;
  BareRig rig(server);
  wire::RigToServer hello;
  hello.set_protocol_version(2);
  hello.mutable_hello()->set_product_version("9.8.7");
  const std::string bytes = hello.SerializeAsString();
  rig.send(std::as_bytes(std::span(bytes)));
  REQUIRE(rig.receives(wire::ServerToRig::kRefusal));
  const wire::Refusal& refusal = rig.codec.message()->refusal();
  CHECK(refusal.reason() == wire::VERSION);
  CHECK(refusal.text().find("9.8.7") != std::string::npos);
  CHECK(refusal.text().find("1.2.3") != std::string::npos);
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
      UdpEndpoint endpoint({address, port}, codec, inputs, snapshots, nullptr);
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

TEST_CASE("drives follow their formula or their table") {
  const std::vector<Channel> inputs = {{"a", "N"}, {"b", "N"}};
  const Drive sine = Drive::parse("b=sine:2,0.25", inputs);
  CHECK(sine.channel() == 1);
  CHECK(sine.value(0.0) == doctest::Approx(0.0));
  CHECK(sine.value(1.0) == doctest::Approx(2.0));
  const Drive step = Drive::parse("a=step:-3,0.5", inputs);
  CHECK(step.channel() == 0);
  CHECK(step.value(0.49) == 0.0);
  CHECK(step.value(0.5) == -3.0);
  CHECK(Drive::parse("a=step:4", inputs).value(0.0) == 4.0);

  const std::string path = "/tmp/rigstep_drive_" + std::to_string(::getpid()) + ".csv";
  std::FILE* file = std::fopen(path.c_str(), "w");
  REQUIRE(file != nullptr);
  std::fputs("# measured\nt,value\n1, 10\r\n\n2,20\n4,0\n", file);
  std::fclose(file);
  const Drive table = Drive::parse("a=" + path, inputs);
  ::unlink(path.c_str());
  CHECK(table.value(0.0) == 10.0);
  CHECK(table.value(1.5) == doctest::Approx(15.0));
  CHECK(table.value(2.0) == 20.0);
  CHECK(table.value(3.0) == doctest::Approx(10.0));
  CHECK(table.value(9.0) == 0.0);
}

}  // namespace
}  // namespace rigstep::server
