#include "server/machine/commission.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <limits>
#include <thread>

#include "server/live/commission_verdict.h"

namespace rigstep::server {

namespace {

using namespace std::chrono_literals;

constexpr double kShareOfPeriod = 0.8;  // that wake-up and step may take together
constexpr double kMostLost = 0.1;       // states that the rig may miss [%]
constexpr double kPeriodsOfTrip =
    2.0;  // an input waits for the next deadline, and its state comes before the one after
constexpr double kPeriodsOfLockstep = 1.0;
constexpr double kMostWithoutInput = 10.0;  // periods, until both sides know each other [%]
constexpr auto kWaitForRig = 60s;

// The recording is part of the load, and of no use afterwards.
class ScratchRecording {
 public:
  explicit ScratchRecording(config::RigConfig& rig) {
    if (rig.recording_path.empty()) return;
    rig.recording_path = path_ = rig.recording_path + ".commission.mcap";
    remove();
  }
  ~ScratchRecording() { remove(); }
  ScratchRecording(const ScratchRecording&) = delete;
  ScratchRecording& operator=(const ScratchRecording&) = delete;

 private:
  void remove() const {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }
  std::string path_;
};

// The rig in software, or time for a real one.
std::optional<RigReport> run_live(const CommissionRequest& request, LiveRun& live, const std::atomic<bool>& stop,
                                  const std::function<void(double)>& progress) {
  if (!request.rig_elsewhere) {
    RigOptions options;
    options.host = live.rig().address;
    options.port = live.port();
    options.name = "rigstep commission";
    options.product_version = product_version();
    options.key_file = live.rig().key_path;
    options.drives = request.drives;
    options.duration_s = request.seconds;
    options.on_state = [&](const Snapshot& state) {
      progress(1e-9 * static_cast<double>(state.sim_time_ns) / request.seconds);
    };
    return run_rig(options, stop);
  }
  const auto patience = std::chrono::steady_clock::now() + kWaitForRig;
  const auto is_controller = [](const RigEvent& event) {
    return !event.observer && (event.kind == RigEvent::Kind::connected || event.kind == RigEvent::Kind::reconnected);
  };
  for (bool there = false; !there && !stop;) {
    const std::vector<RigEvent> events = live.take_events();
    there = std::any_of(events.begin(), events.end(), is_controller);
    if (!there && std::chrono::steady_clock::now() > patience)
      throw NetworkError(fmt::format("no rig came to {}:{} within a minute: start it, or leave out --rig-elsewhere",
                                     live.rig().address, live.port()));
    std::this_thread::sleep_for(20ms);
  }
  const auto begin = std::chrono::steady_clock::now();
  for (double at = 0.0; at < request.seconds && !stop;
       at = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()) {
    progress(at / request.seconds);
    std::this_thread::sleep_for(50ms);
  }
  return std::nullopt;
}

std::string stage(const char* name, double p50, double p99, double p999, double max, const char* note) {
  return fmt::format("  {:<28}{:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f}  {}\n", name, p50, p99, p999, max, note);
}
std::string stage(const char* name, const LiveSummary::Distribution& d, const char* note) {
  return stage(name, d.p50, d.p99, d.p999, d.max, note);
}
std::string stage(const char* name, const Times& t, const char* note) {
  return t.count == 0 ? std::string() : stage(name, t.p50_us, t.p99_us, t.p999_us, t.max_us, note);
}

nlohmann::json to_json(const LiveSummary::Distribution& d) {
  return {{"p50", d.p50}, {"p99", d.p99}, {"p99.9", d.p999}, {"max", d.max}};
}
nlohmann::json to_json(const Times& t) {
  return {{"p50", t.p50_us}, {"p99", t.p99_us}, {"p99.9", t.p999_us}, {"max", t.max_us}, {"count", t.count}};
}

}  // namespace

std::vector<CommissionLimit> commission_limits() {
  const std::string none = "none";
  return {
      {"periods without an input", fmt::format("{:g} %", kMostWithoutInput)},
      {"deadlines missed", none},
      {"wake-up and step, p99.9 each", fmt::format("{:g} % of the period, together", 100.0 * kShareOfPeriod)},
      {"faults", none},
      {"age of the newest input, p99.9", "below the age at which inputs are stale"},
      {"datagrams refused", none},
      {"datagrams that the system dropped", none},
      {"states overtaken", fmt::format("{:g} %", kMostLost)},
      {"steps not converged", none},
      {"steps above the error limit", "none, where `solver` has an `error_limit`"},
      {"reply, p99.9", "one period"},
      {"records lost", none},
      {"states lost", fmt::format("{:g} %, with the rig in software", kMostLost)},
      {"round trip, p99.9", fmt::format("{:g} periods, the wait for the deadline included, with the rig in software; "
                                        "in lockstep {:g}",
                                        kPeriodsOfTrip, kPeriodsOfLockstep)}};
}

std::vector<CommissionRule> commission_rules(const config::RigConfig& rig, double seconds, const LiveSummary& live,
                                             const std::optional<RigReport>& seen) {
  const double period = 1e-3 * static_cast<double>(rig.period_ns), periods = 1e6 * seconds / period;
  const auto share = [](std::uint64_t part, double of) { return 100.0 * static_cast<double>(part) / of; };
  std::vector<CommissionRule> rules{
      {"periods without an input", std::max(0.0, 100.0 - share(live.steps_with_input, periods)), kMostWithoutInput,
       "%"},
      {"deadlines missed", static_cast<double>(live.missed_deadlines), 0.0, ""},
      {"wake-up and step, p99.9 each", live.wake_up_us.p999 + live.step_us.p999, kShareOfPeriod * period, "us"},
      {"faults", static_cast<double>(live.faults), 0.0, ""},
      {"age of the newest input, p99.9", live.input_age_steps.p999, rig.max_input_age_steps - 1.0, "steps"}};
  double refused = 0.0;
  for (const std::uint64_t dropped : live.link.dropped) refused += static_cast<double>(dropped);
  rules.push_back({"datagrams refused", refused, 0.0, ""});
  rules.push_back({"datagrams that the system dropped",
                   static_cast<double>(live.link.queue_overflows + live.link.send_errors), 0.0, ""});
  rules.push_back({"states overtaken", share(live.link.overtaken, periods), kMostLost, "%"});
  rules.push_back({"steps not converged", static_cast<double>(live.not_converged_steps), 0.0, ""});
  if (!rig.error_limit.is_none())
    rules.push_back({"steps above the error limit", static_cast<double>(live.inaccurate_steps), 0.0, ""});
  rules.push_back({"reply, p99.9", live.reply_us.p999, period, "us"});
  if (!live.recording.empty()) rules.push_back({"records lost", static_cast<double>(live.lost_records), 0.0, ""});
  if (!seen) return rules;
  const double states = static_cast<double>(seen->states), lost = static_cast<double>(seen->lost);
  rules.push_back({"states lost", states > 0.0 ? 100.0 * lost / (states + lost) : 100.0, kMostLost, "%"});
  const bool measured = seen->round_trip.count > 0;
  rules.push_back({"round trip, p99.9", measured ? seen->round_trip.p999_us : std::numeric_limits<double>::infinity(),
                   (rig.lockstep ? kPeriodsOfLockstep : kPeriodsOfTrip) * period, "us"});
  return rules;
}

bool CommissionReport::carried() const {
  return std::all_of(rules.begin(), rules.end(), [](const CommissionRule& rule) { return rule.holds(); });
}

double CommissionReport::margin() const {
  double least = 1.0;
  for (const CommissionRule& rule : rules)
    if (rule.unit == "us") least = std::min(least, 1.0 - rule.value / rule.limit);
  return least;
}

std::string CommissionReport::text() const {
  std::string out =
      fmt::format("{} at {} us for {:.1f} s, {}\n\n  {:<28}{:>9} {:>9} {:>9} {:>9}  [us]\n", live.mechanism,
                  period_ns / 1000, live.seconds, rig_file, "stage", "p50", "p99", "p99.9", "max");
  out += stage("wake-up", live.wake_up_us, "after the deadline");
  out += stage("step", live.step_us, "");
  out += stage("hand-off", live.hand_off_us, "from the answer to the network thread");
  out += stage("reply", live.reply_us, "from the deadline until it was sent");
  if (rig) {
    out += stage("round trip", rig->round_trip, "the wait for the deadline included");
    if (rig->clock) {
      const std::string note = fmt::format("+- {:.0f} us", 1e-3 * static_cast<double>(rig->clock->uncertainty_ns));
      out += stage("to the server", rig->to_server, note.c_str());
      out += stage("to the rig", rig->to_rig, note.c_str());
    }
  } else {
    out += "  round trip                  is measured at the rig's end: rigstep rig --json\n";
  }
  out += "beside it\n";
  out += echo.problem.empty() ? stage("raw UDP echo", echo.round_trip, fmt::format("{} lost", echo.lost).c_str())
                              : fmt::format("  {:<28}{}\n", "raw UDP echo", echo.problem);
  out += cyclictest.problem.empty() ? stage("cyclictest", cyclictest.wake_up, "wake-ups of a thread that does nothing")
                                    : fmt::format("  {:<28}{}\n", "cyclictest", cyclictest.problem);
  out += fmt::format("  {:<28}{}\n", "pauses of the core", pauses.text());
  for (const std::string& line : realtime) out += fmt::format("  {}\n", line);
  out += "rules\n";
  for (const CommissionRule& rule : rules)
    out += fmt::format("  {}  {:<36}{:>9.6g} of at most {:.6g} {}\n", rule.holds() ? "pass" : "FAIL", rule.what,
                       rule.value, rule.limit, rule.unit);
  out += carried() ? fmt::format("verdict: this machine and link carry {} at {} us; margin {:.0f} %\n", live.mechanism,
                                 period_ns / 1000, 100.0 * margin())
                   : fmt::format("verdict: NOT CARRIED: {} at {} us; rigstep doctor says what to fix\n", live.mechanism,
                                 period_ns / 1000);
  return out;
}

nlohmann::json CommissionReport::json() const {
  nlohmann::json stages{{"wake_up", to_json(live.wake_up_us)},
                        {"step", to_json(live.step_us)},
                        {"hand_off", to_json(live.hand_off_us)},
                        {"reply", to_json(live.reply_us)}};
  if (rig) {
    stages["round_trip"] = to_json(rig->round_trip);
    stages["to_server"] = to_json(rig->to_server);
    stages["to_rig"] = to_json(rig->to_rig);
    stages["clock_uncertainty"] =
        rig->clock ? nlohmann::json(1e-3 * static_cast<double>(rig->clock->uncertainty_ns)) : nlohmann::json();
  }
  nlohmann::json test{{"problem", cyclictest.problem}}, raw{{"problem", echo.problem}};
  if (cyclictest.problem.empty()) test["wake_up_us"] = to_json(cyclictest.wake_up);
  if (echo.problem.empty()) raw.update({{"round_trip_us", to_json(echo.round_trip)}, {"lost", echo.lost}});
  nlohmann::json all = nlohmann::json::array();
  for (const CommissionRule& rule : rules)
    all.push_back({{"rule", rule.what},
                   {"value", std::isfinite(rule.value) ? nlohmann::json(rule.value) : nlohmann::json()},
                   {"at_most", rule.limit},
                   {"unit", rule.unit},
                   {"holds", rule.holds()}});
  return {{"schema", 1},
          {"carried", carried()},
          {"margin", std::isfinite(margin()) ? nlohmann::json(margin()) : nlohmann::json()},
          {"measured", measured},
          {"mechanism", live.mechanism},
          {"period_us", period_ns / 1000},
          {"seconds", live.seconds},
          {"steps", live.steps},
          {"rig_elsewhere", !rig.has_value()},
          {"stages_us", stages},
          {"cyclictest", test},
          {"udp_echo", raw},
          {"pauses", pauses.json()},
          {"rules", all},
          {"realtime", realtime},
          {"identity", identity}};
}

CommissionReport commission(const CommissionRequest& request, const std::atomic<bool>& stop,
                            const std::function<void(const char* what, double done)>& progress) {
  config::RigConfig rig = config::load_rig(request.rig_file);
  if (request.port >= 0) rig.port = static_cast<std::uint16_t>(request.port);
  CommissionReport report;
  report.rig_file = request.rig_file;
  report.period_ns = rig.period_ns;
  report.measured = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  {
    config::RigConfig run = rig;
    const ScratchRecording scratch(run);
    LiveRun live(run);
    live.start();
    for (const rt::Grant& grant : live.realtime()) report.realtime.push_back(rt::to_string(grant));
    report.identity = commission_identity(rig, live.mechanism().mechanism);
    report.rig = run_live(request, live, stop, [&](double done) { progress("live", done); });
    report.live = live.stop("commissioning over");
  }
  report.rules = commission_rules(rig, request.seconds, report.live, report.rig);
  if (stop) return report;
  progress("pauses of the core", 0.0);
  report.pauses = measure_pauses(loop_of(rig), request.seconds, stop);
  if (stop) return report;
  progress("cyclictest", 0.0);
  report.cyclictest = run_cyclictest(loop_of(rig), request.seconds, stop);
  if (request.rig_elsewhere)
    report.echo.problem = "needs a partner at the rig's end: commission without --rig-elsewhere";
  else if (!stop)
    report.echo = run_udp_echo({.address = rig.address, .thread = loop_of(rig), .period_ns = rig.period_ns},
                               request.seconds, stop, [&](double done) { progress("UDP echo", done); });
  return report;
}

}  // namespace rigstep::server
