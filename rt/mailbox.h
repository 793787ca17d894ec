// Newest value wins: one writer, one reader, neither ever waits. A triple buffer: the writer fills the back slot and
// swaps it with the middle one, the reader swaps the middle one with the front slot when it is newer.
// Owned by a session, created at load time; publish() and take() belong to one thread each, the loop among them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace rigstep::rt {

template <class T>
class Mailbox {
  static_assert(std::is_trivially_copyable_v<T>, "copied in the loop");

 public:
  // Writer only. Replaces a value that was not taken yet.
  void publish(const T& value) noexcept {
    slot_[back_].value = value;
    back_ = middle_.exchange(static_cast<std::uint8_t>(back_ | kFresh), std::memory_order_acq_rel) & kIndex;
  }

  // Reader only. True, with the newest value, if something was published since the last take; else `value` is left.
  bool take(T& value) noexcept {
    if ((middle_.load(std::memory_order_relaxed) & kFresh) == 0) return false;
    front_ = middle_.exchange(front_, std::memory_order_acq_rel) & kIndex;
    value = slot_[front_].value;
    return true;
  }

 private:
  static constexpr std::uint8_t kIndex = 3;
  static constexpr std::uint8_t kFresh = 4;

  // a cache line for each side, so that neither slows the other down
  struct alignas(64) Slot {
    T value{};
  };
  std::array<Slot, 3> slot_;
  alignas(64) std::atomic<std::uint8_t> middle_{1};  // slot index, and kFresh if it was not taken yet
  alignas(64) std::uint8_t back_ = 0;                // writer's
  alignas(64) std::uint8_t front_ = 2;               // reader's
};

}  // namespace rigstep::rt
