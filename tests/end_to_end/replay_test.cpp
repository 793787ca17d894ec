// A run, its recording and the replay of it: bit-exact where nothing was changed, and an answer that names step, body
// and size where something was.
#include "server/live/replay.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "proto/recording_reader.h"
#include "proto/recording_writer.h"
#include "rt/clock.h"
#include "server/live/commission_verdict.h"
#include "server/live/live_run.h"
#include "server/live/recorder.h"
#include "server/live/session.h"
#include "server/machine/commission.h"
#include "server/rig/rig.h"
#include "server/rig/rig_client.h"
#include "server/rig/status.h"

namespace rigstep::server {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Verdict = ReplayReport::Verdict;

constexpr std::uint32_t kFullStateEvery = 100;

// A folder that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "rigstep_replay_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }

 private:
  std::string path_;
};

// A rig file for the four-bar that records to run.mcap in the folder.
std::string rig_file(const Folder& folder, const std::string& stale_input = "") {
  return folder.write("rig.textproto", "mechanism: \"" RIGSTEP_SOURCE_DIR
                                       "/config/mechanisms/four_bar.textproto\"\n"
                                       "period_us: 1000\n"
                                       "lifecycle { start: AT_ONCE }\n"
                                       "recording { path: \"" +
                                           folder.file("run.mcap") + "\" full_state_every: " +
                                           std::to_string(kFullStateEvery) + " }\n" + stale_input);
}

config::RigConfig rig_config(const Folder& folder, const std::string& stale_input = "") {
  config::RigConfig rig = config::load_rig(rig_file(folder, stale_input));
  rig.port = 0;
  return rig;
}

const std::atomic<bool> kGoOn{false};

RigReport drive(std::uint16_t port, double seconds) {
  RigOptions options;
  options.port = port;
  options.product_version = product_version();
  options.drives = {"drive=sine:2,1"};
  options.duration_s = seconds;
  return run_rig(options, kGoOn);
}

// The live run that the tests below take apart; made once.
struct Recorded {
  Recorded() {
    LiveRun live(rig_config(folder));
    live.start();
    rig = drive(live.port(), 2.0);
    summary = live.stop("the test is over");
  }
  Folder folder;
  std::string path = folder.file("run.mcap");
  RigReport rig;
  LiveSummary summary;
};

const Recorded& recorded() {
  static const Recorded kRun;
  return kRun;
}

// What rewrite() lets a test change, item by item; false leaves the item out.
struct Changes {
  std::function<void(wire::RecordingHeader&)> header = [](wire::RecordingHeader&) {};
  std::function<bool(wire::RecordedStep&)> step = [](wire::RecordedStep&) { return true; };
  std::function<bool(wire::RecordedState&)> state = [](wire::RecordedState&) { return true; };
};

// A copy of a recording with changes, closed properly. Full states follow the step they belong to at once.
std::string rewrite(const Folder& folder, const std::string& from, const Changes& changes) {
  wire::RecordingReader reader(from);
  std::vector<wire::RecordedStep> steps;
  std::vector<std::vector<double>> outputs;
  std::map<std::uint64_t, wire::RecordedState> states;
  wire::RecordedStep step;
  wire::RecordedState state;
  for (auto item = reader.next(step, state); item != wire::RecordingReader::Item::end; item = reader.next(step, state))
    if (item == wire::RecordingReader::Item::step) {
      steps.push_back(step);
      outputs.emplace_back(reader.outputs().begin(), reader.outputs().end());
    } else {
      states[state.step()] = state;
    }
  REQUIRE_FALSE(reader.damage());
  REQUIRE(reader.footer());

  wire::RecordingHeader header = reader.header();
  changes.header(header);
  const std::string path = folder.file("changed.mcap");
  wire::RecordingWriter writer(path, header, 1);
  for (std::size_t k = 0; k < steps.size(); ++k) {
    wire::RecordedStep& next = steps[k];
    const auto full = states.find(next.step());
    if (changes.step(next)) writer.write(next, outputs[k], next.sim_time_ns());
    if (full != states.end() && changes.state(full->second)) writer.write(full->second, full->second.sim_time_ns());
  }
  writer.finish(*reader.footer());
  return path;
}

// Much less is rounded away within a few steps.
double a_millionth_more(double value) { return value + 1e-6; }

struct Finished {
  int code = -1;
  std::string output;
};

// Runs the rigstep binary to its end; both of its streams come back.
Finished rigstep(const std::string& arguments) {
  std::FILE* pipe = ::popen((std::string(RIGSTEP_BINARY) + " " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Finished run;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) run.output += static_cast<char>(c);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) run.code = WEXITSTATUS(status);
  return run;
}

// `rigstep serve` as a process of its own, killed without warning.
class Served {
 public:
  Served(const Folder& folder, const std::string& rig) : log_(folder.file("serve.log")) {
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      const int log = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      ::dup2(log, STDOUT_FILENO);
      ::dup2(log, STDERR_FILENO);
      ::execl(RIGSTEP_BINARY, "rigstep", "serve", rig.c_str(), "--port", "0", nullptr);
      ::_exit(127);
    }
  }
  ~Served() { kill(); }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  std::uint16_t port() const {
    for (const auto end = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < end;) {
      std::ifstream file(log_);
      const std::string text(std::istreambuf_iterator<char>(file), {});
      const auto at = text.find("listening on 127.0.0.1:");
      const auto line_end = text.find('\n', at);
      if (at != std::string::npos && line_end != std::string::npos)
        return static_cast<std::uint16_t>(std::stoi(text.substr(at + 23)));
      std::this_thread::sleep_for(10ms);
    }
    FAIL("the server did not start");
    return 0;
  }

 private:
  std::string log_;
  ::pid_t child_ = -1;
};

// What a recording made now says about the commissioning.
std::string commissioning_recorded(const Folder& folder) {
  config::RigConfig rig = config::load_rig(folder.file("rig.textproto"));
  rig.port = 0;
  rig.recording_path = folder.file("after.mcap");
  fs::remove(rig.recording_path);
  LiveRun live(rig);
  live.start();
  live.stop("the test is over");
  return wire::RecordingReader(rig.recording_path).header().commissioning();
}

TEST_CASE("the verdict of a commissioning goes into the recordings of what was commissioned, and into no others") {
  const Folder folder;
  const std::string rig = rig_file(folder);
  CHECK(commissioning_recorded(folder).empty());
  const CommissionReport report = commission({.rig_file = rig, .seconds = 0.5, .drives = {"drive=sine:2,1"}, .port = 0},
                                             kGoOn, [](const char*, double) {});
  CHECK(report.live.steps > 0);
  CHECK(report.rig->round_trip.count > 0);
  CHECK(report.echo.round_trip.count + report.echo.lost == 500);
  CHECK_FALSE(fs::exists(folder.file("run.mcap")));  // nor anything else it recorded
  CHECK(std::distance(fs::directory_iterator(folder.file("")), fs::directory_iterator()) == 2);

  const std::string path = folder.write("rig.commissioned.json", report.json().dump(2));
  CHECK(path == commission_verdict_path(rig));
  CHECK(nlohmann::json::parse(commissioning_recorded(folder)) == report.json());
  const ReplayReport replayed = replay(folder.file("after.mcap"), {});
  CHECK(replayed.json()["commissioning"] == report.json());
  CHECK(replayed.text().find(report.carried() ? "\ncommissioned: carried, margin " : "\ncommissioned: NOT CARRIED (") !=
        std::string::npos);
  std::ofstream(rig, std::ios::app) << "# another content\n";
  CHECK(commissioning_recorded(folder).empty());
  CHECK(replay(folder.file("after.mcap"), {}).json()["commissioning"].is_null());
  const config::RigConfig changed = config::load_rig(rig);
  const config::LoadedMechanism mechanism = load_mechanism_file(changed.mechanism_path);
  CHECK(read_commission_verdict(changed, mechanism.mechanism).problem.find("another rig_file") != std::string::npos);
  folder.write("rig.commissioned.json", "[1]");
  CHECK(read_commission_verdict(changed, mechanism.mechanism).problem.find("is no verdict") != std::string::npos);
}

TEST_CASE("a commissioning says yes where every rule holds, and one number beyond its limit makes it a no") {
  config::RigConfig rig;
  rig.period_ns = 1'000'000;
  rig.max_input_age_steps = 20;
  LiveSummary live;
  live.recording = "run.mcap";
  live.steps_with_input = 9000;
  live.wake_up_us.p999 = 300.0;
  live.step_us.p999 = 500.0;
  live.input_age_steps.p999 = 19.0;
  live.reply_us.p999 = 900.0;
  RigReport seen;
  seen.states = 999;
  seen.lost = 0;
  seen.round_trip = {.count = 900, .p999_us = 1500.0};
  const auto verdict = [&rig](const LiveSummary& l, const std::optional<RigReport>& r) {
    CommissionReport report;
    report.rules = commission_rules(rig, 10.0, l, r);
    return report.carried();
  };
  CHECK(verdict(live, seen));
  CHECK(verdict(live, std::nullopt));
  CommissionReport report;
  report.rules = commission_rules(rig, 10.0, live, seen);
  CHECK(report.margin() == doctest::Approx(0.0));  // 300 + 500 us of 80 % of the period

  const auto spoilt = [&](const std::function<void(LiveSummary&, RigReport&)>& spoil) {
    LiveSummary l = live;
    RigReport r = seen;
    spoil(l, r);
    return !verdict(l, r);
  };
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.missed_deadlines = 1; }));
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.step_us.p999 = 501.0; }));
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.wake_up_us.p999 = 301.0; }));
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.reply_us.p999 = 1001.0; }));
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.faults = 1; }));
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.input_age_steps.p999 = 20.0; }));
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.link.dropped[1] = 1; }));
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.lost_records = 1; }));
  CHECK(spoilt([](LiveSummary&, RigReport& r) { r.lost = 2; }));
  CHECK(spoilt([](LiveSummary&, RigReport& r) { r.states = 0; }));
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.not_converged_steps = 1; }));
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.steps_with_input = 8999; }));  // a rig that hardly said anything
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.link.queue_overflows = 1; }));
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.link.send_errors = 1; }));
  CHECK(spoilt([](LiveSummary& l, RigReport&) { l.link.overtaken = 11; }));
  CHECK(spoilt([](LiveSummary&, RigReport& r) { r.round_trip.p999_us = 2001.0; }));
  CHECK(spoilt([](LiveSummary&, RigReport& r) { r.round_trip.count = 0; }));
}

TEST_CASE("what cyclictest says is understood, and what it cannot do is told in its words") {
  const Cyclictest good = parse_cyclictest(
      "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000003 000001\n000010 000098\n# Total: 000000099\n# Min "
      "Latencies: 00003\n# Avg Latencies: 00010\n# Max Latencies: 00063\n# Histogram Overflows: 00001\n");
  CHECK(good.problem.empty());
  CHECK(good.wake_up.count == 100);
  CHECK(good.wake_up.p50_us == doctest::Approx(10.0).epsilon(0.05));
  CHECK(good.wake_up.max_us == 63.0);
  CHECK(parse_cyclictest("Unable to change scheduling policy!\neither run as root\n\n").problem ==
        "failed: either run as root");
  CHECK(parse_cyclictest("").problem == "failed: it said nothing");
}

TEST_CASE("a live run replays bit for bit over every step") {
  const Recorded& run = recorded();
  CHECK(run.rig.end == RigReport::End::duration_over);
  CHECK(run.rig.states > 1000);
  CHECK(run.summary.lost_records == 0);
  CHECK(run.summary.recording_error.empty());
  CHECK(run.summary.recorded_steps == run.summary.steps);

  const ReplayReport report = replay(run.path, {});
  CHECK(report.verdict == Verdict::bit_exact);
  CHECK(report.same_build);
  CHECK(report.steps == run.summary.steps);
  CHECK(report.not_recorded == 0);
  CHECK(report.damage.empty());
  CHECK(report.fault.empty());
  CHECK(report.reason == "the test is over");
  CHECK(report.mechanism == "four_bar");
}

TEST_CASE("every full state of a live run is compared") {
  const Recorded& run = recorded();
  std::uint64_t states = 0;
  wire::RecordingReader reader(run.path);
  wire::RecordedStep step;
  wire::RecordedState state;
  for (auto item = reader.next(step, state); item != wire::RecordingReader::Item::end; item = reader.next(step, state))
    states += item == wire::RecordingReader::Item::state;
  CHECK(states >= run.summary.steps / kFullStateEvery);
  CHECK(replay(run.path, {}).states == states);
}

TEST_CASE("a replay from a step on begins at the full state before it, with the bits of the whole replay") {
  const Recorded& run = recorded();
  const std::uint64_t from = run.summary.steps / 2 + 7;
  std::vector<std::uint64_t> whole, repeated;  // hashes of the states
  std::vector<std::uint64_t> step;
  replay(run.path, {}, [&](const ReplayedStep& at) {
    whole.push_back(at.state->hash());
    step.push_back(at.recorded.step);
    return true;
  });
  std::size_t k = 0;
  std::uint64_t first = 0;
  replay(
      run.path, {},
      [&](const ReplayedStep& at) {
        REQUIRE(at.recorded.step == step[k]);
        if (at.state != nullptr) {
          if (first == 0) first = at.recorded.step;
          REQUIRE(at.state->hash() == whole[k]);
          CHECK(&at.stepper->state() == at.state);
        }
        ++k;
        return at.recorded.step < from + 20;
      },
      from);
  CHECK(step[k - 1] == from + 20);
  CHECK(first > from - kFullStateEvery - 1);
  CHECK(first <= from);
}

TEST_CASE("the sine of the rig is in the recording as it was applied") {
  wire::RecordingReader reader(recorded().path);
  double low = 0.0, high = 0.0;
  for (wire::RecordedStep step; reader.next(step);) {
    REQUIRE(step.input_size() == 1);
    low = std::min(low, step.input(0));
    high = std::max(high, step.input(0));
  }
  CHECK(low == doctest::Approx(-2.0).epsilon(0.01));
  CHECK(high == doctest::Approx(2.0).epsilon(0.01));
}

TEST_CASE("a simulation's recording replays bit for bit, whatever is written of it") {
  const Folder folder;
  for (const char* every : {"1", "7"}) {
    const std::string path = folder.file("simulated." + std::string(every) + ".mcap");
    const Finished run = rigstep("simulate " RIGSTEP_SOURCE_DIR
                                 "/config/mechanisms/double_pendulum.textproto --duration 1 --dt 0.002 --every " +
                                 std::string(every) + " --output " + path);
    CAPTURE(run.output);
    REQUIRE(run.code == 0);
    const ReplayReport report = replay(path, {});
    CHECK(report.verdict == Verdict::bit_exact);
    CHECK(report.steps == 500);
    CHECK(report.states == 500 / static_cast<std::uint64_t>(std::atoi(every)));
  }
}

TEST_CASE("one input changed by a millionth is found at its step, with body and size") {
  constexpr std::uint64_t kStep = 777;
  const Folder folder;
  Changes changes;
  changes.step = [](wire::RecordedStep& step) {
    if (step.step() == kStep) step.set_input(0, a_millionth_more(step.input(0)));
    return true;
  };
  const ReplayReport report = replay(rewrite(folder, recorded().path, changes), {});
  CHECK(report.verdict == Verdict::differs);
  CHECK(report.first_difference == kStep);
  CHECK(report.difference_step == 800);
  CHECK((report.difference_body == "A" || report.difference_body == "B" || report.difference_body == "C"));
  CHECK(report.difference > 0.0);
  CHECK(report.difference < 1e-3);
  CHECK(report.text().find("DIFFERS from step 777 on; at the full state of step 800") != std::string::npos);
}

TEST_CASE("a changed hash is a difference at its step though every number agrees") {
  const Folder folder;
  Changes changes;
  changes.step = [](wire::RecordedStep& step) {
    if (step.step() == 555) step.set_state_hash(step.state_hash() ^ 1);
    return true;
  };
  const ReplayReport report = replay(rewrite(folder, recorded().path, changes), {});
  CHECK(report.verdict == Verdict::differs);
  CHECK(report.first_difference == 555);
  CHECK(report.difference == 0.0);
  CHECK(report.steps == recorded().summary.steps);
  CHECK(report.text().find("ended before the next full state") == std::string::npos);  // there are more than ten
}

TEST_CASE("a changed full state is a difference though every hash agrees") {
  const Folder folder;
  Changes changes;
  changes.state = [](wire::RecordedState& state) {
    if (state.step() == 500) state.set_state(1, state.state(1) + 1e-6);
    return true;
  };
  const ReplayReport report = replay(rewrite(folder, recorded().path, changes), {});
  CHECK(report.verdict == Verdict::differs);
  CHECK(report.difference_step == 500);
  CHECK(report.difference == doctest::Approx(1e-6));
}

TEST_CASE("steps that were not recorded are counted and the rest is compared from the next full state on") {
  const Folder folder;
  Changes changes;
  changes.step = [](wire::RecordedStep& step) { return step.step() < 350 || step.step() >= 395; };
  const ReplayReport report = replay(rewrite(folder, recorded().path, changes), {});
  CHECK(report.verdict == Verdict::bit_exact);
  // 350 to 394 are missing; 395 to 400 are there, but what came before them is not
  CHECK(report.not_recorded == 45);
  CHECK(report.steps == recorded().summary.steps - 51);
}

TEST_CASE("a difference behind a gap is found") {
  const Folder folder;
  Changes changes;
  changes.step = [](wire::RecordedStep& step) {
    if (step.step() == 950) step.set_input(0, a_millionth_more(step.input(0)));
    return step.step() < 350 || step.step() >= 395;
  };
  const ReplayReport report = replay(rewrite(folder, recorded().path, changes), {});
  CHECK(report.verdict == Verdict::differs);
  CHECK(report.first_difference == 950);
  CHECK(report.difference_step == 1000);
}

TEST_CASE("a replay goes on behind a gap that the recorder left") {
  constexpr std::uint64_t kSlots = 64, kBeforeRecorder = 100, kAfter = 200;
  const Folder folder;
  const config::LoadedMechanism mechanism =
      load_mechanism_file(RIGSTEP_SOURCE_DIR "/config/mechanisms/double_pendulum.textproto");
  index3::Stepper stepper = make_stepper(mechanism, {});
  const auto rings = std::make_shared<RecordRings>(
      rt::step_record_bytes(static_cast<int>(stepper.mechanism().input_channels().size()),
                            static_cast<int>(stepper.mechanism().output_channels().size()), 0),
      kSlots, rt::full_state_bytes(stepper.state(), 0), 4);
  rt::Cycle cycle(stepper, {}, {.steps = &rings->steps, .states = &rings->states});
  const std::string path = folder.file("gap.mcap");
  const auto recorder = std::make_shared<Recorder>(rings, all_outputs(mechanism.mechanism));
  recorder->record_to(path, recording_header(mechanism, nullptr, stepper, all_outputs(mechanism.mechanism), {}));
  // nobody empties the ring: 36 of these are lost
  for (std::uint64_t k = 0; k < kBeforeRecorder; ++k) cycle.tick({});
  recorder->start();
  while (recorder->steps_written() < kSlots) std::this_thread::sleep_for(1ms);
  for (std::uint64_t k = 0; k < kAfter; ++k) {
    std::this_thread::sleep_for(500us);
    cycle.tick({});
  }
  CHECK(recorder->stop({}).empty());
  CHECK(cycle.lost_records() == kBeforeRecorder - kSlots);
  const ReplayReport report = replay(path, {});
  CHECK(report.verdict == Verdict::bit_exact);
  CHECK(report.not_recorded == kBeforeRecorder - kSlots);
  CHECK(report.steps == kSlots + kAfter - 1);  // one is the full state that it goes on from
}

TEST_CASE("a recording of another build says so and is compared within a tolerance") {
  const Folder folder;
  Changes changes;
  changes.header = [](wire::RecordingHeader& header) { header.set_compiler("another compiler 99"); };
  const ReplayReport same = replay(rewrite(folder, recorded().path, changes), {});
  CHECK_FALSE(same.same_build);
  CHECK(same.recorded_on.find("another compiler 99") != std::string::npos);
  CHECK(same.verdict == Verdict::bit_exact);

  const auto change_input = [&changes](double amount) {
    changes.step = [amount](wire::RecordedStep& step) {
      if (step.step() == 777) step.set_input(0, step.input(0) + amount);
      return true;
    };
  };
  change_input(1e-9);
  CHECK(replay(rewrite(folder, recorded().path, changes), {}).verdict == Verdict::within_tolerance);
  change_input(1.0);
  CHECK(replay(rewrite(folder, recorded().path, changes), {}).verdict == Verdict::differs);
}

TEST_CASE("a recording for another mechanism than it holds is refused") {
  const Folder folder;
  Changes changes;
  changes.header = [](wire::RecordingHeader& header) { header.set_mechanism_id(header.mechanism_id() + 1); };
  const std::string path = rewrite(folder, recorded().path, changes);
  CHECK_THROWS_AS(replay(path, {}), wire::RecordingError);
}

TEST_CASE("a recording whose mechanism cannot be read is refused as such") {
  const Folder folder;
  Changes changes;
  changes.header = [](wire::RecordingHeader& header) { header.set_mechanism_text("body { mass: x }"); };
  const std::string path = rewrite(folder, recorded().path, changes);
  CHECK_THROWS_AS(replay(path, {}), MechanismFileError);
}

// One step in lockstep, lost datagrams asked for again.
RigState step_once(RigClient& rig, double input) {
  for (const auto end = std::chrono::steady_clock::now() + 5s; std::chrono::steady_clock::now() < end;) {
    REQUIRE(rig.send({&input, 1}));
    rig.wait_until(rt::MonotonicClock::now_ns() + 100'000'000);
    for (auto arrival = rig.receive(); arrival != RigClient::Arrival::nothing; arrival = rig.receive())
      if (arrival == RigClient::Arrival::state) return rig.state();
  }
  FAIL("no answer");
  return {};
}

std::vector<wire::RecordedStep> steps_of(const std::string& path) {
  std::vector<wire::RecordedStep> steps;
  wire::RecordingReader reader(path);
  for (wire::RecordedStep step; reader.next(step);) steps.push_back(step);
  return steps;
}

TEST_CASE("one input sequence gives the same bits live, in lockstep and in replay") {
  const auto live = steps_of(recorded().path);
  const Folder folder;
  LiveRun lockstep(rig_config(folder, "realtime { pace: RIG }\n"));
  lockstep.start();
  {
    RigClient rig({.port = lockstep.port()});
    CHECK(rig.server().lockstep);
    for (const wire::RecordedStep& step : live) REQUIRE(step_once(rig, step.input(0)).step == step.step());
  }
  const LiveSummary summary = lockstep.stop("the test is over");
  CHECK(summary.steps == live.size());
  CHECK(summary.missed_deadlines == 0);

  const auto again = steps_of(folder.file("run.mcap"));
  REQUIRE(again.size() == live.size());
  for (std::size_t k = 0; k < live.size(); ++k) REQUIRE(again[k].state_hash() == live[k].state_hash());
  const ReplayReport report = replay(folder.file("run.mcap"), {});
  CHECK(report.verdict == Verdict::bit_exact);
  CHECK(report.steps == live.size());
}

// The black box that comes next.
Recorder::Written next_black_box(LiveRun& live) {
  for (const auto end = std::chrono::steady_clock::now() + 5s; std::chrono::steady_clock::now() < end;) {
    if (const auto written = live.take_black_boxes(); !written.empty()) return written.front();
    std::this_thread::sleep_for(1ms);
  }
  return {};
}

std::string black_box_file(const Folder& folder, double seconds) {
  return folder.write("boxed.textproto", "mechanism: \"" RIGSTEP_SOURCE_DIR
                                         "/config/mechanisms/four_bar.textproto\"\n"
                                         "realtime { pace: RIG }\n"
                                         "input { channel: \"drive\" most_change_per_step: 1e300 }\n"
                                         "recording { full_state_every: 100 }\n"
                                         "black_box { folder: \"" +
                                             folder.file("") + "\" seconds: " + std::to_string(seconds) +
                                             " least_interval_seconds: 0 reserve_mebibytes: 1 }\n");
}

config::RigConfig boxed_rig(const Folder& folder, double seconds) {
  config::RigConfig rig = config::load_rig(black_box_file(folder, seconds));
  rig.port = 0;
  return rig;
}

TEST_CASE("a fault leaves the last seconds before it on disk, without a recording, and they replay bit for bit") {
  constexpr std::uint64_t kSteps = 2350;
  const Folder folder;
  LiveRun live(boxed_rig(folder, 0.5));
  live.start();
  RigClient rig({.port = live.port()});
  for (std::uint64_t k = 1; k <= kSteps; ++k) step_once(rig, std::sin(0.01 * static_cast<double>(k)));
  CHECK((step_once(rig, 1e300).flags & kFaulted) != 0);
  const Recorder::Written written = next_black_box(live);
  CAPTURE(written.text);
  REQUIRE(written.good);
  CHECK(written.text.starts_with(folder.file("four_bar.black_box.")));

  wire::RecordingReader reader(written.text);
  CHECK(reader.header().start_step() == 1800);  // the newest full state at least 500 steps before the end
  CHECK(reader.header().realtime_size() > 3);
  const ReplayReport report = replay(written.text, {});
  CHECK(report.verdict == Verdict::bit_exact);
  CHECK(report.damage.empty());
  CHECK(report.steps == kSteps - 1800);
  CHECK(report.states >= 5);
  CHECK(report.not_recorded == 0);
  CHECK(report.fault.starts_with("after step 2350: "));
  CHECK(live.fault().ends_with("; what came before is in " + written.text));
  const wire::StatusReport status = query_status({.port = live.port()});
  CHECK(status.fault() == live.fault());
  CHECK(status.black_boxes() == 1);
  CHECK(report.reason.starts_with("black box: fault after step 2350"));
  const auto steps = steps_of(written.text);
  CHECK(steps.size() == kSteps - 1800 + 1);
  CHECK(steps[100].last_increment() > 0.0);
  CHECK(steps[100].position_residual() >= 0.0);
  CHECK(steps[100].step_ns() > 0);

  const LiveSummary summary = live.stop("the test is over");
  CHECK(summary.black_boxes == std::vector{written.text});
  CHECK(summary.recording.empty());
}

// A run that is 250 steps on, all of them in its black box.
struct BoxedRun {
  BoxedRun() {
    live.start();
    rig.emplace(RigClientOptions{.port = live.port()});
    for (int k = 0; k < 250; ++k) step_once(*rig, 0.5);
    std::this_thread::sleep_for(50ms);  // the recorder looks every 10 ms
  }
  Folder folder;
  LiveRun live{boxed_rig(folder, 30.0)};
  std::optional<RigClient> rig;
};

TEST_CASE("a black box on request holds a short run from its start, and one that cannot be written stops nothing") {
  BoxedRun run;
  CHECK(run.live.request_black_box());
  const Recorder::Written written = next_black_box(run.live);
  REQUIRE(written.good);
  const ReplayReport report = replay(written.text, {});
  CHECK(report.verdict == Verdict::bit_exact);
  CHECK(report.steps == 250);
  CHECK(report.reason == "black box: asked for by the operator");

  fs::remove_all(run.folder.file(""));
  run.live.request_black_box();
  const Recorder::Written failed = next_black_box(run.live);
  const wire::StatusReport status = query_status({.port = run.live.port()});
  CHECK(status.black_boxes() == 2);
  CHECK(status.black_box_failed());
  CHECK(status.black_box() == failed.text);
  CHECK_FALSE(failed.good);
  CHECK_FALSE(failed.refused);
  CHECK(failed.text.starts_with("the black box could not be written: " + run.folder.file("")));
  CHECK(step_once(*run.rig, 0.5).step == 251);
  CHECK(run.live.stop("the test is over").black_boxes == std::vector{written.text});
}

TEST_CASE("an operator has a black box written over the link, once for each time it was asked, and is told its name") {
  BoxedRun run;
  const StatusTarget target{.port = run.live.port()};
  const wire::StatusReport before = query_status(target);
  CHECK(before.black_boxes() == 0);
  const wire::StatusReport report = write_black_box(target, before);
  CHECK(report.black_boxes() == 1);
  CHECK_FALSE(report.black_box_failed());
  REQUIRE(report.black_box().starts_with(run.folder.file("four_bar.black_box.")));
  CHECK(replay(report.black_box(), {}).steps == 250);
  // the same request again, as after a lost answer: the answer is the same file
  CHECK(write_black_box(target, before).black_box() == report.black_box());
  CHECK(write_black_box(target, report).black_box() != report.black_box());
  CHECK(run.live.stop("the test is over").black_boxes.size() == 2);
}

// How many files of a kind lie in a folder.
std::size_t files_with(const Folder& folder, const std::string& part_of_name) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder.file("")))
    count += entry.path().filename().string().find(part_of_name) != std::string::npos;
  return count;
}

// Asks so often, one after the other, and returns how many were written.
std::uint32_t ask_for_black_boxes(LiveRun& live, int times) {
  const StatusTarget target{.port = live.port()};
  std::uint32_t written = 0;
  for (int k = 0; k < times; ++k) written += write_black_box(target, query_status(target)).black_box_failed() ? 0 : 1;
  return written;
}

TEST_CASE("black boxes on request keep to their interval, number, bytes and disk, and those of faults still come") {
  struct Limit {
    const char* text;  // in the rig file
    std::uint32_t written;
    const char* why;
  };
  for (const Limit& limit :
       {Limit{"least_interval_seconds: 3600", 1, "black_box.least_interval_seconds of the rig file is 3600"},
        Limit{"least_interval_seconds: 0 most_files: 4", 2, "this run has written 2 files, 2 of them on request"},
        Limit{"least_interval_seconds: 0 most_mebibytes: 3", 1, "black_box.most_mebibytes of the rig file is 3, half"},
        Limit{"least_interval_seconds: 0 reserve_mebibytes: 1000000000", 0, "are left to the recording"}}) {
    CAPTURE(limit.text);
    const Folder folder;
    std::string file = config::read_text_file(black_box_file(folder, 30.0));
    file.replace(file.find("least_interval"), std::string::npos, std::string(limit.text) + " }\n");
    config::RigConfig config = config::load_rig(folder.write("limited.textproto", file));
    config.port = 0;
    LiveRun live(std::move(config));
    live.start();
    RigClient rig({.port = live.port()});
    for (int k = 0; k < 1500; ++k) step_once(rig, 0.5);
    std::this_thread::sleep_for(50ms);  // the recorder looks every 10 ms
    CHECK(ask_for_black_boxes(live, 4) == limit.written);
    CHECK(files_with(folder, "black_box") == limit.written);
    CHECK(live.refused_black_boxes() == 4 - limit.written);
    CHECK(live.newest_black_box().find(limit.why) != std::string::npos);
    CHECK(start_warnings(live.rig()).size() == (limit.written == 0 ? 1 : 0));

    // the fault is told with its own file, unless the disk is too full for any
    CHECK((step_once(rig, 1e300).flags & kFaulted) != 0);
    for (int wait = 0; wait < 500 && live.awaits_black_box(); ++wait) std::this_thread::sleep_for(10ms);
    const LiveSummary summary = live.stop("the test is over");
    const bool fits = limit.written > 0;
    CHECK(files_with(folder, "black_box") == limit.written + (fits ? 1 : 0));
    CHECK(summary.refused_black_boxes == 4 - limit.written + (fits ? 0 : 1));
    CHECK(summary.fault.find(fits ? "what came before is in" : "was refused") != std::string::npos);
    CHECK(files_with(folder, ".part") == 0);
  }
}

TEST_CASE("a black box whose folder is not there is told before the run") {
  const Folder folder;
  config::RigConfig rig = boxed_rig(folder, 1.0);
  rig.black_box_folder = folder.file("nowhere");
  CHECK_THROWS_WITH_AS(LiveRun(std::move(rig)), doctest::Contains("black_box.folder: cannot write to"),
                       config::ConfigError);
}

TEST_CASE("a recording ends with how the time was spent, and begins with what the machine granted") {
  wire::RecordingReader reader(recorded().path);
  for (wire::RecordedStep step; reader.next(step);) {
  }
  REQUIRE(reader.footer());
  REQUIRE(reader.footer()->distribution_size() == 5);
  const char* names[] = {"wake_up_ns", "step_ns", "input_age_steps", "hand_off_ns", "reply_ns"};
  for (int k = 0; k < 5; ++k) CHECK(reader.footer()->distribution(k).name() == names[k]);
  // every deadline counts, also those that were skipped
  const LiveSummary& summary = recorded().summary;
  CHECK(reader.footer()->distribution(0).count() == summary.steps + summary.missed_deadlines);
  CHECK(reader.footer()->distribution(3).count() > 1000);
  CHECK(reader.footer()->distribution(4).count() > 1000);
  CHECK(summary.reply_us.p50 > 0.0);
  bool told = false;
  for (const std::string& line : reader.header().realtime()) told = told || line.starts_with("no deep idle states");
  CHECK(told);
}

TEST_CASE("a run that the stale rule stopped replays with its fault") {
  const Folder folder;
  LiveRun live(rig_config(folder, "stale_input { max_age_steps: 100 rule: FAULT }\n"));
  live.start();
  const RigReport rig = drive(live.port(), 0.5);
  for (const auto end = std::chrono::steady_clock::now() + 5s; live.fault().empty();) {
    REQUIRE(std::chrono::steady_clock::now() < end);
    std::this_thread::sleep_for(1ms);
  }
  const LiveSummary summary = live.stop("the test is over");
  CHECK(summary.fault == "no inputs for too long (stale rule)");
  CHECK(summary.steps >= rig.last.step + 98);

  const ReplayReport report = replay(folder.file("run.mcap"), {});
  CHECK(report.verdict == Verdict::bit_exact);
  CHECK(report.not_recorded == 0);
  CHECK(report.fault == "after step " + std::to_string(summary.steps) + ": no inputs for too long (stale rule)");
}

TEST_CASE("a killed server loses at most the last 0.2 s of its recording") {
  const Folder folder;
  Served served(folder, rig_file(folder));
  RigOptions options;
  options.port = served.port();
  options.product_version = product_version();
  options.drives = {"drive=sine:2,1"};
  options.duration_s = 0.0;
  options.timeout_s = 0.3;
  std::uint64_t seen = 0;
  options.on_state = [&](const Snapshot& state) {
    seen = state.step;
    if (state.step >= 2000) served.kill();
  };
  const RigReport rig = run_rig(options, kGoOn);
  CHECK(rig.end == RigReport::End::server_silent);
  CHECK(seen >= 2000);

  const ReplayReport report = replay(folder.file("run.mcap"), {});
  CHECK(report.verdict == Verdict::bit_exact);
  CHECK_FALSE(report.damage.empty());
  CHECK(report.reason.empty());
  CHECK(report.steps + 200 >= seen);
  CHECK(report.not_recorded == 0);
}

}  // namespace
}  // namespace rigstep::server
