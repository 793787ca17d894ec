#include "server/bench/loop.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "rt/clock.h"
#include "rt/histogram.h"
#include "rt/thread_setup.h"
#include "server/live/live_run.h"
#include "server/machine/baseline.h"
#include "server/output/quantile.h"
#include "server/rig/rig_client.h"
#include "server/view/live_subject.h"
#include "server/view/page_server.h"

namespace rigstep::server {

namespace {

constexpr double kMostWakeUp = 1.2;    // times cyclictest
constexpr double kMostBlocking = 1.3;  // times raw datagrams
constexpr double kMostPolling = 2.0;
constexpr double kMostWatched = 1.3;  // times the same unwatched
constexpr int kViewers = 4;
constexpr std::int64_t kNoAnswerNs = 1'000'000'000;
constexpr std::int64_t kPollNs = 10'000'000;  // longer than any round trip

double median(std::vector<double>& values) { return quantile(values, 0.5); }

// The page of a run, and what browsers take from it: its stream.
class Viewers {
 public:
  explicit Viewers(const LiveRun& live)
      : subject_({.target = {.host = live.rig().address, .port = live.port(), .key_file = live.rig().key_path},
                  .mechanism = live.mechanism().path}),
        server_({.port = 0}, subject_) {
    for (int k = 0; k < kViewers; ++k) threads_.emplace_back([this] { read(); });
  }
  ~Viewers() {
    server_.stop();
    for (std::thread& thread : threads_) thread.join();
  }
  Viewers(const Viewers&) = delete;
  Viewers& operator=(const Viewers&) = delete;

 private:
  void read() const {
    httplib::Client client("127.0.0.1", server_.port());
    client.Get("/api/stream", [](const char*, std::size_t) { return true; });  // to its end
  }

  LiveSubject subject_;
  PageServer server_;
  std::vector<std::thread> threads_;
};

// The loop at its deadlines: no rig is connected.
LiveSummary wake_ups(config::RigConfig rig, bool watched, double seconds, std::vector<std::string>& realtime) {
  rig.lockstep = false;
  rig.page.reset();
  LiveRun live(std::move(rig));
  live.start();
  std::optional<Viewers> viewers;
  if (watched) viewers.emplace(live);
  realtime.clear();
  for (const rt::Grant& grant : live.realtime()) realtime.push_back(rt::to_string(grant));
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  LiveSummary summary = live.stop("measured");
  viewers.reset();
  return summary;
}

struct LockstepTrips {
  double p50_us = 0.0, step_us = 0.0;
};

// Step after step as soon as the last one is answered, by a rig on other cores, like the raw datagrams' near end. A rig
// that polls never sleeps.
LockstepTrips lockstep(config::RigConfig rig, bool polling, double seconds, const std::atomic<bool>& stop) {
  rig.lockstep = true;
  rig.busy_poll_ns = polling ? kPollNs : 0;
  LiveRun live(rig);
  live.start();
  const rt::StayOnCores rigs(rt::StayOnCores::Which::others, loop_of(rig).cpu);
  const auto histogram = std::make_unique<rt::Histogram>();
  {
    RigClient client({.host = rig.address, .port = live.port(), .name = "rigstep bench", .key_file = rig.key_path});
    const std::vector<double> inputs(client.server().inputs.size(), 0.0);
    const std::int64_t end = rt::MonotonicClock::now_ns() + std::llround(1e9 * seconds);
    for (std::int64_t now = 0; now < end && !stop;) {
      const std::int64_t sent = rt::MonotonicClock::now_ns();
      client.send(inputs);
      if (!polling) client.wait_until(sent + kNoAnswerNs);
      RigClient::Arrival arrival = client.receive();
      for (now = rt::MonotonicClock::now_ns(); arrival != RigClient::Arrival::state && now < sent + kNoAnswerNs;
           now = rt::MonotonicClock::now_ns()) {
        rt::relax();
        arrival = client.receive();
      }
      if (arrival == RigClient::Arrival::state) histogram->record(now - sent);
    }
  }
  const LiveSummary summary = live.stop("measured");
  return {1e-3 * static_cast<double>(histogram->percentile(50.0)), summary.step_us.p50};
}

struct Rounds {
  std::vector<double> wake_p50, wake_p99, cyclictest_p50, cyclictest_p99;
  std::vector<double> watched_p50, watched_p99;
  std::vector<double> trip[2], step[2], echo[2];  // blocking, polling
  std::vector<double> pauses_per_second, pauses_share;
  std::string cyclictest_problem;
};

void note_pauses(const config::RigConfig& rig, double seconds, const std::atomic<bool>& stop, LoopBenchReport& report,
                 Rounds& rounds) {
  const Pauses found = measure_pauses(loop_of(rig), seconds, stop);
  report.pauses.seconds += found.seconds;
  report.pauses.undisturbed = report.pauses.undisturbed && found.undisturbed;
  rounds.pauses_per_second.push_back(found.per_second);
  rounds.pauses_share.push_back(found.share);
  report.pauses.longest_us = std::max(report.pauses.longest_us, found.longest_us);
}

void measure_wake_ups(const config::RigConfig& rig, double seconds, const std::atomic<bool>& stop,
                      LoopBenchReport& report, Rounds& rounds) {
  const Cyclictest baseline = run_cyclictest(loop_of(rig), seconds, stop);
  rounds.cyclictest_problem = baseline.problem;
  if (baseline.problem.empty()) {
    rounds.cyclictest_p50.push_back(baseline.wake_up.p50_us);
    rounds.cyclictest_p99.push_back(baseline.wake_up.p99_us);
  }
  const LiveSummary loop = wake_ups(rig, false, seconds, report.realtime);
  rounds.wake_p50.push_back(loop.wake_up_us.p50);
  rounds.wake_p99.push_back(loop.wake_up_us.p99);
  report.missed += loop.missed_deadlines;
  report.deadlines += loop.steps;
  const LiveSummary watched = wake_ups(rig, true, seconds, report.realtime);
  rounds.watched_p50.push_back(watched.wake_up_us.p50);
  rounds.watched_p99.push_back(watched.wake_up_us.p99);
  report.missed_watched += watched.missed_deadlines;
}

}  // namespace

config::RigConfig bare_rig(const std::string& rig_file) {
  config::RigConfig rig = config::load_rig(rig_file);
  rig.recording_path.clear();
  rig.black_box_folder.clear();
  rig.port = 0;
  return rig;
}

LoopBenchReport bench_loop(const LoopBenchRequest& request, const std::atomic<bool>& stop,
                           const std::function<void(const char* what, double done)>& progress) {
  const config::RigConfig rig = bare_rig(request.rig_file);
  LoopBenchReport report;
  Rounds rounds;
  for (int round = 0; round < request.rounds && !stop; ++round) {
    const auto say = [&](const char* what, int part) { progress(what, (round + part / 5.0) / request.rounds); };
    say("wake-ups", 0);
    note_pauses(rig, request.seconds, stop, report, rounds);
    measure_wake_ups(rig, request.seconds, stop, report, rounds);
    for (const bool polling : {false, true}) {
      if (stop) break;
      say("raw datagrams", polling ? 3 : 1);
      const UdpEcho echo = run_udp_echo({.address = rig.address, .thread = loop_of(rig), .polling = polling},
                                        request.seconds, stop, [](double) {});
      rounds.echo[polling].push_back(echo.round_trip.p50_us);
      say("lockstep", polling ? 4 : 2);
      const LockstepTrips trips = lockstep(rig, polling, request.seconds, stop);
      rounds.trip[polling].push_back(trips.p50_us);
      rounds.step[polling].push_back(trips.step_us);
    }
  }
  report.phases = measure_loop_phases(rig, request.rounds, stop);
  report.pauses.per_second = median(rounds.pauses_per_second);
  report.pauses.share = median(rounds.pauses_share);
  report.rows = {
      {"wake-up, p50, beside cyclictest", median(rounds.wake_p50), 0.0, median(rounds.cyclictest_p50), kMostWakeUp,
       rounds.cyclictest_problem},
      {"wake-up, p99, beside cyclictest", median(rounds.wake_p99), 0.0, median(rounds.cyclictest_p99), kMostWakeUp,
       rounds.cyclictest_problem},
      {fmt::format("wake-up, p50, {} viewers, beside none", kViewers), median(rounds.watched_p50), 0.0,
       median(rounds.wake_p50), kMostWatched},
      {"... p99", median(rounds.watched_p99), 0.0, median(rounds.wake_p99), kMostWatched},
      {"lockstep round trip, p50, beside raw datagrams", median(rounds.trip[0]), median(rounds.step[0]),
       median(rounds.echo[0]), kMostBlocking},
      {"... both polling", median(rounds.trip[1]), median(rounds.step[1]), median(rounds.echo[1]), kMostPolling}};
  return report;
}

std::string LoopBenchReport::text() const {
  std::string out =
      fmt::format("{:<48}{:>9}{:>9}{:>9}{:>8}{:>9}\n", "[us]", "ours", "of it step", "machine", "ratio", "at most");
  for (const LoopBenchRow& row : rows)
    out += row.problem.empty()
               ? fmt::format("{:<48}{:>9.1f}{:>9.1f}{:>9.1f}{:>8.2f}{:>9.1f}{}\n", row.what, row.ours, row.step,
                             row.machine, row.ratio(), row.at_most, row.ratio() <= row.at_most ? "" : "  MORE")
               : fmt::format("{:<48}{}\n", row.what, row.problem);
  out += fmt::format("missed deadlines: {} of {}; with {} viewers {} in the same time\n", missed, deadlines, kViewers,
                     missed_watched);
  out += phases.text();
  out += "pauses of the loop's core: " + pauses.text() + "\n";
  for (const std::string& line : realtime) out += line + "\n";
  return out;
}

nlohmann::json LoopBenchReport::json() const {
  nlohmann::json all = nlohmann::json::array();
  for (const LoopBenchRow& row : rows)
    all.push_back({{"what", row.what},
                   {"ours_us", row.ours},
                   {"step_us", row.step},
                   {"machine_us", row.machine},
                   {"ratio", row.ratio()},
                   {"at_most", row.at_most},
                   {"problem", row.problem}});
  return {{"schema", 1},
          {"rows", all},
          {"deadlines", deadlines},
          {"missed", missed},
          {"missed_watched", missed_watched},
          {"beside_the_step", phases.json()},
          {"pauses", pauses.json()},
          {"realtime", realtime}};
}

}  // namespace rigstep::server
