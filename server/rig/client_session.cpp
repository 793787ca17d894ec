#include "server/rig/client_session.h"

#include <errno.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "server/network_error.h"

namespace rigstep::server {
namespace {

using wire::DecodeStatus;

constexpr std::int64_t kAttemptNs = 1'000'000'000;  // after which a handshake is begun anew

wire::KeyRole preferred(wire::Role role) {
  switch (role) {
    case wire::CONTROLLER:
      return wire::KeyRole::controller;
    case wire::OBSERVER:
      return wire::KeyRole::observer;
    default:
      return wire::KeyRole::operator_;
  }
}

std::string hex(std::string_view bytes) {
  std::string text(2 * bytes.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  text.pop_back();
  return text;
}

}  // namespace

std::string unique_name() {
  std::array<char, 65> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  std::array<char, wire::kMaxNameBytes + 1> text{};
  std::snprintf(text.data(), text.size(), "%.16s@%.24s-%d-%04x", program_invocation_short_name, host.data(),
                static_cast<int>(::getpid()), randombytes_uniform(0x10000));
  return text.data();
}

ClientSession::ClientSession(const Options& options, const std::atomic<bool>* stop)
    : options_(options),
      name_(options.name.empty() ? unique_name() : options.name),
      stop_(stop),
      socket_(options.host, options.port) {
  if (sodium_init() < 0) throw NetworkError("no random numbers from the system: sessions cannot be made");
  if (!options.key_file.empty()) key_.emplace(wire::read_participant_key(options.key_file, preferred(options.role)));
  recall_token();
}

bool ClientSession::open(double timeout_s,
                         const std::function<void(const wire::Welcome&, const Arrival&)>& take_welcome) {
  const std::int64_t give_up = now_ns() + nanoseconds(timeout_s);
  refusal_.clear();
  reason_ = wire::REFUSAL_UNSPECIFIED;
  while (!stopped() && now_ns() < give_up)
    if (attempt(std::min(now_ns() + kAttemptNs, give_up), take_welcome)) return true;
  if (stopped()) return false;
  displaced_ = displaced_ || reason_ == wire::DISPLACED;
  throw NetworkError(no_answer());
}

// From Hello to Welcome. What has no answer is said again, a Hello byte for byte.
bool ClientSession::attempt(std::int64_t until_ns,
                            const std::function<void(const wire::Welcome&, const Arrival&)>& take_welcome) {
  begin_attempt();
  Snapshot ignored;
  while (!stopped() && now_ns() < until_ns) {
    if (step_ == Step::welcome)
      send(codec_.encode_join());
    else
      socket_.send(hello_);
    const std::int64_t repeat = std::min(now_ns() + kRepeatAfterNs, until_ns);
    bool goes_on = false;
    while (!goes_on && now_ns() < repeat && !stopped()) {
      socket_.wait_until(repeat);
      while (const auto arrival = socket_.receive()) {
        if (step_ != Step::welcome) {
          goes_on = take_step(*arrival) || goes_on;
        } else if (take(*arrival, 0, ignored) == DecodeStatus::ok && codec_.message()->has_welcome()) {
          keep_token(codec_.message()->welcome().token());
          take_welcome(codec_.message()->welcome(), *arrival);
          return true;
        }
      }
    }
    if (!goes_on && refused_now_) return false;  // another attempt has another nonce and cookie
  }
  return false;
}

void ClientSession::begin_attempt() {
  socket_.use_keys(nullptr);
  randombytes_buf(&nonce_, sizeof nonce_);
  if (key_) secrets_->pair = wire::make_key_pair();
  step_ = Step::challenge;
  refused_now_ = false;
  make_hello({});
}

void ClientSession::make_hello(std::string_view cookie) {
  const bool proven = key_ && !cookie.empty();
  const wire::HelloFields fields{.product_version = options_.product_version,
                                 .rig_name = name_,
                                 .role = options_.role,
                                 .nonce = nonce_,
                                 .cookie = cookie,
                                 .key_id = proven ? &(*key_)->id : nullptr,
                                 .public_key = proven ? &secrets_->pair.public_key : nullptr,
                                 .former_session = cookie.empty() ? 0 : session_,
                                 .token = cookie.empty() || key_ ? std::string_view() : token_};
  const wire::FrameHeader header{.sender = wire::Sender::rig, .sent_ns = now_ns()};
  const auto payload = codec_.encode_hello(fields);
  if (proven)
    wire::seal_proven_frame(header, payload, (*key_)->proof_key, hello_);
  else
    wire::seal_frame(header, payload, nullptr, hello_);
}

// True: the handshake is one step further.
bool ClientSession::take_step(const Arrival& arrival) {
  const bool other_version = arrival.status == DecodeStatus::bad_version;
  if (arrival.status != DecodeStatus::ok && !other_version) return false;
  if (arrival.frame.header.session != 0) return false;
  Snapshot ignored;
  if (codec_.decode(arrival.frame.payload, 0, ignored) != DecodeStatus::ok) return false;
  const wire::ServerToRig& message = *codec_.message();
  if (message.has_refusal()) {
    if (message.refusal().nonce() == nonce_ || other_version) take_refusal(arrival);
    return false;
  }
  if (other_version) return false;
  if (step_ == Step::challenge && message.has_challenge() && message.challenge().nonce() == nonce_ &&
      message.challenge().cookie().size() == wire::kCookieBytes) {
    make_hello(std::string(message.challenge().cookie()));
    step_ = Step::accept;
    return true;
  }
  return step_ == Step::accept && message.has_accept() && take_accept(message.accept(), arrival);
}

bool ClientSession::take_accept(const wire::Accept& accept, const Arrival& arrival) {
  if (accept.nonce() != nonce_ || accept.session() == 0) return false;
  if (key_) {
    wire::PublicKey server{};
    if (accept.public_key().size() != server.size()) return false;
    std::copy(accept.public_key().begin(), accept.public_key().end(), server.begin());
    wire::SessionKeys& keys = secrets_->keys;
    if (!wire::derive_session_keys((*key_)->key, secrets_->pair.secret, server, hello_, accept.session(), server,
                                   keys) ||
        !wire::is_proven(arrival.datagram, keys.accept))
      return false;
    sodium_memzero(&secrets_->pair, sizeof secrets_->pair);
    sodium_memzero(keys.accept.data(), keys.accept.size());
    socket_.use_keys(&keys);
  }
  session_ = accept.session();
  end_ = wire::SessionEnd(wire::Sender::rig, session_);
  refusal_.clear();
  step_ = Step::welcome;
  return true;
}

// A proven one takes the place of hints, not the other way round.
void ClientSession::take_refusal(const Arrival& arrival) {
  refused_now_ = true;
  const bool proven = key_ && wire::is_proven(arrival.datagram, (*key_)->proof_key);
  if (refusal_proven_ && !proven && !refusal_.empty()) return;
  const wire::Refusal& refusal = codec_.message()->refusal();
  refusal_ = wire::printable(refusal.text(), wire::kMaxTextBytes);
  reason_ = refusal.reason();
  refusal_proven_ = proven;
}

std::string ClientSession::no_answer() const {
  if (refusal_.empty()) return socket_.no_answer();
  const char* const whom = options_.role == wire::CONSOLE ? " refuses: " : " refuses this rig: ";
  if (!key_ || refusal_proven_) return socket_.server() + whom + refusal_;
  return "no answer from " + socket_.server() + " that its key proves; what came without proof says: " + refusal_;
}

bool ClientSession::ask(double timeout_s, const std::function<void()>& request,
                        const std::function<bool(const Arrival&)>& take_answer) {
  const std::int64_t give_up = now_ns() + nanoseconds(timeout_s);
  while (!stopped() && now_ns() < give_up) {
    request();
    const std::int64_t repeat = std::min(now_ns() + kRepeatAfterNs, give_up);
    while (now_ns() < repeat && !stopped()) {
      socket_.wait_until(repeat);
      while (const auto arrival = socket_.receive())
        if (take_answer(*arrival)) return true;
    }
  }
  if (stopped()) return false;
  throw NetworkError(socket_.no_answer());
}

bool ClientSession::send(std::span<const std::byte> payload) {
  return socket_.send(end_.next_header(now_ns()), payload);
}

DecodeStatus ClientSession::take(const Arrival& arrival, std::uint64_t last_step, Snapshot& state) {
  if (arrival.status != DecodeStatus::ok) return arrival.status;
  if (const auto status = end_.accept(arrival.frame.header, arrival.came_ns); status != DecodeStatus::ok) return status;
  const DecodeStatus status = codec_.decode(arrival.frame.payload, last_step, state);
  if (status == DecodeStatus::ok && codec_.message()->has_goodbye())
    displaced_ = displaced_ || codec_.message()->goodbye().reason() == wire::TAKEN_OVER;
  return status;
}

void ClientSession::leave(std::string_view words) {
  send(codec_.encode_goodbye(words));
  forget_token();
}

// --- the secret of a session without a key, for a rig of this name that is started again

std::string ClientSession::token_file() const {
  if (options_.name.empty() || options_.role != wire::CONTROLLER || key_) return {};
  std::array<unsigned char, 16> id{};
  const std::string of = socket_.server() + " " + name_;
  crypto_generichash(id.data(), id.size(), reinterpret_cast<const unsigned char*>(of.data()), of.size(), nullptr, 0);
  return "session-" + hex({reinterpret_cast<const char*>(id.data()), id.size()});
}

void ClientSession::recall_token() {
  const auto text = token_file().empty() ? std::nullopt : folder_.read(token_file());
  if (!text || text->size() != 2 * wire::kTokenBytes) return;
  token_.resize(wire::kTokenBytes);
  if (sodium_hex2bin(reinterpret_cast<unsigned char*>(token_.data()), token_.size(), text->data(), text->size(),
                     nullptr, nullptr, nullptr) != 0)
    token_.clear();
}

void ClientSession::keep_token(const std::string& token) {
  if (token == token_) return;
  token_ = token;
  if (!token.empty() && !token_file().empty()) folder_.write(token_file(), hex(token));
}

// The file may hold the secret of another rig of this name by now.
void ClientSession::forget_token() {
  if (!token_.empty() && !token_file().empty() && folder_.read(token_file()) == hex(token_))
    folder_.remove(token_file());
  token_.clear();
}

}  // namespace rigstep::server
