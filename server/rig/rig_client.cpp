#include "server/rig/rig_client.h"

#include <algorithm>
#include <cmath>

#include "proto/codec.h"
#include "rt/clock.h"
#include "server/network_error.h"
#include "server/rig/client_session.h"
#include "server/rig/parameters.h"
#include "server/rig/rig_requests.h"
#include "server/rig/snapshot_transfer.h"

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
    if (!read_channels(link_, take_any_, wire::INPUT, input_channels_, timeout_s, inputs) ||
        !read_channels(link_, take_any_, wire::OUTPUT, output_channels_, timeout_s, outputs))
      return false;
    if (known_ &&
        !(are_equal(inputs, server_.inputs) && are_equal(outputs, server_.outputs) && period_ns == server_.period_ns))
      refuse("it has other channels or another period now. Start the rig anew.");
    server_.inputs = std::move(inputs);
    server_.outputs = std::move(outputs);
    input_.inputs.count = static_cast<int>(server_.inputs.size());
    return known_ = connected_ = true;
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

  bool reset_fault(double timeout_s) { return connected_ && server::reset_fault(link_, take_any_, timeout_s); }

  bool command(RigCommand command, std::uint32_t steps, double timeout_s) {
    const auto kind = static_cast<wire::Command::Kind>(command);
    return connected_ && request_command(link_, take_any_, kind, steps, 0, timeout_s);
  }

  std::string snapshot(double timeout_s) {
    if (!connected_) throw NetworkError(link_.socket().no_answer());
    return fetch_snapshot(link_, take_any_, timeout_s);
  }

  bool reset_to(std::string_view snapshot, double timeout_s) {
    if (!connected_) return false;
    const std::uint64_t transfer = send_snapshot(link_, take_any_, snapshot, timeout_s);
    return request_command(link_, take_any_, wire::Command::RESET_TO_FILE, 0, transfer, timeout_s);
  }

  std::vector<RigParameter> parameters(double timeout_s) {
    if (!connected_) return {};
    return read_parameters(link_, take_any_, timeout_s);
  }

  std::string mechanism_text(double timeout_s) {
    if (!connected_) return {};
    return server::read_mechanism(
        link_, [this](const ClientSession::Arrival& arrival) { return take(arrival); }, timeout_s);
  }

  std::uint64_t set_parameters(const std::vector<RigParameterValue>& values, std::uint32_t ramp_steps,
                               double timeout_s) {
    if (!connected_) return 0;
    return server::set_parameters(link_, take_any_, values, ramp_steps, timeout_s);
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
  bool subscribe_poses() { return connected_ && send(link_.codec().encode_pose_subscription()); }
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
    if (link_.codec().message()->has_poses()) {
      const wire::PoseFrame& frame = link_.codec().message()->poses();
      poses_ = {.step = frame.step(),
                .sim_time_ns = frame.sim_time_ns(),
                .first_body = frame.first_body(),
                .bodies = frame.bodies(),
                .numbers = {frame.pose().data(), static_cast<std::size_t>(frame.pose_size())},
                .inputs = {frame.input().data(), static_cast<std::size_t>(frame.input_size())},
                .wake_up_us = frame.wake_up_us(),
                .step_us = frame.step_us(),
                .position_residual = frame.position_residual()};
      return Arrival::poses;
    }
    if (!link_.codec().message()->has_state()) return Arrival::other;
    state_ = state_of(snapshot_);
    delays_ = delays_of(arrival->frame.header, arrival->came_ns, link_.end().clock());
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
  RigPoses poses_;
  std::string goodbye_;
  LinkDelays delays_;
  std::array<std::uint64_t, wire::kDecodeStatusCount> refused_{};
  bool known_ = false;  // the server's channels
  std::size_t input_channels_ = 0, output_channels_ = 0;
  std::string refused_here_;  // why this rig does not want the server
  const TakeDatagram take_any_ = [this](const ClientSession::Arrival& arrival) { return take(arrival); };

  // A datagram of the session.
  wire::DecodeStatus take(const ClientSession::Arrival& arrival) {
    return link_.take(arrival, snapshot_.step, snapshot_);
  }

  [[noreturn]] void refuse(const std::string& why) {
    refused_here_ = why;
    throw NetworkError("the server at " + link_.socket().server() + " is another one: " + why);
  }

  void start(const wire::Welcome& welcome) {
    if (known_ && welcome.mechanism_id() != server_.mechanism_id)
      refuse("it runs another mechanism now, " + wire::printable(welcome.mechanism()) + ". Start the rig anew.");
    link_.codec().start(welcome);
    RigServer server = server_of(welcome);
    server.inputs = std::move(server_.inputs), server.outputs = std::move(server_.outputs);
    server_ = std::move(server);
    if (server_.lockstep) snapshot_.step = server_.step;
    state_ = {.step = snapshot_.step};
    input_channels_ = welcome.input_channels();
    output_channels_ = welcome.output_channels();
    input_.sequence = 0;
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
bool RigClient::command(RigCommand command, std::uint32_t steps, double timeout_s) {
  return session_->command(command, steps, timeout_s);
}
std::string RigClient::snapshot(double timeout_s) { return session_->snapshot(timeout_s); }
bool RigClient::reset_to(std::string_view snapshot, double timeout_s) {
  return session_->reset_to(snapshot, timeout_s);
}
std::vector<RigParameter> RigClient::parameters(double timeout_s) { return session_->parameters(timeout_s); }
std::string RigClient::mechanism_text(double timeout_s) { return session_->mechanism_text(timeout_s); }
std::uint64_t RigClient::set_parameters(const std::vector<RigParameterValue>& values, std::uint32_t ramp_steps,
                                        double timeout_s) {
  return session_->set_parameters(values, ramp_steps, timeout_s);
}
const RigServer& RigClient::server() const noexcept { return session_->server_; }
bool RigClient::send(std::span<const double> inputs) noexcept { return session_->send_inputs(inputs); }
bool RigClient::request_state() noexcept { return session_->request_state(); }
bool RigClient::send_heartbeat() noexcept { return session_->send_heartbeat(); }
std::uint64_t RigClient::sent_inputs() const noexcept { return session_->input_.sequence; }
RigClient::Arrival RigClient::receive() noexcept { return session_->receive(); }
void RigClient::wait_until(std::int64_t time_ns) noexcept { session_->link_.socket().wait_until(time_ns); }
const RigPoses& RigClient::poses() const noexcept { return session_->poses_; }
bool RigClient::subscribe_poses() noexcept { return session_->subscribe_poses(); }
const RigState& RigClient::state() const noexcept { return session_->state_; }
const std::string& RigClient::goodbye() const noexcept { return session_->goodbye_; }
bool RigClient::reconnect(double timeout_s) { return session_->reconnect(timeout_s); }
void RigClient::leave(const std::string& words) noexcept { session_->leave(words); }

std::optional<wire::ClockOffset::Estimate> RigClient::clock() const noexcept {
  return session_->link_.end().clock().estimate(now_ns());
}
std::optional<std::int64_t> RigClient::delay_to_rig_ns() const noexcept { return session_->delays_.to_rig_ns; }
std::optional<std::int64_t> RigClient::delay_to_server_ns() const noexcept { return session_->delays_.to_server_ns; }

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
