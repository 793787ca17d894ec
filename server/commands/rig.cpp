// rigstep rig: a rig in software.
#include "server/rig/rig.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/mechanism/nearest_names.h"
#include "proto/load_rig.h"
#include "proto/printable.h"
#include "server/commands/commands.h"
#include "server/live/session.h"
#include "server/output/csv.h"
#include "server/output/live_display.h"
#include "server/output/plot.h"
#include "server/output/terminal.h"
#include "server/rig/status.h"

namespace rigstep::server {

namespace {

std::string flag_names(std::uint32_t flags) {
  const std::pair<std::uint32_t, const char*> names[] = {{kStaleInput, "stale input"},
                                                         {kOverrun, "overrun"},
                                                         {kRecordLost, "record lost"},
                                                         {kNotConverged, "not converged"},
                                                         {kFaulted, "faulted"},
                                                         {kNoInputYet, "no input yet"},
                                                         {kInputLimited, "input limited"},
                                                         {kMissedTooOften, "deadlines missed too often"},
                                                         {kReady, "ready"},
                                                         {kHolding, "holding"},
                                                         {kControlLost, "control lost"},
                                                         {kInaccurate, "step error above its limit"}};
  std::string text;
  for (const auto& [bit, name] : names)
    if ((flags & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
  return text.empty() ? "none" : text;
}

void print(const RigReport& r) {
  print_text("{} at {} us, {} ({})\n", r.link.mechanism, r.link.period_ns / 1000, to_string(r.end),
             r.goodbye.empty() ? "no goodbye" : r.goodbye);
  print_text("states           {} received at {:.1f} Hz, {} lost\n", r.states, r.state_rate_hz, r.lost);
  print_text("inputs           {} sent in {:.2f} s, oldest used {} steps\n", r.inputs_sent, r.seconds,
             r.max_input_age_steps);
  if (r.round_trip.count > 0)
    print_text("round trip       p50 {:.0f}  p99 {:.0f}  p99.9 {:.0f}  max {:.0f} us, from input to {}\n",
               r.round_trip.p50_us, r.round_trip.p99_us, r.round_trip.p999_us, r.round_trip.max_us,
               r.link.lockstep ? "its step: lockstep"
                               : "the first state that used it: up to one period of it is the wait for the deadline");
  if (r.asked_again > 0) print_text("asked again      {} times, after 20 ms without an answer\n", r.asked_again);
  if (r.clock) {
    print_text("clocks           the server's is {:+.1f} us from ours, +- {:.1f} us\n",
               static_cast<double>(r.clock->offset_ns) * 1e-3, static_cast<double>(r.clock->uncertainty_ns) * 1e-3);
    if (r.to_server.count > 0 && r.to_rig.count > 0)
      print_text(
          "one way          p50 {:.0f}  p99 {:.0f} us to the server, p50 {:.0f}  p99 {:.0f} us to the rig, +- as "
          "above\n",
          r.to_server.p50_us, r.to_server.p99_us, r.to_rig.p50_us, r.to_rig.p99_us);
  }
  if (r.reconnects > 0) print_text("reconnected      {} times after silence\n", r.reconnects);
  for (std::size_t k = 1; k < wire::kDecodeStatusCount; ++k)
    if (r.dropped[k] > 0)
      print_text("datagrams refused {} ({})\n", r.dropped[k], wire::to_string(static_cast<wire::DecodeStatus>(k)));
  print_text("flags seen       {}; last status {}\n", flag_names(r.flags_seen), to_string(r.last_status));
}

nlohmann::json json(const Times& times) {
  return {{"p50", times.p50_us},
          {"p99", times.p99_us},
          {"p99.9", times.p999_us},
          {"max", times.max_us},
          {"count", times.count}};
}

nlohmann::json json(const RigReport& r) {
  nlohmann::json clock;
  if (r.clock)
    clock = {{"offset_us", 1e-3 * static_cast<double>(r.clock->offset_ns)},
             {"uncertainty_us", 1e-3 * static_cast<double>(r.clock->uncertainty_ns)}};
  nlohmann::json dropped = nlohmann::json::object();
  for (std::size_t k = 1; k < wire::kDecodeStatusCount; ++k)
    dropped[wire::to_string(static_cast<wire::DecodeStatus>(k))] = r.dropped[k];
  return {{"schema", 1},
          {"mechanism", r.link.mechanism},
          {"period_ns", r.link.period_ns},
          {"lockstep", r.link.lockstep},
          {"asked_again", r.asked_again},
          {"end", to_string(r.end)},
          {"seconds", r.seconds},
          {"states", r.states},
          {"state_rate_hz", r.state_rate_hz},
          {"lost", r.lost},
          {"inputs_sent", r.inputs_sent},
          {"send_errors", r.send_errors},
          {"max_input_age_steps", r.max_input_age_steps},
          {"reconnects", r.reconnects},
          {"controller", r.link.controller},
          {"round_trip_us", json(r.round_trip)},
          {"clock", clock},
          {"to_server_us", json(r.to_server)},
          {"to_rig_us", json(r.to_rig)},
          {"dropped", dropped},
          {"flags", r.flags_seen},
          {"status", to_string(r.last_status)}};
}

// An output that has to stay within a range, from some time of the rig's on.
struct Expectation {
  std::string text, channel;
  double low = 0.0, high = 0.0;
  int index = -1;  // among the outputs that are sent
  std::uint64_t violations = 0, first_step = 0;
  double worst = 0.0;  // value furthest outside

  void look(const Snapshot& state) {
    const double value = state.outputs.value[index];
    if (value >= low && value <= high) return;
    if (violations++ == 0) first_step = state.step;
    const auto outside = [this](double x) { return std::max(low - x, x - high); };
    if (violations == 1 || outside(value) > outside(worst)) worst = value;
  }
};

// "CHANNEL=LOW..HIGH"
Expectation parse_expectation(const std::string& text) {
  const std::size_t sign = std::min(text.find('='), text.size());
  const std::size_t dots = std::min(text.find("..", sign), text.size());
  const auto part = [&text](std::size_t from, std::size_t to) {
    return finite_number(from < to ? std::string_view(text).substr(from, to - from) : std::string_view());
  };
  const auto low = part(sign + 1, dots), high = part(dots + 2, text.size());
  if (!low || !high || *low > *high)
    throw config::ConfigError("--expect: \"" + text + "\" is no range: write CHANNEL=LOW..HIGH, as angle=-0.2..0.2");
  return {.text = text, .channel = text.substr(0, sign), .low = *low, .high = *high};
}

void find_channel(Expectation& expectation, const std::vector<Channel>& outputs) {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    names.push_back(outputs[k].name);
    if (outputs[k].name == expectation.channel) expectation.index = static_cast<int>(k);
  }
  if (expectation.index < 0)
    throw config::ConfigError("--expect: \"" + expectation.channel +
                              "\" is no output of this server: the nearest are " +
                              quoted_list(nearest_names(names, expectation.channel)));
}

nlohmann::json json(const Expectation& e) {
  return {{"expect", e.text},
          {"met", e.violations == 0},
          {"states_outside", e.violations},
          {"first_step", e.first_step},
          {"worst", e.violations > 0 ? nlohmann::json(e.worst) : nlohmann::json()}};
}

void print(const Expectation& e) {
  if (e.violations == 0)
    print_text("expected         {}: met\n", wire::printable_line(e.text));
  else
    print_text("expected         {}: NOT met in {} states, first at step {}, {:g} at worst\n",
               wire::printable_line(e.text), e.violations, e.first_step, e.worst);
}

struct RigArguments {
  std::string rig_file, host;
  std::vector<std::string> drives, expect;
  double duration = 10.0, rate = 0.0, expect_after = 0.0;
  std::string key, name, plot;
  int port = -1;
  bool observe = false, json = false, watch = false;
};

// What the rig does with what it hears, beside its drives.
class Listener {
 public:
  Listener(const RigArguments& arguments, RigOptions& run) : arguments_(arguments) {
    for (const std::string& text : arguments.expect) expectations_.push_back(parse_expectation(text));
    if (!arguments.plot.empty()) plot_.emplace(arguments.plot);
    run.on_connected = [this](const RigLink& link) { connected(link); };
    run.on_state = [this](const Snapshot& state) { take(state); };
  }

  std::vector<Expectation>& expectations() { return expectations_; }
  void end() { display_.clear(); }

 private:
  void connected(const RigLink& link) {
    link_ = link;
    if (plot_) plot_->name_channels(link.outputs);
    for (Expectation& expectation : expectations_) find_channel(expectation, link.outputs);
  }

  void take(const Snapshot& state) {
    if (plot_) plot_->send(state);
    if (!first_) first_ = state.sim_time_ns;
    if (1e-9 * static_cast<double>(state.sim_time_ns - *first_) >= arguments_.expect_after)
      for (Expectation& expectation : expectations_) expectation.look(state);
    if (step_ && state.step > *step_ + 1) lost_ += state.step - *step_ - 1;
    step_ = state.step;
    if (!display_.is_due()) return;
    std::string text = fmt::format("{}: {}, step {}, {:.3f} s, input {} steps old, {} states lost",
                                   wire::printable(link_.mechanism), state_of_run(state.flags), state.step,
                                   exact_seconds(state.sim_time_ns), state.input_age_steps, lost_);
    if (arguments_.watch) text += channel_table(link_.outputs, state.outputs);
    display_.show(text);
  }

  const RigArguments& arguments_;
  std::vector<Expectation> expectations_;
  std::optional<Plot> plot_;
  LiveDisplay display_;
  RigLink link_;
  std::optional<std::int64_t> first_;  // simulated time of the first state
  std::optional<std::uint64_t> step_;
  std::uint64_t lost_ = 0;
};

// Why the server stopped stepping, and what clears it; where it does not say, what to ask.
void tell_fault(const RigOptions& run) {
  const std::string server = fmt::format("{}:{}", run.host, run.port);
  std::string why = fmt::format("`rigstep status {}` tells why", server);
  try {
    const wire::StatusReport report = query_status({.host = run.host, .port = run.port, .key_file = run.key_file});
    if (!report.fault().empty()) why = wire::printable(report.fault(), 300);
  } catch (const std::exception&) {  // it told nobody
  }
  print_error(
      "rigstep: the server is faulted: {}; clear it by `rigstep reset {}`, or set the run back by "
      "`rigstep reset {} --to start`",
      why, server, server);
}

int run_with(const RigArguments& arguments) {
  config::RigConfig rig;
  if (!arguments.rig_file.empty()) rig = config::load_rig(arguments.rig_file);
  RigOptions run;
  run.host = !arguments.host.empty() ? arguments.host : rig.address;
  run.port = arguments.port > 0 ? static_cast<std::uint16_t>(arguments.port) : rig.port;
  run.product_version = product_version();
  run.key_file = !arguments.key.empty() ? arguments.key : rig.key_path;
  run.name = arguments.name;
  run.observe = arguments.observe;
  run.drives = arguments.drives;
  run.rate_hz = arguments.rate;
  run.duration_s = arguments.duration;
  Listener listener(arguments, run);
  watch_interrupts();
  const RigReport report = run_rig(run, interrupted);
  listener.end();
  const bool met = std::all_of(listener.expectations().begin(), listener.expectations().end(),
                               [](const Expectation& e) { return e.violations == 0; });
  if (arguments.json) {
    nlohmann::json out = json(report);
    out["expectations"] = nlohmann::json::array();
    for (const Expectation& expectation : listener.expectations()) out["expectations"].push_back(json(expectation));
    print_json(out);
  } else {
    print(report);
    for (const Expectation& expectation : listener.expectations()) print(expectation);
  }
  const bool faulted = (report.last.flags & kFaulted) != 0;
  if (faulted) tell_fault(run);
  if (interrupted) return interrupted_exit_code();
  if (report.end == RigReport::End::server_silent || report.end == RigReport::End::displaced) return kExitNetwork;
  return faulted || !met ? kExitVerdict : kExitOk;
}

}  // namespace

Command add_rig(CLI::App& app) {
  auto options = std::make_shared<RigArguments>();
  CLI::App* command = app.add_subcommand("rig", "A rig in software: drive inputs, read states, measure the link");
  command->add_option("RIG_FILE", options->rig_file, "Rig file of the server: tells its address and port");
  command->add_option("--host", options->host, "Server instead of the rig file's");
  command->add_option("--port", options->port, "UDP port instead of the rig file's")->check(CLI::Range(1, 65535));
  command
      ->add_option("--drive", options->drives,
                   "CHANNEL=sine:AMPLITUDE,FREQUENCY_HZ, CHANNEL=step:VALUE[,TIME_S], TABLE.csv with a column t [s] "
                   "and one for each channel that it drives, or CHANNEL=TABLE.csv for one of its columns; repeatable; "
                   "other inputs are zero")
      ->allow_extra_args(false);
  command->add_option("--duration", options->duration, "Stop after this time [s]; 0: run until stopped")
      ->capture_default_str()
      ->check(between(0.0, kLongest));
  command
      ->add_option("--rate", options->rate,
                   "Inputs per second [Hz], at least 1, in lockstep at most; one per step of the server if not given")
      ->check(between(1.0, 1e5));
  command->add_option("--key", options->key, "Key file of `rigstep keygen` instead of the rig file's");
  command->add_option("--name", options->name,
                      "Name of this rig, for the server's log and status, and to take its own place again after it was "
                      "killed; made of program, machine and process if not given");
  command->add_flag("--observe", options->observe, "Send no inputs: receive beside the rig that is in control");
  command->add_option("--plot", options->plot,
                      "udp://HOST:PORT: send every state as JSON to PlotJuggler's UDP server (protocol JSON)");
  command
      ->add_option("--expect", options->expect,
                   "CHANNEL=LOW..HIGH: exit code 1 where an output leaves this range; repeatable")
      ->allow_extra_args(false);
  command
      ->add_option("--expect-after", options->expect_after, "From so much simulated time after the first state on [s]")
      ->check(between(0.0, kLongest));
  command->add_flag("--watch", options->watch, "On a terminal: all outputs with their units, not one line only");
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->footer(
      std::string(
          "Examples:\n  rigstep rig config/rigs/ci_loopback.textproto --drive drive=sine:2,0.5\n"
          "  rigstep rig --host 127.0.0.1 --port 47001 --duration 5 --json\n"
          "  rigstep rig config/rigs/ci_loopback.textproto --observe --plot udp://127.0.0.1:9870\n"
          "  rigstep rig config/rigs/ci_loopback.textproto --observe --watch --expect phi=-4..4\n\n"
          "On a terminal a line tells how it goes. Exit code 1: a fault is latched, or an output left its range.\n\n") +
      kExitCodeHelp);
  return [options] { return run_with(*options); };
}

}  // namespace rigstep::server
