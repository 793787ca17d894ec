#include "server/machine/baseline.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "rt/clock.h"
#include "rt/histogram.h"
#include "rt/thread_setup.h"

namespace rigstep::server {

namespace {

constexpr std::size_t kEchoBytes = 256;            // about what a frame of twenty channels has
constexpr int kHistogramUs = 20'000;               // wake-ups later than that count as that late
constexpr std::int64_t kEchoLostNs = 200'000'000;  // no echo for so long
constexpr std::int64_t kPauseNs = 1'000;           // what is shorter may be the look at the clock itself
constexpr std::int64_t kSpinNs = 100'000'000, kRestNs = 20'000'000;  // the kernel stops whoever spins without rest

using EchoDatagram = std::array<char, kEchoBytes>;

// One end of the echo: straight calls, as asio would wait again after the socket's time-out.
class EchoEnd {
 public:
  using Endpoint = asio::ip::udp::endpoint;

  EchoEnd(asio::io_context& context, const std::string& address, bool polling)
      : socket_(context, own_end(asio::ip::make_address(address))), polling_(polling) {
    const timeval patience{.tv_sec = 0, .tv_usec = kEchoLostNs / 1000};
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  // As a rig does; a server answers whoever has sent.
  void connect(const EchoEnd& server) { socket_.connect(server.socket_.local_endpoint()); }

  void send(const EchoDatagram& datagram) {
    [[maybe_unused]] const long sent = ::send(socket_.native_handle(), datagram.data(), datagram.size(), 0);
  }
  void answer(const EchoDatagram& datagram) {
    [[maybe_unused]] const long sent = ::sendto(socket_.native_handle(), datagram.data(), datagram.size(), 0,
                                                sender_.data(), static_cast<socklen_t>(sender_.size()));
  }
  // False: none came in time.
  bool receive(EchoDatagram& datagram) {
    if (!polling_) return take(datagram, 0);
    const std::int64_t begin = rt::MonotonicClock::now_ns();
    do {
      if (take(datagram, MSG_DONTWAIT)) return true;
      rt::relax();
    } while (rt::MonotonicClock::now_ns() - begin < kEchoLostNs);
    return false;
  }

 private:
  static Endpoint own_end(asio::ip::address address) {
    if (address.is_unspecified())
      address = address.is_v4() ? asio::ip::make_address("127.0.0.1") : asio::ip::make_address("::1");
    return {address, 0};
  }
  bool take(EchoDatagram& datagram, int flags) {
    auto size = static_cast<socklen_t>(sender_.capacity());
    if (::recvfrom(socket_.native_handle(), datagram.data(), datagram.size(), flags, sender_.data(), &size) < 0)
      return false;
    sender_.resize(size);
    return true;
  }

  asio::ip::udp::socket socket_;
  Endpoint sender_;  // of the datagram received last
  bool polling_;
};

// What comes back is the datagram with this number.
std::uint64_t number_of(const EchoDatagram& datagram) {
  std::uint64_t number = 0;
  std::copy_n(datagram.data(), sizeof number, reinterpret_cast<char*>(&number));
  return number;
}

// what the clock itself takes
std::int64_t shortest_look_ns() {
  std::int64_t shortest_ns = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t k = 0, last = rt::MonotonicClock::now_ns(); k < 100; ++k) {
    const std::int64_t now = rt::MonotonicClock::now_ns();
    shortest_ns = std::min(shortest_ns, now - std::exchange(last, now));
  }
  return shortest_ns;
}

Times percentiles_us(const rt::Histogram& ns) {
  const auto us = [&ns](double percent) { return 1e-3 * static_cast<double>(ns.percentile(percent)); };
  return {ns.count(), us(50.0), us(99.0), us(99.9), 1e-3 * static_cast<double>(ns.max())};
}

}  // namespace

LoopThread loop_of(const config::RigConfig& rig) {
  return {.period_ns = rig.period_ns, .priority = rig.priority, .cpu = rig.cpu.value_or(rt::last_allowed_core())};
}

Cyclictest run_cyclictest(const LoopThread& thread, double seconds, const std::atomic<bool>& stop) {
  const std::string command = fmt::format(
      "echo $$; exec cyclictest --quiet --mlockall --threads=1 --priority={} --affinity={} --interval={} --duration={} "
      "--histogram={} 2>&1",
      thread.priority, thread.cpu, thread.period_ns / 1000, static_cast<long>(std::ceil(seconds)), kHistogramUs);
  std::FILE* pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) return {.problem = "cannot be started"};
  std::string output;
  std::array<char, 4096> buffer;
  pollfd watched{::fileno(pipe), POLLIN, 0};
  for (bool told = false;;) {
    const bool begins_with_its_number = output.find('\n') != std::string::npos;
    if (stop && begins_with_its_number && !std::exchange(told, true)) ::kill(std::atoi(output.c_str()), SIGTERM);
    if (::poll(&watched, 1, 100) <= 0) continue;
    const ssize_t got = ::read(watched.fd, buffer.data(), buffer.size());
    if (got <= 0) break;
    output.append(buffer.data(), static_cast<std::size_t>(got));
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return {.problem = "not installed: apt-get install rt-tests"};
  return parse_cyclictest(output.substr(std::min(output.size(), output.find('\n') + 1)));
}

Cyclictest parse_cyclictest(const std::string& output) {
  std::istringstream lines(output);
  const auto histogram = std::make_unique<rt::Histogram>();
  std::string said, line;
  double most = -1.0;
  while (std::getline(lines, line)) {
    if (!line.empty()) said = line;
    long us = 0, count = 0;
    if (std::sscanf(line.c_str(), "# Max Latencies: %ld", &us) == 1) most = static_cast<double>(us);
    if (std::sscanf(line.c_str(), "# Histogram Overflows: %ld", &count) == 1)
      us = kHistogramUs;
    else if (line.starts_with('#') || std::sscanf(line.c_str(), "%ld %ld", &us, &count) != 2)
      continue;
    for (long k = 0; k < count; ++k) histogram->record(1000 * us + 500);  // it cuts fractions off: the middle
  }
  if (most < 0.0 || histogram->count() == 0) return {.problem = "failed: " + (said.empty() ? "it said nothing" : said)};
  Times wake_up = percentiles_us(*histogram);
  wake_up.max_us = most;
  return {.wake_up = wake_up};
}

Pauses measure_pauses(const LoopThread& thread, double seconds, const std::atomic<bool>& stop) {
  Pauses found;
  std::thread([&] {
    const rt::ThreadReport granted = rt::set_up_loop_thread({.priority = thread.priority, .cpu = thread.cpu});
    found.undisturbed = std::all_of(granted.begin(), granted.end(), [](const rt::Grant& each) { return each.granted; });
    const std::int64_t longest_look_ns = std::max(kPauseNs, 4 * shortest_look_ns()),
                       wanted_ns = std::llround(1e9 * seconds);
    std::int64_t pauses = 0, paused_ns = 0, longest_ns = 0, spun_ns = 0;
    while (spun_ns < wanted_ns && !stop) {
      const std::int64_t begin = rt::MonotonicClock::now_ns(), end = begin + std::min(kSpinNs, wanted_ns - spun_ns);
      std::int64_t now = begin;
      for (std::int64_t last = begin; now < end; last = now) {
        now = rt::MonotonicClock::now_ns();
        if (now - last <= longest_look_ns) continue;
        ++pauses;
        paused_ns += now - last;
        longest_ns = std::max(longest_ns, now - last);
      }
      spun_ns += now - begin;
      rt::MonotonicClock::sleep_until(now + kRestNs);
    }
    if (spun_ns == 0) return;
    found.seconds = 1e-9 * static_cast<double>(spun_ns);
    found.per_second = static_cast<double>(pauses) / found.seconds;
    found.share = static_cast<double>(paused_ns) / static_cast<double>(spun_ns);
    found.longest_us = 1e-3 * static_cast<double>(longest_ns);
  }).join();
  return found;
}

std::string Pauses::text() const {
  return fmt::format("{:.0f} a second, {:.2f} % of the time, {:.1f} us at most in {:.1f} s: interrupts, firmware or {}",
                     per_second, 100.0 * share, longest_us, seconds,
                     undisturbed ? "hypervisor" : "hypervisor, or other programs, as core or priority was refused");
}

nlohmann::json Pauses::json() const {
  return {{"seconds", seconds},
          {"per_second", per_second},
          {"share", share},
          {"longest_us", longest_us},
          {"undisturbed", undisturbed}};
}

UdpEcho run_udp_echo(const UdpEchoOptions& options, double seconds, const std::atomic<bool>& stop,
                     const std::function<void(double)>& progress) {
  asio::io_context context;
  EchoEnd near(context, options.address, options.polling), far(context, options.address, options.polling);
  near.connect(far);
  rt::ThreadReport idle_report;
  const rt::NoDeepIdle idle({}, idle_report);
  std::atomic<bool> done{false};
  std::thread mirror([&] {
    std::optional<rt::StayOnCores> loops;
    if (options.polling)  // with SCHED_FIFO it would be stopped for a part of every second
      loops.emplace(rt::StayOnCores::Which::only, options.thread.cpu);
    else
      rt::set_up_loop_thread({.priority = options.thread.priority, .cpu = options.thread.cpu});
    EchoDatagram datagram{};
    while (!done.load())
      if (far.receive(datagram)) far.answer(datagram);
  });
  const rt::StayOnCores rigs(rt::StayOnCores::Which::others, options.thread.cpu);
  UdpEcho echo;
  const auto histogram = std::make_unique<rt::Histogram>();
  const std::int64_t begin = rt::MonotonicClock::now_ns(), end = begin + std::llround(1e9 * seconds);
  std::int64_t now = begin;
  for (std::uint64_t k = 1; !stop; ++k) {
    const std::int64_t due = options.period_ns > 0 ? begin + static_cast<std::int64_t>(k) * options.period_ns : now;
    if (due > end || now - end > kEchoLostNs) break;
    if (options.period_ns > 0) rt::MonotonicClock::sleep_until(due);
    EchoDatagram datagram{};
    std::copy_n(reinterpret_cast<const char*>(&k), sizeof k, datagram.data());
    const std::int64_t sent = rt::MonotonicClock::now_ns();
    near.send(datagram);
    bool got = near.receive(datagram);
    while (got && number_of(datagram) != k) got = near.receive(datagram);  // late ones were counted as lost
    now = rt::MonotonicClock::now_ns();
    if (got)
      histogram->record(now - sent);
    else
      ++echo.lost;
    if (k % 64 == 0) progress(static_cast<double>(now - begin) / static_cast<double>(end - begin));
  }
  done.store(true);
  mirror.join();
  echo.round_trip = percentiles_us(*histogram);
  if (echo.round_trip.count == 0) echo.problem = "no datagram came back";
  return echo;
}

}  // namespace rigstep::server
