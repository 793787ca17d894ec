#include "server/udp_endpoint.h"

#include <linux/sock_diag.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "proto/load.h"
#include "rt/clock.h"

namespace rigstep::server {
namespace {

using wire::DecodeStatus;

constexpr int kReceivePerTurn = 64;  // so that a flood of datagrams cannot hold up the states
constexpr std::int64_t kStatusAgeNs = 100'000'000;

void count(std::atomic<std::uint64_t>& counter, std::uint64_t amount = 1) {
  counter.fetch_add(amount, std::memory_order_relaxed);
}

std::string to_text(const asio::ip::udp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

std::string bind_problem(const UdpOptions& options, const std::error_code& error) {
  const std::string where = "link: cannot listen on " + options.address + " port " + std::to_string(options.port);
  const std::string why = " (" + error.message() + "). ";
  if (error == asio::error::address_in_use) {
    return where + why + "Another program has this port, perhaps a second `rigstep serve`. Stop it (`ss -ulpn` shows " +
           "it) or give another `port`.";
  }
  if (error.value() == EADDRNOTAVAIL) {
    return where + why + "This machine has no such address. Give one of those that `ip address` shows, or 0.0.0.0 " +
           "for all of them.";
  }
  if (error == asio::error::access_denied) {
    return where + why + "Ports below 1024 are reserved for the system. Give a `port` from 1024 on.";
  }
  return where + why + "Check `address` and `port` of the link in the rig file.";
}

}  // namespace

UdpEndpoint::UdpEndpoint(const UdpOptions& options, wire::ServerCodec& codec, rt::Mailbox<InputSample>& inputs,
                         rt::Mailbox<Snapshot>& snapshots, UdpHooks hooks)
    : codec_(codec),
      inputs_(inputs),
      snapshots_(snapshots),
      hooks_(std::move(hooks)),
      key_(options.key),
      timeout_steps_(options.timeout_steps),
      timeout_ns_(codec.period_ns() * options.timeout_steps) {
  if (sodium_init() < 0) throw NetworkError("no random numbers from the system: sessions cannot be made");
  renew_secret();
  participants_.reserve(kMaxObservers + 1);
  bind(options);
  wake_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd_ < 0) throw NetworkError("no eventfd from the system: " + std::system_category().message(errno));
}

UdpEndpoint::~UdpEndpoint() {
  stop();
  ::close(wake_fd_);
}

void UdpEndpoint::bind(const UdpOptions& options) {
  std::error_code error;
  const asio::ip::address address = asio::ip::make_address(options.address, error);
  if (error) {
    throw wire::ConfigError(
        options.place() + ": \"" + options.address +
        "\" is no numeric address: give one of this machine's, such as 127.0.0.1, or 0.0.0.0 for all");
  }
  if (!address.is_loopback() && !options.key && !options.allow_unauthenticated) {
    throw wire::ConfigError(options.place() + ": " + options.address +
                            " can be reached from other machines, and without a key anybody there may steer this "
                            "one: make a key with `rigstep keygen`, copy it to both sides and name it in "
                            "`link.key_file`; or, on a network of your own, set `link.allow_unauthenticated: true`");
  }
  const Endpoint local(address, options.port);
  socket_.open(local.protocol(), error);
  if (!error) socket_.bind(local, error);
  if (!error) local_port_ = socket_.local_endpoint(error).port();
  if (error) throw NetworkError(bind_problem(options, error));
}

void UdpEndpoint::start() {
  if (thread_.joinable()) return;
  stopping_.store(false);
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "rigstep-link");
}

void UdpEndpoint::stop() {
  stopping_.store(true);
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  // fails only when the counter is full, and then the thread is awake anyway
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one);
  thread_.join();
}

UdpCounters UdpEndpoint::counters() const noexcept {
  const auto read = [](const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  UdpCounters now;
  now.received = read(counters_.received);
  now.accepted = read(counters_.accepted);
  std::transform(counters_.dropped.begin(), counters_.dropped.end(), now.dropped.begin(), read);
  now.sent = read(counters_.sent);
  now.overtaken = read(counters_.overtaken);
  now.send_errors = read(counters_.send_errors);
  std::array<std::uint32_t, SK_MEMINFO_VARS> memory{};
  socklen_t size = sizeof memory;
  ::getsockopt(socket_.native_handle(), SOL_SOCKET, SO_MEMINFO, memory.data(), &size);
  now.queue_overflows = memory[SK_MEMINFO_DROPS];
  return now;
}

void UdpEndpoint::run() {
  while (!stopping_.load()) {
    wait();
    send_newest_state();
    receive_waiting();
    drop_silent();
  }
  end_sessions();
}

void UdpEndpoint::end_sessions() {
  for (Participant& participant : participants_) send(codec_.encode_goodbye("the server was stopped"), participant);
  participants_.clear();
}

void UdpEndpoint::serve_lockstep(const Lockstep& lockstep, rt::BusyPoll busy_poll) {
  lockstep_ = &lockstep;
  // a wait ends now and then, to look for silent rigs and for the end
  const std::int64_t limit_us = std::clamp<std::int64_t>(timeout_ns_ / 4000, 1000, 100'000);
  const timeval limit{.tv_sec = 0, .tv_usec = std::min<std::int64_t>(limit_us, 99'999)};
  ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  for (std::int64_t looked_ns = 0; !stopping_.load();) {
    // datagrams that keep coming must not put off the rest
    if (receive_in_lockstep(busy_poll) && now_ns_ - looked_ns < limit_us * 1000) continue;
    looked_ns = rt::MonotonicClock::now_ns();
    drop_silent();
  }
  end_sessions();
  lockstep_ = nullptr;
}

// The next datagram, spun and then waited for. False: none came.
bool UdpEndpoint::receive_in_lockstep(rt::BusyPoll& busy_poll) {
  const std::int64_t from_ns = rt::MonotonicClock::now_ns();
  if (const std::int64_t spin_ns = busy_poll.allowance(from_ns); spin_ns > 0) {
    do {
      if (receive(MSG_DONTWAIT)) return true;
      rt::relax();
    } while (rt::MonotonicClock::now_ns() - from_ns < spin_ns);
  }
  const std::int64_t asleep_ns = rt::MonotonicClock::now_ns();
  const bool received = receive(0);
  busy_poll.slept(asleep_ns, received ? now_ns_ : rt::MonotonicClock::now_ns());
  return received;
}

// Until a datagram or a wake-up arrives, or somebody may have been silent for too long.
void UdpEndpoint::wait() {
  std::array<pollfd, 2> watched{{{socket_.native_handle(), POLLIN, 0}, {wake_fd_, POLLIN, 0}}};
  const int no_limit = -1;
  const auto quarter_ms = static_cast<int>(std::clamp<std::int64_t>(timeout_ns_ / 4'000'000, 1, 100));
  if (::poll(watched.data(), watched.size(), participants_.empty() ? no_limit : quarter_ms) <= 0) return;
  std::uint64_t wake_ups = 0;
  // resets the eventfd; that there was nothing to read is as good
  [[maybe_unused]] const auto size = ::read(wake_fd_, &wake_ups, sizeof wake_ups);
}

void UdpEndpoint::send_newest_state() {
  const std::uint64_t last_step = snapshot_.step;
  if (!snapshots_.take(snapshot_)) return;
  if (snapshot_.written_ns != 0) hand_off_ns_.record(rt::MonotonicClock::now_ns() - snapshot_.written_ns);
  if (snapshot_.step > last_step + 1) count(counters_.overtaken, snapshot_.step - last_step - 1);
  send_state();
}

// To everybody, the controller first: it waits for it.
void UdpEndpoint::send_state() {
  if (participants_.empty()) return;
  const auto state = codec_.encode_state(snapshot_);
  if (Participant* const owner = controller(); owner != nullptr) {
    send(state, *owner);
    if (snapshot_.scheduled_ns != 0)
      rt::record_with_skipped(reply_ns_, rt::MonotonicClock::now_ns() - snapshot_.scheduled_ns, codec_.period_ns(),
                              snapshot_.missed_before, snapshot_.missed_asleep);
  }
  for (Participant& participant : participants_) {
    if (participant.role == wire::OBSERVER) send(state, participant);
  }
}

void UdpEndpoint::receive_waiting() {
  for (int i = 0; i < kReceivePerTurn; ++i) {
    if (!receive(MSG_DONTWAIT)) return;
  }
}

// Takes one datagram. False: none came; also a refusal by the machine of a rig that has gone: its silence will end the
// connection.
bool UdpEndpoint::receive(int flags) {
  Endpoint sender;
  auto sender_size = static_cast<socklen_t>(sender.capacity());
  const ssize_t size = ::recvfrom(socket_.native_handle(), receive_buffer_.data(), receive_buffer_.size(), flags,
                                  sender.data(), &sender_size);
  if (size < 0) return false;
  sender.resize(sender_size);
  handle(std::span(receive_buffer_).first(static_cast<std::size_t>(size)), sender);
  count(counters_.received);
  return true;
}

void UdpEndpoint::handle(std::span<const std::byte> datagram, const Endpoint& sender) {
  now_ns_ = rt::MonotonicClock::now_ns();
  wire::Frame frame;
  DecodeStatus status = wire::open_frame(datagram, wire::Sender::server, key_, frame);
  // only what is filled up may be answered: the answer is never the larger one
  const bool full = datagram.size() == wire::kMaxDatagram;
  const bool wrong = status == DecodeStatus::authentication || status == DecodeStatus::bad_version;
  if (wrong && full && hints_.take(now_ns_)) {
    if (status == DecodeStatus::authentication)
      refuse_unauthenticated(sender);
    else
      refuse_version(frame, sender);
  }
  if (status == DecodeStatus::ok) {
    if (frame.header.session != 0)
      status = handle_in_session(frame, sender);
    else
      status = full ? handle_request(frame, sender) : DecodeStatus::wrong_size;
  }
  count(status == DecodeStatus::ok ? counters_.accepted : counters_.dropped[static_cast<std::size_t>(status)]);
}

DecodeStatus UdpEndpoint::handle_in_session(const wire::Frame& frame, const Endpoint& sender) {
  Participant* participant = find(sender);
  if (participant == nullptr) return DecodeStatus::unknown_source;
  // a replay must not keep a session alive
  if (const auto status = participant->end.accept(frame.header, now_ns_); status != DecodeStatus::ok) return status;
  participant->last_heard_ns = now_ns_;
  // in lockstep sequences are those of the steps, whoever asked for them
  const auto last_sequence = lockstep_ == nullptr ? std::optional(participant->last_sequence) : std::nullopt;
  const DecodeStatus status = codec_.decode(frame.payload, last_sequence, request_);
  return status == DecodeStatus::ok ? handle_content(*participant) : status;
}

DecodeStatus UdpEndpoint::handle_content(Participant& participant) {
  switch (request_.content) {
    case wire::RigToServer::kInput:
      return handle_input(participant);
    case wire::RigToServer::kChannelQuery:
      send(codec_.encode_channel_page(request_.direction, request_.first), participant);
      return DecodeStatus::ok;
    case wire::RigToServer::kHeartbeat:
      return DecodeStatus::ok;
    case wire::RigToServer::kGoodbye:
      remove(participant, RigEvent::Kind::left);
      return DecodeStatus::ok;
    default:
      return DecodeStatus::unexpected_content;
  }
}

DecodeStatus UdpEndpoint::handle_input(Participant& participant) {
  if (participant.role != wire::CONTROLLER) {
    send(codec_.encode_refusal(wire::NOT_IN_CONTROL, "an observer cannot send inputs. Say Hello as a controller."),
         participant);
    return DecodeStatus::not_in_control;
  }
  if (lockstep_ != nullptr) return step_if_due(participant);
  participant.last_sequence = request_.input.sequence;
  inputs_.publish(request_.input);
  return DecodeStatus::ok;
}

// Lockstep: the sequence of an input is the number of the step that it asks for.
DecodeStatus UdpEndpoint::step_if_due(Participant& participant) {
  const std::uint64_t last = lockstep_->answer.step;
  const std::uint64_t asked = request_.input.sequence;
  if (asked == last) {
    snapshot_ = lockstep_->answer;
    send(codec_.encode_state(snapshot_), participant);
    return DecodeStatus::ok;
  }
  if (asked != last + 1) {
    send(codec_.encode_refusal(wire::SEQUENCE, "the input asks for step " + std::to_string(asked) +
                                                   ". The last step was " + std::to_string(last) + ": go on with " +
                                                   std::to_string(last + 1) + "."),
         participant);
    return DecodeStatus::sequence;
  }
  inputs_.publish(request_.input);
  lockstep_->step({.scheduled_ns = now_ns_,
                   .wake_up_ns = rt::MonotonicClock::now_ns() - now_ns_,
                   .log_time_ns = rt::MonotonicClock::wall_ns()});
  snapshot_ = lockstep_->answer;
  send_state();
  lockstep_->keep();
  return DecodeStatus::ok;
}

// A filled-up datagram outside a session.
DecodeStatus UdpEndpoint::handle_request(const wire::Frame& frame, const Endpoint& sender) {
  age_secret();
  if (const auto status = codec_.decode(frame.payload, 0, request_); status != DecodeStatus::ok) return status;
  if (!proven(sender) && !answers_.take(now_ns_)) return DecodeStatus::too_frequent;
  switch (request_.content) {
    case wire::RigToServer::kHello:
      return handle_hello(frame.header, sender);
    case wire::RigToServer::kResetFault:
    case wire::RigToServer::kWriteBlackBox:
      return handle_command(frame.header, sender);
    case wire::RigToServer::kStatusQuery:
      answer(codec_.encode_status(status_report()), frame.header, sender);
      return DecodeStatus::ok;
    default:
      return DecodeStatus::unexpected_content;
  }
}

DecodeStatus UdpEndpoint::handle_hello(const wire::FrameHeader& header, const Endpoint& sender) {
  if (Participant* same = find(sender); same != nullptr && same->nonce == request_.nonce) {
    welcome(*same);  // the first one was lost
    return DecodeStatus::ok;
  }
  if (!proven(sender)) {
    answer(codec_.encode_challenge(request_.nonce, cookie_for(sender, request_.nonce, secret_)), header, sender);
    return request_.cookie.empty() ? DecodeStatus::ok : DecodeStatus::unproven_address;
  }
  const Participant* owner = controller();
  if (request_.role == wire::CONTROLLER && owner != nullptr && !is_restarted(*owner, sender)) {
    answer(codec_.encode_refusal(wire::CONTROL_TAKEN,
                                 "the rig \"" + owner->name + "\" at " + to_text(owner->endpoint) +
                                     " is in control. Stop it, or wait until it has been silent for " +
                                     std::to_string(timeout_steps_) + " steps; or connect as an observer."),
           header, sender);
    return DecodeStatus::control_taken;
  }
  const Participant* known = find(sender);
  const bool observes_already = known != nullptr && known->role == wire::OBSERVER;
  if (request_.role == wire::OBSERVER && !observes_already && observers() >= kMaxObservers) {
    answer(codec_.encode_refusal(
               wire::FULL, "there are " + std::to_string(kMaxObservers) + " observers already. Stop one of them."),
           header, sender);
    return DecodeStatus::full;
  }
  admit(sender);
  return DecodeStatus::ok;
}

// What an operator asks for.
DecodeStatus UdpEndpoint::handle_command(const wire::FrameHeader& header, const Endpoint& sender) {
  if (!proven(sender)) {
    answer(codec_.encode_challenge(request_.nonce, cookie_for(sender, request_.nonce, secret_)), header, sender);
    return request_.cookie.empty() ? DecodeStatus::ok : DecodeStatus::unproven_address;
  }
  renew_secret();
  const bool resets = request_.content == wire::RigToServer::kResetFault;
  if (resets && hooks_.reset_fault) hooks_.reset_fault(request_.number);
  if (!resets && !(hooks_.write_black_box && hooks_.write_black_box(request_.number))) {
    answer(codec_.encode_refusal(wire::NO_BLACK_BOX,
                                 "it keeps no black box. Give its rig file a `black_box { folder: ... }`."),
           header, sender);
    return DecodeStatus::unexpected_content;
  }
  const auto kind = resets ? RigEvent::Kind::reset_fault : RigEvent::Kind::black_box;
  if (hooks_.on_event) hooks_.on_event({.kind = kind, .address = to_text(sender)});
  status_at_ns_ = 0;  // the next report shall tell
  answer(codec_.encode_status(status_report()), header, sender);
  return DecodeStatus::ok;
}

// Not keyed, since the other side may have no key: it takes this for a hint only.
void UdpEndpoint::refuse_unauthenticated(const Endpoint& sender) {
  const auto refusal = codec_.encode_refusal(
      wire::AUTHENTICATION,
      key_
          ? "this server takes datagrams only with its key, and the tag of this one does not fit. Give the key file of "
            "the server's rig file."
          : "this server uses no key, and the tag of this datagram does not fit. Leave the key file away, or name it "
            "in the server's rig file, too.");
  send_datagram(wire::seal_frame({.sender = wire::Sender::server, .sent_ns = now_ns_}, refusal, {}, send_buffer_),
                sender);
}

void UdpEndpoint::refuse_version(const wire::Frame& frame, const Endpoint& sender) {
  codec_.decode(frame.payload, 0, request_);
  if (request_.content != wire::RigToServer::kHello) return;
  answer(codec_.encode_refusal(
             wire::VERSION, "this server, Rigstep " + codec_.product_version() + ", speaks protocol version " +
                                std::to_string(wire::kProtocolVersion) + "; the rig's software, " +
                                request_.product_version + ", speaks another. Install the same release on both sides."),
         frame.header, sender);
}

UdpEndpoint::Participant* UdpEndpoint::find(const Endpoint& sender) {
  const auto found = std::find_if(participants_.begin(), participants_.end(),
                                  [&](const Participant& participant) { return participant.endpoint == sender; });
  return found == participants_.end() ? nullptr : &*found;
}

UdpEndpoint::Participant* UdpEndpoint::controller() {
  const auto found = std::find_if(participants_.begin(), participants_.end(),
                                  [](const Participant& participant) { return participant.role == wire::CONTROLLER; });
  return found == participants_.end() ? nullptr : &*found;
}

std::size_t UdpEndpoint::observers() const {
  return static_cast<std::size_t>(
      std::count_if(participants_.begin(), participants_.end(),
                    [](const Participant& participant) { return participant.role == wire::OBSERVER; }));
}

// The rig of `old` says Hello anew: from its own port, or from another one after it was restarted.
bool UdpEndpoint::is_restarted(const Participant& old, const Endpoint& sender) const {
  if (old.endpoint == sender) return true;
  return old.endpoint.address() == sender.address() && old.name == request_.rig_name &&
         now_ns_ - old.last_heard_ns >= timeout_ns_ / wire::kRestartShare;
}

// The Hello in hand gets a session; what its sender had before ends, and so does the controller whose place it takes.
void UdpEndpoint::admit(const Endpoint& sender) {
  const std::size_t before = participants_.size();
  for (Participant& old : participants_)  // one that still lives must not wonder
    if (request_.role == wire::CONTROLLER && old.role == wire::CONTROLLER && old.endpoint != sender)
      send(codec_.encode_goodbye("another rig of the same name, at " + to_text(sender) + ", has taken its place"), old);
  std::erase_if(participants_, [&](const Participant& old) {
    return old.endpoint == sender || (request_.role == wire::CONTROLLER && old.role == wire::CONTROLLER);
  });
  const bool anew = participants_.size() < before;
  std::uint64_t session = 0;
  while (session == 0) randombytes_buf(&session, sizeof session);
  participants_.push_back({.endpoint = sender,
                           .name = request_.rig_name,
                           .product_version = request_.product_version,
                           .role = request_.role,
                           .nonce = request_.nonce,
                           .end = wire::SessionEnd(wire::Sender::server, session),
                           .last_heard_ns = now_ns_});
  renew_secret();
  welcome(participants_.back());
  emit(anew ? RigEvent::Kind::reconnected : RigEvent::Kind::connected, participants_.back());
}

void UdpEndpoint::remove(Participant& participant, RigEvent::Kind how) {
  emit(how, participant);
  participants_.erase(participants_.begin() + (&participant - participants_.data()));
}

void UdpEndpoint::drop_silent() {
  if (participants_.empty()) return;
  const std::int64_t now_ns = rt::MonotonicClock::now_ns();
  for (std::size_t i = participants_.size(); i-- > 0;) {
    if (now_ns - participants_[i].last_heard_ns >= timeout_ns_) remove(participants_[i], RigEvent::Kind::timed_out);
  }
}

void UdpEndpoint::emit(RigEvent::Kind kind, const Participant& participant) {
  if (!hooks_.on_event) return;
  hooks_.on_event({kind, participant.role == wire::OBSERVER, participant.name, participant.product_version,
                   to_text(participant.endpoint)});
}

// What only somebody who receives at `sender` can know.
std::array<std::uint8_t, wire::kCookieBytes> UdpEndpoint::cookie_for(const Endpoint& sender, std::uint64_t nonce,
                                                                     const wire::Key& secret) const {
  const bool hello = request_.content == wire::RigToServer::kHello;
  const std::string text = to_text(sender) + " " + std::to_string(nonce) + " " + std::to_string(request_.content) +
                           (hello ? "" : " " + std::to_string(request_.number));
  std::array<std::uint8_t, wire::kCookieBytes> cookie{};
  crypto_generichash(cookie.data(), cookie.size(), reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                     secret.data(), secret.size());
  return cookie;
}

bool UdpEndpoint::proven(const Endpoint& sender) const {
  const auto fits = [&](const wire::Key& secret) {
    const auto cookie = cookie_for(sender, request_.nonce, secret);
    return request_.cookie.size() == cookie.size() &&
           sodium_memcmp(request_.cookie.data(), cookie.data(), cookie.size()) == 0;
  };
  return fits(secret_) || fits(last_secret_);
}

// a used cookie is worth nothing any more
void UdpEndpoint::renew_secret() {
  randombytes_buf(secret_.data(), secret_.size());
  randombytes_buf(last_secret_.data(), last_secret_.size());
}

// nor is an old one: what was held back on its way cannot be let go hours later
void UdpEndpoint::age_secret() {
  if (now_ns_ - secret_since_ns_ < kCookieAgeNs) return;
  const bool both = now_ns_ - secret_since_ns_ >= 2 * kCookieAgeNs;
  last_secret_ = secret_;
  randombytes_buf(secret_.data(), secret_.size());
  if (both) randombytes_buf(last_secret_.data(), last_secret_.size());
  secret_since_ns_ = now_ns_;
}

void UdpEndpoint::welcome(Participant& participant) {
  const Participant* owner = controller();
  const wire::Participant in_control = owner != nullptr ? describe(*owner) : wire::Participant();
  const std::uint64_t step = lockstep_ != nullptr ? lockstep_->answer.step : snapshot_.step;
  send(codec_.encode_welcome(participant.nonce, timeout_steps_, owner != nullptr ? &in_control : nullptr,
                             lockstep_ != nullptr, step),
       participant);
}

// Computed at most every 100 ms: questions, however many, cost the states no time.
wire::StatusReport UdpEndpoint::status_report() {
  if (status_at_ns_ != 0 && now_ns_ - status_at_ns_ < kStatusAgeNs) return status_;
  status_at_ns_ = now_ns_;
  status_.Clear();
  const auto add = [](auto* counters, const char* name, std::uint64_t value) {
    auto& counter = *counters->Add();
    counter.set_name(name);
    counter.set_count(value);
  };
  status_.set_step(lockstep_ != nullptr ? lockstep_->answer.step : snapshot_.step);
  status_.set_lockstep(lockstep_ != nullptr);
  if (hooks_.describe_loop) hooks_.describe_loop(status_);
  const UdpCounters now = counters();
  add(status_.mutable_counter(), "received", now.received);
  add(status_.mutable_counter(), "accepted", now.accepted);
  add(status_.mutable_counter(), "sent", now.sent);
  add(status_.mutable_counter(), "overtaken", now.overtaken);
  add(status_.mutable_counter(), "send_errors", now.send_errors);
  add(status_.mutable_counter(), "queue_overflows", now.queue_overflows);
  for (std::size_t k = 1; k < wire::kDecodeStatusCount; ++k) {
    if (now.dropped[k] > 0) add(status_.mutable_refused(), to_string(static_cast<DecodeStatus>(k)), now.dropped[k]);
  }
  status_.set_authenticated(key_.has_value());
  status_.set_timeout_steps(timeout_steps_);
  status_.set_observers(static_cast<std::uint32_t>(observers()));
  for (const Participant& participant : participants_) {
    *(participant.role == wire::CONTROLLER ? status_.mutable_controller() : status_.add_observer()) =
        describe(participant);
  }
  return status_;
}

wire::Participant UdpEndpoint::describe(const Participant& participant) const {
  wire::Participant described;
  described.set_rig_name(participant.name);
  described.set_address(to_text(participant.endpoint));
  described.set_product_version(participant.product_version);
  described.set_silent_ns(static_cast<std::uint64_t>(std::max<std::int64_t>(now_ns_ - participant.last_heard_ns, 0)));
  if (const auto clock = participant.end.clock().estimate(now_ns_)) {
    described.mutable_clock()->set_offset_ns(clock->offset_ns);
    described.mutable_clock()->set_uncertainty_ns(static_cast<std::uint64_t>(clock->uncertainty_ns));
    described.mutable_clock()->set_round_trip_ns(static_cast<std::uint64_t>(clock->round_trip_ns));
  }
  return described;
}

void UdpEndpoint::send(std::span<const std::byte> payload, Participant& receiver) {
  const wire::FrameHeader header = receiver.end.next_header(rt::MonotonicClock::now_ns());
  send_datagram(wire::seal_frame(header, payload, key_, send_buffer_), receiver.endpoint);
}

// Outside a session.
void UdpEndpoint::answer(std::span<const std::byte> payload, const wire::FrameHeader& request,
                         const Endpoint& receiver) {
  const wire::FrameHeader header{.sender = wire::Sender::server,
                                 .sent_ns = rt::MonotonicClock::now_ns(),
                                 .echo_sent_ns = request.sent_ns,
                                 .echo_came_ns = now_ns_};
  send_datagram(wire::seal_frame(header, payload, key_, send_buffer_), receiver);
}

void UdpEndpoint::send_datagram(std::span<const std::byte> datagram, const Endpoint& receiver) {
  const ssize_t sent = ::sendto(socket_.native_handle(), datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                                receiver.data(), static_cast<socklen_t>(receiver.size()));
  count(sent < 0 ? counters_.send_errors : counters_.sent);
}

}  // namespace rigstep::server
