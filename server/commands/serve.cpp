// rigstep serve: the live loop.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "server/commands/commands.h"
#include "server/live/commission_verdict.h"
#include "server/live/live_run.h"
#include "server/output/line_limit.h"
#include "server/output/live_display.h"
#include "server/output/terminal.h"
#include "server/view/live_subject.h"
#include "server/view/page_server.h"

namespace rigstep::server {

namespace {

struct ServeOptions {
  std::string rig, record, from;
  double duration = 0.0;
  int port = -1;
  bool json = false, watch = false, view = false;
};

std::atomic<bool> black_box_wanted{false};

void watch_black_box_signal() {
  struct sigaction action {};
  action.sa_handler = [](int) { black_box_wanted.store(true); };
  sigaction(SIGUSR1, &action, nullptr);
}

// Says what happened in the loop since the last look; the loop itself never logs.
class Watch {
 public:
  explicit Watch(LiveRun& live) : live_(live) {}

  void look() {
    tell_events();
    for (const std::string& text : live_.take_key_events()) spdlog::warn("{}", text);
    if (black_box_wanted.exchange(false) && !live_.request_black_box())
      spdlog::warn("there is no black box: give the rig file a `black_box { folder: ... }`");
    tell_losses();
    if (const std::string error = live_.recording_error(); !error.empty() && !std::exchange(recording_failed_, true))
      spdlog::error("THE RECORDING ENDS HERE, stepping goes on: {}", error);
    tell_state();
    tell_fault();
    for (const Recorder::Written& written : live_.take_black_boxes()) {
      if (written.good)
        spdlog::warn("black box: what came before is in {}; see `rigstep replay`", written.text);
      else
        spdlog::error("{}", written.text);
    }
    tell_refused_black_boxes();
  }

 private:
  // A line a second at most, with how many there were.
  void tell_losses() {
    const std::uint64_t missed = live_.missed_deadlines(), lost = live_.lost_records();
    const auto now = std::chrono::steady_clock::now();
    if ((missed == missed_ && lost == lost_) || now < next_losses_told_) return;
    next_losses_told_ = now + std::chrono::seconds(1);
    if (missed > missed_)
      spdlog::warn("{} deadlines missed and skipped, the newest before step {} ({} so far)", missed - missed_,
                   live_.newest_miss_step(), missed);
    if (lost > lost_) spdlog::warn("{} records lost, the disk did not keep up ({} so far)", lost - lost_, lost);
    missed_ = missed;
    lost_ = lost;
  }

  // Anybody may ask: a line now and then is enough.
  void tell_refused_black_boxes() {
    const std::uint32_t refused = live_.refused_black_boxes();
    const auto now = std::chrono::steady_clock::now();
    if (refused == refused_boxes_ || now < next_refusal_told_) return;
    spdlog::warn("{} black boxes refused so far; the newest: {}", refused, live_.newest_black_box());
    refused_boxes_ = refused;
    next_refusal_told_ = now + std::chrono::seconds(10);
  }

  void tell_state() {
    const rt::LifecycleStatus now = live_.lifecycle();
    if (now.state == state_ || now.state == rt::LifecycleState::faulted) return;
    const char* what = "";
    if (now.state == rt::LifecycleState::ready)
      what = ": time stands at the start until a rig takes control or somebody says `rigstep run`";
    if (now.state == rt::LifecycleState::holding) what = ": time stands until `rigstep run`";
    spdlog::info("{}{}", rt::to_string(now.state), what);
    state_ = now.state;
  }

  // What black box a fault has written belongs into its message, so that is waited for, but not for long.
  void tell_fault() {
    const std::string fault = live_.fault();
    if (!fault.empty() && !faulted_) {
      untold_ = fault;
      if (live_.awaits_black_box() && ++looks_at_fault_ < kMostLooks) return;
    }
    if (!untold_.empty())
      spdlog::error("stepping stopped: {}; the last good state is repeated until `rigstep reset`", untold_);
    if (fault.empty() && (faulted_ || !untold_.empty())) spdlog::info("the fault was reset, stepping goes on");
    faulted_ = !fault.empty();
    untold_.clear();
    looks_at_fault_ = 0;
  }

  // Anybody who reaches the port can cause them.
  void tell_events() {
    const auto now = std::chrono::steady_clock::now();
    for (const RigEvent& event : live_.take_events())
      if (event_lines_.take(now)) log(event);
    if (const std::uint64_t more = event_lines_.take_left_out(now); more > 0)
      spdlog::warn("{} more lines about rigs and requests in the last second", more);
  }

  static void log(const RigEvent& event) {
    using Kind = RigEvent::Kind;
    if (event.kind == Kind::reset_fault) return spdlog::info("a reset of the fault was asked for by {}", event.address);
    if (event.kind == Kind::command)
      return spdlog::info("{} was asked for by {}", to_string(transition_of(event.command)), event.address);
    if (event.kind == Kind::parameters) return spdlog::info("parameters were changed by {}", event.address);
    if (event.kind == Kind::black_box) return spdlog::info("a black box was asked for by {}", event.address);
    const char* what = event.kind == Kind::connected     ? "connected"
                       : event.kind == Kind::reconnected ? "connected anew"
                       : event.kind == Kind::left        ? "left"
                       : event.kind == Kind::key_removed ? "ended: its key was removed"
                                                         : "went silent and was dropped";
    spdlog::info("{} \"{}\" (version {}) at {} {}", event.observer ? "observer" : "rig", event.rig_name,
                 event.product_version, event.address, what);
  }

  static constexpr int kMostLooks = 10;   // half a second
  static constexpr int kEventLines = 10;  // a second
  LiveRun& live_;
  LineLimit event_lines_{kEventLines};
  std::optional<rt::LifecycleState> state_;  // that was told
  std::uint64_t missed_ = 0, lost_ = 0;
  int looks_at_fault_ = 0;
  std::uint32_t refused_boxes_ = 0;
  std::chrono::steady_clock::time_point next_refusal_told_ = {}, next_losses_told_ = {};
  std::string untold_;  // fault
  bool faulted_ = false, recording_failed_ = false;
};

// The page that the rig file asks for: an observer of the link, with threads of its own.
struct Page {
  explicit Page(const LiveRun& live) {
    if (!live.rig().page) return;
    const config::RigConfig::Page& wanted = *live.rig().page;
    if (!has_page()) {
      spdlog::warn("view: this rigstep was built without the page");
      return;
    }
    PageOptions options{.address = wanted.address, .port = wanted.port, .control = wanted.control};
    if (!wanted.token_path.empty()) options.token = read_page_token(wanted.token_path);
    const bool is_any = live.rig().address == "0.0.0.0";
    subject = std::make_unique<LiveSubject>(
        LiveOptions{.target = {.host = is_any ? "127.0.0.1" : live.rig().address,
                               .port = live.port(),
                               .key_file = live.rig().key_path},
                    .mechanism = live.mechanism().path,
                    .control = wanted.control,
                    .limits = config::input_policies(live.rig(), live.mechanism().mechanism)});
    server = std::make_unique<PageServer>(options, *subject);
    spdlog::info("view: {}{}", server->link(),
                 wanted.token_path.empty() ? "" : " with #token= and the token of " + wanted.token_path + " behind it");
  }

  std::unique_ptr<LiveSubject> subject;  // outlives the server
  std::unique_ptr<PageServer> server;
};

// What is wrong at the end counts before how it ended.
int exit_code(const LiveSummary& summary) {
  if (!summary.recording_error.empty() || summary.lost_records > 0) return kExitEnvironment;
  if (!summary.fault.empty()) return failed(summary.last_status) ? kExitNumerical : kExitVerdict;
  return interrupted ? interrupted_exit_code() : kExitOk;
}

void tell_commissioning(const LiveRun& live) {
  const CommissionVerdict verdict = read_commission_verdict(live.rig(), live.mechanism().mechanism);
  if (verdict.json.empty())
    spdlog::info("{}", verdict.problem);
  else if (verdict.carried)
    spdlog::info("commissioned: this machine and link carry it");
  else
    spdlog::warn("commissioned with the verdict NOT CARRIED: see {}", commission_verdict_path(live.rig().path));
}

int serve(const ServeOptions& options) {
  using namespace std::chrono_literals;
  config::RigConfig rig = config::load_rig(options.rig);
  if (!options.record.empty()) rig.recording_path = options.record;
  if (!options.from.empty()) {
    rig.snapshot_path = options.from;
    rig.parameters.clear();  // the snapshot has values of all
  }
  if (options.port >= 0) rig.port = static_cast<std::uint16_t>(options.port);
  if (options.view && !rig.page) rig.page.emplace(config::RigConfig::Page{});
  LiveRun live(std::move(rig), options.watch);
  watch_interrupts();
  watch_black_box_signal();
  live.start();
  for (const std::string& warning : start_warnings(live.rig())) spdlog::warn("{}", warning);
  for (const rt::Grant& grant : live.realtime())
    spdlog::log(grant.granted ? spdlog::level::info : spdlog::level::warn, "{}", rt::to_string(grant));
  spdlog::info("{} at {} us steps{}, listening on {}:{}{}{}", live.mechanism().mechanism.name(),
               live.rig().period_ns / 1000, live.rig().lockstep ? " in lockstep with the rig" : "", live.rig().address,
               live.port(), live.rig().key_path.empty() ? "" : ", with the keys of " + live.rig().key_path,
               live.rig().recording_path.empty() ? "" : ", recording to " + live.rig().recording_path);
  if (!live.rig().snapshot_path.empty()) spdlog::info("starts from the snapshot {}", live.rig().snapshot_path);
  if (live.keeps_records()) spdlog::info("{}", live.memory_text());
  tell_commissioning(live);
  std::optional<Page> page(std::in_place, live);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.duration);
  Watch watch(live);
  LiveDisplay display;
  while (!interrupted && (options.duration <= 0.0 || std::chrono::steady_clock::now() < end)) {
    std::this_thread::sleep_for(50ms);
    if (display.on_terminal() && !display.is_due()) continue;
    display.clear();  // the log goes there, too
    watch.look();
    if (display.on_terminal()) display.show(live.look());
  }
  display.clear();
  watch.look();
  page.reset();  // while the server still answers it
  const LiveSummary summary = live.stop(interrupted ? "stopped by the operator" : "duration over");
  if (options.json)
    print_json(summary.json());
  else
    print_text("{}", summary.text());
  return exit_code(summary);
}

}  // namespace

Command add_serve(CLI::App& app) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "Step a mechanism under a deadline and talk to a rig over UDP");
  command->add_option("RIG_FILE", options->rig, "Rig file")->required();
  command->add_option("--duration", options->duration, "Stop after this time [s]; 0: run until stopped")
      ->capture_default_str()
      ->check(between(0.0, kLongest));
  command->add_option("--record", options->record, "Record to this MCAP file instead of the rig file's");
  command->add_option("--from", options->from,
                      "Start with the state and the parameters in a file of `rigstep snapshot`, instead of the rig "
                      "file's start");
  command->add_option("--port", options->port, "UDP port instead of the rig file's; 0: any free one")
      ->check(CLI::Range(0, 65535));
  command->add_flag("--watch", options->watch, "On a terminal: all outputs with their units, not one line only");
  command->add_flag("--view", options->view,
                    "Serve the page that shows it, on http://127.0.0.1:8470 or as the rig file says");
  command->add_flag("--json", options->json, "Print the summary as JSON");
  command->footer(
      std::string(
          "Examples:\n  rigstep serve config/rigs/ci_loopback.textproto\n"
          "  rigstep serve config/rigs/ci_loopback.textproto --duration 60 --record run.mcap --json\n"
          "  rigstep serve config/rigs/ci_loopback.textproto --from warm.snapshot\n\n"
          "Stops on SIGINT (exit code 130) or SIGTERM (0); the recording is closed properly either way. A recording\n"
          "that failed or lost records (4) or a fault that is latched then (6 after a failed step, 1 after stale\n"
          "inputs or missed deadlines) counts first. A disk that hangs is waited for 1.5 s, and what it has not taken\n"
          "is told.\n"
          "A rig that leaves or falls silent: unless the rig file says otherwise, inputs that are 20 steps old go to\n"
          "their safe values within 0.25 s, and after 2 s the run is faulted until `rigstep reset`.\n"
          "SIGUSR1 has the black box written, where the rig file has one.\n\n") +
      kExitCodeHelp);
  return [options] { return serve(*options); };
}

}  // namespace rigstep::server
