#include "server/link/udp_sockets.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "rt/clock.h"

namespace rigstep::server {
namespace {

constexpr UdpSockets::Socket kStrangers = 0;
constexpr int kStrangersQueueBytes = 1 << 16;  // some 50 full datagrams, what one span's budget takes

std::error_code last_error() { return {errno, std::system_category()}; }

std::error_code open_socket(const UdpAddress& local, int& fd) {
  fd = ::socket(local.protocol().family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return fd < 0 ? last_error() : std::error_code();
}

std::error_code bind_socket(int fd, const UdpAddress& local) {
  return ::bind(fd, local.data(), static_cast<socklen_t>(local.size())) < 0 ? last_error() : std::error_code();
}

template <class Value>
std::error_code set_option(int fd, int option, const Value& value) {
  return ::setsockopt(fd, SOL_SOCKET, option, &value, sizeof value) < 0 ? last_error() : std::error_code();
}

// What no connected socket takes goes to the first of the group.
std::error_code steer_to_first(int fd) {
  sock_filter first = {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
  return set_option(fd, SO_ATTACH_REUSEPORT_CBPF, sock_fprog{.len = 1, .filter = &first});
}

std::error_code read_local(int fd, UdpAddress& local) {
  auto size = static_cast<socklen_t>(local.capacity());
  if (::getsockname(fd, local.data(), &size) < 0) return last_error();
  local.resize(size);
  return {};
}

std::uint64_t drops_of(int fd) noexcept {
  std::array<std::uint32_t, SK_MEMINFO_VARS> memory{};
  socklen_t size = sizeof memory;
  ::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory.data(), &size);
  return memory[SK_MEMINFO_DROPS];
}

}  // namespace

UdpSockets::Share UdpSockets::share_of(LinkPriority priority) noexcept {
  switch (priority) {
    case LinkPriority::control:
      return {.per_turn = 64, .per_span = 0};
    case LinkPriority::observer:
      return {.per_turn = 4, .per_span = 20};
    case LinkPriority::stranger:
      return {.per_turn = 8, .per_span = 50};
  }
  return {};
}

std::error_code UdpSockets::open(const UdpAddress& local, std::size_t participants) {
  places_.resize(1 + participants);
  Place& strangers = places_[kStrangers];
  strangers.budget = ReceiveBudget(share_of(LinkPriority::stranger).per_span);
  auto error = open_socket(local, strangers.fd);
  if (!error) error = bind_socket(strangers.fd, local);
  if (!error) error = read_local(strangers.fd, local_);
  local_port_ = local_.port();
  if (!error) error = set_option(strangers.fd, SO_RCVBUF, kStrangersQueueBytes);
  if (!error) error = set_option(strangers.fd, SO_REUSEPORT, 1);
  for (Place& place : std::span(places_).subspan(1)) {
    if (!error) error = open_shared(place.fd);
    place.fresh = true;
  }
  if (!error) error = steer_to_first(strangers.fd);
  return error;
}

UdpSockets::~UdpSockets() {
  for (const Place& place : places_)
    if (place.fd >= 0) ::close(place.fd);
}

// One more socket of the port.
std::error_code UdpSockets::open_shared(int& fd) const {
  auto error = open_socket(local_, fd);
  if (!error) error = set_option(fd, SO_REUSEPORT, 1);
  if (!error) error = bind_socket(fd, local_);
  return error;
}

std::optional<UdpSockets::Socket> UdpSockets::connect(const UdpAddress& peer, LinkPriority priority) {
  auto place = std::find_if(places_.begin() + 1, places_.end(), [&](const Place& p) { return p.peer == peer; });
  if (place == places_.end()) {
    place = std::find_if(places_.begin() + 1, places_.end(), [](const Place& p) { return !p.peer; });
    if (place == places_.end()) return std::nullopt;
    if (!place->fresh) renew(*place);  // it was refused when the last participant left
    if (!place->fresh || ::connect(place->fd, peer.data(), static_cast<socklen_t>(peer.size())) < 0)
      return std::nullopt;
    place->peer = peer;
    place->fresh = false;
  }
  place->priority = priority;
  place->budget = ReceiveBudget(share_of(priority).per_span);
  return static_cast<Socket>(place - places_.begin());
}

void UdpSockets::release(Socket socket) {
  places_[socket].peer.reset();
  renew(places_[socket]);
}

// A socket that was connected cannot join the group again where it listens to all addresses: another takes its number.
void UdpSockets::renew(Place& place) {
  int fd = -1;
  const bool opened = !open_shared(fd);
  if (opened) {
    set_patience_of(fd);
    drops_of_closed_.fetch_add(drops_of(place.fd), std::memory_order_relaxed);
    place.fresh = ::dup3(fd, place.fd, O_CLOEXEC) >= 0;
  }
  if (fd >= 0) ::close(fd);
}

void UdpSockets::set_patience(std::int64_t patience_ns) {
  patience_ns_ = patience_ns;
  for (const Place& place : std::span(places_).subspan(1)) set_patience_of(place.fd);
}

void UdpSockets::set_patience_of(int fd) const {
  if (patience_ns_ == 0) return;
  set_option(fd, SO_RCVTIMEO,
             timeval{.tv_sec = patience_ns_ / 1'000'000'000, .tv_usec = patience_ns_ % 1'000'000'000 / 1000});
}

bool UdpSockets::is_read(const Place& place) const noexcept { return place.peer || &place == &places_[kStrangers]; }

bool UdpSockets::wait(int wake_fd, std::int64_t limit_ns) {
  std::array<pollfd, 32> watched{};
  std::size_t count = 0;
  watched[count++] = {wake_fd, POLLIN, 0};
  const std::int64_t now_ns = rt::MonotonicClock::now_ns();
  for (const Place& place : places_) {
    if (!is_read(place)) continue;
    const std::int64_t exhausted_for_ns = place.budget.exhausted_for_ns(now_ns);
    if (exhausted_for_ns > 0)
      limit_ns = limit_ns < 0 ? exhausted_for_ns : std::min(limit_ns, exhausted_for_ns);
    else
      watched[count++] = {place.fd, POLLIN, 0};
  }
  const timespec limit{.tv_sec = limit_ns / 1'000'000'000, .tv_nsec = limit_ns % 1'000'000'000};
  return ::ppoll(watched.data(), count, limit_ns < 0 ? nullptr : &limit, nullptr) > 0 && watched[0].revents != 0;
}

void UdpSockets::receive_waiting(const Handler& handler) {
  for (const LinkPriority priority : {LinkPriority::control, LinkPriority::observer, LinkPriority::stranger})
    for (Place& place : places_)
      if (is_read(place) && place.priority == priority) receive_from(place, handler);
}

void UdpSockets::receive_from(Place& place, const Handler& handler) {
  for (int left = share_of(place.priority).per_turn; left > 0 && is_read(place); --left) {
    if (place.budget.exhausted_for_ns(rt::MonotonicClock::now_ns()) > 0) return;
    if (!receive_one(place, MSG_DONTWAIT, handler)) return;
  }
}

bool UdpSockets::receive(Socket socket, int flags, const Handler& handler) {
  return receive_one(places_[socket], flags, handler);
}

// The sender is read in any case: a datagram counts as that of whoever sent it, whatever socket it came to.
bool UdpSockets::receive_one(Place& place, int flags, const Handler& handler) {
  Arrival arrival;
  auto sender_size = static_cast<socklen_t>(arrival.sender.capacity());
  const ssize_t size = ::recvfrom(place.fd, buffer_.data(), buffer_.size(), flags, arrival.sender.data(), &sender_size);
  if (size < 0) return false;
  arrival.sender.resize(sender_size);
  arrival.datagram = std::span(buffer_).first(static_cast<std::size_t>(size));
  arrival.came_ns = rt::MonotonicClock::now_ns();
  place.budget.take(arrival.came_ns);
  handler(arrival);
  return true;
}

bool UdpSockets::send(Socket socket, std::span<const std::byte> datagram) {
  const auto once = [&] {
    return ::send(places_[socket].fd, datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  };
  // an error that an earlier datagram met is told once, and this one was not sent then
  return once() || (errno == ECONNREFUSED && once());
}

bool UdpSockets::send_to_stranger(const UdpAddress& receiver, std::span<const std::byte> datagram) {
  return ::sendto(places_[kStrangers].fd, datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                  receiver.data(), static_cast<socklen_t>(receiver.size())) >= 0;
}

std::uint64_t UdpSockets::drops() const noexcept {
  std::uint64_t drops = drops_of_closed_.load(std::memory_order_relaxed);
  for (const Place& place : places_) drops += drops_of(place.fd);
  return drops;
}

}  // namespace rigstep::server
