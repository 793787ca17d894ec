#include "server/rig/impair.h"

#include <poll.h>

#include <algorithm>
#include <asio.hpp>
#include <cmath>
#include <deque>
#include <queue>
#include <vector>

#include "proto/config_text.h"
#include "rt/clock.h"
#include "server/network_error.h"

namespace rigstep::server {

double ImpairedWay::uniform() { return std::ldexp(static_cast<double>(random_() >> 11), -53); }

double ImpairedWay::delay_s() {
  const double jitter = impairment_.jitter_s * uniform();
  const double held_back = uniform() < impairment_.reorder ? impairment_.reorder_s : 0.0;
  return impairment_.delay_s + jitter + held_back;
}

bool ImpairedWay::lost() {
  const double ends = 1.0 / std::max(impairment_.burst_length, 1.0);
  const double burst = uniform(), single = uniform();
  if (in_burst_) {
    in_burst_ = burst >= ends;
    if (in_burst_) return true;
  } else if (burst < impairment_.burst_loss) {
    in_burst_ = true;
    return true;
  }
  return single < impairment_.loss;
}

// The same count of random numbers for each datagram, whatever becomes of it.
ImpairedWay::Fate ImpairedWay::next() {
  Fate fate;
  const bool gone = lost();
  const bool twice = uniform() < impairment_.duplicate;
  const bool damaged = uniform() < impairment_.corrupt;
  const std::uint64_t bit = random_();
  fate.delay_s = {delay_s(), delay_s()};
  fate.copies = gone ? 0 : twice ? 2 : 1;
  if (damaged) fate.flip = bit;
  return fate;
}

namespace {

using Endpoint = asio::ip::udp::endpoint;
using Socket = asio::ip::udp::socket;

constexpr std::int64_t kPatienceNs = 50'000'000;  // between looks at `stop`

// A name that means nothing would swallow every datagram without a word.
asio::ip::address numeric_address(const std::string& text) {
  std::error_code error;
  const auto address = asio::ip::make_address(text, error);
  if (error) throw config::ConfigError("\"" + text + "\" is no numeric address: give for instance 127.0.0.1");
  return address;
}

class Proxy {
 public:
  explicit Proxy(const ImpairOptions& options)
      : to_server_(options.to_server, options.seed), to_rig_(options.to_rig, ~options.seed), on_full_(options.on_full) {
    std::error_code error;
    server_ = Endpoint(numeric_address(options.host), options.port);
    const auto local = numeric_address(options.listen_address);
    front_.open(local.is_v6() ? asio::ip::udp::v6() : asio::ip::udp::v4(), error);
    if (!error) front_.bind({local, options.listen_port}, error);
    if (!error) front_.non_blocking(true, error);
    if (error) {
      throw NetworkError("cannot listen on " + options.listen_address + " port " + std::to_string(options.listen_port) +
                         " (" + error.message() + "). Give another port.");
    }
    if (options.on_listening) options.on_listening(front_.local_endpoint().port());
  }

  ImpairReport run(const std::atomic<bool>& stop) {
    while (!stop.load()) {
      wait();
      receive_from_rigs();
      for (Rig& rig : rigs_) receive_from_server(rig);
      release_due();
    }
    report_.rigs = rigs_.size();
    return report_;
  }

 private:
  struct Rig {
    Endpoint endpoint;
    Socket socket;  // towards the server
  };
  struct Waiting {
    std::int64_t due_ns;
    std::uint64_t order;  // those due at once keep their order
    Rig* rig;
    bool to_server;
    std::vector<std::byte> bytes;
    bool operator>(const Waiting& other) const {
      return due_ns != other.due_ns ? due_ns > other.due_ns : order > other.order;
    }
  };

  void wait() {
    std::vector<pollfd> watched{{front_.native_handle(), POLLIN, 0}};
    for (Rig& rig : rigs_) watched.push_back({rig.socket.native_handle(), POLLIN, 0});
    std::int64_t left = kPatienceNs;
    if (!waiting_.empty())
      left = std::clamp<std::int64_t>(waiting_.top().due_ns - rt::MonotonicClock::now_ns(), 0, left);
    const timespec limit{0, left};
    ::ppoll(watched.data(), watched.size(), &limit, nullptr);
  }

  void receive_from_rigs() {
    Endpoint sender;
    std::error_code error;
    for (;;) {
      const std::size_t size = front_.receive_from(asio::buffer(buffer_), sender, 0, error);
      if (error) return;
      Rig* rig = rig_at(sender);
      if (rig != nullptr)
        pass_on(size, *rig, true);
      else if (++report_.refused == 1 && on_full_)
        on_full_();
    }
  }

  void receive_from_server(Rig& rig) {
    std::error_code error;
    for (;;) {
      const std::size_t size = rig.socket.receive(asio::buffer(buffer_), 0, error);
      if (error) return;
      pass_on(size, rig, false);
    }
  }

  Rig* rig_at(const Endpoint& sender) {
    for (Rig& rig : rigs_)
      if (rig.endpoint == sender) return &rig;
    if (rigs_.size() == kMostRigs) return nullptr;
    Socket socket(context_, server_.protocol());
    std::error_code error;
    socket.connect(server_, error);
    if (!error) socket.non_blocking(true, error);
    if (error) throw NetworkError("cannot send to the server (" + error.message() + "). Check its address.");
    return &rigs_.emplace_back(Rig{sender, std::move(socket)});
  }

  void pass_on(std::size_t size, Rig& rig, bool to_server) {
    auto& counts = to_server ? report_.to_server : report_.to_rig;
    const ImpairedWay::Fate fate = (to_server ? to_server_ : to_rig_).next();
    ++counts.received;
    if (fate.copies == 0) ++counts.lost;
    if (fate.copies == 2) ++counts.duplicated;
    if (fate.flip && size > 0 && fate.copies > 0) {
      ++counts.corrupted;
      const std::uint64_t bit = *fate.flip % (8 * size);
      buffer_[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    }
    const std::int64_t now = rt::MonotonicClock::now_ns();
    for (int copy = 0; copy < fate.copies; ++copy) {
      const auto delay_ns = std::llround(fate.delay_s[static_cast<std::size_t>(copy)] * 1e9);
      waiting_.push({now + delay_ns, order_++, &rig, to_server, {buffer_.begin(), buffer_.begin() + size}});
    }
  }

  void release_due() {
    for (; !waiting_.empty() && waiting_.top().due_ns <= rt::MonotonicClock::now_ns(); waiting_.pop()) {
      const Waiting& next = waiting_.top();
      std::error_code error;
      if (next.to_server)
        next.rig->socket.send(asio::buffer(next.bytes), 0, error);
      else
        front_.send_to(asio::buffer(next.bytes), next.rig->endpoint, 0, error);
      if (!error) ++(next.to_server ? report_.to_server : report_.to_rig).sent;
    }
  }

  ImpairedWay to_server_, to_rig_;
  std::function<void()> on_full_;
  asio::io_context context_;
  Endpoint server_;
  Socket front_{context_};
  std::deque<Rig> rigs_;  // their addresses stay
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  std::uint64_t order_ = 0;
  std::array<std::byte, 2048> buffer_{};
  ImpairReport report_;
};

}  // namespace

ImpairReport run_impair(const ImpairOptions& options, const std::atomic<bool>& stop) {
  return Proxy(options).run(stop);
}

}  // namespace rigstep::server
