// Bounded queue of fixed-size slots between one writer and one reader, filled and read in place. No call ever waits:
// a full ring refuses, an empty ring has no front.
// Owned by a session; construction allocates everything, load time only. try_claim() and publish() belong to the
// writer (the loop), front() and pop() to the reader (the recorder).
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace rigstep::rt {

class Ring {
 public:
  // slot_bytes: payload of a slot [bytes]; slots start on cache lines. Both at least 1.
  Ring(std::size_t slot_bytes, std::size_t capacity)
      : slot_bytes_(slot_bytes),
        lines_per_slot_((slot_bytes + sizeof(Line) - 1) / sizeof(Line)),
        capacity_(capacity),
        line_(lines_per_slot_ * capacity) {
    assert(slot_bytes > 0 && capacity > 0);
  }

  std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t bytes() const noexcept { return line_.size() * sizeof(Line); }

  // Writer: the next slot to fill, or an empty span if the ring is full. It is the reader's only after publish().
  std::span<std::byte> try_claim() noexcept {
    const std::uint64_t written = written_.load(std::memory_order_relaxed);
    if (written - read_.load(std::memory_order_acquire) == capacity_) return {};
    return {at(written), slot_bytes_};
  }

  // Writer, after a successful try_claim().
  void publish() noexcept { written_.store(written_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  // Reader: the oldest slot, or an empty span if there is none. Valid until pop().
  std::span<const std::byte> front() noexcept {
    const std::uint64_t read = read_.load(std::memory_order_relaxed);
    if (written_.load(std::memory_order_acquire) == read) return {};
    return {at(read), slot_bytes_};
  }

  // Reader, after a non-empty front().
  void pop() noexcept { read_.store(read_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  std::byte* at(std::uint64_t count) noexcept { return line_[count % capacity_ * lines_per_slot_].bytes; }

  std::size_t slot_bytes_;
  std::size_t lines_per_slot_;
  std::size_t capacity_;                               // slots
  std::vector<Line> line_;                             // zeroed, so that its pages are there before the loop starts
  alignas(64) std::atomic<std::uint64_t> written_{0};  // slots since the start; writer's
  alignas(64) std::atomic<std::uint64_t> read_{0};     // slots since the start; reader's
};

// Writer: copies a value into the next slot; false if the ring is full. Slots must hold at least sizeof(T).
template <class T>
bool try_push(Ring& ring, const T& value) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::span<std::byte> slot = ring.try_claim();
  if (slot.empty()) return false;
  assert(slot.size() >= sizeof(T));
  std::memcpy(slot.data(), &value, sizeof(T));
  ring.publish();
  return true;
}

// Reader: moves the oldest slot into a value; false if there is none.
template <class T>
bool try_pop(Ring& ring, T& value) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::span<const std::byte> slot = ring.front();
  if (slot.empty()) return false;
  assert(slot.size() >= sizeof(T));
  std::memcpy(&value, slot.data(), sizeof(T));
  ring.pop();
  return true;
}

}  // namespace rigstep::rt
