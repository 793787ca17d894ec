// The UDP endpoint over the loopback device against rigs: well-behaved, lossy, hostile and silent ones. A thread that
// only counts steps stands in for the mechanism.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <asio.hpp>
#include <cmath>
#include <fstream>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>

#include "core/mechanism/builder.h"
#include "proto/config_text.h"
#include "proto/key_file.h"
#include "server/link/udp_endpoint.h"
#include "server/rig/impair.h"
#include "server/rig/rig.h"
#include "server/rig/rig_client.h"
#include "server/rig/status.h"

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

// An endpoint on a free port and a thread that answers every period, in lockstep every datagram, with the newest input
// as the first output.
class Server {
 public:
  enum class Pace { server, rig };
  explicit Server(const UdpOptions& options = {.port = 0}, Pace pace = Pace::server)
      : lockstep_(pace == Pace::rig),
        endpoint_(options, codec_, inputs_, snapshots_,
                  {.on_event = [this](const RigEvent& event) { note(event); },
                   .describe_loop =
                       [this](wire::StatusReport& report) {
                         report.set_loop_state(faulted_ ? wire::FAULTED : wire::RUNNING);
                         report.set_fault_number(7);
                         report.set_black_boxes(black_boxes_);
                         report.set_black_box("box " + std::to_string(black_boxes_));
                       },
                   .reset_fault = [this](std::uint32_t number) { faulted_ = faulted_ && number != 7; },
                   .write_black_box =
                       [this](std::uint32_t written) {
                         if (keeps_black_box_ && written == black_boxes_) ++black_boxes_;
                         return keeps_black_box_.load();
                       }}) {
    answer_.flags = kNoInputYet;
    answer_.outputs.count = 7;
    if (pace == Pace::server) endpoint_.start();
    stepping_ = std::thread([this, pace] { pace == Pace::server ? step_until_stopped() : serve_lockstep(); });
  }
  ~Server() { stop(); }

  UdpEndpoint& endpoint() { return endpoint_; }
  void stop() {
    stopping_ = true;
    if (lockstep_) endpoint_.stop();
    if (stepping_.joinable()) stepping_.join();
    endpoint_.stop();
  }
  std::uint16_t port() const { return endpoint_.local_port(); }
  UdpCounters counters() const { return endpoint_.counters(); }
  std::uint64_t dropped(DecodeStatus status) const { return counters().dropped[static_cast<std::size_t>(status)]; }
  std::uint64_t newest_sequence() const { return newest_sequence_; }
  bool kept_early() const { return kept_early_; }  // lockstep: recorded a step before its answer was sent
  std::vector<RigEvent> events() {
    const std::lock_guard lock(events_mutex_);
    return events_;
  }
  std::vector<RigEvent::Kind> event_kinds() {
    std::vector<RigEvent::Kind> kinds;
    for (const RigEvent& event : events()) kinds.push_back(event.kind);
    return kinds;
  }
  std::atomic<bool> faulted_{false};
  std::atomic<bool> keeps_black_box_{true};
  std::atomic<std::uint32_t> black_boxes_{0};

 private:
  void step(const InputSample& input) {
    newest_sequence_ = answer_.sequence = input.sequence;
    answer_.rig_time_ns = input.rig_time_ns;
    answer_.input_age_steps = 0;
    answer_.flags = faulted_ ? kFaulted : 0u;
    if (faulted_) return;
    answer_.outputs.value[0] = input.inputs.value[0];
    answer_.sim_time_ns = static_cast<std::int64_t>(++answer_.step) * kPeriod;
  }
  void step_until_stopped() {
    auto deadline = std::chrono::steady_clock::now();
    for (InputSample input; !stopping_;) {
      std::this_thread::sleep_until(deadline += std::chrono::nanoseconds(kPeriod));
      ++answer_.input_age_steps;
      if (inputs_.take(input)) {
        newest_sequence_ = answer_.sequence = input.sequence;
        answer_.rig_time_ns = input.rig_time_ns;
        answer_.input_age_steps = 0;
        answer_.flags = 0;
        answer_.outputs.value[0] = input.inputs.value[0];
      }
      answer_.sim_time_ns = static_cast<std::int64_t>(++answer_.step) * kPeriod;
      snapshots_.publish(answer_);
      const std::uint64_t one = 1;
      CHECK(::write(endpoint_.wake_fd(), &one, sizeof one) == sizeof one);
    }
  }
  void serve_lockstep() {
    const Lockstep lockstep{.step =
                                [this](const rt::TickTiming&) {
                                  sent_before_ = counters().sent;
                                  InputSample input;
                                  if (inputs_.take(input)) step(input);
                                },
                            .keep = [this] { kept_early_ = kept_early_ || counters().sent == sent_before_; },
                            .answer = answer_};
    endpoint_.serve_lockstep(lockstep, {});
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
  std::uint64_t sent_before_ = 0;
  std::atomic<bool> kept_early_{false};
  std::atomic<bool> stopping_{false};
  Snapshot answer_;  // stepping thread only
  const bool lockstep_;
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

// Keys of a controller, an observer and an operator, in files as keygen writes them; the same for all tests.
class Keys {
 public:
  Keys() {
    char name[] = "/tmp/rigstep_loopback_XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    folder_ = name;
    wire::add_participant(file("rig.keys"), file("bench.key"), "bench", wire::KeyRole::controller);
    wire::add_participant(file("rig.keys"), file("screen.key"), "screen", wire::KeyRole::observer);
    wire::add_participant(file("rig.keys"), file("desk.key"), "desk", wire::KeyRole::operator_);
    wire::add_participant(file("other.keys"), file("other.key"), "other", wire::KeyRole::controller);
  }
  ~Keys() {
    for (const char* name : {"rig.keys", "bench.key", "screen.key", "desk.key", "other.keys", "other.key"})
      ::unlink(file(name).c_str());
    ::rmdir(folder_.c_str());
  }
  std::string file(const char* name) const { return folder_ + "/" + name; }
  // What a server knows, from a file.
  static LinkKeys of(const std::string& path, bool required) {
    return {std::make_shared<const wire::Secret<wire::KeyRing>>(wire::read_key_ring(path)), required};
  }
  LinkKeys required() const { return of(file("rig.keys"), true); }
  LinkKeys for_operators() const { return of(file("desk.key"), false); }

 private:
  std::string folder_;
};

const Keys& keys() {
  static const Keys made;
  return made;
}

// A socket that sends what it is told to. key_file: empty: without a key.
class BareRig {
 public:
  explicit BareRig(const Server& server, const std::string& key_file = {}) : server_(server) {
    if (!key_file.empty()) key_.emplace(wire::read_participant_key(key_file, wire::KeyRole::controller));
    socket_.connect({asio::ip::make_address("127.0.0.1"), server.port()});
    socket_.non_blocking(true);
  }

  void send_bytes(std::span<const std::byte> datagram) {
    const std::uint64_t before = server_.counters().received;
    socket_.send(asio::buffer(datagram.data(), datagram.size()));
    bytes_sent += datagram.size();
    REQUIRE(becomes_true([&] { return server_.counters().received > before; }, 5000ms));
  }
  // As fast as they are received.
  void send_many(std::span<const std::byte> datagram, int count) {
    constexpr int kAtOnce = 32;  // fit the socket's memory
    for (int sent = 0; sent < count; sent += kAtOnce) {
      const std::uint64_t before = server_.counters().received;
      const int now = std::min(kAtOnce, count - sent);
      for (int k = 0; k < now; ++k) socket_.send(asio::buffer(datagram.data(), datagram.size()));
      REQUIRE(becomes_true([&] { return server_.counters().received >= before + static_cast<std::uint64_t>(now); },
                           5000ms));
    }
  }
  std::vector<std::byte> sealed(const wire::FrameHeader& header, std::span<const std::byte> payload) const {
    std::array<std::byte, wire::kMaxDatagram> buffer;
    const auto datagram =
        wire::seal_frame(header, payload, header.session != 0 && keyed_ ? &keys_.rig_to_server : nullptr, buffer);
    return {datagram.begin(), datagram.end()};
  }
  // In the session, or outside of any.
  void send(std::span<const std::byte> payload) { send_bytes(sealed(end.next_header(stamp_ns), payload)); }
  void request(std::span<const std::byte> payload) { send_bytes(sealed({.sent_ns = 1000}, payload)); }

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
  bool receives(wire::ServerToRig::ContentCase content, std::chrono::milliseconds limit = 2000ms) {
    return becomes_true(
        [&] {
          std::error_code error;
          const auto size = socket_.receive(asio::buffer(buffer_), 0, error);
          if (error) return false;
          bytes_received += size;
          received = {buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(size)};
          wire::FrameHeader header;
          if (wire::read_header(received, wire::Sender::rig, header) != DecodeStatus::ok) return false;
          const wire::Key* const key = header.session != 0 && keyed_ ? &keys_.server_to_rig : nullptr;
          const bool right =
              wire::open_frame(std::span(buffer_).first(size), wire::Sender::rig, key, frame) == DecodeStatus::ok;
          return right && codec.decode(frame.payload, 0, state) == DecodeStatus::ok &&
                 codec.message()->content_case() == content;
        },
        limit);
  }

  // --- the handshake, step by step
  void ask_for_cookie() {
    ++nonce;
    request(codec.encode_hello({.product_version = "1.2.3", .rig_name = "bare", .nonce = nonce}));
    REQUIRE(receives(wire::ServerToRig::kChallenge));
    cookie = codec.message()->challenge().cookie();
  }
  // The Hello with the cookie, proven where there is a key.
  std::vector<std::byte> hello_datagram(const std::string& name = "bare", wire::Role role = wire::CONTROLLER) {
    pair_ = wire::make_key_pair();
    const auto payload = codec.encode_hello({.product_version = "1.2.3",
                                             .rig_name = name,
                                             .role = role,
                                             .nonce = nonce,
                                             .cookie = cookie,
                                             .key_id = key_ ? &(*key_)->id : nullptr,
                                             .public_key = key_ ? &pair_.public_key : nullptr,
                                             .former_session = former_session,
                                             .token = token});
    std::array<std::byte, wire::kMaxDatagram> buffer;
    const wire::FrameHeader header{.sent_ns = 1000};
    const auto datagram = key_ ? wire::seal_proven_frame(header, payload, (*key_)->proof_key, buffer)
                               : wire::seal_frame(header, payload, nullptr, buffer);
    return {datagram.begin(), datagram.end()};
  }
  // After the Accept of this Hello.
  void derive(const std::vector<std::byte>& hello) {
    const wire::Accept accept = codec.message()->accept();
    CHECK(accept.nonce() == nonce);
    end = wire::SessionEnd(wire::Sender::rig, accept.session());
    keyed_ = key_.has_value();
    if (!keyed_) return;
    wire::PublicKey server{};
    REQUIRE(accept.public_key().size() == server.size());
    std::copy(accept.public_key().begin(), accept.public_key().end(), server.begin());
    REQUIRE(wire::derive_session_keys((*key_)->key, pair_.secret, server,
                                      std::span<const std::byte, wire::kMaxDatagram>(hello), accept.session(), server,
                                      keys_));
    CHECK(wire::is_proven(received, keys_.accept));
  }
  // Hello with what the challenge gave; then waits for `content`, kWelcome joins.
  bool hello(wire::ServerToRig::ContentCase content, const std::string& name = "bare",
             wire::Role role = wire::CONTROLLER) {
    ask_for_cookie();
    const auto said = hello_datagram(name, role);
    send_bytes(said);
    if (content != wire::ServerToRig::kWelcome) return receives(content);
    if (!receives(wire::ServerToRig::kAccept)) return false;
    derive(said);
    send(codec.encode_join());
    return receives(content);
  }
  void connect(const std::string& name = "bare", wire::Role role = wire::CONTROLLER) {
    REQUIRE(hello(wire::ServerToRig::kWelcome, name, role));
    welcome = codec.message()->welcome();
    token = welcome.token();
    codec.start(welcome);
  }
  bool refusal_is_proven() const { return key_ && wire::is_proven(received, (*key_)->proof_key); }
  const std::optional<wire::Secret<wire::ParticipantKey>>& key() const { return key_; }
  void forget_session_keys() { keyed_ = false; }

  static InputSample sample(std::uint64_t sequence) {
    InputSample made;
    made.sequence = sequence;
    made.inputs.count = 1;
    made.inputs.value[0] = 4.0;
    return made;
  }

  wire::RigCodec codec;
  wire::SessionEnd end;
  wire::Frame frame;
  std::vector<std::byte> received;  // the last datagram, as it came
  wire::Welcome welcome;
  Snapshot state;
  std::uint64_t nonce = 100;
  std::string cookie, token;
  std::uint64_t former_session = 0;
  std::int64_t stamp_ns = 1000;  // of what it sends in its session
  std::size_t bytes_sent = 0, bytes_received = 0;

 private:
  const Server& server_;
  std::optional<wire::Secret<wire::ParticipantKey>> key_;
  wire::KeyPair pair_;
  wire::SessionKeys keys_;
  bool keyed_ = false;  // the session has keys
  asio::io_context context_;
  asio::ip::udp::socket socket_{context_, asio::ip::udp::v4()};
  std::array<std::byte, 2048> buffer_{};
};

std::uint64_t sum(const UdpCounters& counters) {
  std::uint64_t all = counters.accepted;
  for (const std::uint64_t dropped : counters.dropped) all += dropped;
  return all;
}

RigOptions options_for(const Server& server) {
  RigOptions options;
  options.port = server.port();
  options.product_version = "1.2.3";
  options.name = "rigstep rig";
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
  const std::uint64_t accepted = server.counters().accepted;

  rig.send_bytes(std::vector<std::byte>(1201));
  rig.send_bytes(std::vector<std::byte>(5000));
  rig.send_bytes({});
  rig.send_bytes(std::vector<std::byte>(100, std::byte{0xFF}));
  rig.send(std::vector<std::byte>(40, std::byte{0xFF}));  // a good frame around noise
  auto damaged = rig.sealed(rig.end.next_header(1000), rig.codec.encode_input(BareRig::sample(11)));
  damaged[60] ^= std::byte{1};
  rig.send_bytes(damaged);
  auto replayed = rig.sealed(rig.end.next_header(1000), rig.codec.encode_input(BareRig::sample(10)));
  rig.send_bytes(replayed);  // an old sequence
  rig.send_bytes(replayed);  // and the very same datagram
  rig.send_bytes(replayed);
  const wire::SessionEnd mine = rig.end;
  rig.end = wire::SessionEnd(wire::Sender::rig, mine.session() + 1);
  rig.send_input(11);
  rig.end = mine;
  rig.send_changed(11, [](wire::RigToServer& m) { m.mutable_input()->set_mechanism_id(1); });
  rig.send_changed(11, [](wire::RigToServer& m) { m.mutable_input()->add_value(1.0); });
  rig.send_changed(
      11, [](wire::RigToServer& m) { m.mutable_input()->set_value(0, std::numeric_limits<double>::quiet_NaN()); });
  rig.send_input(9);
  rig.send_input(1);
  rig.send_changed(11, [](wire::RigToServer& m) { m.clear_content(); });
  const std::string small = "not filled up";
  rig.request(std::as_bytes(std::span(small)));

  REQUIRE(becomes_true([&] { return sum(server.counters()) == server.counters().received; }));
  CHECK(server.dropped(DecodeStatus::ok) == 0);
  CHECK(server.dropped(DecodeStatus::wrong_size) == 4);
  CHECK(server.dropped(DecodeStatus::malformed) == 2);
  CHECK(server.dropped(DecodeStatus::authentication) == 1);
  CHECK(server.dropped(DecodeStatus::replayed) == 2);
  CHECK(server.dropped(DecodeStatus::wrong_session) == 1);
  CHECK(server.dropped(DecodeStatus::wrong_mechanism) == 1);
  CHECK(server.dropped(DecodeStatus::channel_count) == 1);
  CHECK(server.dropped(DecodeStatus::not_finite) == 1);
  CHECK(server.dropped(DecodeStatus::old_sequence) == 3);
  CHECK(server.dropped(DecodeStatus::unexpected_content) == 1);
  CHECK(server.counters().accepted == accepted);
  CHECK(server.newest_sequence() == 10);

  rig.send_input(11);
  CHECK(becomes_true([&] { return server.newest_sequence() == 11; }));
}

TEST_CASE("what the system drops from a full queue is counted, too") {
  const Mechanism mechanism = block();
  wire::ServerCodec codec(mechanism, {0}, kPeriod, "1.2.3");
  rt::Mailbox<InputSample> inputs;
  rt::Mailbox<Snapshot> snapshots;
  UdpEndpoint endpoint({.port = 0}, codec, inputs, snapshots, {});
  asio::io_context context;
  asio::ip::udp::socket socket(context, asio::ip::udp::v4());
  socket.connect({asio::ip::make_address("127.0.0.1"), endpoint.local_port()});
  const std::array<std::byte, wire::kMaxDatagram> nonsense{};
  const auto send = [&] { socket.send(asio::buffer(nonsense.data(), nonsense.size())); };
  std::uint64_t sent = 20'000;  // more than the memory of any socket
  for (std::uint64_t k = 0; k < sent; ++k) send();
  endpoint.start();
  REQUIRE(becomes_true([&] {
    send();
    ++sent;
    return endpoint.counters().queue_overflows > 0;
  }));
  CHECK(becomes_true([&] {
    const UdpCounters now = endpoint.counters();
    return now.received + now.queue_overflows == sent;
  }));
}

TEST_CASE("inputs of a stranger are not used and do not age those of the rig") {
  Server server;
  BareRig rig(server);
  BareRig stranger(server);
  rig.connect();
  rig.send_input(1);
  stranger.codec.start(rig.welcome);
  stranger.end = rig.end;  // even one that knows the session
  stranger.send_input(50);
  stranger.send(stranger.codec.encode_channel_query(wire::INPUT, 0));
  stranger.send(stranger.codec.encode_goodbye("mine"));
  REQUIRE(becomes_true([&] { return server.dropped(DecodeStatus::unknown_source) == 3; }));
  CHECK_FALSE(stranger.receives(wire::ServerToRig::kChannelPage, 50ms));
  rig.send_input(2);
  CHECK(becomes_true([&] { return server.newest_sequence() == 2; }));
  CHECK(rig.receives(wire::ServerToRig::kState));
}

TEST_CASE("a second controller is refused with the name and the address of the first") {
  Server server;
  BareRig rig(server);
  rig.connect("bench 7");
  CHECK(rig.welcome.controller().rig_name() == "bench 7");
  BareRig second(server);
  REQUIRE(second.hello(wire::ServerToRig::kRefusal, "intruder"));
  CHECK(second.codec.message()->refusal().reason() == wire::CONTROL_TAKEN);
  const std::string text = second.codec.message()->refusal().text();
  CHECK(text.find("\"bench 7\" at " + rig.welcome.controller().address()) != std::string::npos);
  CHECK(server.dropped(DecodeStatus::control_taken) == 1);

  rig.send(rig.codec.encode_goodbye("done"));
  second.connect("intruder");
}

TEST_CASE("observers receive every state beside the controller, and their inputs are refused by name") {
  Server server;
  BareRig rig(server), observer(server);
  rig.connect("bench 7");
  observer.connect("screen", wire::OBSERVER);
  CHECK(observer.welcome.controller().rig_name() == "bench 7");
  rig.send_input(1);
  REQUIRE(becomes_true([&] { return server.newest_sequence() == 1; }));
  CHECK(observer.receives(wire::ServerToRig::kState));
  CHECK(rig.receives(wire::ServerToRig::kState));

  observer.send_input(2);
  REQUIRE(observer.receives(wire::ServerToRig::kRefusal));
  CHECK(observer.codec.message()->refusal().reason() == wire::NOT_IN_CONTROL);
  CHECK(server.dropped(DecodeStatus::not_in_control) == 1);
  CHECK(server.newest_sequence() == 1);

  observer.send(observer.codec.encode_goodbye("enough"));
  rig.send_input(2);
  CHECK(becomes_true([&] { return server.newest_sequence() == 2; }));
  CHECK(server.events().back().observer);
}

TEST_CASE("there is a limit to observers, and it is told") {
  Server server;
  std::vector<std::unique_ptr<BareRig>> observers;
  for (std::size_t k = 0; k < kMaxObservers; ++k) {
    observers.push_back(std::make_unique<BareRig>(server));
    observers.back()->connect("screen", wire::OBSERVER);
  }
  BareRig one_more(server);
  REQUIRE(one_more.hello(wire::ServerToRig::kRefusal, "screen", wire::OBSERVER));
  CHECK(one_more.codec.message()->refusal().reason() == wire::FULL);
  one_more.connect("rig");  // the controller's place is not theirs
}

TEST_CASE("a rig that is silent for the time-out loses control to the next, heartbeats keep it") {
  Server server({.port = 0, .timeout_steps = 300});
  BareRig silent(server), alive(server);
  silent.connect("silent");
  alive.connect("alive", wire::OBSERVER);
  const auto end = std::chrono::steady_clock::now() + 600ms;
  while (std::chrono::steady_clock::now() < end) {
    alive.send(alive.codec.encode_heartbeat());
    std::this_thread::sleep_for(30ms);
  }
  REQUIRE(server.events().size() >= 3);
  CHECK(server.events()[2].kind == RigEvent::Kind::timed_out);
  CHECK(server.events()[2].rig_name == "silent");
  RigOptions options = options_for(server);
  options.name = "next";
  options.duration_s = 0.1;
  CHECK(run_rig(options, kNeverStop).states > 0);
  CHECK(server.events()[3].rig_name == "next");
}

TEST_CASE(
    "a rig that was restarted takes its own place with the secret of its session, and nobody does with its name") {
  Server server({.port = 0, .timeout_steps = 10'000});
  BareRig before(server), after(server), thief(server);
  before.connect("bench 7");
  REQUIRE(before.token.size() == wire::kTokenBytes);
  after.token = before.token;
  CHECK(after.hello(wire::ServerToRig::kRefusal, "bench 7"));         // the first one is alive
  CHECK_FALSE(before.receives(wire::ServerToRig::kGoodbye, 1200ms));  // a tenth of the time-out
  for (const std::string& token : {std::string(), std::string(wire::kTokenBytes, '\0'), before.token.substr(1)}) {
    thief.token = token;
    CHECK(thief.hello(wire::ServerToRig::kRefusal, "bench 7"));
    CHECK(thief.codec.message()->refusal().reason() == wire::CONTROL_TAKEN);
  }
  after.connect("bench 7");
  CHECK(after.token != before.token);
  CHECK(server.events().back().kind == RigEvent::Kind::reconnected);
  while (before.receives(wire::ServerToRig::kState, 20ms)) continue;  // of the time before
  before.send_input(5);                                               // if it lives after all
  REQUIRE(before.receives(wire::ServerToRig::kGoodbye));
  CHECK(before.codec.message()->goodbye().reason() == wire::TAKEN_OVER);
  after.send_input(1);
  CHECK(becomes_true([&] { return server.newest_sequence() == 1; }));
}

TEST_CASE("a displaced rig is told with the answer to what it sends next, and its former session gives it nothing") {
  for (const bool keyed : {false, true}) {
    CAPTURE(keyed);
    const std::string key = keyed ? keys().file("bench.key") : std::string();
    Server server({.port = 0, .keys = keyed ? keys().required() : LinkKeys{}, .timeout_steps = 2000});
    BareRig before(server, key), after(server, key);
    before.connect("bench 7");
    std::this_thread::sleep_for(250ms);
    after.token = before.token;
    after.connect("bench 7");
    while (before.receives(wire::ServerToRig::kGoodbye, 50ms)) continue;
    before.send_input(5);
    REQUIRE(before.receives(wire::ServerToRig::kGoodbye));
    CHECK(before.codec.message()->goodbye().reason() == wire::TAKEN_OVER);
    CHECK(server.dropped(DecodeStatus::ended_session) == 1);
    CHECK(server.newest_sequence() == 0);
    // even with the key, and though the other one is silent by now
    std::this_thread::sleep_for(250ms);
    before.former_session = before.end.session();
    before.forget_session_keys();
    REQUIRE(before.hello(wire::ServerToRig::kRefusal, "bench 7"));
    CHECK(before.codec.message()->refusal().reason() == wire::DISPLACED);
    CHECK(before.refusal_is_proven() == keyed);
  }
}

TEST_CASE("a controller that sends inputs seldom keeps control, and a second one of its name never gets it") {
  Server server({.port = 0, .timeout_steps = 300});
  RigOptions options = options_for(server);
  options.name = "slow";
  options.rate_hz = 1.0;
  options.duration_s = 1.5;
  std::optional<RigReport> first;
  std::thread slow([&] { first = run_rig(options, kNeverStop); });
  REQUIRE(becomes_true([&] { return !server.events().empty(); }));
  BareRig twin(server);
  for (int k = 0; k < 10; ++k) {
    CHECK(twin.hello(wire::ServerToRig::kRefusal, "slow"));
    std::this_thread::sleep_for(100ms);
  }
  slow.join();
  CHECK(first->end == RigReport::End::duration_over);
  CHECK(first->inputs_sent >= 2);
  CHECK(becomes_true([&] {
    return server.event_kinds() == std::vector{RigEvent::Kind::connected, RigEvent::Kind::left};
  }));
}

TEST_CASE("a new hello of the same rig starts sequence and session anew, a repeated one changes nothing") {
  Server server;
  BareRig rig(server);
  rig.ask_for_cookie();
  const auto hello = rig.hello_datagram();
  rig.send_bytes(hello);
  REQUIRE(rig.receives(wire::ServerToRig::kAccept));
  const std::uint64_t session = rig.codec.message()->accept().session();
  std::this_thread::sleep_for(60ms);
  rig.send_bytes(hello);  // as if the Accept had been lost
  REQUIRE(rig.receives(wire::ServerToRig::kAccept));
  CHECK(rig.codec.message()->accept().session() == session);
  CHECK(server.events().empty());
  rig.connect();
  rig.send_input(100);
  rig.send_bytes(hello);
  CHECK(server.dropped(DecodeStatus::replayed) == 1);
  const std::uint64_t first = rig.end.session();
  rig.connect();
  CHECK(rig.end.session() != first);
  rig.send_input(1);
  CHECK(becomes_true([&] { return server.newest_sequence() == 1; }));
  CHECK(server.dropped(DecodeStatus::old_sequence) == 0);
  CHECK(server.event_kinds() == std::vector{RigEvent::Kind::connected, RigEvent::Kind::reconnected});
}

TEST_CASE("a cookie serves once, for one address, also where the Hello was refused; others keep theirs") {
  Server server;
  BareRig rig(server), second(server), thief(server), patient(server);
  patient.ask_for_cookie();
  rig.connect();
  REQUIRE(second.hello(wire::ServerToRig::kRefusal));
  const auto refused = second.hello_datagram();
  second.send_many(refused, 200);
  CHECK_FALSE(second.receives(wire::ServerToRig::kRefusal, 100ms));
  CHECK(server.dropped(DecodeStatus::replayed) == 200);
  rig.send(rig.codec.encode_goodbye("done"));
  rig.send_bytes(rig.hello_datagram());
  CHECK_FALSE(rig.receives(wire::ServerToRig::kAccept, 100ms));
  CHECK(server.dropped(DecodeStatus::replayed) == 201);
  rig.ask_for_cookie();
  thief.nonce = rig.nonce;
  thief.cookie = rig.cookie;
  thief.send_bytes(thief.hello_datagram());
  CHECK(thief.receives(wire::ServerToRig::kChallenge));
  CHECK(server.dropped(DecodeStatus::unproven_address) == 1);
  patient.send_bytes(patient.hello_datagram());
  CHECK(patient.receives(wire::ServerToRig::kAccept));  // whatever the others have done since
}

TEST_CASE("a captured Hello of a keyed rig installs no ghost, and displaces nobody") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig rig(server, keys().file("bench.key"));
  rig.ask_for_cookie();
  const auto captured = rig.hello_datagram();
  rig.send_bytes(captured);
  REQUIRE(rig.receives(wire::ServerToRig::kAccept));
  std::this_thread::sleep_for(60ms);
  rig.send_bytes(captured);
  rig.send(rig.codec.encode_join());  // without the keys
  CHECK(server.events().empty());
  CHECK(query_status({.port = server.port(), .key_file = keys().file("desk.key")}).has_controller() == false);
  rig.connect();
  rig.send_input(1);
  rig.send(rig.codec.encode_goodbye("done"));
  REQUIRE(becomes_true([&] { return server.event_kinds().back() == RigEvent::Kind::left; }));
  rig.send_bytes(captured);
  CHECK_FALSE(rig.receives(wire::ServerToRig::kAccept, 100ms));
  CHECK(server.event_kinds() == std::vector{RigEvent::Kind::connected, RigEvent::Kind::left});
}

TEST_CASE("refusals name the nonce of the Hello that they answer, and prove it where there is a key") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig rig(server, keys().file("bench.key")), second(server, keys().file("bench.key"));
  rig.connect();
  REQUIRE(second.hello(wire::ServerToRig::kRefusal));
  CHECK(second.codec.message()->refusal().nonce() == second.nonce);
  CHECK(second.refusal_is_proven());
  BareRig without(server), wrong(server, keys().file("other.key"));
  for (BareRig* const stranger : {&without, &wrong}) {
    REQUIRE(stranger->hello(wire::ServerToRig::kRefusal));
    CHECK(stranger->codec.message()->refusal().reason() == wire::AUTHENTICATION);
    CHECK(stranger->codec.message()->refusal().nonce() == stranger->nonce);
    CHECK_FALSE(stranger->refusal_is_proven());
  }
  CHECK(server.dropped(DecodeStatus::authentication) == 2);
}

TEST_CASE("a role in the key file opens its sessions and no other") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig screen(server, keys().file("screen.key")), desk(server, keys().file("desk.key"));
  for (BareRig* const rig : {&screen, &desk}) {
    REQUIRE(rig->hello(wire::ServerToRig::kRefusal));
    CHECK(rig->codec.message()->refusal().reason() == wire::NOT_PERMITTED);
    rig->connect("looks on", wire::OBSERVER);
    rig->send(rig->codec.encode_reset_fault(7));
    REQUIRE(rig->receives(wire::ServerToRig::kRefusal) == (rig == &screen));
  }
  CHECK(server.dropped(DecodeStatus::not_permitted) == 3);
  server.faulted_ = true;
  CHECK_THROWS_WITH_AS(reset_fault({.port = server.port(), .key_file = keys().file("screen.key")}, 7),
                       doctest::Contains("only the rig in control or an operator may ask"), NetworkError);
  CHECK_THROWS_WITH_AS(reset_fault({.port = server.port(), .key_file = keys().file("bench.key")}, 7),
                       doctest::Contains("only the rig in control or an operator may ask"), NetworkError);
  CHECK(server.faulted_);
  CHECK(reset_fault({.port = server.port(), .key_file = keys().file("desk.key")}, 7).loop_state() == wire::RUNNING);
  server.faulted_ = true;
  RigClient rig({.port = server.port(), .key_file = keys().file("bench.key")});
  CHECK(rig.reset_fault(2.0));  // in its session
  CHECK_FALSE(server.faulted_);
}

TEST_CASE("keys change without a restart: new ones open sessions, sessions of removed ones end, the others stay") {
  for (const auto pace : {Server::Pace::server, Server::Pace::rig}) {
    Server server({.port = 0, .keys = keys().required()}, pace);
    BareRig rig(server, keys().file("bench.key")), screen(server, keys().file("screen.key")),
        other(server, keys().file("other.key"));
    rig.connect();
    screen.connect("screen", wire::OBSERVER);
    REQUIRE(other.hello(wire::ServerToRig::kRefusal));
    auto ring = std::make_shared<wire::Secret<wire::KeyRing>>();
    (*ring)->add("screen", wire::KeyRole::observer, (*screen.key())->key);
    (*ring)->add("other", wire::KeyRole::controller, (*other.key())->key);
    server.endpoint().offer_keys(ring);
    REQUIRE(rig.receives(wire::ServerToRig::kGoodbye));
    CHECK(rig.codec.message()->goodbye().reason() == wire::KEY_REMOVED);
    CHECK(server.events().back().kind == RigEvent::Kind::key_removed);
    rig.send_input(1);
    CHECK(rig.receives(wire::ServerToRig::kGoodbye));
    CHECK(server.newest_sequence() == 0);
    screen.send(screen.codec.encode_channel_query(wire::OUTPUT, 0));
    CHECK(screen.receives(wire::ServerToRig::kChannelPage));
    other.connect();
    REQUIRE(rig.hello(wire::ServerToRig::kRefusal));
    CHECK(rig.codec.message()->refusal().reason() == wire::AUTHENTICATION);
  }
}

TEST_CASE("inputs that somebody has held back are refused and counted, by the clocks and not by when they come") {
  Server server({.port = 0, .keys = keys().required(), .max_input_delay_ms = 500});
  BareRig rig(server, keys().file("bench.key"));
  rig.connect();
  const auto exchange = [&] {  // so that both clocks are known
    rig.stamp_ns = rt::MonotonicClock::now_ns();
    rig.send(rig.codec.encode_channel_query(wire::INPUT, 0));
    REQUIRE(rig.receives(wire::ServerToRig::kChannelPage));
    rig.end.accept(rig.frame.header, rt::MonotonicClock::now_ns());
  };
  for (int k = 0; k < 5; ++k) exchange();
  rig.stamp_ns = rt::MonotonicClock::now_ns();
  rig.send_input(1);
  REQUIRE(becomes_true([&] { return server.newest_sequence() == 1; }));
  rig.stamp_ns = rt::MonotonicClock::now_ns();
  const auto held = rig.sealed(rig.end.next_header(rig.stamp_ns), rig.codec.encode_input(BareRig::sample(2)));
  std::this_thread::sleep_for(600ms);
  rig.send_bytes(held);
  CHECK(server.dropped(DecodeStatus::delayed) == 1);
  rig.stamp_ns = rt::MonotonicClock::now_ns();
  rig.send_input(3);
  CHECK(becomes_true([&] { return server.newest_sequence() == 3; }));
  CHECK(server.dropped(DecodeStatus::delayed) == 1);
}

TEST_CASE("nobody makes the server send more bytes to an unproven address than were sent to the server") {
  for (const bool keyed : {false, true}) {
    Server server({.port = 0, .keys = keyed ? keys().required() : LinkKeys{}});
    const std::string key = keyed ? keys().file("bench.key") : std::string();
    BareRig in_control(server, key);
    in_control.connect(std::string(64, 'n'));
    for (const std::string& file : {key, std::string(), keys().file("other.key")}) {
      BareRig stranger(server, file);
      stranger.request(stranger.codec.encode_hello({.product_version = "", .rig_name = "x", .nonce = 1}));
      stranger.request(stranger.codec.encode_hello(
          {.product_version = "", .rig_name = "x", .nonce = 1, .cookie = "0123456789abcdef"}));
      stranger.request(stranger.codec.encode_status_query(false));
      stranger.ask_for_cookie();
      stranger.send_bytes(stranger.hello_datagram());
      stranger.receives(wire::ServerToRig::kGoodbye, 100ms);  // takes in whatever comes
      CHECK(stranger.bytes_received > 0);
      CHECK(stranger.bytes_received <= stranger.bytes_sent);
    }
    // small ones are not answered at all
    BareRig small(server);
    small.request(small.codec.encode_status_query(true));
    CHECK_FALSE(small.receives(wire::ServerToRig::kStatus, 50ms));
    CHECK(small.bytes_received == 0);
  }
}

TEST_CASE("without a key that the server knows nothing is accepted, and a rig is told what it lacks") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig rig(server, keys().file("bench.key"));
  rig.connect();
  rig.send_input(1);
  REQUIRE(becomes_true([&] { return server.newest_sequence() == 1; }));
  auto forged = rig.sealed(rig.end.next_header(1000), rig.codec.encode_input(BareRig::sample(50)));
  forged[50] ^= std::byte{1};
  rig.send_bytes(forged);
  CHECK(server.dropped(DecodeStatus::authentication) == 1);
  CHECK(server.newest_sequence() == 1);

  RigOptions options = options_for(server);
  options.timeout_s = 0.5;
  CHECK(error_of(options).find("takes rigs only with a key that it knows, and this one shows none") !=
        std::string::npos);
  options.key_file = keys().file("other.key");
  CHECK(error_of(options).find("that its key proves; what came without proof says: this server takes rigs only with a "
                               "key that it knows, and does not know this one") != std::string::npos);
  CHECK_THROWS_WITH_AS(query_status({.port = server.port(), .timeout_s = 0.5}), doctest::Contains("only with a key"),
                       NetworkError);
  Server open_server;
  options.port = open_server.port();
  CHECK(error_of(options).find("uses no key for rigs") != std::string::npos);
}

TEST_CASE("a rig with a key drives a server that knows it") {
  Server server({.port = 0, .keys = keys().required()});
  RigOptions options = options_for(server);
  options.key_file = keys().file("bench.key");
  options.duration_s = 0.3;
  const RigReport report = run_rig(options, kNeverStop);
  CHECK(report.states > 20);
  CHECK(report.round_trip.count > 10);
  CHECK(sum(server.counters()) == server.counters().accepted);
}

TEST_CASE("a key file that is a pipe, a folder or a device is refused at once, not waited for") {
  const std::string path = "/tmp/rigstep_pipe_" + std::to_string(::getpid());
  ::unlink(path.c_str());
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  for (const std::string& name : {path, std::string("/tmp"), std::string("/dev/null")})
    CHECK_THROWS_WITH_AS(wire::read_key_ring(name),
                         doctest::Contains(("key file " + name + ": is no regular file").c_str()), wire::KeyError);
  ::unlink(path.c_str());
}

TEST_CASE("an address that others can reach needs a key or the word that none is wanted") {
  CHECK_THROWS_WITH_AS(Server({.address = "0.0.0.0", .port = 0}), doctest::Contains("rigstep keygen"),
                       config::ConfigError);
  CHECK_NOTHROW(Server({.address = "0.0.0.0", .port = 0, .keys = keys().required()}));
  CHECK_NOTHROW(Server({.address = "0.0.0.0", .port = 0, .allow_unauthenticated = true}));
}

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

TEST_CASE("answers to unproven addresses are so many a second, whatever is asked") {
  constexpr std::int64_t kSecond = 1'000'000'000;
  AnswerBudget budget;
  int answered = 0;
  for (std::int64_t now_ns = 0; now_ns <= 2 * kSecond; now_ns += 10'000) answered += budget.take(now_ns) ? 1 : 0;
  CHECK(answered == kAnswersAtOnce + 2 * kAnswersPerSecond);
  answered = 0;
  for (int k = 0; k < 1000; ++k) answered += budget.take(60 * kSecond) ? 1 : 0;  // rest does not save up for a burst
  CHECK(answered == kAnswersAtOnce);
}

TEST_CASE("a flood of requests is counted and left unanswered, and whoever has a cookie or a session notices nothing") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig rig(server, keys().file("bench.key")), guest(server, keys().file("screen.key")), flood(server);
  rig.connect();
  guest.ask_for_cookie();

  const std::uint64_t sent_before = server.counters().sent;
  const auto begin = std::chrono::steady_clock::now();
  // those without a key use up what hints there are, not what others are answered
  flood.ask_for_cookie();
  flood.send_many(flood.hello_datagram(), 1000);
  CHECK(server.dropped(DecodeStatus::authentication) == 1000);
  CHECK(server.dropped(DecodeStatus::too_frequent) == 0);
  CHECK(query_status({.port = server.port(), .key_file = keys().file("desk.key")}).authenticated());

  const auto again =
      flood.sealed({.sent_ns = 1}, flood.codec.encode_hello({.product_version = "", .rig_name = "", .nonce = 1}));
  REQUIRE(becomes_true(
      [&] {
        flood.send_many(again, 320);
        return server.dropped(DecodeStatus::too_frequent) >= 100;
      },
      10'000ms));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const auto most =
      2.0 * (static_cast<double>(kAnswersAtOnce) + static_cast<double>(kAnswersPerSecond) * seconds.count());
  // the states of the rig come on top, at most one per period
  CHECK(static_cast<double>(server.counters().sent - sent_before) <= most + 1000.0 * seconds.count() + 20.0);
  rig.send_input(1);
  CHECK(becomes_true([&] { return server.newest_sequence() == 1; }));
  if (seconds.count() < 1.5) {  // as long as a cookie holds
    guest.send_bytes(guest.hello_datagram("guest", wire::OBSERVER));
    CHECK(guest.receives(wire::ServerToRig::kAccept));
  }
}

TEST_CASE("proven handshakes are so many a second for each key, since they cost the server more than their sender") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig eager(server, keys().file("screen.key")), other(server, keys().file("bench.key"));
  REQUIRE(becomes_true(
      [&] {
        eager.ask_for_cookie();
        eager.send_bytes(eager.hello_datagram("eager", wire::OBSERVER));
        return server.dropped(DecodeStatus::too_frequent) > 0;
      },
      10'000ms));
  other.connect();
}

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

TEST_CASE("a rig that speaks another protocol is told both product versions, in a frame that it reads") {
  Server server({.port = 0, .keys = keys().required()});
  BareRig rig(server);
  const auto hello =
      rig.sealed({.sent_ns = 1000}, rig.codec.encode_hello({.product_version = "9.8.7", .rig_name = "x", .nonce = 1}));
  std::array<std::byte, wire::kMaxDatagram> other{};
  std::copy(hello.begin(), hello.end(), other.begin());
  wire::with_version(other, 2, other);
  const auto refusal = [&]() -> const wire::Refusal& {
    CHECK_FALSE(rig.receives(wire::ServerToRig::kRefusal, 100ms));
    REQUIRE(rig.received.size() > wire::kFrameHeaderBytes);
    CHECK(rig.received[2] == std::byte{2});
    CHECK(wire::open_frame(rig.received, wire::Sender::rig, nullptr, rig.frame) == DecodeStatus::bad_version);
    REQUIRE(rig.codec.decode(rig.frame.payload, 0, rig.state) == DecodeStatus::ok);
    return rig.codec.message()->refusal();
  };
  rig.send_bytes(other);
  CHECK(refusal().reason() == wire::VERSION);
  CHECK(refusal().text().find("9.8.7") != std::string::npos);
  CHECK(refusal().text().find("1.2.3") != std::string::npos);
  CHECK(server.dropped(DecodeStatus::bad_version) == 1);
  // with its key, of which we know nothing: this is the one reason that it believes
  other[wire::kMaxDatagram - 1] ^= std::byte{1};
  rig.send_bytes(other);
  CHECK(refusal().reason() == wire::AUTHENTICATION);
  CHECK(refusal().text().find("speaks protocol version 3") != std::string::npos);
}

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

TEST_CASE("drives follow their formula or their table") {
  const std::vector<Channel> inputs = {{"a", "N"}, {"b", "N"}};
  const Drive sine = Drive::parse("b=sine:2,0.25", inputs).at(0);
  CHECK(sine.channel() == 1);
  CHECK(sine.value(0.0) == doctest::Approx(0.0));
  CHECK(sine.value(1.0) == doctest::Approx(2.0));
  const Drive step = Drive::parse("a=step:-3,0.5", inputs).at(0);
  CHECK(step.channel() == 0);
  CHECK(step.value(0.49) == 0.0);
  CHECK(step.value(0.5) == -3.0);
  CHECK(Drive::parse("a=step:4", inputs).at(0).value(0.0) == 4.0);
}

TEST_CASE("a table drives the channels that it names, with their units") {
  const std::vector<Channel> inputs = {{"a", "N"}, {"b", "N m"}, {"c", "N"}};
  const std::string path = "/tmp/rigstep_drive_" + std::to_string(::getpid()) + ".csv";
  const auto write = [&path](const char* text) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    REQUIRE(file != nullptr);
    std::fputs(text, file);
    std::fclose(file);
  };
  write("# measured\nt [s],b [N m],a\n1, 10,-1\r\n\n2,20,-2\n4,0,-4\n");
  const std::vector<Drive> all = Drive::parse(path, inputs);
  REQUIRE(all.size() == 2);
  CHECK(all[0].channel() == 1);
  CHECK(all[1].channel() == 0);
  CHECK(all[0].value(0.0) == 10.0);
  CHECK(all[0].value(1.5) == doctest::Approx(15.0));
  CHECK(all[0].value(3.0) == doctest::Approx(10.0));
  CHECK(all[1].value(9.0) == -4.0);
  const std::vector<Drive> one = Drive::parse("b=" + path, inputs);
  REQUIRE(one.size() == 1);
  CHECK(one[0].channel() == 1);
  CHECK_THROWS_WITH_AS(Drive::parse("c=" + path, inputs), doctest::Contains("no column \"c\" or \"c [N]\""),
                       config::ConfigError);
  write("t,b [N]\n1,10\n");
  CHECK_THROWS_WITH_AS(Drive::parse(path, inputs), doctest::Contains("b: is in [N], its channel in [N m]"),
                       config::ConfigError);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace rigstep::server
