#include "server/link/udp_sockets.h"

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
constexpr int kStrangersQueueBytes = 1 << 16;  // some 50 full datagrams

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

// One more socket of the port.
std::error_code open_shared(const UdpAddress& local, int& fd) {
  auto error = open_socket(local, fd);
  if (!error) error = set_option(fd, SO_REUSEPORT, 1);
  if (!error) error = bind_socket(fd, local);
  return error;
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
    case LinkPriority::former:
      return {.per_turn = 4, .per_span = 20};
    case LinkPriority::stranger:
      return {.per_turn = 8, .per_span = 100};
  }
  return {};
}

std::error_code UdpSockets::open(const UdpAddress& local, std::size_t participants) {
  places_.resize(1 + participants);
  Place& strangers = places_[kStrangers];
  set_priority(strangers, LinkPriority::stranger);
  auto error = open_socket(local, strangers.fd);
  if (!error) error = bind_socket(strangers.fd, local);
  if (!error) error = read_local(strangers.fd, local_);
  local_port_ = local_.port();
  if (!error) error = set_option(strangers.fd, SO_RCVBUF, kStrangersQueueBytes);
  if (!error) error = set_option(strangers.fd, SO_REUSEPORT, 1);
  for (Place& place : std::span(places_).subspan(1))
    if (!error) error = open_shared(local_, place.fd);
  if (!error) error = steer_to_first(strangers.fd);
  return error;
}

UdpSockets::~UdpSockets() {
  for (const Place& place : places_)
    if (place.fd >= 0) ::close(place.fd);
}

void UdpSockets::set_priority(Place& place, LinkPriority priority) {
  place.priority = priority;
  place.budget = ReceiveBudget(share_of(priority).per_span);
}

std::optional<UdpSockets::Socket> UdpSockets::connect(const UdpAddress& peer, LinkPriority priority) {
  Place* const place = place_for(peer);
  if (place == nullptr || (place->peer != peer && !reconnect(*place, peer))) return std::nullopt;
  set_priority(*place, priority);
  return static_cast<Socket>(place - places_.data());
}

// The one that `peer` has or had, else one that nobody had, else one of somebody who left.
UdpSockets::Place* UdpSockets::place_for(const UdpAddress& peer) {
  const auto participants = std::span(places_).subspan(1);
  const auto first = [&](auto&& fits) -> Place* {
    const auto found = std::find_if(participants.begin(), participants.end(), fits);
    return found == participants.end() ? nullptr : &*found;
  };
  Place* place = first([&](const Place& p) { return p.peer == peer; });
  if (place == nullptr) place = first([](const Place& p) { return !p.peer; });
  if (place == nullptr) place = first([](const Place& p) { return p.priority == LinkPriority::former; });
  return place;
}

bool UdpSockets::reconnect(Place& place, const UdpAddress& peer) {
  const auto connect_to = [&](const sockaddr* address, std::size_t size) {
    return ::connect(place.fd, address, static_cast<socklen_t>(size)) == 0;
  };
  // where the server listens to all addresses, this one is the way to the last peer: the new one may need another
  const sockaddr none{.sa_family = AF_UNSPEC, .sa_data = {}};
  if (place.peer && local_.address().is_unspecified()) connect_to(&none, sizeof none);
  if (connect_to(peer.data(), peer.size())) {
    place.peer = peer;
    return true;
  }
  if (place.peer) connect_to(place.peer->data(), place.peer->size());
  return false;
}

void UdpSockets::release(Socket socket) { set_priority(places_[socket], LinkPriority::former); }

void UdpSockets::set_patience(std::int64_t patience_ns) {
  const timeval patience{.tv_sec = patience_ns / 1'000'000'000, .tv_usec = patience_ns % 1'000'000'000 / 1000};
  for (const Place& place : places_) set_option(place.fd, SO_RCVTIMEO, patience);
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
  for (const auto priority :
       {LinkPriority::control, LinkPriority::observer, LinkPriority::former, LinkPriority::stranger})
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
  std::uint64_t drops = 0;
  for (const Place& place : places_) drops += drops_of(place.fd);
  return drops;
}

}  // namespace rigstep::server
