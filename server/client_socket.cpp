#include "server/client_socket.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "rt/clock.h"
#include "server/network_error.h"

namespace rigstep::server {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// A socket that is connected to the server, or -1 with errno.
int open_socket(const addrinfo& remote) {
  const int fd = ::socket(remote.ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, remote.ai_addr, remote.ai_addrlen) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

}  // namespace

ClientSocket::ClientSocket(const std::string& host, std::uint16_t port, const std::optional<wire::Key>& key)
    : host_(host), port_(port), key_(key) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found); error != 0) {
    throw NetworkError("cannot find the host \"" + host + "\" (" + ::gai_strerror(error) +
                       "). Check the name, or give a numeric address.");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  fd_ = open_socket(*found);
  if (fd_ < 0) {
    throw NetworkError("cannot send to " + server() + " (" + std::system_category().message(errno) +
                       "). Check the network.");
  }
}

ClientSocket::~ClientSocket() { ::close(fd_); }

bool ClientSocket::send(const wire::FrameHeader& header, std::span<const std::byte> payload) {
  const auto datagram = wire::seal_frame(header, payload, key_, sent_);
  if (::send(fd_, datagram.data(), datagram.size(), 0) >= 0) return true;
  if (errno != ECONNREFUSED) return false;
  // a refusal is the answer to an earlier datagram: nobody listens there, or not yet
  refused_ = true;
  return ::send(fd_, datagram.data(), datagram.size(), 0) >= 0;
}

std::optional<ClientSocket::Arrival> ClientSocket::receive() {
  const ssize_t size = ::recv(fd_, received_.data(), received_.size(), 0);
  if (size < 0) {
    if (errno == ECONNREFUSED) refused_ = true;
    return std::nullopt;
  }
  Arrival arrival;
  arrival.came_ns = rt::MonotonicClock::now_ns();
  const auto datagram = std::span<const std::byte>(received_).first(static_cast<std::size_t>(size));
  arrival.status = wire::open_frame(datagram, wire::Sender::rig, key_, arrival.frame);
  if (arrival.status == wire::DecodeStatus::authentication && key_) {
    arrival.hint = wire::open_frame(datagram, wire::Sender::rig, std::nullopt, arrival.frame) == wire::DecodeStatus::ok;
  }
  return arrival;
}

void ClientSocket::wait_until(std::int64_t time_ns) const {
  const std::int64_t left = std::max<std::int64_t>(time_ns - rt::MonotonicClock::now_ns(), 0);
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
