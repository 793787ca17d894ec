#include "proto/frame.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace rigstep::wire {
namespace {

constexpr std::int64_t kMs = 1'000'000;  // [ns]

Key key(std::uint8_t first) {
  Key made{};
  made[0] = first;
  return made;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> sealed(const FrameHeader& header, const std::string& text, const std::optional<Key>& with) {
  std::array<std::byte, kMaxDatagram> buffer{};
  const auto datagram = seal_frame(header, bytes_of(text), with ? &*with : nullptr, buffer);
  return {datagram.begin(), datagram.end()};
}

DecodeStatus opened(std::vector<std::byte> datagram, const std::optional<Key>& with, Sender reader = Sender::server) {
  Frame frame;
  return open_frame(datagram, reader, with ? &*with : nullptr, frame);
}

TEST_CASE("a frame arrives as it was sealed, with a key and without") {
  const FrameHeader header{.sender = Sender::rig,
                           .session = 0x0123456789ABCDEFull,
                           .number = ~0ull,
                           .sent_ns = -5,
                           .echo_sent_ns = 1'000'000'007,
                           .echo_came_ns = 42};
  for (const std::optional<Key>& with : {std::optional<Key>(), std::optional<Key>(key(1))}) {
    auto datagram = sealed(header, "payload", with);
    REQUIRE(datagram.size() == kFrameHeaderBytes + 7 + kTagBytes);
    Frame frame;
    REQUIRE(open_frame(datagram, Sender::server, with ? &*with : nullptr, frame) == DecodeStatus::ok);
    CHECK(frame.header.session == header.session);
    CHECK(frame.header.number == header.number);
    CHECK(frame.header.sent_ns == header.sent_ns);
    CHECK(frame.header.echo_sent_ns == header.echo_sent_ns);
    CHECK(frame.header.echo_came_ns == header.echo_came_ns);
    CHECK(std::string(reinterpret_cast<const char*>(frame.payload.data()), frame.payload.size()) == "payload");
  }
}

TEST_CASE("the layout and the checksum are those of the contract, computed elsewhere") {
  // Python: data = struct.pack("<2sBBQQqqq", b"RS", 3, ord("r"), 3, 4, 5, 6, 7) + b"abc"
  const auto datagram =
      sealed({.sender = Sender::rig, .session = 3, .number = 4, .sent_ns = 5, .echo_sent_ns = 6, .echo_came_ns = 7},
             "abc", {});
  std::string hex;
  for (const std::byte byte : std::span(datagram).last(kTagBytes)) {
    const char* digits = "0123456789abcdef";
    hex += digits[std::to_integer<int>(byte) / 16];
    hex += digits[std::to_integer<int>(byte) % 16];
  }
  // (zlib.crc32(data).to_bytes(4, "little") + bytes(12)).hex(); with a key: handshake_test.cpp
  CHECK(hex == "bc2ae0f0000000000000000000000000");
}

TEST_CASE("the header says for whom a datagram is before anything of it is proven") {
  const auto datagram = sealed({.sender = Sender::rig, .session = 9, .number = 3}, "x", key(1));
  FrameHeader header;
  REQUIRE(read_header(datagram, Sender::server, header) == DecodeStatus::ok);
  CHECK(header.session == 9);
  CHECK(header.number == 3);
  CHECK(read_header(datagram, Sender::rig, header) == DecodeStatus::malformed);
  CHECK(read_header(std::span(datagram).first(59), Sender::server, header) == DecodeStatus::wrong_size);
}

TEST_CASE("every flipped bit of a frame is found, with a key and without") {
  for (const std::optional<Key>& with : {std::optional<Key>(), std::optional<Key>(key(1))}) {
    const auto good = sealed({.session = 9, .number = 1}, "some inputs", with);
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      auto flipped = good;
      flipped[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
      CHECK(opened(flipped, with) != DecodeStatus::ok);
    }
    for (std::size_t size = 0; size < good.size(); ++size)
      CHECK(opened({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}, with) != DecodeStatus::ok);
  }
}

TEST_CASE("a wrong key, a missing key and a key too many are failures of authentication") {
  const auto with_key = sealed({.session = 9, .number = 1}, "x", key(1));
  CHECK(opened(with_key, key(1)) == DecodeStatus::ok);
  CHECK(opened(with_key, key(2)) == DecodeStatus::authentication);
  CHECK(opened(with_key, std::nullopt) == DecodeStatus::authentication);
  CHECK(opened(sealed({.session = 9, .number = 1}, "x", {}), key(1)) == DecodeStatus::authentication);
}

TEST_CASE("what a side has sent cannot be thrown back at it") {
  const auto from_rig = sealed({.sender = Sender::rig, .session = 9, .number = 1}, "x", key(1));
  CHECK(opened(from_rig, key(1), Sender::server) == DecodeStatus::ok);
  CHECK(opened(from_rig, key(1), Sender::rig) == DecodeStatus::malformed);
}

TEST_CASE("sizes, other protocols and other versions have names of their own") {
  CHECK(opened(std::vector<std::byte>(kMaxDatagram + 1), {}) == DecodeStatus::wrong_size);
  CHECK(opened(std::vector<std::byte>(kFrameHeaderBytes + kTagBytes - 1), {}) == DecodeStatus::wrong_size);
  CHECK(opened({}, {}) == DecodeStatus::wrong_size);
  CHECK(opened(std::vector<std::byte>(100), {}) == DecodeStatus::malformed);
  CHECK(sealed({}, std::string(kMaxPayload, 'x'), {}).size() == kMaxDatagram);
}

TEST_CASE("the replay window lets each number through once, in any order within its reach") {
  ReplayWindow window;
  CHECK_FALSE(window.take(0));
  CHECK(window.take(1));
  CHECK_FALSE(window.take(1));
  CHECK(window.take(5));
  for (const std::uint64_t late : {3, 2, 4}) {
    CHECK(window.take(late));
    CHECK_FALSE(window.take(late));
  }
  CHECK(window.take(2000));
  CHECK_FALSE(window.take(2000 - 1024));
  CHECK(window.take(2000 - 1023));
  CHECK_FALSE(window.take(5));
  CHECK(window.take(~0ull - 1024));
  CHECK_FALSE(window.take(2001));
}

TEST_CASE("the replay window agrees with a list of all numbers under heavy reordering") {
  std::mt19937 random(3);
  ReplayWindow window;
  std::vector<bool> seen(200'000);
  std::uint64_t newest = 0;
  for (int k = 0; k < 100'000; ++k) {
    const std::uint64_t base = static_cast<std::uint64_t>(k);
    const std::uint64_t number = 1 + base + random() % 1500;
    const bool expected = !seen[number] && number + 1024 > newest;
    REQUIRE(window.take(number) == expected);
    if (expected) seen[number] = true;
    newest = std::max(newest, expected ? number : newest);
  }
}

TEST_CASE("a session refuses another session and replays, and numbers what it sends") {
  SessionEnd rig(Sender::rig, 7), server(Sender::server, 7), other(Sender::rig, 8);
  const FrameHeader first = rig.next_header(100);
  CHECK(first.number == 1);
  CHECK(first.echo_sent_ns == 0);
  CHECK(server.accept(first, 5000) == DecodeStatus::ok);
  CHECK(server.accept(first, 5001) == DecodeStatus::replayed);
  CHECK(server.accept(other.next_header(100), 5002) == DecodeStatus::wrong_session);
  const FrameHeader answer = server.next_header(5100);
  CHECK(answer.sender == Sender::server);
  CHECK(answer.number == 1);
  CHECK(answer.echo_sent_ns == 100);
  CHECK(answer.echo_came_ns == 5000);
  CHECK(rig.next_header(101).number == 2);
}

TEST_CASE("stamps of both sides give the offset of the clocks within its uncertainty, also on uneven ways") {
  constexpr std::int64_t kOffset = -3'000'000'000;  // the server's clock minus the rig's
  std::mt19937 random(5);
  ClockOffset clock;
  for (std::int64_t now = 0; now < 5000 * kMs; now += kMs) {
    const std::int64_t there = 50'000 + random() % 400'000, back = 150'000 + random() % 4'000'000;
    const std::int64_t held = random() % 900'000;
    clock.add(now, now + there + kOffset, now + there + held + kOffset, now + there + held + back);
  }
  const auto estimate = clock.estimate(5000 * kMs);
  REQUIRE(estimate);
  CHECK(std::abs(estimate->offset_ns - kOffset) <= estimate->uncertainty_ns);
  // the best exchange has hardly more than the shortest ways; drift of at most 5 s comes on top
  CHECK(estimate->uncertainty_ns < 200'000 + 500'000);
  CHECK(estimate->round_trip_ns >= 200'000);
}

TEST_CASE("an old exchange counts less and less, and is forgotten") {
  ClockOffset clock;
  clock.add(0, 500, 500, 1000);  // round trip 1 us
  CHECK(clock.estimate(1000)->uncertainty_ns == 500);
  CHECK(clock.estimate(1000 + 1'000'000'000)->uncertainty_ns == 500 + 100'000);
  // worse, but after 9 s the better one
  clock.add(9'000'000'000, 9'000'050'000, 9'000'050'000, 9'000'100'000);
  CHECK(clock.estimate(9'000'100'000)->round_trip_ns == 100'000);
}

TEST_CASE("impossible stamps are left out") {
  ClockOffset clock;
  clock.add(10, 5, 5, 9);                         // came before it was sent
  clock.add(0, 10, 5, 20);                        // answered before it came
  clock.add(0, 0, 100, 50);                       // held for longer than the whole exchange
  clock.add(INT64_MIN, INT64_MAX, INT64_MAX, 0);  // beyond any clock
  CHECK_FALSE(clock.estimate(100));
}

TEST_CASE(
    "how long a datagram can have taken at most is known whoever holds it back, within what exchanges have shown") {
  constexpr std::int64_t kOffset = 7'000'000'000;  // the rig's clock minus the server's
  ClockOffset clock;
  CHECK_FALSE(clock.longest_delay_ns(kOffset, 0));
  for (std::int64_t held : {0, 30}) {  // held back on its way to us, always by as much
    ClockOffset shown;
    for (std::int64_t now = 0; now < 100 * kMs; now += kMs)
      shown.add(now, now + kMs + kOffset, now + kMs + kOffset, now + 2 * kMs + held * kMs);
    const auto delay = shown.longest_delay_ns(100 * kMs + kOffset, (101 + held) * kMs);
    REQUIRE(delay);
    CHECK(*delay >= (1 + held) * kMs);            // the truth
    CHECK(*delay <= (1 + held) * kMs + 2 * kMs);  // and the way there, which may have been none
  }
}

TEST_CASE("a clock that was set is noticed by an exchange that no delay explains") {
  ClockOffset clock;
  clock.add(0, 500, 500, 1000);
  clock.add(kMs, kMs + 500 + 400 * kMs, kMs + 500 + 400 * kMs, kMs + 100'000);  // slower, and 400 ms off
  CHECK(std::abs(clock.estimate(2 * kMs)->offset_ns - 400 * kMs) < 100'000);
}

TEST_CASE("every decode status has a name of its own") {
  for (std::size_t i = 0; i < kDecodeStatusCount; ++i) {
    const std::string name = to_string(static_cast<DecodeStatus>(i));
    CHECK(name != "unknown");
    for (std::size_t j = 0; j < i; ++j) CHECK(name != to_string(static_cast<DecodeStatus>(j)));
  }
  CHECK(std::string(to_string(static_cast<DecodeStatus>(kDecodeStatusCount))) == "unknown");
}

}  // namespace
}  // namespace rigstep::wire
