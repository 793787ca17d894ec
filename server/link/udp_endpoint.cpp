#include "server/link/udp_endpoint.h"

#include <pthread.h>
#include <sodium.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "proto/config_text.h"
#include "rt/clock.h"

namespace rigstep::server {
namespace {

using wire::DecodeStatus;

constexpr std::size_t kPoseFramesAtOnce = 4;      // some tens of microseconds
constexpr std::int64_t kLookEveryNs = 5'000'000;  // lockstep: at those who are not in control

// Before anything makes a key or a cookie.
UdpHooks with_random_numbers(UdpHooks hooks) {
  if (sodium_init() < 0) throw NetworkError("no random numbers from the system: sessions cannot be made");
  return hooks;
}

std::string bind_problem(const UdpOptions& options, const std::error_code& error) {
  const std::string where = "link: cannot listen on " + options.address + " port " + std::to_string(options.port);
  const std::string why = " (" + error.message() + "). ";
  if (error == std::errc::address_in_use) {
    return where + why + "Another program has this port, perhaps a second `rigstep serve`. Stop it (`ss -ulpn` shows " +
           "it) or give another `port`.";
  }
  if (error == std::errc::address_not_available) {
    return where + why + "This machine has no such address. Give one of those that `ip address` shows, or 0.0.0.0 " +
           "for all of them.";
  }
  if (error == std::errc::permission_denied) {
    return where + why + "Ports below 1024 are reserved for the system. Give a `port` from 1024 on.";
  }
  return where + why + "Check `address` and `port` of the link in the rig file.";
}

}  // namespace

UdpEndpoint::UdpEndpoint(const UdpOptions& options, wire::ServerCodec& codec, rt::Mailbox<InputSample>& inputs,
                         rt::Mailbox<Snapshot>& snapshots, UdpHooks hooks)
    : hooks_(with_random_numbers(std::move(hooks))),
      timeout_ns_(codec.period_ns() * options.timeout_steps),
      keys_(options.keys),
      participants_(sockets_, hooks_.on_event, timeout_ns_),
      outgoing_(sockets_, counters_),
      sessions_(codec, hooks_,
                {.timeout_steps = options.timeout_steps, .max_input_delay_ms = options.max_input_delay_ms}, inputs,
                snapshots, participants_, outgoing_, counters_),
      status_(
          hooks_, [this] { return counters(); }, options.timeout_steps, keys_.required, participants_, sessions_),
      requests_(codec, keys_, options.timeout_steps, participants_, outgoing_, status_) {
  sessions_.use(requests_, status_);
  bind(options);
  wake_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd_ < 0) throw NetworkError("no eventfd from the system: " + std::system_category().message(errno));
}

UdpEndpoint::~UdpEndpoint() {
  stop();
  ::close(wake_fd_);
  delete offered_keys_.load();
  delete retired_keys_.load();
}

void UdpEndpoint::offer_keys(OfferedKeys ring) {
  delete retired_keys_.exchange(nullptr);
  delete offered_keys_.exchange(std::make_unique<OfferedKeys>(std::move(ring)).release());
  const std::uint64_t one = 1;
  // fails only when the counter is full, and then the thread is awake anyway
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
}

// What was offered is in the hands of one thread at a time; the old keys go back to be freed there.
void UdpEndpoint::take_offered_keys() {
  if (offered_keys_.load(std::memory_order_relaxed) == nullptr) return;
  OfferedKeys* const offered = offered_keys_.exchange(nullptr);
  if (offered == nullptr) return;
  keys_.ring.swap(*offered);
  retired_keys_.store(offered);
  sessions_.keep_only(*keys_);
}

void UdpEndpoint::bind(const UdpOptions& options) {
  std::error_code error;
  const asio::ip::address address = asio::ip::make_address(options.address, error);
  if (error) {
    throw config::ConfigError(
        options.place() + ": \"" + options.address +
        "\" is no numeric address: give one of this machine's, such as 127.0.0.1, or 0.0.0.0 for all");
  }
  if (!address.is_loopback() && !options.keys.required && !options.allow_unauthenticated) {
    throw config::ConfigError(options.place() + ": " + options.address +
                              " can be reached from other machines, and without a key anybody there may steer this "
                              "one: make keys with `rigstep keygen` and name the server's file in "
                              "`link.key_file`; or, on a network of your own, set `link.allow_unauthenticated: true`");
  }
  // one more: a rig that takes a place comes before the one that leaves it
  error = sockets_.open(UdpAddress(address, options.port), kMaxParticipants + 1);
  if (error) throw NetworkError(bind_problem(options, error));
}

void UdpEndpoint::start() {
  if (thread_.joinable()) return;
  stopping_.store(false);
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "rigstep-link");
}

void UdpEndpoint::stop() {
  stopping_.store(true);
  const std::uint64_t one = 1;
  // fails only when the counter is full, and then the thread is awake anyway
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

UdpCounters UdpEndpoint::counters() const noexcept {
  UdpCounters now = counters_.read();
  now.queue_overflows = sockets_.drops();
  return now;
}

void UdpEndpoint::run() {
  while (!stopping_.load()) {
    wait();
    sessions_.send_newest_state();
    sessions_.send_poses(rt::MonotonicClock::now_ns(), kPoseFramesAtOnce);
    sockets_.receive_waiting(handle_);
    participants_.drop_silent(rt::MonotonicClock::now_ns());
    take_offered_keys();
  }
  end();
}

// Until something may be received or sent, or somebody may have been silent for too long.
void UdpEndpoint::wait() {
  constexpr std::int64_t kNoLimit = -1;
  const std::int64_t quarter_ns = std::clamp<std::int64_t>(timeout_ns_ / 4, 1'000'000, 100'000'000);
  if (!sockets_.wait(wake_fd_, participants_.empty() ? kNoLimit : quarter_ns)) return;
  std::uint64_t wake_ups = 0;
  // resets the eventfd; that there was nothing to read is as good
  [[maybe_unused]] const auto size = ::read(wake_fd_, &wake_ups, sizeof wake_ups);
}

void UdpEndpoint::serve_lockstep(const Lockstep& lockstep, rt::BusyPoll busy_poll) {
  sessions_.set_lockstep(&lockstep);
  sockets_.set_patience(kLookEveryNs);
  for (std::int64_t looked_ns = 0; !stopping_.load();) {
    if (participants_.controller() == nullptr)
      wait();
    else if (receive_from_controller(busy_poll) && rt::MonotonicClock::now_ns() - looked_ns < kLookEveryNs)
      continue;  // a rig that keeps asking must not put off the rest
    sockets_.receive_waiting(handle_);
    looked_ns = rt::MonotonicClock::now_ns();
    participants_.drop_silent(looked_ns);
    sessions_.send_poses(looked_ns, kPoseFramesAtOnce);
    take_offered_keys();
  }
  end();
  sessions_.set_lockstep(nullptr);
}

// The controller's next datagram, spun and then waited for. False: none came.
bool UdpEndpoint::receive_from_controller(rt::BusyPoll& busy_poll) {
  const UdpSockets::Socket socket = participants_.controller()->socket;
  const std::int64_t from_ns = rt::MonotonicClock::now_ns();
  if (const std::int64_t spin_ns = busy_poll.allowance(from_ns); spin_ns > 0) {
    do {
      if (sockets_.receive(socket, MSG_DONTWAIT, handle_)) return true;
      rt::relax();
    } while (rt::MonotonicClock::now_ns() - from_ns < spin_ns);
  }
  std::int64_t woken_ns = 0;
  const std::int64_t asleep_ns = rt::MonotonicClock::now_ns();
  const bool received = sockets_.receive(socket, 0, [&](const Arrival& arrival) {
    woken_ns = arrival.came_ns;
    handle(arrival);
  });
  busy_poll.slept(asleep_ns, received ? woken_ns : rt::MonotonicClock::now_ns());
  return received;
}

void UdpEndpoint::handle(const Arrival& arrival) {
  wire::FrameHeader header;
  DecodeStatus status = wire::read_header(arrival.datagram, wire::Sender::server, header);
  if (status == DecodeStatus::ok)
    status = header.session != 0 ? sessions_.handle(header, arrival) : requests_.handle(arrival);
  counters_.count_handled(status);
  counters_.count_received();
}

void UdpEndpoint::end() { sessions_.end_all("the server was stopped"); }

}  // namespace rigstep::server
