// rigstep rig: a rig in software.
#include "server/rig/rig.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "proto/load_rig.h"
#include "server/commands/commands.h"
#include "server/live/session.h"
#include "server/output/plot.h"
#include "server/output/terminal.h"

namespace rigstep::server {

namespace {

std::string flag_names(std::uint32_t flags) {
  const std::pair<std::uint32_t, const char*> names[] = {
      {kStaleInput, "stale input"},     {kOverrun, "overrun"}, {kRecordLost, "record lost"},
      {kNotConverged, "not converged"}, {kFaulted, "faulted"}, {kNoInputYet, "no input yet"},
      {kInputLimited, "input limited"}};
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
    print_text("clocks           the server's is {:+.3f} ms from ours, +- {:.0f} us\n",
               static_cast<double>(r.clock->offset_ns) * 1e-6, static_cast<double>(r.clock->uncertainty_ns) * 1e-3);
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
  if (r.clock) clock = {{"offset_ns", r.clock->offset_ns}, {"uncertainty_ns", r.clock->uncertainty_ns}};
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

}  // namespace

Command add_rig(CLI::App& app) {
  struct RigArguments {
    std::string rig_file, host;
    std::vector<std::string> drives;
    double duration = 10.0, rate = 0.0;
    std::string key, name, plot;
    int port = -1;
    bool observe = false, json = false;
  };
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
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->footer(
      std::string("Examples:\n  rigstep rig config/rigs/ci_loopback.textproto --drive drive=sine:2,0.5\n"
                  "  rigstep rig --host 127.0.0.1 --port 47001 --duration 5 --json\n"
                  "  rigstep rig config/rigs/ci_loopback.textproto --observe --plot udp://127.0.0.1:9870\n\n") +
      kExitCodeHelp);
  return [options]() -> int {
    config::RigConfig rig;
    if (!options->rig_file.empty()) rig = config::load_rig(options->rig_file);
    RigOptions run;
    run.host = !options->host.empty() ? options->host : rig.address;
    run.port = options->port > 0 ? static_cast<std::uint16_t>(options->port) : rig.port;
    run.product_version = product_version();
    run.key_file = !options->key.empty() ? options->key : rig.key_path;
    run.name = options->name;
    run.observe = options->observe;
    run.drives = options->drives;
    run.rate_hz = options->rate;
    run.duration_s = options->duration;
    std::optional<Plot> plot;
    if (!options->plot.empty()) {
      plot.emplace(options->plot);
      run.on_connected = [&plot](const RigLink& link) { plot->name_channels(link.outputs); };
      run.on_state = [&plot](const Snapshot& state) { plot->send(state); };
    }
    watch_interrupts();
    const RigReport report = run_rig(run, interrupted);
    if (options->json)
      print_json(json(report));
    else
      print(report);
    if (interrupted) return interrupted_exit_code();
    if (report.end == RigReport::End::server_silent || report.end == RigReport::End::displaced) return kExitNetwork;
    return (report.last.flags & kFaulted) != 0 ? kExitVerdict : kExitOk;
  };
}

}  // namespace rigstep::server
