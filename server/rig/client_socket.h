// The socket of whoever talks to a Rigstep server: frames to one address and from it. Owned and used by one thread;
// only wait_until() blocks. Contract of the bytes: proto/wire.proto.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "proto/frame.h"
#include "proto/handshake.h"
#include "rt/clock.h"

namespace rigstep::server {

inline constexpr std::int64_t kRepeatAfterNs = 100'000'000;    // a request without an answer
inline constexpr std::int64_t kStepAgainAfterNs = 20'000'000;  // lockstep: more than any step takes

inline std::int64_t now_ns() { return rt::MonotonicClock::now_ns(); }  // what all stamps are of
inline std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

class ClientSocket {
 public:
  struct Arrival {
    wire::DecodeStatus status = wire::DecodeStatus::ok;
    wire::Frame frame;         // as far as open_frame sets it; valid until the next receive or wait
    std::int64_t came_ns = 0;  // CLOCK_MONOTONIC
    std::span<const std::byte> datagram = {};
  };

  // host: name or numeric address. Throws NetworkError where it is not found.
  ClientSocket(const std::string& host, std::uint16_t port);
  ~ClientSocket();
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  // Of the session whose frames come and go from now on; null: they have no key. Outlive their use.
  void use_keys(const wire::SessionKeys* keys) { keys_ = keys; }

  bool send(const wire::FrameHeader& header, std::span<const std::byte> payload);
  bool send(std::span<const std::byte> datagram);
  std::optional<Arrival> receive();       // the next datagram that came, if any
  void wait_until(std::int64_t time_ns);  // or until a datagram comes; CLOCK_MONOTONIC

  std::string server() const { return host_ + ":" + std::to_string(port_); }
  // For an error: nobody answered, and what that may come from.
  std::string no_answer() const;

 private:
  bool take(int flags);

  std::string host_;
  std::uint16_t port_;
  const wire::SessionKeys* keys_ = nullptr;
  int fd_ = -1;
  bool refused_ = false;  // by the machine: no such port
  std::array<std::byte, 2048> received_{};
  std::optional<std::size_t> size_;  // of what was taken and not yet given away
  std::int64_t came_ns_ = 0;
  std::array<std::byte, wire::kMaxDatagram> sent_{};
};

}  // namespace rigstep::server
