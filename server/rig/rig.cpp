#include "server/rig/rig.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>

#include "proto/codec.h"
#include "proto/config_text.h"
#include "rt/clock.h"
#include "server/output/quantile.h"
#include "server/rig/client_socket.h"
#include "server/rig/rig_client.h"

namespace rigstep::server {
namespace {

std::string_view trimmed(std::string_view text) {
  const char* blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// One or two numbers separated by a comma; the second is `otherwise` when absent.
std::optional<std::pair<double, double>> to_pair(std::string_view text, std::optional<double> otherwise) {
  const auto comma = text.find(',');
  const auto first = finite_number(trimmed(text.substr(0, comma)));
  const auto second = comma == std::string_view::npos ? otherwise : finite_number(trimmed(text.substr(comma + 1)));
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

std::vector<Drive> Drive::parse(const std::string& text, const std::vector<Channel>& inputs) {
  const auto refuse = [&](const std::string& problem) {
    return config::ConfigError("drive \"" + text + "\": " + problem + ". Input channels: " + list_names(inputs) + ".");
  };
  const auto read_table = [&](const std::string& path) {
    try {
      return std::make_shared<const InputTable>(path, inputs);
    } catch (const Error& error) {
      throw refuse(error.what());
    }
  };
  const auto equals = text.find('=');
  std::vector<Drive> drives;
  if (equals == std::string::npos && text.ends_with(".csv")) {
    const FromTable table = read_table(text);
    for (const int channel : table->driven_channels()) drives.push_back({channel, table});
    return drives;
  }
  if (equals == std::string::npos || equals + 1 == text.size())
    throw refuse(
        "write CHANNEL=sine:AMPLITUDE,FREQUENCY_HZ, CHANNEL=step:VALUE[,TIME_S], CHANNEL=TABLE.csv or TABLE.csv");
  const std::string name = text.substr(0, equals);
  const auto found =
      std::find_if(inputs.begin(), inputs.end(), [&](const Channel& input) { return input.name == name; });
  if (found == inputs.end()) throw refuse("no input channel is called \"" + name + "\"");

  const int channel = static_cast<int>(found - inputs.begin());
  const std::string_view shape = std::string_view(text).substr(equals + 1);
  if (shape.starts_with("sine:")) {
    const auto numbers = to_pair(shape.substr(5), std::nullopt);
    if (!numbers) throw refuse("a sine needs two numbers, sine:AMPLITUDE,FREQUENCY_HZ");
    drives.push_back({channel, Sine{numbers->first, numbers->second}});
  } else if (shape.starts_with("step:")) {
    const auto numbers = to_pair(shape.substr(5), 0.0);
    if (!numbers) throw refuse("a step needs one or two numbers, step:VALUE or step:VALUE,TIME_S");
    drives.push_back({channel, Step{numbers->first, numbers->second}});
  } else if (shape.ends_with(".csv")) {
    const FromTable table = read_table(std::string(shape));
    const std::vector<int> driven = table->driven_channels();
    if (std::find(driven.begin(), driven.end(), channel) == driven.end())
      throw refuse("the table has no column \"" + name + "\" or \"" + name + " [" + found->unit + "]\"");
    drives.push_back({channel, table});
  } else {
    throw refuse("\"" + std::string(shape) + "\" is neither sine:..., step:... nor a .csv file");
  }
  return drives;
}

double Drive::value(double time_s) const {
  if (const auto* sine = std::get_if<Sine>(&shape_)) {
    return sine->amplitude * std::sin(2.0 * std::numbers::pi * sine->frequency_hz * time_s);
  }
  if (const auto* step = std::get_if<Step>(&shape_)) return time_s >= step->time_s ? step->value : 0.0;
  return std::get<FromTable>(shape_)->value(channel_, time_s);
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
    case RigReport::End::displaced:
      return "another rig took its place";
  }
  return "unknown";
}

namespace {

std::vector<Channel> channels(const std::vector<RigChannel>& from) {
  std::vector<Channel> to;
  to.reserve(from.size());
  for (const RigChannel& channel : from) to.push_back({channel.name, channel.unit});
  return to;
}

Times percentiles(std::vector<double>& times_us) {
  if (times_us.empty()) return {};
  return {times_us.size(), quantile(times_us, 0.5), quantile(times_us, 0.99), quantile(times_us, 0.999),
          quantile(times_us, 1.0)};
}

void check(const RigOptions& options) {
  if (!(options.rate_hz >= 0.0 && options.rate_hz <= 1e5)) {
    throw config::ConfigError("rate: must lie between 0 (one input per period) and 100000 Hz");
  }
  if (!(options.duration_s >= 0.0 && options.timeout_s > 0.0)) {
    throw config::ConfigError("duration and timeout: must not be negative");
  }
  if (!config::is_utf8(options.name)) throw config::ConfigError("name: is not UTF-8 text: give another name");
  if (options.observe && !options.drives.empty()) {
    throw config::ConfigError("drive: an observer sends no inputs: leave the drives away, or do not observe");
  }
}

// One run of a rig: exchange and what is measured of it.
class RigRun {
 public:
  RigRun(const RigOptions& options, const std::atomic<bool>& stop)
      : options_(options),
        stop_(stop),
        client_({.host = options.host,
                 .port = options.port,
                 .name = options.name,
                 .product_version = options.product_version,
                 .key_file = options.key_file,
                 .observe = options.observe,
                 .timeout_s = options.timeout_s},
                &stop) {
    // the default of 50 us would show up in every round trip
    ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  }

  RigReport run() {
    report_.end = RigReport::End::stopped;
    if (!client_.connected()) return report_;
    describe_link();
    try {
      for (const std::string& text : options_.drives) add_drive(text);
      if (options_.on_connected) options_.on_connected(report_.link);
      exchange();
    } catch (...) {
      client_.leave("failed");
      throw;
    }
    report_.clock = client_.clock();
    client_.leave(to_string(report_.end));
    summarise();
    return report_;
  }

 private:
  void describe_link() {
    const RigServer& server = client_.server();
    report_.link = {.server_version = server.version,
                    .controller = server.controller,
                    .mechanism = server.mechanism,
                    .period_ns = server.period_ns,
                    .lockstep = server.lockstep,
                    .inputs = channels(server.inputs),
                    .outputs = channels(server.outputs)};
    inputs_.assign(server.inputs.size(), 0.0);
  }

  // The last of two on one channel would win unseen.
  void add_drive(const std::string& text) {
    for (Drive& drive : Drive::parse(text, report_.link.inputs)) {
      for (const Drive& other : drives_)
        if (other.channel() == drive.channel())
          throw config::ConfigError("drive \"" + text + "\": channel \"" + report_.link.inputs[drive.channel()].name +
                                    "\" has a drive already: give each channel one");
      drives_.push_back(std::move(drive));
    }
  }

  std::int64_t interval_ns() const {
    return options_.rate_hz > 0.0 ? nanoseconds(1.0 / options_.rate_hz)
                                  : std::max<std::int64_t>(report_.link.period_ns, 1);
  }

  // Often enough that no other rig may take this one's place.
  std::int64_t heartbeat_ns() const {
    return std::max<std::int64_t>(report_.link.period_ns * client_.server().timeout_steps / wire::kHeartbeatShare, 1);
  }

  // Inputs at their rate, states as they come.
  void exchange() {
    const std::int64_t interval = interval_ns(), heartbeat = heartbeat_ns();
    start_ns_ = now_ns();
    last_heard_ns_ = said_ns_ = start_ns_;
    const std::int64_t end = options_.duration_s > 0.0 ? start_ns_ + nanoseconds(options_.duration_s) : INT64_MAX;
    std::int64_t next = options_.observe ? INT64_MAX : start_ns_;
    std::int64_t now = start_ns_;
    while (true) {
      if (stop_.load()) return finish(RigReport::End::stopped, now);
      if (now >= end) return finish(RigReport::End::duration_over, now);
      if (!still_there(now))
        return finish(client_.displaced() ? RigReport::End::displaced : RigReport::End::server_silent, now);
      if (now >= next && !unanswered_) {
        send_inputs(now);
        // what was missed stays missed: a burst of old inputs helps nobody
        next += ((now - next) / interval + 1) * interval;
      } else if (unanswered_ && now >= said_ns_ + kStepAgainAfterNs) {
        said_ns_ = now;
        client_.send(inputs_) ? ++report_.asked_again : ++report_.send_errors;
      } else if (now >= said_ns_ + heartbeat) {
        said_ns_ = now;
        client_.send_heartbeat();
      }
      client_.wait_until(std::min({unanswered_ ? said_ns_ + kStepAgainAfterNs : next, said_ns_ + heartbeat, end}));
      for (auto arrival = client_.receive(); arrival != RigClient::Arrival::nothing; arrival = client_.receive()) {
        if (arrival == RigClient::Arrival::goodbye)
          return finish(client_.displaced() ? RigReport::End::displaced : RigReport::End::server_stopped, now_ns());
        if (arrival == RigClient::Arrival::state) take_state(now_ns());
      }
      now = now_ns();
    }
  }

  // Asks a silent server anew while there is time.
  bool still_there(std::int64_t now) {
    const std::int64_t timeout = nanoseconds(options_.timeout_s);
    const std::int64_t silent = now - last_heard_ns_;
    if (silent <= timeout / 3) return true;
    if (silent > timeout) return false;
    if (!client_.reconnect(static_cast<double>(timeout - silent) * 1e-9)) return stop_.load();
    ++report_.reconnects;
    last_heard_ns_ = now_ns();
    last_echo_ = 0;
    last_step_.reset();
    unanswered_ = false;
    return true;
  }

  void finish(RigReport::End end, std::int64_t now) {
    report_.end = end;
    report_.goodbye = client_.goodbye();
    report_.seconds = static_cast<double>(now - start_ns_) * 1e-9;
  }

  void send_inputs(std::int64_t now) {
    const bool lockstep = report_.link.lockstep;
    const std::uint64_t step = client_.state().step + 1;
    const double time_s = 1e-9 * static_cast<double>(lockstep ? static_cast<std::int64_t>(step) * report_.link.period_ns
                                                              : now - start_ns_);
    for (const Drive& drive : drives_) inputs_[static_cast<std::size_t>(drive.channel())] = drive.value(time_s);
    client_.send(inputs_) ? ++report_.inputs_sent : ++report_.send_errors;
    unanswered_ = lockstep;
    said_ns_ = now;
  }

  void take_state(std::int64_t now) {
    const RigState& state = client_.state();
    Snapshot& last = report_.last;
    last.step = state.step;
    last.sim_time_ns = state.sim_time_ns;
    last.sequence = state.sequence;
    last.rig_time_ns = state.rig_time_ns;
    last.status = static_cast<StepStatus>(state.status);
    last.flags = state.flags;
    last.input_age_steps = state.input_age_steps;
    last.outputs.count = static_cast<int>(state.output.size());
    std::copy(state.output.begin(), state.output.end(), last.outputs.value.begin());
    last_heard_ns_ = now;
    unanswered_ = unanswered_ && state.sequence != client_.sent_inputs();
    if (last_step_ && state.step > *last_step_ + 1) report_.lost += state.step - *last_step_ - 1;
    last_step_ = state.step;
    ++report_.states;
    report_.flags_seen |= state.flags;
    report_.last_status = last.status;
    measure(state, now);
    if (options_.on_state) options_.on_state(last);
  }

  void measure(const RigState& state, std::int64_t now) {
    if (const auto way = client_.delay_to_rig_ns()) to_rig_us_.push_back(static_cast<double>(*way) * 1e-3);
    if (const auto way = client_.delay_to_server_ns()) to_server_us_.push_back(static_cast<double>(*way) * 1e-3);
    // until the first of ours arrives, the server may still echo an earlier rig's
    const bool ours = state.sequence >= 1 && state.sequence <= client_.sent_inputs() && state.rig_time_ns >= start_ns_;
    if (!ours) return;
    report_.max_input_age_steps = std::max(report_.max_input_age_steps, state.input_age_steps);
    if (state.sequence <= last_echo_) return;
    last_echo_ = state.sequence;
    round_trips_us_.push_back(static_cast<double>(now - state.rig_time_ns) * 1e-3);
  }

  void summarise() {
    if (report_.seconds > 0.0) report_.state_rate_hz = static_cast<double>(report_.states) / report_.seconds;
    report_.dropped = client_.refused();
    report_.round_trip = percentiles(round_trips_us_);
    report_.to_server = percentiles(to_server_us_);
    report_.to_rig = percentiles(to_rig_us_);
  }

  const RigOptions& options_;
  const std::atomic<bool>& stop_;
  RigClient client_;
  std::vector<Drive> drives_;
  std::vector<double> inputs_;
  std::int64_t start_ns_ = 0;
  std::int64_t last_heard_ns_ = 0;
  bool unanswered_ = false;   // lockstep: the newest input
  std::int64_t said_ns_ = 0;  // when it or a heartbeat was sent
  std::optional<std::uint64_t> last_step_;
  std::uint64_t last_echo_ = 0;
  std::vector<double> round_trips_us_, to_server_us_, to_rig_us_;
  RigReport report_;
};

}  // namespace

RigReport run_rig(const RigOptions& options, const std::atomic<bool>& stop) {
  check(options);
  return RigRun(options, stop).run();
}

}  // namespace rigstep::server
