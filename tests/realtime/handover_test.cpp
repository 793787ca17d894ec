// Meaningful under ThreadSanitizer; without it torn values still show.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "rt/histogram.h"
#include "rt/mailbox.h"
#include "rt/ring.h"

namespace rigstep::rt {
namespace {

// Large enough to be torn: every word carries the same number.
struct Block {
  std::array<std::uint64_t, 160> word{};
};

Block block_of(std::uint64_t number) {
  Block block;
  block.word.fill(number);
  return block;
}

bool is_whole(const Block& block) {
  for (const std::uint64_t word : block.word) {
    if (word != block.word[0]) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a mailbox between two threads hands over whole values, ever newer, and the last one for sure") {
  constexpr std::uint64_t kLast = 50'000;
  const auto mailbox = std::make_unique<Mailbox<Block>>();
  std::jthread writer([&] {
    for (std::uint64_t number = 1; number <= kLast; ++number) mailbox->publish(block_of(number));
  });

  Block block;
  std::uint64_t previous = 0;
  int torn = 0;
  int older = 0;
  while (previous != kLast) {
    if (!mailbox->take(block)) {
      std::this_thread::yield();
      continue;
    }
    torn += is_whole(block) ? 0 : 1;
    older += block.word[0] > previous ? 0 : 1;
    previous = block.word[0];
  }
  CHECK(torn == 0);
  CHECK(older == 0);
}

TEST_CASE("a ring between two threads loses, doubles and tears nothing") {
  constexpr std::uint64_t kLast = 50'000;
  Ring ring(sizeof(Block), 16);
  std::jthread writer([&] {
    for (std::uint64_t number = 1; number <= kLast; ++number) {
      const Block block = block_of(number);
      while (!try_push(ring, block)) std::this_thread::yield();
    }
  });

  Block block;
  std::uint64_t expected = 1;
  int wrong = 0;
  while (expected <= kLast) {
    if (!try_pop(ring, block)) {
      std::this_thread::yield();
      continue;
    }
    wrong += is_whole(block) && block.word[0] == expected ? 0 : 1;
    ++expected;
  }
  CHECK(wrong == 0);
  CHECK(ring.front().empty());
}

TEST_CASE("a writer that never waits loses only what the full ring refused") {
  constexpr std::uint64_t kLast = 50'000;
  Ring ring(sizeof(Block), 4);
  std::atomic<bool> done{false};
  std::uint64_t refused = 0;
  std::jthread writer([&] {
    for (std::uint64_t number = 1; number <= kLast; ++number) refused += try_push(ring, block_of(number)) ? 0 : 1;
    done.store(true, std::memory_order_release);
  });

  Block block;
  std::uint64_t received = 0;
  std::uint64_t previous = 0;
  int wrong = 0;
  while (true) {
    const bool last_look = done.load(std::memory_order_acquire);
    while (try_pop(ring, block)) {
      wrong += is_whole(block) && block.word[0] > previous ? 0 : 1;
      previous = block.word[0];
      ++received;
    }
    if (last_look) break;
    std::this_thread::yield();
  }
  CHECK(wrong == 0);
  CHECK(received + refused == kLast);
}

TEST_CASE("a histogram may be read while it is written, and in the end nothing is missing") {
  constexpr std::int64_t kValues = 200'000;
  const auto histogram = std::make_unique<Histogram>();
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    for (std::int64_t value = 0; value < kValues; ++value) histogram->record(value);
    done.store(true, std::memory_order_release);
  });

  std::uint64_t previous = 0;
  int wrong = 0;
  while (!done.load(std::memory_order_acquire)) {
    const std::uint64_t count = histogram->count();
    wrong += count >= previous && histogram->percentile(99.0) <= static_cast<std::uint64_t>(kValues) ? 0 : 1;
    previous = count;
    std::this_thread::yield();
  }
  CHECK(wrong == 0);
  CHECK(histogram->count() == static_cast<std::uint64_t>(kValues));
}

}  // namespace rigstep::rt
