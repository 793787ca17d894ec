#include "server/rig/rig_client.h"

#include <algorithm>
#include <cmath>

#include "proto/codec.h"
#include "rt/clock.h"
#include "server/network_error.h"
#include "server/rig/client_session.h"

namespace rigstep::server {

class RigClient::Session {
 public:
  Session(const RigClientOptions& options, const std::atomic<bool>* stop)
      : options_(options),
        link_({.host = options.host,
               .port = options.port,
               .name = options.name,
               .product_version = options.product_version,
               .key_file = options.key_file,
               .role = options.observe ? wire::OBSERVER : wire::CONTROLLER},
              stop) {}

  // False: stopped.
  bool connect(double timeout_s) {
    const std::int64_t period_ns = server_.period_ns;
    refused_here_.clear();
    // an older state than the last one is right after the server was started anew
    snapshot_.step = 0;
    if (!link_.open(timeout_s, [this](const wire::Welcome& welcome, const ClientSession::Arrival&) { start(welcome); }))
      return false;
    std::vector<RigChannel> inputs, outputs;
    if (!read_channels(wire::INPUT, input_channels_, inputs, timeout_s) ||
        !read_channels(wire::OUTPUT, output_channels_, outputs, timeout_s))
      return false;
    if (known_ &&
        !(are_equal(inputs, server_.inputs) && are_equal(outputs, server_.outputs) && period_ns == server_.period_ns))
      refuse("it has other channels or another period now. Start the rig anew.");
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
    if (link_.displaced()) return false;
    try {
      return connect(timeout_s);
    } catch (const NetworkError&) {
      if (link_.displaced() || !(link_.refused() || !refused_here_.empty())) return false;
      throw;
    }
  }

  void leave(const std::string& words) {
    if (connected_) link_.leave(words);
    connected_ = false;
  }

  bool send(std::span<const std::byte> payload) { return link_.send(payload); }

  bool send_inputs(std::span<const double> inputs) {
    if (!connected_) return false;
    std::copy_n(inputs.begin(), std::min(inputs.size(), server_.inputs.size()), input_.inputs.value.begin());
    input_.sequence = server_.lockstep ? snapshot_.step + 1 : input_.sequence + 1;
    input_.rig_time_ns = now_ns();
    return send(link_.codec().encode_input(input_));
  }
  bool request_state() {
    if (!connected_ || !server_.lockstep) return false;
    input_.sequence = snapshot_.step;
    input_.rig_time_ns = now_ns();
    return send(link_.codec().encode_input(input_));
  }
  // Lockstep: what was said last, word by word.
  bool send_again() { return connected_ && send(link_.codec().encode_input(input_)); }
  bool send_heartbeat() { return connected_ && send(link_.codec().encode_heartbeat()); }

  Arrival receive() {
    const auto arrival = link_.socket().receive();
    if (!arrival) return Arrival::nothing;
    if (const auto status = take(*arrival); status != wire::DecodeStatus::ok) {
      ++refused_[static_cast<std::size_t>(status)];
      return Arrival::other;
    }
    if (link_.codec().message()->has_goodbye()) {
      // after our own silence we may say Hello anew, and the server's tells us so
      if (link_.codec().message()->goodbye().reason() == wire::TIMED_OUT) return Arrival::other;
      goodbye_ = wire::printable(link_.codec().message()->goodbye().text(), wire::kMaxTextBytes);
      connected_ = false;
      return Arrival::goodbye;
    }
    if (!link_.codec().message()->has_state()) return Arrival::other;
    expose_state();
    note_delays(arrival->frame.header, arrival->came_ns);
    return Arrival::state;
  }

 private:
  friend class RigClient;

  const RigClientOptions options_;
  ClientSession link_;
  bool connected_ = false;
  RigServer server_;
  InputSample input_;
  Snapshot snapshot_;
  RigState state_;
  std::string goodbye_;
  std::optional<std::int64_t> delay_to_rig_ns_, delay_to_server_ns_;
  std::array<std::uint64_t, wire::kDecodeStatusCount> refused_{};
  bool known_ = false;  // the server's channels
  std::size_t input_channels_ = 0, output_channels_ = 0;
  std::string refused_here_;  // why this rig does not want the server

  // A datagram of the session.
  wire::DecodeStatus take(const ClientSession::Arrival& arrival) {
    return link_.take(arrival, snapshot_.step, snapshot_);
  }

  [[noreturn]] void refuse(const std::string& why) {
    refused_here_ = why;
    throw NetworkError("the server at " + link_.socket().server() + " is another one: " + why);
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
    const auto clock = link_.end().clock().estimate(came_ns);
    if (!clock) return;
    delay_to_rig_ns_ = came_ns - (header.sent_ns - clock->offset_ns);
    if (header.echo_sent_ns != 0) delay_to_server_ns_ = (header.echo_came_ns - clock->offset_ns) - header.echo_sent_ns;
  }

  void start(const wire::Welcome& welcome) {
    if (known_ && welcome.mechanism_id() != server_.mechanism_id)
      refuse("it runs another mechanism now, " + wire::printable(welcome.mechanism()) + ". Start the rig anew.");
    link_.codec().start(welcome);
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

  bool read_channels(wire::Direction direction, std::size_t total, std::vector<RigChannel>& channels,
                     double timeout_s) {
    if (total > kMaxChannels)
      throw NetworkError("the server at " + link_.socket().server() + " has too many channels.");
    while (channels.size() < total) {
      const auto first = static_cast<std::uint32_t>(channels.size());
      const auto take_page = [&](const ClientSession::Arrival& arrival) {
        if (take(arrival) != wire::DecodeStatus::ok) return false;
        if (link_.codec().message()->has_goodbye())
          throw NetworkError("the server at " + link_.socket().server() + " has stopped.");
        if (!link_.codec().message()->has_channel_page()) return false;
        const wire::ChannelPage& page = link_.codec().message()->channel_page();
        if (page.direction() != direction || page.first() != first || page.channel_size() == 0 ||
            first + static_cast<std::size_t>(page.channel_size()) > total)
          return false;
        for (const auto& channel : page.channel()) channels.push_back({channel.name(), channel.unit()});
        return true;
      };
      if (!link_.ask(
              timeout_s, [&] { send(link_.codec().encode_channel_query(direction, first)); }, take_page))
        return false;
    }
    return true;
  }

  bool reset_fault(double timeout_s) {
    if (!connected_) return false;
    std::optional<wire::StatusReport> before;
    const auto take_report = [&](const ClientSession::Arrival& arrival) {
      if (take(arrival) != wire::DecodeStatus::ok || !link_.codec().message()->has_status()) return false;
      const wire::StatusReport& report = link_.codec().message()->status();
      if (before && report.loop_state() == wire::FAULTED && report.fault_number() == before->fault_number())
        return false;  // the loop clears it at its next step
      before = report;
      return true;
    };
    try {
      if (!link_.ask(
              timeout_s, [&] { send(link_.codec().encode_status_query(true)); }, take_report))
        return false;
      if (before->loop_state() != wire::FAULTED) return false;
      const std::uint32_t number = before->fault_number();
      return link_.ask(
          timeout_s, [&] { send(link_.codec().encode_reset_fault(number)); }, take_report);
    } catch (const NetworkError&) {
      return false;
    }
  }
};

RigClient::RigClient(const RigClientOptions& options, const std::atomic<bool>* stop)
    : session_(std::make_unique<Session>(options, stop)) {
  session_->connect(options.timeout_s);
}

RigClient::~RigClient() { leave("done"); }

bool RigClient::connected() const noexcept { return session_->connected_; }
bool RigClient::displaced() const noexcept { return session_->link_.displaced(); }
bool RigClient::keys_locked() const noexcept { return session_->link_.keys_locked(); }
bool RigClient::reset_fault(double timeout_s) { return session_->reset_fault(timeout_s); }
const RigServer& RigClient::server() const noexcept { return session_->server_; }
bool RigClient::send(std::span<const double> inputs) noexcept { return session_->send_inputs(inputs); }
bool RigClient::request_state() noexcept { return session_->request_state(); }
bool RigClient::send_heartbeat() noexcept { return session_->send_heartbeat(); }
std::uint64_t RigClient::sent_inputs() const noexcept { return session_->input_.sequence; }
RigClient::Arrival RigClient::receive() noexcept { return session_->receive(); }
void RigClient::wait_until(std::int64_t time_ns) noexcept { session_->link_.socket().wait_until(time_ns); }
const RigState& RigClient::state() const noexcept { return session_->state_; }
const std::string& RigClient::goodbye() const noexcept { return session_->goodbye_; }
bool RigClient::reconnect(double timeout_s) { return session_->reconnect(timeout_s); }
void RigClient::leave(const std::string& words) noexcept { session_->leave(words); }

std::optional<wire::ClockOffset::Estimate> RigClient::clock() const noexcept {
  return session_->link_.end().clock().estimate(now_ns());
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
