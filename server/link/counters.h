// What became of the datagrams of a link.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "proto/frame.h"

namespace rigstep::server {

// What became of every datagram received: received = accepted + sum of dropped.
struct UdpCounters {
  std::uint64_t received = 0;
  std::uint64_t accepted = 0;                                     // acted on
  std::array<std::uint64_t, wire::kDecodeStatusCount> dropped{};  // by DecodeStatus; [ok] stays 0
  std::uint64_t sent = 0;
  std::uint64_t overtaken = 0;        // states replaced by a newer one before the network thread came to send them
  std::uint64_t send_errors = 0;      // datagrams the system did not take
  std::uint64_t queue_overflows = 0;  // dropped by the system: a queue was full, or a checksum wrong
};

// Written by the thread of the link, read by any. queue_overflows are the system's to count.
class LinkCounters {
 public:
  void count_received() noexcept { add(received_); }
  void count_handled(wire::DecodeStatus status) noexcept {
    add(status == wire::DecodeStatus::ok ? accepted_ : dropped_[static_cast<std::size_t>(status)]);
  }
  void count_sent(bool taken) noexcept { add(taken ? sent_ : send_errors_); }
  void count_overtaken(std::uint64_t states) noexcept { add(overtaken_, states); }

  UdpCounters read() const noexcept {
    const auto value = [](const Counter& counter) { return counter.load(std::memory_order_relaxed); };
    UdpCounters now;
    now.received = value(received_);
    now.accepted = value(accepted_);
    std::transform(dropped_.begin(), dropped_.end(), now.dropped.begin(), value);
    now.sent = value(sent_);
    now.overtaken = value(overtaken_);
    now.send_errors = value(send_errors_);
    return now;
  }

 private:
  using Counter = std::atomic<std::uint64_t>;
  static void add(Counter& counter, std::uint64_t amount = 1) noexcept {
    counter.fetch_add(amount, std::memory_order_relaxed);
  }

  Counter received_{0}, accepted_{0}, sent_{0}, overtaken_{0}, send_errors_{0};
  std::array<Counter, wire::kDecodeStatusCount> dropped_{};
};

}  // namespace rigstep::server
