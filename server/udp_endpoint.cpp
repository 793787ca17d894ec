#include "server/udp_endpoint.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "proto/load.h"

namespace rigstep::server {
namespace {

constexpr int kReceivePerTurn = 64;  // so that a flood of datagrams cannot hold up the states

void count(std::atomic<std::uint64_t>& counter, std::uint64_t amount = 1) {
  counter.fetch_add(amount, std::memory_order_relaxed);
}

std::string to_text(const asio::ip::udp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

std::string bind_problem(const UdpOptions& options, const std::error_code& error) {
  const std::string where = "link: cannot listen on " + options.address + " port " + std::to_string(options.port);
  const std::string why = " (" + error.message() + "). ";
  if (error == asio::error::address_in_use) {
    return where + why + "Another program has this port, perhaps a second `rigstep serve`. Stop it (`ss -ulpn` shows " +
           "it) or give another `port`.";
  }
  if (error.value() == EADDRNOTAVAIL) {
    return where + why + "This machine has no such address. Give one of those that `ip address` shows, or 0.0.0.0 " +
           "for all of them.";
  }
  if (error == asio::error::access_denied) {
    return where + why + "Ports below 1024 are reserved for the system. Give a `port` from 1024 on.";
  }
  return where + why + "Check `address` and `port` of the link in the rig file.";
}

}  // namespace

UdpEndpoint::UdpEndpoint(const UdpOptions& options, wire::ServerCodec& codec, rt::Mailbox<InputSample>& inputs,
                         rt::Mailbox<Snapshot>& snapshots, EventHandler on_event)
    : codec_(codec), inputs_(inputs), snapshots_(snapshots), on_event_(std::move(on_event)) {
  bind(options);
  wake_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd_ < 0) throw NetworkError("no eventfd from the system: " + std::system_category().message(errno));
}

UdpEndpoint::~UdpEndpoint() {
  stop();
  ::close(wake_fd_);
}

void UdpEndpoint::bind(const UdpOptions& options) {
  std::error_code error;
  const asio::ip::address address = asio::ip::make_address(options.address, error);
  if (error) {
    throw wire::ConfigError(
        "link.address: \"" + options.address +
        "\" is no numeric address: give one of this machine's, such as 127.0.0.1, or 0.0.0.0 for all");
  }
  const Endpoint local(address, options.port);
  socket_.open(local.protocol(), error);
  if (!error) socket_.bind(local, error);
  if (!error) socket_.non_blocking(true, error);
  if (!error) local_port_ = socket_.local_endpoint(error).port();
  if (error) throw NetworkError(bind_problem(options, error));
}

void UdpEndpoint::start() {
  if (thread_.joinable()) return;
  stopping_.store(false);
  thread_ = std::thread([this] { run(); });
}

void UdpEndpoint::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  const std::uint64_t one = 1;
  // fails only when the counter is full, and then the thread is awake anyway
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
  thread_.join();
}

UdpCounters UdpEndpoint::counters() const noexcept {
  const auto read = [](const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  UdpCounters now;
  now.received = read(counters_.received);
  now.accepted = read(counters_.accepted);
  now.unknown_source = read(counters_.unknown_source);
  now.second_rig = read(counters_.second_rig);
  std::transform(counters_.dropped.begin(), counters_.dropped.end(), now.dropped.begin(), read);
  now.sent = read(counters_.sent);
  now.overtaken = read(counters_.overtaken);
  now.send_errors = read(counters_.send_errors);
  return now;
}

void UdpEndpoint::run() {
  while (!stopping_.load()) {
    wait();
    send_newest_state();
    receive_waiting();
    drop_silent_rig();
  }
  if (rig_) send(codec_.encode_goodbye("the server was stopped"), rig_->endpoint);
  rig_.reset();
}

// Until a datagram or a wake-up arrives, or the rig may have been silent for too long.
void UdpEndpoint::wait() {
  std::array<pollfd, 2> watched{{{socket_.native_handle(), POLLIN, 0}, {wake_fd_, POLLIN, 0}}};
  const int no_limit = -1;
  const int timeout_ms = rig_ ? 100 : no_limit;
  if (::poll(watched.data(), watched.size(), timeout_ms) <= 0) return;
  std::uint64_t wake_ups = 0;
  // resets the eventfd; that there was nothing to read is as good
  [[maybe_unused]] const auto size = ::read(wake_fd_, &wake_ups, sizeof wake_ups);
}

void UdpEndpoint::send_newest_state() {
  const std::uint64_t last_step = snapshot_.step;
  if (!snapshots_.take(snapshot_)) return;
  if (snapshot_.step > last_step + 1) count(counters_.overtaken, snapshot_.step - last_step - 1);
  if (rig_) send(codec_.encode_state(snapshot_), rig_->endpoint);
}

void UdpEndpoint::receive_waiting() {
  for (int i = 0; i < kReceivePerTurn; ++i) {
    Endpoint sender;
    std::error_code error;
    const std::size_t size = socket_.receive_from(asio::buffer(receive_buffer_), sender, 0, error);
    // also a refusal by the machine of a rig that has gone: its silence will end the connection
    if (error) return;
    count(counters_.received);
    handle(std::span(receive_buffer_).first(size), sender);
  }
}

void UdpEndpoint::handle(std::span<const std::byte> datagram, const Endpoint& sender) {
  const bool from_rig = rig_ && rig_->endpoint == sender;
  const wire::DecodeStatus status = codec_.decode(datagram, from_rig ? rig_->last_sequence : 0, request_);
  if (request_.content == wire::RigToServer::kHello) return handle_hello(status, sender);
  // bytes that are no message tell nothing about their sender
  const bool readable = status != wire::DecodeStatus::too_large && status != wire::DecodeStatus::malformed;
  if (readable && !from_rig) return count(counters_.unknown_source);
  if (from_rig) rig_->last_heard = Clock::now();
  if (status != wire::DecodeStatus::ok) return count(counters_.dropped[static_cast<std::size_t>(status)]);
  count(counters_.accepted);
  handle_content();
}

void UdpEndpoint::handle_hello(wire::DecodeStatus status, const Endpoint& sender) {
  if (status != wire::DecodeStatus::ok) {
    count(counters_.dropped[static_cast<std::size_t>(status)]);
    send(codec_.encode_refusal(
             wire::VERSION, "this server, Rigstep " + codec_.product_version() + ", speaks protocol version " +
                                std::to_string(wire::kProtocolVersion) + "; the rig's software, " +
                                request_.product_version + ", speaks another. Install the same release on both sides."),
         sender);
    return;
  }
  const bool same_rig = rig_ && rig_->endpoint == sender;
  if (rig_ && !same_rig) {
    count(counters_.second_rig);
    send(codec_.encode_refusal(wire::OTHER_RIG, "the rig \"" + rig_->name + "\" at " + to_text(rig_->endpoint) +
                                                    " is connected. Stop it, or wait until it has been silent for " +
                                                    std::to_string(kRigTimeout.count()) + " s."),
         sender);
    return;
  }
  count(counters_.accepted);
  rig_ = Rig{sender, request_.rig_name, request_.product_version, 0, Clock::now()};
  send(codec_.encode_welcome(), sender);
  if (!same_rig) emit(RigEvent::Kind::connected);
}

// A checked datagram of the connected rig.
void UdpEndpoint::handle_content() {
  switch (request_.content) {
    case wire::RigToServer::kInput:
      rig_->last_sequence = request_.input.sequence;
      inputs_.publish(request_.input);
      break;
    case wire::RigToServer::kChannelQuery:
      send(codec_.encode_channel_page(request_.direction, request_.first), rig_->endpoint);
      break;
    case wire::RigToServer::kGoodbye:
      forget_rig(RigEvent::Kind::left);
      break;
    case wire::RigToServer::kHello:
    case wire::RigToServer::CONTENT_NOT_SET:
      break;
  }
}

void UdpEndpoint::drop_silent_rig() {
  if (rig_ && Clock::now() - rig_->last_heard >= kRigTimeout) forget_rig(RigEvent::Kind::timed_out);
}

void UdpEndpoint::forget_rig(RigEvent::Kind how) {
  emit(how);
  rig_.reset();
}

void UdpEndpoint::emit(RigEvent::Kind kind) {
  if (on_event_) on_event_({kind, rig_->name, rig_->product_version, to_text(rig_->endpoint)});
}

void UdpEndpoint::send(std::span<const std::byte> datagram, const Endpoint& receiver) {
  std::error_code error;
  socket_.send_to(asio::buffer(datagram.data(), datagram.size()), receiver, 0, error);
  count(error ? counters_.send_errors : counters_.sent);
}

}  // namespace rigstep::server
