// The UDP side of Rigstep: receives inputs, answers rigs and sends states. Owned by the session, made at load (the
// constructor binds). Contract of the bytes: proto/wire.proto.
//
// Where the server paces, that is a network thread of its own, between start() and stop(): it meets the loop thread
// only in the two mailboxes, in wake_fd() and in the hooks. In lockstep it is the loop thread, in serve_lockstep():
// what a datagram asks for is stepped and answered without a hand-off, everything else is served between the steps.
//
// One controller, several observers: who has joined as a controller is in control until it says Goodbye or is silent
// for the time-out. A rig that was restarted takes its own place with its key or the secret of its session, once that
// has been silent for a tenth of the time-out. Every datagram is hostile until its frame was checked.
//
// The parts: udp_sockets (who is heard first), participants (who has a session), sessions (inputs and states), requests
// (everything outside a session), live_status (the report), outgoing (frames around what is sent).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "core/mechanism/signals.h"
#include "proto/codec.h"
#include "rt/deadline_loop.h"
#include "rt/histogram.h"
#include "rt/mailbox.h"
#include "server/link/counters.h"
#include "server/link/hooks.h"
#include "server/link/live_status.h"
#include "server/link/outgoing.h"
#include "server/link/participants.h"
#include "server/link/requests.h"
#include "server/link/sessions.h"
#include "server/link/udp_sockets.h"
#include "server/network_error.h"

namespace rigstep::server {

inline constexpr std::uint16_t kDefaultPort = 47001;

struct UdpOptions {
  std::string address = "127.0.0.1";  // numeric address of this machine to bind to
  std::uint16_t port = kDefaultPort;  // 0: any free one, see local_port()
  LinkKeys keys = {};
  bool allow_unauthenticated = false;  // to bind to more than loopback without a key
  std::uint32_t timeout_steps = 2000;  // after which a silent participant is dropped
  // Inputs that may be older than this when they come are refused, where the server paces; 0: none are.
  std::uint32_t max_input_delay_ms = 0;
  // Where the address was read, for messages; asked for only when there is one.
  std::function<std::string()> place = [] { return std::string("link.address"); };
};

class UdpEndpoint {
 public:
  // Binds. codec and mailboxes outlive the endpoint; the network thread is the codec's only user, the writer of
  // `inputs` and the reader of `snapshots`.
  // Throws config::ConfigError for an address that is none, or that needs a key; NetworkError where binding fails.
  UdpEndpoint(const UdpOptions& options, wire::ServerCodec& codec, rt::Mailbox<InputSample>& inputs,
              rt::Mailbox<Snapshot>& snapshots, UdpHooks hooks);
  ~UdpEndpoint();
  UdpEndpoint(const UdpEndpoint&) = delete;
  UdpEndpoint& operator=(const UdpEndpoint&) = delete;

  // start() and stop() belong to one thread. stop() says Goodbye to everybody and ends the network thread; it does
  // nothing when that is not running. In lockstep it lets serve_lockstep() do so and return, within 0.1 s.
  void start();
  void stop();
  // On the loop thread, instead of start(). In steady state it allocates nothing, and makes two system calls a step,
  // and one more for each other participant and for the strangers every 5 ms.
  void serve_lockstep(const Lockstep& lockstep, rt::BusyPoll busy_poll);

  // From another thread than the link's: keys that hold from now on. Sessions of keys that are gone end.
  void offer_keys(std::shared_ptr<const wire::Secret<wire::KeyRing>> ring);
  // False: the system did not lock the memory of the keys. Before start().
  bool keys_locked() const noexcept { return keys_.ring->locked() && participants_.keys_locked(); }

  // Eventfd. The loop thread writes the 8 bytes of an std::uint64_t 1 after it has published a Snapshot; never blocks.
  int wake_fd() const noexcept { return wake_fd_; }
  std::uint16_t local_port() const noexcept { return sockets_.local_port(); }
  UdpCounters counters() const noexcept;  // any thread, any time
  // From the answer of the loop to the waking of the network thread; nothing in lockstep.
  const rt::Histogram& hand_off_ns() const noexcept { return sessions_.hand_off_ns(); }
  // From the deadline, in lockstep the arrival of the datagram, until the controller's datagram was given to the
  // system. Skipped deadlines count, too: see record_with_skipped().
  const rt::Histogram& reply_ns() const noexcept { return sessions_.reply_ns(); }

 private:
  void bind(const UdpOptions& options);
  void run();
  void wait();
  bool receive_from_controller(rt::BusyPoll& busy_poll);
  void handle(const Arrival& arrival);
  void take_offered_keys();
  void end();

  const UdpHooks hooks_;
  const std::int64_t timeout_ns_;

  int wake_fd_ = -1;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  LinkCounters counters_;

  using OfferedKeys = std::shared_ptr<const wire::Secret<wire::KeyRing>>;
  std::atomic<OfferedKeys*> offered_keys_{nullptr}, retired_keys_{nullptr};  // made and freed by who offers

  // network thread only, in lockstep the loop thread
  LinkKeys keys_;
  UdpSockets sockets_;
  Participants participants_;
  Outgoing outgoing_;
  Sessions sessions_;
  LiveStatus status_;
  Requests requests_;
  const UdpSockets::Handler handle_ = [this](const Arrival& arrival) { handle(arrival); };
};

}  // namespace rigstep::server
