// rigstep demo: the main job from end to end, on this machine, with a verdict that fits one screen.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <thread>

#include "core/index3/compile/plan.h"
#include "rt/thread_setup.h"
#include "server/commands/commands.h"
#include "server/live/live_run.h"
#include "server/live/replay.h"
#include "server/machine/commission.h"
#include "server/output/csv.h"
#include "server/output/terminal.h"
#include "server/rig/rig.h"

namespace rigstep::server {

namespace {

constexpr double kReferenceTolerance = 1e-3;  // [m]; at 1 ms the four-bar stays well below through its singular poses
constexpr const char* kDrive = "drive=sine:2,0.5";  // through -90 degrees twice a swing, never slowly

constexpr const char* kDefaultRecording = "rigstep_demo.mcap";

struct DemoOptions {
  std::string recording = kDefaultRecording;
  double duration = 10.0;
  bool tolerates_timing = false;
};

// What the rig saw of the mechanism while it ran.
struct Seen {
  double angle_low = 1e300, angle_high = -1e300;  // of the crank [rad]
  double residual[3] = {0.0, 0.0, 0.0};           // position, velocity, acceleration
};

int channel_named(const std::vector<Channel>& channels, const std::string& name) {
  for (std::size_t c = 0; c < channels.size(); ++c)
    if (channels[c].name == name) return static_cast<int>(c);
  throw Error("the demo's mechanism has no output " + name);
}

RigReport drive_rig(const DemoOptions& options, std::uint16_t port, Seen& seen) {
  RigOptions run;
  run.port = port;
  run.name = "demo";
  run.product_version = product_version();
  run.drives = {kDrive};
  run.duration_s = options.duration;
  int angle = 0, residual = 0;
  run.on_connected = [&](const RigLink& link) {
    angle = channel_named(link.outputs, "phi");
    residual = channel_named(link.outputs, "residual.position");
  };
  Progress progress("live", options.duration);
  run.on_state = [&](const Snapshot& s) {
    seen.angle_low = std::min(seen.angle_low, s.outputs.value[angle]);
    seen.angle_high = std::max(seen.angle_high, s.outputs.value[angle]);
    for (int k = 0; k < 3; ++k) seen.residual[k] = std::max(seen.residual[k], s.outputs.value[residual + k]);
    progress.at(1e-9 * static_cast<double>(s.sim_time_ns));
  };
  return run_rig(run, interrupted);
}

// Largest distance of a mass centre from the reference table over its time span [m].
double reference_deviation(const config::LoadedMechanism& mechanism, const index3::Settings& settings) {
  rt::set_floating_point_mode();
  const Table table = read_csv(shipped_file("references/four_bar.csv"));
  index3::Stepper stepper = make_stepper(mechanism, settings);
  double deviation = 0.0;
  for (const auto& row : table.rows) {
    const auto target =
        static_cast<std::uint64_t>(std::llround(1e9 * row[table.column("t")] / static_cast<double>(settings.dt_ns)));
    while (stepper.state().step < target) stepper.step(Inputs{});
    for (std::size_t i = 0; i < mechanism.mechanism.bodies().size(); ++i) {
      const int x = table.column(mechanism.mechanism.bodies()[i].name + ".x");
      deviation = std::max(deviation, (stepper.state().body[i].r - Vec3(row[x], row[x + 1], row[x + 2])).norm());
    }
  }
  return deviation;
}

void print_line(const char* what, const char* verdict, const std::string& text) {
  print_text("  {:<16}{:<6}{}\n", what, verdict, text);
}

const char* pass(bool good) { return good ? "pass" : "FAIL"; }

// What rigstep commission would find: the rules that do not hold.
bool print_rules(const std::vector<CommissionRule>& rules) {
  bool all_hold = true;
  for (const CommissionRule& rule : rules) {
    if (rule.holds()) continue;
    all_hold = false;
    print_line("commission", "FAIL",
               fmt::format("{}: {:.6g} of at most {:.6g} {}", rule.what, rule.value, rule.limit, rule.unit));
  }
  if (all_hold) print_line("commission", "pass", fmt::format("all {} rules of rigstep commission hold", rules.size()));
  return all_hold;
}

int print_verdict(const LiveSummary& live, const RigReport& rig, const Seen& seen, const ReplayReport& replay,
                  double deviation, const std::vector<CommissionRule>& rules, bool tolerates_timing) {
  const bool linked = rig.states > 0 && rig.end != RigReport::End::server_silent;
  const bool recorded = live.lost_records == 0 && live.recording_error.empty() && live.recorded_steps == live.steps;
  const bool exact = replay.verdict == ReplayReport::Verdict::bit_exact && replay.damage.empty();
  const bool close = deviation < kReferenceTolerance;
  const bool tight = seen.residual[0] < 1e-9 && seen.residual[1] < 1e-6 && seen.residual[2] < 1e-2;
  const double degrees = 180.0 / 3.14159265358979;
  print_text("\nRigstep demo: {} for {:.1f} s at 1 kHz, driven over UDP by {}\n", live.mechanism, live.seconds, kDrive);
  print_line("loop", pass(live.missed_deadlines == 0),
             fmt::format("{} steps, {} deadlines missed and skipped", live.steps, live.missed_deadlines));
  print_line("  wake-up", "",
             fmt::format("p50 {:.0f}  p99 {:.0f}  p99.9 {:.0f}  max {:.0f} us after the deadline", live.wake_up_us.p50,
                         live.wake_up_us.p99, live.wake_up_us.p999, live.wake_up_us.max));
  print_line("  step", "",
             fmt::format("p50 {:.0f}  p99 {:.0f}  p99.9 {:.0f}  max {:.0f} us", live.step_us.p50, live.step_us.p99,
                         live.step_us.p999, live.step_us.max));
  print_line("link", pass(linked),
             fmt::format("{} states at {:.0f} Hz, {} lost ({:.3f} %)", rig.states, rig.state_rate_hz, rig.lost,
                         100.0 * static_cast<double>(rig.lost) /
                             static_cast<double>(std::max<std::uint64_t>(1, rig.lost + rig.states))));
  print_line("  round trip", "",
             fmt::format("p50 {:.0f}  p99 {:.0f}  p99.9 {:.0f}  max {:.0f} us, the wait for the "
                         "deadline included",
                         rig.round_trip.p50_us, rig.round_trip.p99_us, rig.round_trip.p999_us, rig.round_trip.max_us));
  print_line("mechanism", pass(tight && live.fault.empty()),
             fmt::format("crank from {:.0f} to {:.0f} deg; singular at -90 and 90", degrees * seen.angle_low,
                         degrees * seen.angle_high));
  print_line(
      "  residuals", "",
      fmt::format("{:.0e} m, {:.0e} m/s, {:.0e} m/s^2 at most", seen.residual[0], seen.residual[1], seen.residual[2]));
  print_line("recording", pass(recorded),
             fmt::format("{}: {} steps, {} lost", live.recording, live.recorded_steps, live.lost_records));
  print_line("replay", pass(exact),
             exact ? fmt::format("bit-exact over {} steps, {:.0f} times as fast", replay.steps,
                                 live.seconds / std::max(1e-9, replay.seconds))
                   : replay.text());
  print_line("reference", pass(close), fmt::format("undriven, {:.1e} m from the exact solution over 10 s", deviation));
  const bool carried = print_rules(rules);
  const bool right = linked && recorded && exact && close && tight && live.fault.empty();
  print_text("verdict: {}\n", right && carried ? "Rigstep does its job on this machine"
                              : right ? "NOT GOOD: what was computed is right, but this machine did not keep the time; "
                                        "`rigstep doctor` says what helps"
                                      : "NOT GOOD, see above");
  return right && (carried || tolerates_timing) ? kExitOk : kExitVerdict;
}

int demo(const DemoOptions& options) {
  config::RigConfig rig = config::load_rig(shipped_file("rigs/demo.textproto"));
  rig.recording_path = options.recording;
  std::error_code not_there;
  if (options.recording == kDefaultRecording) std::filesystem::remove(options.recording, not_there);  // the last demo's
  rig.port = 0;
  LiveRun live(std::move(rig));
  watch_interrupts();
  live.start();
  for (const rt::Grant& grant : live.realtime())
    if (!grant.granted) spdlog::warn("{}", rt::to_string(grant));
  Seen seen;
  const RigReport report = drive_rig(options, live.port(), seen);
  const config::LoadedMechanism mechanism = live.mechanism();
  const index3::Settings settings = settings_of(live.rig());
  const LiveSummary summary = live.stop(interrupted ? "stopped by the operator" : "duration over");
  if (interrupted) return kExitInterrupted;
  const ReplayReport replayed = replay(summary.recording, {});
  return print_verdict(summary, report, seen, replayed, reference_deviation(mechanism, settings),
                       commission_rules(live.rig(), options.duration, summary, report), options.tolerates_timing);
}

}  // namespace

Command add_demo(CLI::App& app) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* command = app.add_subcommand(
      "demo", "The whole job on loopback: live loop, rig, recording, replay, comparison with a reference");
  command->add_option("--record", options->recording, "Recording to write")->capture_default_str();
  command->add_option("--duration", options->duration, "Live time [s]")
      ->capture_default_str()
      ->check(between(0.5, 3600.0));
  command->add_flag("--tolerate-timing", options->tolerates_timing,
                    "Exit code 0 also where this machine did not keep the time; the verdict tells it all the same");
  command->footer(
      std::string(
          "Examples:\n  rigstep demo\n  rigstep demo --duration 60 --record /tmp/demo.mcap\n\n"
          "Needs no privileges; without them it warns, and deadlines may be missed. The verdict is that of all\n"
          "parts, and of `rigstep commission`. Exit code 1: it is not good.\n\n") +
      kExitCodeHelp);
  return [options] { return demo(*options); };
}

}  // namespace rigstep::server
