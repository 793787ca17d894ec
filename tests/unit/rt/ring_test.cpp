#include "rt/ring.h"

#include <doctest/doctest.h>

#include <cstdint>

namespace rigstep::rt {

TEST_CASE("a ring gives back what was put in, in order, over many turns") {
  Ring ring(sizeof(int), 3);
  int expected = 0;
  int value = -1;
  for (int next = 0; next < 1000; next += 2) {
    REQUIRE(try_push(ring, next));
    REQUIRE(try_push(ring, next + 1));
    while (try_pop(ring, value)) REQUIRE(value == expected++);
  }
  CHECK(expected == 1000);
}

TEST_CASE("a full ring refuses, keeps what it has, and takes again once there is room") {
  Ring ring(sizeof(int), 2);
  CHECK(try_push(ring, 1));
  CHECK(try_push(ring, 2));
  CHECK(ring.try_claim().empty());
  CHECK_FALSE(try_push(ring, 3));
  int value = 0;
  CHECK(try_pop(ring, value));
  CHECK(value == 1);
  CHECK(try_push(ring, 4));
  CHECK(try_pop(ring, value));
  CHECK(value == 2);
  CHECK(try_pop(ring, value));
  CHECK(value == 4);
  CHECK_FALSE(try_pop(ring, value));
}

TEST_CASE("a claimed slot is not seen before it is published") {
  Ring ring(8, 1);
  REQUIRE(ring.try_claim().size() == 8);
  CHECK(ring.front().empty());
  ring.publish();
  CHECK(ring.front().size() == 8);
}

TEST_CASE("the front stays until it is popped") {
  Ring ring(sizeof(int), 2);
  try_push(ring, 5);
  CHECK(ring.front().data() == ring.front().data());
  ring.pop();
  CHECK(ring.front().empty());
}

TEST_CASE("slots have the size asked for, start on cache lines and do not overlap") {
  constexpr std::size_t kBytes = 100;
  Ring ring(kBytes, 4);
  for (int slot = 0; slot < 4; ++slot) {
    const std::span<std::byte> claimed = ring.try_claim();
    REQUIRE(claimed.size() == kBytes);
    CHECK(reinterpret_cast<std::uintptr_t>(claimed.data()) % 64 == 0);
    for (std::byte& byte : claimed) byte = static_cast<std::byte>(slot);
    ring.publish();
  }
  for (int slot = 0; slot < 4; ++slot) {
    const std::span<const std::byte> front = ring.front();
    REQUIRE(front.size() == kBytes);
    for (const std::byte byte : front) REQUIRE(byte == static_cast<std::byte>(slot));
    ring.pop();
  }
}

}  // namespace rigstep::rt
