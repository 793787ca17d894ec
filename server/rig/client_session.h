// The beginning of a session from a rig's or an operator's end: handshake, Join, and requests that are repeated until
// they are answered. Owned and used by one thread; blocks. Contract: proto/README.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "proto/codec.h"
#include "proto/key_file.h"
#include "proto/secret.h"
#include "server/rig/client_socket.h"
#include "server/rig/runtime_folder.h"

namespace rigstep::server {

class ClientSession {
 public:
  using Arrival = ClientSocket::Arrival;

  struct Options {
    std::string host = {};
    std::uint16_t port = 0;
    std::string name = {};  // empty: one of its own, see unique_name()
    std::string product_version = {};
    std::string key_file = {};  // empty: without a key
    wire::Role role = wire::CONTROLLER;
  };

  // Throws NetworkError where the host is not found, wire::KeyError.
  ClientSession(const Options& options, const std::atomic<bool>* stop);

  // A session, and `take_welcome` for its Welcome. False: stopped. Throws NetworkError where there is no answer, or
  // what there was to the end was a refusal: one before the end may be forged, or pass.
  bool open(double timeout_s, const std::function<void(const wire::Welcome&, const Arrival&)>& take_welcome);
  // Sends `request` until `take_answer` says that it has come. False: stopped.
  bool ask(double timeout_s, const std::function<void()>& request,
           const std::function<bool(const Arrival&)>& take_answer);

  bool send(std::span<const std::byte> payload);
  // Says Goodbye and forgets the secret of the session.
  void leave(std::string_view words);
  // A datagram of the session: checked, and decoded into codec().message() and `state`.
  wire::DecodeStatus take(const Arrival& arrival, std::uint64_t last_step, Snapshot& state);

  ClientSocket& socket() noexcept { return socket_; }
  wire::RigCodec& codec() noexcept { return codec_; }
  const wire::SessionEnd& end() const noexcept { return end_; }
  const std::string& name() const noexcept { return name_; }
  // The last open() was refused.
  bool refused() const noexcept { return reason_ != wire::REFUSAL_UNSPECIFIED; }
  // Another rig with our key or secret has our place, and we shall not take it back by ourselves.
  bool displaced() const noexcept { return displaced_; }
  // False: there is a key and the system did not lock the memory that it is in.
  bool keys_locked() const noexcept { return !key_ || (key_->locked() && secrets_.locked()); }

 private:
  struct Secrets {
    wire::KeyPair pair;
    wire::SessionKeys keys;
  };
  enum class Step { challenge, accept, welcome };

  bool stopped() const { return stop_ != nullptr && stop_->load(); }
  bool attempt(std::int64_t until_ns, const std::function<void(const wire::Welcome&, const Arrival&)>& take_welcome);
  void begin_attempt();
  void make_hello(std::string_view cookie);
  bool take_step(const Arrival& arrival);
  bool take_accept(const wire::Accept& accept, const Arrival& arrival);
  void take_refusal(const Arrival& arrival);
  std::string no_answer() const;
  void recall_token();
  void keep_token(const std::string& token);
  void forget_token();
  std::string token_file() const;

  const Options options_;
  const std::string name_;
  const std::atomic<bool>* stop_;
  ClientSocket socket_;
  wire::RigCodec codec_;
  wire::SessionEnd end_;
  std::optional<wire::Secret<wire::ParticipantKey>> key_;
  wire::Secret<Secrets> secrets_;
  RuntimeFolder folder_;
  Step step_ = Step::challenge;
  std::uint64_t nonce_ = 0;
  std::array<std::byte, wire::kMaxDatagram> hello_{};
  std::uint64_t session_ = 0;  // the one that exists, or the newest before
  std::string token_;          // of that session
  bool displaced_ = false;
  std::string refusal_;  // by the server, its words
  wire::RefusalReason reason_ = wire::REFUSAL_UNSPECIFIED;
  bool refusal_proven_ = false, refused_now_ = false;
};

// "rigstep@bench-pc-4711-9f3c": program, machine, process and chance.
std::string unique_name();

}  // namespace rigstep::server
