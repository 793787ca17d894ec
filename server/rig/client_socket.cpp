#include "server/rig/client_socket.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "rt/clock.h"
#include "server/network_error.h"

namespace rigstep::server {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// One call that waits and takes the datagram is faster than two, but its time-out is as coarse as the kernel's tick:
// up to 8 ms longer at 250 ticks a second.
constexpr std::int64_t kCoarseWaitNs = 4'000'000, kCoarseUntilNs = 16'000'000;

// A socket that is connected to the server, or -1 with errno.
int open_socket(const addrinfo& remote) {
  const int fd = ::socket(remote.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const timeval limit{.tv_sec = 0, .tv_usec = kCoarseWaitNs / 1000};
  if (fd >= 0) ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (fd < 0 || ::connect(fd, remote.ai_addr, remote.ai_addrlen) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

// A name like localhost stands for addresses of both kinds, and a server has one, of the older kind unless told
// otherwise.
const addrinfo& preferred(const addrinfo& all) {
  for (const addrinfo* each = &all; each != nullptr; each = each->ai_next)
    if (each->ai_family == AF_INET) return *each;
  return all;
}

}  // namespace

ClientSocket::ClientSocket(const std::string& host, std::uint16_t port) : host_(host), port_(port) {
  addrinfo requested{};
  requested.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &requested, &found); error != 0) {
    throw NetworkError("cannot find the host \"" + host + "\" (" + ::gai_strerror(error) +
                       "). Check the name, or give a numeric address.");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  fd_ = open_socket(preferred(*found));
  if (fd_ < 0) {
    throw NetworkError("cannot send to " + server() + " (" + std::system_category().message(errno) +
                       "). Check the network.");
  }
}

ClientSocket::~ClientSocket() { ::close(fd_); }

bool ClientSocket::send(const wire::FrameHeader& header, std::span<const std::byte> payload) {
  const wire::Key* const key = keys_ != nullptr && header.session != 0 ? &keys_->rig_to_server : nullptr;
  return send(wire::seal_frame(header, payload, key, sent_));
}

bool ClientSocket::send(std::span<const std::byte> datagram) {
  if (::send(fd_, datagram.data(), datagram.size(), MSG_DONTWAIT) >= 0) return true;
  if (errno != ECONNREFUSED) return false;
  // a refusal is the answer to an earlier datagram: nobody listens there, or not yet
  refused_ = true;
  return ::send(fd_, datagram.data(), datagram.size(), MSG_DONTWAIT) >= 0;
}

// False, with errno: there is none.
bool ClientSocket::take(int flags) {
  const ssize_t size = ::recv(fd_, received_.data(), received_.size(), flags);
  if (size < 0) {
    if (errno == ECONNREFUSED) refused_ = true;
    return false;
  }
  came_ns_ = rt::MonotonicClock::now_ns();
  size_ = static_cast<std::size_t>(size);
  return true;
}

std::optional<ClientSocket::Arrival> ClientSocket::receive() {
  if (!size_ && !take(MSG_DONTWAIT)) return std::nullopt;
  Arrival arrival;
  arrival.came_ns = came_ns_;
  const auto datagram = std::span(received_).first(*std::exchange(size_, std::nullopt));
  arrival.datagram = datagram;
  wire::FrameHeader header;
  arrival.status = wire::read_header(datagram, wire::Sender::rig, header);
  if (arrival.status != wire::DecodeStatus::ok) return arrival;
  const wire::Key* const key = keys_ != nullptr && header.session != 0 ? &keys_->server_to_rig : nullptr;
  arrival.status = wire::open_frame(datagram, wire::Sender::rig, key, arrival.frame);
  return arrival;
}

void ClientSocket::wait_until(std::int64_t time_ns) {
  if (size_) return;
  std::int64_t left = time_ns - rt::MonotonicClock::now_ns();
  for (; left > kCoarseUntilNs; left = time_ns - rt::MonotonicClock::now_ns())
    if (take(0) || errno != EAGAIN) return;
  left = std::max<std::int64_t>(left, 0);
  const timespec limit{left / kSecond, left % kSecond};
  pollfd watched{fd_, POLLIN, 0};
  ::ppoll(&watched, 1, &limit, nullptr);
}

std::string ClientSocket::no_answer() const {
  return "no answer from " + server() + (refused_ ? " (nothing listens on this port there)" : "") +
         ": is `rigstep serve` running there? If so, check that its `link.address` can be reached from here and that "
         "no "
         "firewall blocks UDP port " +
         std::to_string(port_) + ".";
}

}  // namespace rigstep::server
