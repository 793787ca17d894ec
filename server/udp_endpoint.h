// The UDP side of Rigstep: one socket and one network thread that receives inputs, answers rigs and sends states.
// Owned by the session, made at load (the constructor binds), running between start() and stop(). It meets the loop
// thread only in the two mailboxes and in wake_fd(). Contract of the bytes: proto/wire.proto.
//
// One rig at a time: the address that said Hello is in control until it says Goodbye or is silent for kRigTimeout.
#pragma once

#include <array>
#include <asio.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "core/mechanism/signals.h"
#include "proto/codec.h"
#include "rt/mailbox.h"

namespace rigstep::server {

inline constexpr std::uint16_t kDefaultPort = 47001;
inline constexpr std::chrono::seconds kRigTimeout{2};

// The network does not do what was asked for: address, port, or nobody there.
struct NetworkError : Error {
  using Error::Error;
};

struct UdpOptions {
  std::string address = "127.0.0.1";  // numeric address of this machine to bind to
  std::uint16_t port = kDefaultPort;  // 0: any free one, see local_port()
};

// What became of every datagram received: received = accepted + unknown_source + second_rig + sum of dropped.
struct UdpCounters {
  std::uint64_t received = 0;
  std::uint64_t accepted = 0;                                     // acted on
  std::uint64_t unknown_source = 0;                               // not from the connected rig, and no Hello
  std::uint64_t second_rig = 0;                                   // Hello refused because another rig is connected
  std::array<std::uint64_t, wire::kDecodeStatusCount> dropped{};  // by DecodeStatus; [ok] stays 0
  std::uint64_t sent = 0;
  std::uint64_t overtaken = 0;    // states replaced by a newer one before the network thread came to send them
  std::uint64_t send_errors = 0;  // datagrams the system did not take
};

// For the log. Names are printable and short.
struct RigEvent {
  enum class Kind { connected, left, timed_out };
  Kind kind = Kind::connected;
  std::string rig_name;
  std::string product_version;  // of the rig's software
  std::string address;          // "10.0.0.7:40112"
};

class UdpEndpoint {
 public:
  using EventHandler = std::function<void(const RigEvent&)>;

  // Binds. codec and mailboxes outlive the endpoint; the network thread is the codec's only user, the writer of
  // `inputs` and the reader of `snapshots`. on_event is called on the network thread.
  // Throws wire::ConfigError for an address that is none, NetworkError where binding fails.
  UdpEndpoint(const UdpOptions& options, wire::ServerCodec& codec, rt::Mailbox<InputSample>& inputs,
              rt::Mailbox<Snapshot>& snapshots, EventHandler on_event);
  ~UdpEndpoint();
  UdpEndpoint(const UdpEndpoint&) = delete;
  UdpEndpoint& operator=(const UdpEndpoint&) = delete;

  // start() and stop() belong to one thread. stop() says Goodbye to the rig and ends the network thread; it does
  // nothing when that is not running.
  void start();
  void stop();

  // Eventfd. The loop thread writes the 8 bytes of an std::uint64_t 1 after it has published a Snapshot; never blocks.
  int wake_fd() const noexcept { return wake_fd_; }
  std::uint16_t local_port() const noexcept { return local_port_; }
  UdpCounters counters() const noexcept;  // any thread, any time

 private:
  using Endpoint = asio::ip::udp::endpoint;
  using Clock = std::chrono::steady_clock;

  struct Rig {
    Endpoint endpoint;
    std::string name;
    std::string product_version;
    std::uint64_t last_sequence = 0;
    Clock::time_point last_heard;
  };

  void bind(const UdpOptions& options);
  void run();
  void wait();
  void send_newest_state();
  void receive_waiting();
  void handle(std::span<const std::byte> datagram, const Endpoint& sender);
  void handle_hello(wire::DecodeStatus status, const Endpoint& sender);
  void handle_content();
  void drop_silent_rig();
  void forget_rig(RigEvent::Kind how);
  void emit(RigEvent::Kind kind);
  void send(std::span<const std::byte> datagram, const Endpoint& receiver);

  struct AtomicCounters {
    std::atomic<std::uint64_t> received{0}, accepted{0}, unknown_source{0}, second_rig{0}, sent{0}, overtaken{0},
        send_errors{0};
    std::array<std::atomic<std::uint64_t>, wire::kDecodeStatusCount> dropped{};
  };

  wire::ServerCodec& codec_;
  rt::Mailbox<InputSample>& inputs_;
  rt::Mailbox<Snapshot>& snapshots_;
  EventHandler on_event_;

  asio::io_context context_;  // carries the socket only; nothing asynchronous runs on it
  asio::ip::udp::socket socket_{context_};
  int wake_fd_ = -1;
  std::uint16_t local_port_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  AtomicCounters counters_;

  // network thread only
  std::optional<Rig> rig_;
  wire::RigRequest request_;
  Snapshot snapshot_;
  std::array<std::byte, 2048> receive_buffer_{};
};

}  // namespace rigstep::server
