#include "server/rig_client.h"

#include <sodium.h>

#include <algorithm>
#include <cmath>

#include "proto/codec.h"
#include "proto/key_file.h"
#include "rt/clock.h"
#include "server/client_socket.h"
#include "server/network_error.h"

namespace rigstep::server {
namespace {

std::optional<wire::Key> key_of(const std::string& file) {
  return file.empty() ? std::nullopt : std::optional(wire::read_key_file(file));
}

}  // namespace

class RigClient::Session {
 public:
  Session(const RigClientOptions& options, const std::atomic<bool>* stop)
      : options_(options), stop_(stop), socket_(options.host, options.port, key_of(options.key_file)) {
    if (sodium_init() < 0) throw NetworkError("no random numbers from the system: sessions cannot be made");
  }

  // False: stopped.
  bool connect(double timeout_s) {
    const std::int64_t period_ns = server_.period_ns;
    if (!say_hello(timeout_s)) return false;
    std::vector<RigChannel> inputs, outputs;
    if (!read_channels(wire::INPUT, input_channels_, inputs, timeout_s) ||
        !read_channels(wire::OUTPUT, output_channels_, outputs, timeout_s))
      return false;
    if (known_ &&
        !(are_equal(inputs, server_.inputs) && are_equal(outputs, server_.outputs) && period_ns == server_.period_ns)) {
      refusal_ = "it has other channels or another period now. Start the rig anew.";
      throw NetworkError(no_answer());
    }
    server_.inputs = std::move(inputs);
    server_.outputs = std::move(outputs);
    input_.inputs.count = static_cast<int>(server_.inputs.size());
    return known_ = connected_ = true;
  }

  static bool are_equal(const std::vector<RigChannel>& a, const std::vector<RigChannel>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const RigChannel& x, const RigChannel& y) { return x.name == y.name && x.unit == y.unit; });
  }

  bool reconnect(double timeout_s) {
    connected_ = false;
    try {
      return connect(timeout_s);
    } catch (const NetworkError&) {
      if (refusal_.empty()) return false;
      throw;
    }
  }

  void leave(const std::string& words) {
    if (connected_) send(codec_.encode_goodbye(words));
    connected_ = false;
  }

  bool send(std::span<const std::byte> payload) { return socket_.send(end_.next_header(now_ns()), payload); }

  bool send_inputs(std::span<const double> inputs) {
    if (!connected_) return false;
    std::copy_n(inputs.begin(), std::min(inputs.size(), server_.inputs.size()), input_.inputs.value.begin());
    input_.sequence = server_.lockstep ? snapshot_.step + 1 : input_.sequence + 1;
    input_.rig_time_ns = now_ns();
    return send(codec_.encode_input(input_));
  }
  bool request_state() {
    if (!connected_ || !server_.lockstep) return false;
    input_.sequence = snapshot_.step;
    input_.rig_time_ns = now_ns();
    return send(codec_.encode_input(input_));
  }
  // Lockstep: what was said last, word by word.
  bool send_again() { return connected_ && send(codec_.encode_input(input_)); }
  bool send_heartbeat() { return connected_ && send(codec_.encode_heartbeat()); }

  Arrival receive() {
    const auto arrival = socket_.receive();
    if (!arrival) return Arrival::nothing;
    if (const auto status = take(*arrival); status != wire::DecodeStatus::ok) {
      ++refused_[static_cast<std::size_t>(status)];
      return Arrival::other;
    }
    if (codec_.message()->has_goodbye()) {
      goodbye_ = wire::printable(codec_.message()->goodbye().text(), wire::kMaxTextBytes);
      connected_ = false;
      return Arrival::goodbye;
    }
    if (!codec_.message()->has_state()) return Arrival::other;
    expose_state();
    note_delays(arrival->frame.header, arrival->came_ns);
    return Arrival::state;
  }

 private:
  friend class RigClient;

  const RigClientOptions options_;
  const std::atomic<bool>* stop_;
  ClientSocket socket_;
  wire::RigCodec codec_;
  wire::SessionEnd end_;
  bool connected_ = false;
  RigServer server_;
  InputSample input_;
  Snapshot snapshot_;
  RigState state_;
  std::string goodbye_;
  std::optional<std::int64_t> delay_to_rig_ns_, delay_to_server_ns_;
  std::array<std::uint64_t, wire::kDecodeStatusCount> refused_{};

  bool stopped() const { return stop_ != nullptr && stop_->load(); }

  // A datagram of the session.
  wire::DecodeStatus take(const ClientSocket::Arrival& arrival) {
    if (arrival.status != wire::DecodeStatus::ok) return arrival.status;
    if (const auto status = end_.accept(arrival.frame.header, arrival.came_ns); status != wire::DecodeStatus::ok)
      return status;
    return codec_.decode(arrival.frame.payload, snapshot_.step, snapshot_);
  }

  void expose_state() {
    state_ = {.step = snapshot_.step,
              .sim_time_ns = snapshot_.sim_time_ns,
              .sequence = snapshot_.sequence,
              .rig_time_ns = snapshot_.rig_time_ns,
              .status = static_cast<std::uint32_t>(snapshot_.status),
              .flags = snapshot_.flags,
              .input_age_steps = snapshot_.input_age_steps,
              .output = {snapshot_.outputs.value.data(), static_cast<std::size_t>(snapshot_.outputs.count)}};
  }

  void note_delays(const wire::FrameHeader& header, std::int64_t came_ns) {
    delay_to_rig_ns_.reset();
    delay_to_server_ns_.reset();
    const auto clock = end_.clock().estimate(came_ns);
    if (!clock) return;
    delay_to_rig_ns_ = came_ns - (header.sent_ns - clock->offset_ns);
    if (header.echo_sent_ns != 0) delay_to_server_ns_ = (header.echo_came_ns - clock->offset_ns) - header.echo_sent_ns;
  }

  // Repeats a request until `take_answer` has accepted an answer. False: stopped.
  bool ask(double timeout_s, const std::function<void()>& request,
           const std::function<bool(const ClientSocket::Arrival&)>& take_answer) {
    const std::int64_t give_up = now_ns() + nanoseconds(timeout_s);
    while (!stopped() && now_ns() < give_up) {
      request();
      const std::int64_t repeat = std::min(now_ns() + kRepeatAfterNs, give_up);
      while (now_ns() < repeat && !stopped()) {
        socket_.wait_until(repeat);
        while (const auto arrival = socket_.receive()) {
          if (take_answer(*arrival)) return true;
        }
      }
    }
    if (stopped()) return false;
    throw NetworkError(no_answer());
  }

  std::string no_answer() const {
    if (refusal_.empty()) return socket_.no_answer();
    return socket_.server() + " refuses this rig: " + refusal_;
  }

  bool say_hello(double timeout_s) {
    randombytes_buf(&nonce_, sizeof nonce_);
    cookie_.clear();
    refusal_.clear();
    // an older state than the last one is right after the server was started anew
    snapshot_.step = 0;
    return ask(
        timeout_s, [this] { send_hello(); },
        [this](const ClientSocket::Arrival& arrival) { return take_welcome(arrival); });
  }

  void send_hello() {
    const auto role = options_.observe ? wire::OBSERVER : wire::CONTROLLER;
    socket_.send({.sender = wire::Sender::rig, .sent_ns = now_ns()},
                 codec_.encode_hello(options_.product_version, options_.name, role, nonce_, cookie_));
  }

  bool take_welcome(const ClientSocket::Arrival& arrival) {
    const bool version = arrival.status == wire::DecodeStatus::bad_version;
    if (arrival.status != wire::DecodeStatus::ok && !version && !arrival.hint) return false;
    Snapshot ignored;
    if (codec_.decode(arrival.frame.payload, 0, ignored) != wire::DecodeStatus::ok && !version) return false;
    const wire::ServerToRig* message = codec_.message();
    if (message != nullptr && message->has_refusal()) return take_refusal(message->refusal(), arrival.hint);
    if (version) throw NetworkError(other_version());
    if (arrival.hint) return false;
    if (message->has_challenge() && message->challenge().nonce() == nonce_ &&
        message->challenge().cookie().size() == wire::kCookieBytes) {
      const bool first = cookie_ != message->challenge().cookie();
      cookie_ = message->challenge().cookie();
      if (first) send_hello();
      return false;
    }
    if (!message->has_welcome() || message->welcome().nonce() != nonce_) return false;
    start(message->welcome(), arrival);
    return true;
  }

  bool take_refusal(const wire::Refusal& refusal, bool hint) {
    if (hint && refusal.reason() != wire::AUTHENTICATION) return false;
    refusal_ = wire::printable(refusal.text(), wire::kMaxTextBytes);
    // another rig may leave or time out meanwhile, a version will not change
    if (refusal.reason() == wire::VERSION) throw NetworkError(no_answer());
    return false;
  }

  void start(const wire::Welcome& welcome, const ClientSocket::Arrival& arrival) {
    if (known_ && welcome.mechanism_id() != server_.mechanism_id) {
      refusal_ = "it runs another mechanism now, " + wire::printable(welcome.mechanism()) + ". Start the rig anew.";
      throw NetworkError(no_answer());
    }
    codec_.start(welcome);
    end_ = wire::SessionEnd(wire::Sender::rig, arrival.frame.header.session);
    end_.accept(arrival.frame.header, arrival.came_ns);
    server_.version = wire::printable(welcome.product_version());
    server_.mechanism = wire::printable(welcome.mechanism(), wire::kMaxTextBytes);
    server_.mechanism_id = welcome.mechanism_id();
    server_.period_ns = static_cast<std::int64_t>(welcome.period_ns());
    server_.timeout_steps = welcome.timeout_steps();
    server_.lockstep = welcome.lockstep();
    server_.step = welcome.step();
    if (server_.lockstep) snapshot_.step = welcome.step();
    state_ = {.step = snapshot_.step};
    server_.controller.clear();
    if (welcome.has_controller()) {
      server_.controller =
          wire::printable(welcome.controller().rig_name()) + " at " + wire::printable(welcome.controller().address());
    }
    input_channels_ = welcome.input_channels();
    output_channels_ = welcome.output_channels();
    input_.sequence = 0;
  }

  std::string other_version() const {
    return "the server at " + socket_.server() + " speaks another protocol version than this rig (" +
           options_.product_version + "), which speaks " + std::to_string(wire::kProtocolVersion) +
           ". Install the same release on both sides.";
  }

  bool read_channels(wire::Direction direction, std::size_t total, std::vector<RigChannel>& channels,
                     double timeout_s) {
    if (total > kMaxChannels) throw NetworkError("the server at " + socket_.server() + " has too many channels.");
    while (channels.size() < total) {
      const auto first = static_cast<std::uint32_t>(channels.size());
      const auto take_page = [&](const ClientSocket::Arrival& arrival) {
        if (take(arrival) != wire::DecodeStatus::ok) return false;
        if (codec_.message()->has_goodbye()) throw NetworkError("the server at " + socket_.server() + " has stopped.");
        if (!codec_.message()->has_channel_page()) return false;
        const wire::ChannelPage& page = codec_.message()->channel_page();
        if (page.direction() != direction || page.first() != first || page.channel_size() == 0 ||
            first + static_cast<std::size_t>(page.channel_size()) > total)
          return false;
        for (const auto& channel : page.channel()) channels.push_back({channel.name(), channel.unit()});
        return true;
      };
      if (!ask(
              timeout_s, [&] { send(codec_.encode_channel_query(direction, first)); }, take_page))
        return false;
    }
    return true;
  }

  bool known_ = false;  // the server's channels
  std::size_t input_channels_ = 0, output_channels_ = 0;
  std::uint64_t nonce_ = 0;
  std::string cookie_;
  std::string refusal_;  // by the server, its words
};

RigClient::RigClient(const RigClientOptions& options, const std::atomic<bool>* stop)
    : session_(std::make_unique<Session>(options, stop)) {
  session_->connect(options.timeout_s);
}

RigClient::~RigClient() { leave("done"); }

bool RigClient::connected() const noexcept { return session_->connected_; }
const RigServer& RigClient::server() const noexcept { return session_->server_; }
bool RigClient::send(std::span<const double> inputs) noexcept { return session_->send_inputs(inputs); }
bool RigClient::request_state() noexcept { return session_->request_state(); }
bool RigClient::send_heartbeat() noexcept { return session_->send_heartbeat(); }
std::uint64_t RigClient::sent_inputs() const noexcept { return session_->input_.sequence; }
RigClient::Arrival RigClient::receive() noexcept { return session_->receive(); }
void RigClient::wait_until(std::int64_t time_ns) noexcept { session_->socket_.wait_until(time_ns); }
const RigState& RigClient::state() const noexcept { return session_->state_; }
const std::string& RigClient::goodbye() const noexcept { return session_->goodbye_; }
bool RigClient::reconnect(double timeout_s) { return session_->reconnect(timeout_s); }
void RigClient::leave(const std::string& words) noexcept { session_->leave(words); }

std::optional<wire::ClockOffset::Estimate> RigClient::clock() const noexcept {
  return session_->end_.clock().estimate(now_ns());
}
std::optional<std::int64_t> RigClient::delay_to_rig_ns() const noexcept { return session_->delay_to_rig_ns_; }
std::optional<std::int64_t> RigClient::delay_to_server_ns() const noexcept { return session_->delay_to_server_ns_; }

const std::array<std::uint64_t, wire::kDecodeStatusCount>& RigClient::refused() const noexcept {
  return session_->refused_;
}

bool RigClient::control(const std::function<bool(const RigState& state, std::span<double> inputs)>& step) {
  std::vector<double> inputs(server().inputs.size(), 0.0);
  const std::int64_t timeout_ns = nanoseconds(session_->options_.timeout_s);
  std::int64_t said_ns = now_ns();
  if (server().lockstep) request_state();
  for (std::int64_t heard_ns = said_ns; now_ns() - heard_ns < timeout_ns;) {
    const std::int64_t again_ns = server().lockstep ? said_ns + kStepAgainAfterNs : heard_ns + timeout_ns;
    wait_until(std::min(again_ns, heard_ns + timeout_ns));
    bool fresh = false;
    for (Arrival arrival = receive(); arrival != Arrival::nothing; arrival = receive()) {
      if (arrival == Arrival::goodbye) return false;
      fresh = fresh || arrival == Arrival::state;
    }
    if (!fresh) {
      if (server().lockstep && now_ns() >= again_ns) {
        session_->send_again();
        said_ns = now_ns();
      }
      continue;
    }
    heard_ns = said_ns = now_ns();
    if (!step(state(), inputs)) return true;
    send(inputs);
  }
  return false;
}

}  // namespace rigstep::server
