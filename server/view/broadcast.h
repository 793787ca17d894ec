// What all browsers are sent: of each kind the newest message, never a queue. A slow browser misses messages and delays
// nobody. Owned by who views; any thread may publish and wait.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace rigstep::server {

class Broadcast {
 public:
  enum class Kind : std::uint32_t {
    scene,   // JSON: what is shown is another one now, or has changed
    motion,  // binary, see motion_message.h
    status,  // JSON
  };
  static constexpr std::size_t kKinds = 3;
  using Seen = std::array<std::uint64_t, kKinds>;  // number of the newest message that was sent, of each kind

  void publish(Kind kind, std::string message);

  // The messages that are newer than `seen`, each behind 8 bytes: kind and length, little-endian. Waits for one until
  // the time is over; empty then.
  std::string take_newer(Seen& seen, std::chrono::milliseconds patience);

  // Somebody has asked within the last two seconds.
  bool is_watched() const noexcept;

  // Wakes all who wait, for good.
  void close();

 private:
  struct Slot {
    std::uint64_t number = 0;
    std::shared_ptr<const std::string> message;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Slot, kKinds> slots_;
  bool closed_ = false;
  std::atomic<std::int64_t> asked_ns_{INT64_MIN / 2};  // steady clock
};

}  // namespace rigstep::server
