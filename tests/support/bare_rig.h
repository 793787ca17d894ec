// A rig that sends what it is told to, right or wrong, and the keys of those who talk to a server.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio.hpp>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/key_file.h"
#include "tests/support/loopback_server.h"

namespace rigstep::server::loopback {

// Keys of a controller, an observer and an operator, in files as keygen writes them; the same for all tests.
class Keys {
 public:
  Keys() {
    char name[] = "/tmp/rigstep_loopback_XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    folder_ = name;
    wire::add_participant(file("rig.keys"), file("bench.key"), "bench", wire::KeyRole::controller);
    wire::add_participant(file("rig.keys"), file("screen.key"), "screen", wire::KeyRole::observer);
    wire::add_participant(file("rig.keys"), file("desk.key"), "desk", wire::KeyRole::operator_);
    wire::add_participant(file("other.keys"), file("other.key"), "other", wire::KeyRole::controller);
  }
  ~Keys() {
    for (const char* name : {"rig.keys", "bench.key", "screen.key", "desk.key", "other.keys", "other.key"})
      ::unlink(file(name).c_str());
    ::rmdir(folder_.c_str());
  }
  std::string file(const char* name) const { return folder_ + "/" + name; }
  // What a server knows, from a file.
  static LinkKeys of(const std::string& path, bool required) {
    return {std::make_shared<const wire::Secret<wire::KeyRing>>(wire::read_key_ring(path)), required};
  }
  LinkKeys required() const { return of(file("rig.keys"), true); }
  LinkKeys for_operators() const { return of(file("desk.key"), false); }

 private:
  std::string folder_;
};

inline const Keys& keys() {
  static const Keys made;
  return made;
}

// A socket that sends what it is told to. key_file: empty: without a key.
class BareRig {
 public:
  explicit BareRig(const Server& server, const std::string& key_file = {}) : server_(server) {
    if (!key_file.empty()) key_.emplace(wire::read_participant_key(key_file, wire::KeyRole::controller));
    socket_.connect({asio::ip::make_address("127.0.0.1"), server.port()});
    socket_.non_blocking(true);
  }

  void send_bytes(std::span<const std::byte> datagram) {
    const std::uint64_t before = server_.counters().received;
    socket_.send(asio::buffer(datagram.data(), datagram.size()));
    bytes_sent += datagram.size();
    REQUIRE(becomes_true([&] { return server_.counters().received > before; }, 5000ms));
  }
  // As fast as they are received.
  void send_many(std::span<const std::byte> datagram, int count) {
    constexpr int kAtOnce = 32;  // fit the socket's memory
    for (int sent = 0; sent < count; sent += kAtOnce) {
      const std::uint64_t before = server_.counters().received;
      const int now = std::min(kAtOnce, count - sent);
      for (int k = 0; k < now; ++k) socket_.send(asio::buffer(datagram.data(), datagram.size()));
      REQUIRE(becomes_true([&] { return server_.counters().received >= before + static_cast<std::uint64_t>(now); },
                           5000ms));
    }
  }
  std::vector<std::byte> sealed(const wire::FrameHeader& header, std::span<const std::byte> payload) const {
    std::array<std::byte, wire::kMaxDatagram> buffer;
    const auto datagram =
        wire::seal_frame(header, payload, header.session != 0 && keyed_ ? &keys_.rig_to_server : nullptr, buffer);
    return {datagram.begin(), datagram.end()};
  }
  // In the session, or outside of any.
  void send(std::span<const std::byte> payload) { send_bytes(sealed(end.next_header(stamp_ns), payload)); }
  void request(std::span<const std::byte> payload) { send_bytes(sealed({.sent_ns = 1000}, payload)); }

  void send_changed(std::uint64_t sequence, void (*change)(wire::RigToServer&)) {
    wire::RigToServer message;
    const auto bytes = codec.encode_input(sample(sequence));
    REQUIRE(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    change(message);
    const std::string changed = message.SerializeAsString();
    send(std::as_bytes(std::span(changed)));
  }
  void send_input(std::uint64_t sequence) { send(codec.encode_input(sample(sequence))); }

  // Waits for a datagram with this content.
  bool receives(wire::ServerToRig::ContentCase content, std::chrono::milliseconds limit = 2000ms) {
    return becomes_true(
        [&] {
          std::error_code error;
          const auto size = socket_.receive(asio::buffer(buffer_), 0, error);
          if (error) return false;
          bytes_received += size;
          received = {buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(size)};
          wire::FrameHeader header;
          if (wire::read_header(received, wire::Sender::rig, header) != DecodeStatus::ok) return false;
          const wire::Key* const key = header.session != 0 && keyed_ ? &keys_.server_to_rig : nullptr;
          const bool right =
              wire::open_frame(std::span(buffer_).first(size), wire::Sender::rig, key, frame) == DecodeStatus::ok;
          return right && codec.decode(frame.payload, 0, state) == DecodeStatus::ok &&
                 codec.message()->content_case() == content;
        },
        limit);
  }

  // --- the handshake, step by step
  void ask_for_cookie() {
    ++nonce;
    request(codec.encode_hello({.product_version = "1.2.3", .rig_name = "bare", .nonce = nonce}));
    REQUIRE(receives(wire::ServerToRig::kChallenge));
    cookie = codec.message()->challenge().cookie();
  }
  // The Hello with the cookie, proven where there is a key.
  std::vector<std::byte> hello_datagram(const std::string& name = "bare", wire::Role role = wire::CONTROLLER) {
    pair_ = wire::make_key_pair();
    const auto payload = codec.encode_hello({.product_version = "1.2.3",
                                             .rig_name = name,
                                             .role = role,
                                             .nonce = nonce,
                                             .cookie = cookie,
                                             .key_id = key_ ? &(*key_)->id : nullptr,
                                             .public_key = key_ ? &pair_.public_key : nullptr,
                                             .former_session = former_session,
                                             .token = token});
    std::array<std::byte, wire::kMaxDatagram> buffer;
    const wire::FrameHeader header{.sent_ns = 1000};
    const auto datagram = key_ ? wire::seal_proven_frame(header, payload, (*key_)->proof_key, buffer)
                               : wire::seal_frame(header, payload, nullptr, buffer);
    return {datagram.begin(), datagram.end()};
  }
  // After the Accept of this Hello.
  void derive(const std::vector<std::byte>& hello) {
    const wire::Accept accept = codec.message()->accept();
    CHECK(accept.nonce() == nonce);
    end = wire::SessionEnd(wire::Sender::rig, accept.session());
    keyed_ = key_.has_value();
    if (!keyed_) return;
    wire::PublicKey server{};
    REQUIRE(accept.public_key().size() == server.size());
    std::copy(accept.public_key().begin(), accept.public_key().end(), server.begin());
    REQUIRE(wire::derive_session_keys((*key_)->key, pair_.secret, server,
                                      std::span<const std::byte, wire::kMaxDatagram>(hello), accept.session(), server,
                                      keys_));
    CHECK(wire::is_proven(received, keys_.accept));
  }
  // Hello with what the challenge gave; then waits for `content`, kWelcome joins.
  bool hello(wire::ServerToRig::ContentCase content, const std::string& name = "bare",
             wire::Role role = wire::CONTROLLER) {
    ask_for_cookie();
    const auto said = hello_datagram(name, role);
    send_bytes(said);
    if (content != wire::ServerToRig::kWelcome) return receives(content);
    if (!receives(wire::ServerToRig::kAccept)) return false;
    derive(said);
    send(codec.encode_join());
    return receives(content);
  }
  void connect(const std::string& name = "bare", wire::Role role = wire::CONTROLLER) {
    REQUIRE(hello(wire::ServerToRig::kWelcome, name, role));
    welcome = codec.message()->welcome();
    token = welcome.token();
    codec.start(welcome);
  }
  bool refusal_is_proven() const { return key_ && wire::is_proven(received, (*key_)->proof_key); }
  const std::optional<wire::Secret<wire::ParticipantKey>>& key() const { return key_; }
  void forget_session_keys() { keyed_ = false; }

  static InputSample sample(std::uint64_t sequence) {
    InputSample made;
    made.sequence = sequence;
    made.inputs.count = 1;
    made.inputs.value[0] = 4.0;
    return made;
  }

  wire::RigCodec codec;
  wire::SessionEnd end;
  wire::Frame frame;
  std::vector<std::byte> received;  // the last datagram, as it came
  wire::Welcome welcome;
  Snapshot state;
  std::uint64_t nonce = 100;
  std::string cookie, token;
  std::uint64_t former_session = 0;
  std::int64_t stamp_ns = 1000;  // of what it sends in its session
  std::size_t bytes_sent = 0, bytes_received = 0;

 private:
  const Server& server_;
  std::optional<wire::Secret<wire::ParticipantKey>> key_;
  wire::KeyPair pair_;
  wire::SessionKeys keys_;
  bool keyed_ = false;  // the session has keys
  asio::io_context context_;
  asio::ip::udp::socket socket_{context_, asio::ip::udp::v4()};
  std::array<std::byte, 2048> buffer_{};
};

}  // namespace rigstep::server::loopback
