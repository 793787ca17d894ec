#include "server/rig.h"

#include <poll.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <asio.hpp>
#include <charconv>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <string_view>

#include "proto/load.h"
#include "server/udp_endpoint.h"

namespace rigstep::server {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kRepeatAfter = kSecond / 10;

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * kSecond + now.tv_nsec;
}

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

std::string_view trimmed(std::string_view text) {
  const char* blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::optional<double> to_number(std::string_view text) {
  text = trimmed(text);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// One or two numbers separated by a comma; the second is `otherwise` when absent.
std::optional<std::pair<double, double>> to_pair(std::string_view text, std::optional<double> otherwise) {
  const auto comma = text.find(',');
  const auto first = to_number(text.substr(0, comma));
  const auto second = comma == std::string_view::npos ? otherwise : to_number(text.substr(comma + 1));
  if (!first || !second) return std::nullopt;
  return std::pair{*first, *second};
}

std::string list_names(const std::vector<Channel>& channels) {
  std::string list;
  for (const Channel& channel : channels) {
    list += (list.empty() ? "" : ", ") + channel.name + (channel.unit.empty() ? "" : " [" + channel.unit + "]");
  }
  return list.empty() ? "none" : list;
}

}  // namespace

Drive Drive::parse(const std::string& text, const std::vector<Channel>& inputs) {
  const auto refuse = [&](const std::string& problem) {
    return wire::ConfigError("drive \"" + text + "\": " + problem + ". Input channels: " + list_names(inputs) + ".");
  };
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    throw refuse("write CHANNEL=sine:AMPLITUDE,FREQUENCY_HZ, CHANNEL=step:VALUE[,TIME_S] or CHANNEL=FILE.csv");
  }
  const std::string name = text.substr(0, equals);
  const auto channel =
      std::find_if(inputs.begin(), inputs.end(), [&](const Channel& input) { return input.name == name; });
  if (channel == inputs.end()) throw refuse("no input channel is called \"" + name + "\"");

  Drive drive;
  drive.channel_ = static_cast<int>(channel - inputs.begin());
  const std::string_view shape = std::string_view(text).substr(equals + 1);
  if (shape.starts_with("sine:")) {
    const auto numbers = to_pair(shape.substr(5), std::nullopt);
    if (!numbers) throw refuse("a sine needs two numbers, sine:AMPLITUDE,FREQUENCY_HZ");
    drive.shape_ = Sine{numbers->first, numbers->second};
  } else if (shape.starts_with("step:")) {
    const auto numbers = to_pair(shape.substr(5), 0.0);
    if (!numbers) throw refuse("a step needs one or two numbers, step:VALUE or step:VALUE,TIME_S");
    drive.shape_ = Step{numbers->first, numbers->second};
  } else if (shape.ends_with(".csv")) {
    try {
      drive.shape_ = read_table(std::string(shape));
    } catch (const Error& error) {
      throw refuse(error.what());
    }
  } else {
    throw refuse("\"" + std::string(shape) + "\" is neither sine:..., step:... nor a .csv file");
  }
  return drive;
}

Table Drive::read_table(const std::string& path) {
  Table table = read_csv(path);
  if (table.rows[0].size() != 2) throw Error(path + " does not have two columns, time [s] and value");
  require_ascending(table, 0, path);
  return table;
}

double Drive::value(double time_s) const {
  if (const auto* sine = std::get_if<Sine>(&shape_)) {
    return sine->amplitude * std::sin(2.0 * std::numbers::pi * sine->frequency_hz * time_s);
  }
  if (const auto* step = std::get_if<Step>(&shape_)) return time_s >= step->time_s ? step->value : 0.0;
  return interpolated(std::get<Table>(shape_), 0, 1, time_s);
}

const char* to_string(RigReport::End end) noexcept {
  switch (end) {
    case RigReport::End::duration_over:
      return "duration over";
    case RigReport::End::stopped:
      return "stopped";
    case RigReport::End::server_stopped:
      return "server stopped";
    case RigReport::End::server_silent:
      return "server silent";
  }
  return "unknown";
}

namespace {

// One run of a rig: connection, tables, exchange.
class RigRun {
 public:
  RigRun(const RigOptions& options, const std::atomic<bool>& stop) : options_(options), stop_(stop) {}

  RigReport run() {
    open();
    if (!say_hello() || !read_table(wire::INPUT, report_.link.inputs) ||
        !read_table(wire::OUTPUT, report_.link.outputs)) {
      report_.end = RigReport::End::stopped;
      return report_;
    }
    try {
      for (const std::string& text : options_.drives) drives_.push_back(Drive::parse(text, report_.link.inputs));
      if (options_.on_connected) options_.on_connected(report_.link);
      exchange();
    } catch (...) {
      send(codec_.encode_goodbye("failed"));
      throw;
    }
    if (report_.end != RigReport::End::server_stopped) send(codec_.encode_goodbye(to_string(report_.end)));
    summarise();
    return report_;
  }

 private:
  using Content = wire::ServerToRig::ContentCase;

  std::string server() const { return options_.host + ":" + std::to_string(options_.port); }

  void open() {
    if (!(options_.rate_hz >= 0.0 && options_.rate_hz <= 1e5)) {
      throw wire::ConfigError("rate: must lie between 0 (one input per period) and 100000 Hz");
    }
    if (!(options_.duration_s >= 0.0 && options_.timeout_s > 0.0)) {
      throw wire::ConfigError("duration and timeout: must not be negative");
    }
    std::error_code error;
    asio::ip::udp::resolver resolver(context_);
    const auto found = resolver.resolve(options_.host, std::to_string(options_.port), error);
    if (error || found.empty()) {
      throw NetworkError("cannot find the host \"" + options_.host + "\" (" + error.message() +
                         "). Check the name, or give a numeric address.");
    }
    const asio::ip::udp::endpoint remote = found.begin()->endpoint();
    socket_.open(remote.protocol(), error);
    if (!error) socket_.connect(remote, error);
    if (!error) socket_.non_blocking(true, error);
    if (error) throw NetworkError("cannot send to " + server() + " (" + error.message() + "). Check the network.");
    // the default of 50 us would show up in every round trip
    ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  }

  bool send(std::span<const std::byte> datagram) {
    std::error_code error;
    socket_.send(asio::buffer(datagram.data(), datagram.size()), 0, error);
    // a refusal is the answer to an earlier datagram: nobody listens there, or not yet
    if (error == asio::error::connection_refused) {
      refused_ = true;
      socket_.send(asio::buffer(datagram.data(), datagram.size()), 0, error);
    }
    return !error;
  }

  // Sleeps until a datagram arrives or the time has come.
  void wait_until(std::int64_t time_ns) {
    const std::int64_t left = std::max<std::int64_t>(time_ns - now_ns(), 0);
    const timespec limit{left / kSecond, left % kSecond};
    pollfd watched{socket_.native_handle(), POLLIN, 0};
    ::ppoll(&watched, 1, &limit, nullptr);
  }

  // The next datagram that arrived, or none.
  std::optional<wire::DecodeStatus> receive() {
    std::error_code error;
    const std::size_t size = socket_.receive(asio::buffer(buffer_), 0, error);
    if (error == asio::error::connection_refused) refused_ = true;
    if (error) return std::nullopt;
    const wire::DecodeStatus status = codec_.decode(std::span(buffer_).first(size), report_.last.step, report_.last);
    if (status != wire::DecodeStatus::ok) ++report_.dropped[static_cast<std::size_t>(status)];
    return status;
  }

  // Repeats a request until `take` has accepted an answer. False: stopped.
  template <class Encode, class Take>
  bool ask(Encode&& encode, Take&& take) {
    const std::int64_t give_up = now_ns() + nanoseconds(options_.timeout_s);
    while (!stop_.load() && now_ns() < give_up) {
      send(encode());
      const std::int64_t repeat = std::min(now_ns() + kRepeatAfter, give_up);
      while (now_ns() < repeat && !stop_.load()) {
        wait_until(repeat);
        while (const auto status = receive()) {
          if (codec_.message() != nullptr && take(*status)) return true;
        }
      }
    }
    if (stop_.load()) return false;
    throw NetworkError(no_answer());
  }

  std::string no_answer() const {
    if (!refusal_.empty()) return server() + " refuses this rig: " + refusal_;
    return "no answer from " + server() + (refused_ ? " (nothing listens on this port there)" : "") +
           ": is `rigstep serve` running there? If so, check that its `link.address` can be reached from here and " +
           "that no firewall blocks UDP port " + std::to_string(options_.port) + ".";
  }

  bool say_hello() {
    const auto hello = [this] { return codec_.encode_hello(options_.product_version, options_.name); };
    return ask(hello, [this](wire::DecodeStatus status) {
      const wire::ServerToRig& message = *codec_.message();
      if (message.has_refusal()) {
        refusal_ = wire::printable(message.refusal().text(), wire::kMaxTextBytes);
        // another rig may leave or time out meanwhile, a version will not change
        if (message.refusal().reason() != wire::OTHER_RIG) throw NetworkError(no_answer());
        return false;
      }
      if (status == wire::DecodeStatus::bad_version) throw NetworkError(other_version(message));
      if (status != wire::DecodeStatus::ok || !message.has_welcome()) return false;
      const wire::Welcome& welcome = message.welcome();
      codec_.start(welcome);
      report_.link.server_version = wire::printable(welcome.product_version());
      report_.link.mechanism = welcome.mechanism();
      report_.link.period_ns = static_cast<std::int64_t>(welcome.period_ns());
      sample_.inputs.count = static_cast<int>(welcome.input_channels());
      output_count_ = welcome.output_channels();
      return true;
    });
  }

  std::string other_version(const wire::ServerToRig& message) const {
    const std::string product =
        message.has_welcome() ? " (Rigstep " + wire::printable(message.welcome().product_version()) + ")" : "";
    return "the server at " + server() + product + " speaks protocol version " +
           std::to_string(message.protocol_version()) + ", this rig (" + options_.product_version + ") speaks " +
           std::to_string(wire::kProtocolVersion) + ". Install the same release on both sides.";
  }

  bool read_table(wire::Direction direction, std::vector<Channel>& channels) {
    const std::size_t total = direction == wire::INPUT ? static_cast<std::size_t>(sample_.inputs.count) : output_count_;
    while (channels.size() < total) {
      const auto first = static_cast<std::uint32_t>(channels.size());
      const auto query = [&] { return codec_.encode_channel_query(direction, first); };
      const bool answered = ask(query, [&](wire::DecodeStatus status) {
        if (codec_.message()->has_goodbye()) throw NetworkError("the server at " + server() + " has stopped.");
        if (status != wire::DecodeStatus::ok || !codec_.message()->has_channel_page()) return false;
        const wire::ChannelPage& page = codec_.message()->channel_page();
        if (page.direction() != direction || page.first() != first || page.channel_size() == 0) return false;
        for (const auto& channel : page.channel()) channels.push_back({channel.name(), channel.unit()});
        return true;
      });
      if (!answered) return false;
    }
    return true;
  }

  // Inputs at their rate, states as they come.
  void exchange() {
    const std::int64_t interval = options_.rate_hz > 0.0 ? nanoseconds(1.0 / options_.rate_hz)
                                                         : std::max<std::int64_t>(report_.link.period_ns, 1);
    start_ns_ = now_ns();
    last_heard_ns_ = start_ns_;
    const std::int64_t end = options_.duration_s > 0.0 ? start_ns_ + nanoseconds(options_.duration_s) : INT64_MAX;
    std::int64_t next = start_ns_;
    std::int64_t now = start_ns_;
    while (true) {
      if (stop_.load()) return finish(RigReport::End::stopped, now);
      if (now >= end) return finish(RigReport::End::duration_over, now);
      if (now - last_heard_ns_ > nanoseconds(options_.timeout_s)) return finish(RigReport::End::server_silent, now);
      if (now >= next) {
        send_input(now);
        // what was missed stays missed: a burst of old inputs helps nobody
        next += ((now - next) / interval + 1) * interval;
      }
      wait_until(std::min(next, end));
      now = now_ns();
      while (const auto status = receive()) {
        if (!take_answer(*status, now_ns())) return finish(RigReport::End::server_stopped, now);
      }
      now = now_ns();
    }
  }

  void finish(RigReport::End end, std::int64_t now) {
    report_.end = end;
    report_.seconds = static_cast<double>(now - start_ns_) * 1e-9;
  }

  void send_input(std::int64_t now) {
    const double time_s = static_cast<double>(now - start_ns_) * 1e-9;
    for (const Drive& drive : drives_) {
      sample_.inputs.value[static_cast<std::size_t>(drive.channel())] = drive.value(time_s);
    }
    ++sample_.sequence;
    sample_.rig_time_ns = now;
    send(codec_.encode_input(sample_)) ? ++report_.inputs_sent : ++report_.send_errors;
  }

  // False: the server said Goodbye.
  bool take_answer(wire::DecodeStatus status, std::int64_t now) {
    if (status != wire::DecodeStatus::ok) return true;
    if (codec_.message()->has_goodbye()) {
      report_.goodbye = wire::printable(codec_.message()->goodbye().text(), wire::kMaxTextBytes);
      return false;
    }
    if (!codec_.message()->has_state()) return true;
    const Snapshot& state = report_.last;
    last_heard_ns_ = now;
    if (report_.states > 0 && state.step > last_step_ + 1) report_.lost += state.step - last_step_ - 1;
    last_step_ = state.step;
    ++report_.states;
    report_.flags_seen |= state.flags;
    report_.last_status = state.status;
    measure_round_trip(state, now);
    if (options_.on_state) options_.on_state(state);
    return true;
  }

  void measure_round_trip(const Snapshot& state, std::int64_t now) {
    // until the first of ours arrives, the server may still echo an earlier rig's
    const bool ours = state.sequence >= 1 && state.sequence <= sample_.sequence && state.rig_time_ns >= start_ns_;
    if (!ours) return;
    report_.max_input_age_steps = std::max(report_.max_input_age_steps, state.input_age_steps);
    if (state.sequence <= last_echo_) return;
    last_echo_ = state.sequence;
    round_trips_us_.push_back(static_cast<double>(now - state.rig_time_ns) * 1e-3);
  }

  void summarise() {
    if (report_.seconds > 0.0) report_.state_rate_hz = static_cast<double>(report_.states) / report_.seconds;
    if (round_trips_us_.empty()) return;
    std::sort(round_trips_us_.begin(), round_trips_us_.end());
    // the smallest value that a share of all does not exceed
    const auto percentile = [&](double share) {
      const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(round_trips_us_.size())));
      return round_trips_us_[std::max<std::size_t>(rank, 1) - 1];
    };
    report_.round_trip = {round_trips_us_.size(), percentile(0.50), percentile(0.99), percentile(0.999),
                          round_trips_us_.back()};
  }

  const RigOptions& options_;
  const std::atomic<bool>& stop_;
  asio::io_context context_;
  asio::ip::udp::socket socket_{context_};
  wire::RigCodec codec_;
  std::array<std::byte, 2048> buffer_{};
  bool refused_ = false;  // by the machine: no such port
  std::string refusal_;   // by the server, its words
  std::size_t output_count_ = 0;
  std::vector<Drive> drives_;
  InputSample sample_;
  std::int64_t start_ns_ = 0;
  std::int64_t last_heard_ns_ = 0;
  std::uint64_t last_step_ = 0;
  std::uint64_t last_echo_ = 0;
  std::vector<double> round_trips_us_;
  RigReport report_;
};

}  // namespace

RigReport run_rig(const RigOptions& options, const std::atomic<bool>& stop) {
  // on the heap: the codec's memory is large for a stack
  return std::make_unique<RigRun>(options, stop)->run();
}

}  // namespace rigstep::server
