// The UDP side of Rigstep: one socket and one thread that receives inputs, answers rigs and sends states. Owned by the
// session, made at load (the constructor binds). Contract of the bytes: proto/wire.proto.
//
// Where the server paces, that is a network thread of its own, between start() and stop(): it meets the loop thread
// only in the two mailboxes, in wake_fd() and in the hooks. In lockstep it is the loop thread, in serve_lockstep():
// what a datagram asks for is stepped and answered without a hand-off, everything else is served between the steps.
//
// One controller, several observers: the address that said Hello as a controller is in control until it says Goodbye or
// is silent for the time-out. A rig that was restarted (same name and machine, its old session silent for a tenth of
// the time-out) takes its own place. Every datagram is hostile until its frame was checked.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio.hpp>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/mechanism/signals.h"
#include "proto/codec.h"
#include "rt/deadline_loop.h"
#include "rt/histogram.h"
#include "rt/mailbox.h"
#include "server/network_error.h"

namespace rigstep::server {

inline constexpr std::uint16_t kDefaultPort = 47001;
inline constexpr std::size_t kMaxObservers = 8;
inline constexpr std::int64_t kAnswersPerSecond = 500;  // to addresses that are not proven
inline constexpr std::int64_t kAnswersAtOnce = 100;
inline constexpr std::int64_t kCookieAgeNs = 2'000'000'000;  // a cookie is worth something for one to two of these

struct UdpOptions {
  std::string address = "127.0.0.1";   // numeric address of this machine to bind to
  std::uint16_t port = kDefaultPort;   // 0: any free one, see local_port()
  std::optional<wire::Key> key = {};   // absent: datagrams are not authenticated
  bool allow_unauthenticated = false;  // to bind to more than loopback without a key
  std::uint32_t timeout_steps = 2000;  // after which a silent participant is dropped
  // Where the address was read, for messages; asked for only when there is one.
  std::function<std::string()> place = [] { return std::string("link.address"); };
};

// What became of every datagram received: received = accepted + sum of dropped.
struct UdpCounters {
  std::uint64_t received = 0;
  std::uint64_t accepted = 0;                                     // acted on
  std::array<std::uint64_t, wire::kDecodeStatusCount> dropped{};  // by DecodeStatus; [ok] stays 0
  std::uint64_t sent = 0;
  std::uint64_t overtaken = 0;        // states replaced by a newer one before the network thread came to send them
  std::uint64_t send_errors = 0;      // datagrams the system did not take
  std::uint64_t queue_overflows = 0;  // dropped by the system: its queue was full, or a checksum wrong
};

// For the log. Names are printable and short.
struct RigEvent {
  enum class Kind { connected, reconnected, left, timed_out, reset_fault, black_box };
  Kind kind = Kind::connected;
  bool observer = false;
  std::string rig_name = {};         // empty for reset_fault and black_box
  std::string product_version = {};  // of the rig's software
  std::string address = {};          // "10.0.0.7:40112"
};

// What steps in lockstep. All outlive serve_lockstep().
struct Lockstep {
  // Makes one step with the newest of `inputs`, or says in `answer` why not. Must not throw.
  std::function<void(const rt::TickTiming&)> step;
  std::function<void()> keep;  // records it, after the answer was sent
  const Snapshot& answer;      // of the last step
};

// Called on the network thread, in lockstep the loop thread; absent: nothing to tell, nobody to ask.
struct UdpHooks {
  std::function<void(const RigEvent&)> on_event = {};
  std::function<void(wire::StatusReport&)> describe_loop = {};  // fills in what the loop knows; at most every 100 ms
  std::function<void(std::uint32_t)> reset_fault = {};          // with the number of the fault to clear
  // Has a black box written unless more than so many were; false: none is kept.
  std::function<bool(std::uint32_t)> write_black_box = {};
};

// A token bucket: a flood of requests must not keep the thread busy answering.
class AnswerBudget {
 public:
  // False: no answer to what came at `now_ns`.
  bool take(std::int64_t now_ns) noexcept {
    constexpr std::int64_t kGapNs = 1'000'000'000 / kAnswersPerSecond;
    spent_until_ns_ = std::max(spent_until_ns_, now_ns - kAnswersAtOnce * kGapNs);
    if (spent_until_ns_ + kGapNs > now_ns) return false;
    spent_until_ns_ += kGapNs;
    return true;
  }

 private:
  std::int64_t spent_until_ns_ = std::numeric_limits<std::int64_t>::min();
};

class UdpEndpoint {
 public:
  // Binds. codec and mailboxes outlive the endpoint; the network thread is the codec's only user, the writer of
  // `inputs` and the reader of `snapshots`.
  // Throws wire::ConfigError for an address that is none, or that needs a key; NetworkError where binding fails.
  UdpEndpoint(const UdpOptions& options, wire::ServerCodec& codec, rt::Mailbox<InputSample>& inputs,
              rt::Mailbox<Snapshot>& snapshots, UdpHooks hooks);
  ~UdpEndpoint();
  UdpEndpoint(const UdpEndpoint&) = delete;
  UdpEndpoint& operator=(const UdpEndpoint&) = delete;

  // start() and stop() belong to one thread. stop() says Goodbye to everybody and ends the network thread; it does
  // nothing when that is not running. In lockstep it lets serve_lockstep() do so and return, within 0.1 s.
  void start();
  void stop();
  // On the loop thread, instead of start(). In steady state it allocates nothing, and makes two system calls a step.
  void serve_lockstep(const Lockstep& lockstep, rt::BusyPoll busy_poll);

  // Eventfd. The loop thread writes the 8 bytes of an std::uint64_t 1 after it has published a Snapshot; never blocks.
  int wake_fd() const noexcept { return wake_fd_; }
  std::uint16_t local_port() const noexcept { return local_port_; }
  UdpCounters counters() const noexcept;  // any thread, any time
  // From the answer of the loop to the waking of the network thread; nothing in lockstep.
  const rt::Histogram& hand_off_ns() const noexcept { return hand_off_ns_; }
  // From the deadline, in lockstep the arrival of the datagram, until the controller's datagram was given to the
  // system. Skipped deadlines count, too: see record_with_skipped().
  const rt::Histogram& reply_ns() const noexcept { return reply_ns_; }

 private:
  using Endpoint = asio::ip::udp::endpoint;

  // A rig or observer with a session.
  struct Participant {
    Endpoint endpoint;
    std::string name;
    std::string product_version;
    wire::Role role = wire::CONTROLLER;
    std::uint64_t nonce = 0;  // of its Hello
    wire::SessionEnd end;
    std::uint64_t last_sequence = 0;
    std::int64_t last_heard_ns = 0;
  };

  void bind(const UdpOptions& options);
  void run();
  void wait();
  void send_newest_state();
  void send_state();
  void receive_waiting();
  bool receive(int flags);
  bool receive_in_lockstep(rt::BusyPoll& busy_poll);
  void end_sessions();

  void handle(std::span<const std::byte> datagram, const Endpoint& sender);
  wire::DecodeStatus handle_in_session(const wire::Frame& frame, const Endpoint& sender);
  wire::DecodeStatus handle_content(Participant& participant);
  wire::DecodeStatus handle_input(Participant& participant);
  wire::DecodeStatus step_if_due(Participant& participant);
  wire::DecodeStatus handle_request(const wire::Frame& frame, const Endpoint& sender);
  wire::DecodeStatus handle_hello(const wire::FrameHeader& header, const Endpoint& sender);
  wire::DecodeStatus handle_command(const wire::FrameHeader& header, const Endpoint& sender);
  void refuse_unauthenticated(const Endpoint& sender);
  void refuse_version(const wire::Frame& frame, const Endpoint& sender);

  Participant* find(const Endpoint& sender);
  Participant* controller();
  std::size_t observers() const;
  bool is_restarted(const Participant& old, const Endpoint& sender) const;
  void admit(const Endpoint& sender);
  void remove(Participant& participant, RigEvent::Kind how);
  void drop_silent();
  void emit(RigEvent::Kind kind, const Participant& participant);

  std::array<std::uint8_t, wire::kCookieBytes> cookie_for(const Endpoint& sender, std::uint64_t nonce,
                                                          const wire::Key& secret) const;
  bool proven(const Endpoint& sender) const;
  void renew_secret();
  void age_secret();

  void welcome(Participant& participant);
  wire::StatusReport status_report();
  wire::Participant describe(const Participant& participant) const;
  void send(std::span<const std::byte> payload, Participant& receiver);
  void answer(std::span<const std::byte> payload, const wire::FrameHeader& request, const Endpoint& receiver);
  void send_datagram(std::span<const std::byte> datagram, const Endpoint& receiver);

  struct AtomicCounters {
    std::atomic<std::uint64_t> received{0}, accepted{0}, sent{0}, overtaken{0}, send_errors{0};
    std::array<std::atomic<std::uint64_t>, wire::kDecodeStatusCount> dropped{};
  };

  wire::ServerCodec& codec_;
  rt::Mailbox<InputSample>& inputs_;
  rt::Mailbox<Snapshot>& snapshots_;
  const UdpHooks hooks_;
  const std::optional<wire::Key> key_;
  const std::uint32_t timeout_steps_;
  const std::int64_t timeout_ns_;

  asio::io_context context_;                        // carries the socket only; nothing asynchronous runs on it
  mutable asio::ip::udp::socket socket_{context_};  // mutable: asio tells the descriptor of no other
  int wake_fd_ = -1;
  std::uint16_t local_port_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  AtomicCounters counters_;

  rt::Histogram hand_off_ns_, reply_ns_;

  // network thread only, in lockstep the loop thread
  const Lockstep* lockstep_ = nullptr;  // while in serve_lockstep()
  std::vector<Participant> participants_;
  wire::Key secret_{}, last_secret_{};  // of the cookies; renewed whenever one was used, and with time
  std::int64_t secret_since_ns_ = 0;
  wire::RigRequest request_;
  wire::StatusReport status_;
  std::int64_t status_at_ns_ = 0;
  std::int64_t now_ns_ = 0;  // when the datagram in hand came
  AnswerBudget answers_;     // to those who have the key, where there is one
  AnswerBudget hints_;       // to the others: their flood is no reason to keep silent to the former
  Snapshot snapshot_;
  std::array<std::byte, 2048> receive_buffer_{};
  std::array<std::byte, wire::kMaxDatagram> send_buffer_{};
};

}  // namespace rigstep::server
