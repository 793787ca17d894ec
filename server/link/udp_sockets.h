// The UDP sockets of one port: one for strangers, and for each participant one of its own that is connected to its
// address. The kernel sorts what comes: a datagram of a participant goes to its socket, everything else to that of the
// strangers. So a flood fills the queue of whoever sends it and no other.
//
// All sockets are made at load and bound to the same address and port. The port is taken without SO_REUSEPORT first,
// so that a second server is refused; then the other sockets join with it, which the kernel allows to processes of the
// same user only. A program on their group steers what no connected socket takes to the strangers' socket, so that
// nothing is queued in a socket that waits for its first participant. One that has served stays connected to the
// address that left until another takes its place: the kernel would not steer around it otherwise.
//
// What socket a datagram came to decides when it is read, and nothing else: it counts as that of its sender.
//
// Owned and used by one thread, network or loop; drops() may be called by any.
#pragma once

#include <algorithm>
#include <array>
#include <asio.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace rigstep::server {

using UdpAddress = asio::ip::udp::endpoint;

// Whose datagrams are taken first.
enum class LinkPriority { control, observer, former, stranger };  // former: a participant that left

struct Arrival {
  std::span<std::byte> datagram;  // decrypted in its place
  UdpAddress sender;
  std::int64_t came_ns = 0;  // CLOCK_MONOTONIC
};

// So many datagrams in each span of time. What is beyond waits in the queue of its socket and does not wake the thread.
class ReceiveBudget {
 public:
  static constexpr std::int64_t kSpanNs = 10'000'000;

  ReceiveBudget() = default;  // no limit
  explicit ReceiveBudget(int per_span) : per_span_(per_span) {}

  bool take(std::int64_t now_ns) noexcept {
    if (per_span_ == 0) return true;
    if (now_ns - span_began_ns_ >= kSpanNs) {
      span_began_ns_ = now_ns;
      taken_ = 0;
    }
    if (taken_ == per_span_) return false;
    ++taken_;
    return true;
  }
  // Until something may be taken again; 0: now.
  std::int64_t exhausted_for_ns(std::int64_t now_ns) const noexcept {
    if (per_span_ == 0 || taken_ < per_span_) return 0;
    return std::max<std::int64_t>(span_began_ns_ + kSpanNs - now_ns, 0);
  }

 private:
  int per_span_ = 0;
  int taken_ = 0;
  std::int64_t span_began_ns_ = 0;
};

class UdpSockets {
 public:
  using Socket = std::size_t;  // index
  using Handler = std::function<void(const Arrival&)>;

  // Makes and binds all of them. The system's reason where it refuses.
  // participants: so many can be connected at a time.
  std::error_code open(const UdpAddress& local, std::size_t participants);
  UdpSockets() = default;
  ~UdpSockets();
  UdpSockets(const UdpSockets&) = delete;
  UdpSockets& operator=(const UdpSockets&) = delete;

  std::uint16_t local_port() const noexcept { return local_port_; }

  // A socket for `peer`; the one that it has or had, with the new priority. None: all are in use, or the system
  // refuses, for instance since there is no way to `peer`.
  std::optional<Socket> connect(const UdpAddress& peer, LinkPriority priority);
  // Another may take its place. Until then it is read as that of a former participant.
  void release(Socket socket);

  // Until a datagram may be taken, `wake_fd` (-1: none) is readable, or the time is over (negative: no limit). True:
  // `wake_fd` is readable.
  bool wait(int wake_fd, std::int64_t limit_ns);
  // Hands over what came, controllers first, each sender within its budget. The handler may connect and release.
  void receive_waiting(const Handler& handler);
  // One datagram of a connected socket; flags of recvfrom(). False: none came in time, or the system tells that nobody
  // is there any more.
  bool receive(Socket socket, int flags, const Handler& handler);
  // How long receive() waits.
  void set_patience(std::int64_t patience_ns);

  // False: the system did not take it.
  bool send(Socket socket, std::span<const std::byte> datagram);
  bool send_to_stranger(const UdpAddress& receiver, std::span<const std::byte> datagram);

  // Datagrams that the system dropped: a queue was full, or a checksum wrong. Any thread.
  std::uint64_t drops() const noexcept;

 private:
  struct Place {
    int fd = -1;
    std::optional<UdpAddress> peer;  // of a participant, or of one that left
    LinkPriority priority = LinkPriority::former;
    ReceiveBudget budget;
  };
  struct Share {
    int per_turn = 0;
    int per_span = 0;  // 0: no limit
  };

  static Share share_of(LinkPriority priority) noexcept;
  void set_priority(Place& place, LinkPriority priority);
  Place* place_for(const UdpAddress& peer);
  bool reconnect(Place& place, const UdpAddress& peer);
  bool is_read(const Place& place) const noexcept;
  void receive_from(Place& place, const Handler& handler);
  bool receive_one(Place& place, int flags, const Handler& handler);

  std::vector<Place> places_;  // the strangers' first
  UdpAddress local_;
  std::uint16_t local_port_ = 0;
  std::array<std::byte, 2048> buffer_{};
};

}  // namespace rigstep::server
