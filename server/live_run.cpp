#include "server/live_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <utility>

#include "core/index3/plan.h"
#include "proto/key_file.h"
#include "rt/deadline_loop.h"

namespace rigstep::server {

namespace {

constexpr std::size_t kStepSlots = 16384;  // 16 s at 1 kHz: more than any disk stall
constexpr std::size_t kMaxEvents = 100;
constexpr std::size_t kStateRingBytes = 32u << 20;  // at least 4 states

wire::LoadedMechanism load(const wire::RigConfig& rig) { return load_mechanism_file(rig.mechanism_path); }

rt::RealtimeSettings realtime_settings(const wire::RigConfig& rig) {
  return {.enforce = rig.enforce_realtime, .priority = rig.priority, .cpu = rig.cpu};
}

UdpOptions udp_options(const wire::RigConfig& rig) {
  UdpOptions options{.address = rig.address,
                     .port = rig.port,
                     .allow_unauthenticated = rig.allow_unauthenticated,
                     .timeout_steps = rig.timeout_steps};
  if (!rig.key_path.empty()) options.key = wire::read_key_file(rig.key_path);
  return options;
}

// yesterday's run is not today's to overwrite
wire::RigConfig with_fresh_recording(wire::RigConfig rig) {
  namespace fs = std::filesystem;
  const fs::path path(rig.recording_path);
  if (rig.recording_path.empty() || !fs::is_regular_file(path)) return rig;
  const std::string stem = fmt::format("{}.{:%Y%m%dT%H%M%S}", path.stem().string(), fmt::gmtime(std::time(nullptr)));
  fs::path fresh = path.parent_path() / (stem + path.extension().string());
  for (int n = 2; fs::exists(fresh); ++n)
    fresh = path.parent_path() / fmt::format("{}-{}{}", stem, n, path.extension().string());
  rig.recording_path = fresh.string();
  return rig;
}

// Output channels that the rig file selects, in its order.
std::vector<int> selected_channels(const wire::RigConfig& rig, const Mechanism& m) {
  std::vector<int> channels;
  const auto add = [&](std::size_t k) {
    const int end =
        k + 1 < m.outputs().size() ? m.outputs()[k + 1].first_channel : static_cast<int>(m.output_channels().size());
    for (int c = m.outputs()[k].first_channel; c < end; ++c) channels.push_back(c);
  };
  for (const std::string& name : rig.outputs) {
    const auto found =
        std::find_if(m.outputs().begin(), m.outputs().end(), [&name](const Output& o) { return o.name == name; });
    if (found == m.outputs().end())
      throw wire::ConfigError(rig.path + ": output: \"" + name + "\" is no output of " + m.name() +
                              ": list names of its outputs, or none for all");
    add(static_cast<std::size_t>(found - m.outputs().begin()));
  }
  if (rig.outputs.empty())
    for (std::size_t k = 0; k < m.outputs().size(); ++k) add(k);
  return channels;
}

LiveSummary::Distribution distribution(const rt::Histogram& histogram, double unit) {
  const auto value = [&](double percent) { return unit * static_cast<double>(histogram.percentile(percent)); };
  return {value(50.0), value(99.0), value(99.9), unit * static_cast<double>(histogram.max())};
}

std::string line(const char* name, const LiveSummary::Distribution& d, const char* unit) {
  return fmt::format("{:<22}p50 {:.1f}  p99 {:.1f}  p99.9 {:.1f}  max {:.1f} {}\n", name, d.p50, d.p99, d.p999, d.max,
                     unit);
}

}  // namespace

nlohmann::json LiveSummary::json() const {
  const auto to_json = [](const Distribution& d) {
    return nlohmann::json{{"p50", d.p50}, {"p99", d.p99}, {"p99.9", d.p999}, {"max", d.max}};
  };
  nlohmann::json dropped = nlohmann::json::object();
  for (std::size_t k = 1; k < wire::kDecodeStatusCount; ++k)
    dropped[wire::to_string(static_cast<wire::DecodeStatus>(k))] = link.dropped[k];
  return {{"schema", 1},
          {"mechanism", mechanism},
          {"seconds", seconds},
          {"steps", steps},
          {"missed_deadlines", missed_deadlines},
          {"lost_records", lost_records},
          {"recorded_steps", recorded_steps},
          {"recording", recording},
          {"recording_error", recording_error},
          {"wake_up_us", to_json(wake_up_us)},
          {"step_us", to_json(step_us)},
          {"input_age_steps", to_json(input_age_steps)},
          {"link",
           {{"received", link.received},
            {"accepted", link.accepted},
            {"dropped", dropped},
            {"sent", link.sent},
            {"overtaken", link.overtaken},
            {"send_errors", link.send_errors}}},
          {"fault", fault},
          {"faults", faults},
          {"status", rigstep::to_string(last_status)}};
}

std::string LiveSummary::text() const {
  std::string out =
      fmt::format("{:<22}{} steps in {:.2f} s, {} deadlines missed\n", mechanism, steps, seconds, missed_deadlines);
  out += line("wake-up", wake_up_us, "us after the deadline");
  out += line("step", step_us, "us");
  out += line("input age", input_age_steps, "steps");
  out += fmt::format("{:<22}{} received, {} accepted, {} sent\n", "datagrams", link.received, link.accepted, link.sent);
  if (link.overtaken > 0)
    out +=
        fmt::format("{:<22}{} states, replaced by a newer one before they were sent\n", "  overtaken", link.overtaken);
  for (std::size_t k = 1; k < wire::kDecodeStatusCount; ++k)
    if (link.dropped[k] > 0)
      out += fmt::format("{:<22}{} ({})\n", "  refused", link.dropped[k],
                         wire::to_string(static_cast<wire::DecodeStatus>(k)));
  if (!recording.empty())
    out += fmt::format("{:<22}{}: {} steps, {} lost\n", "recording", recording, recorded_steps, lost_records);
  if (!recording_error.empty()) out += fmt::format("{:<22}{}\n", "recording failed", recording_error);
  if (!fault.empty()) out += fmt::format("{:<22}stepping stopped: {}\n", "fault", fault);
  return out;
}

LiveRun::LiveRun(wire::RigConfig rig)
    : rig_(with_fresh_recording(std::move(rig))),
      mechanism_(load(rig_)),
      realtime_(rt::set_up_process_memory(realtime_settings(rig_))),
      stepper_(make_stepper(mechanism_, settings_of(rig_))),
      steps_(sizeof(StepRecord), kStepSlots),
      states_(rt::full_state_bytes(stepper_.state()),
              std::max<std::size_t>(
                  4, std::min<std::size_t>(256, kStateRingBytes / rt::full_state_bytes(stepper_.state())))),
      codec_(mechanism_.mechanism, selected_channels(rig_, mechanism_.mechanism), rig_.period_ns, product_version()),
      endpoint_(udp_options(rig_), codec_, inputs_, snapshots_,
                {.on_event = [this](const RigEvent& event) { keep_event(event); },
                 .describe_loop = [this](wire::StatusReport& report) { describe_loop(report); },
                 .reset_fault =
                     [this](std::uint32_t number) {
                       const rt::Fault fault = cycle_.fault();
                       if (fault.latched && fault.number == number) cycle_.request_reset(number);
                     }}),
      cycle_(stepper_,
             {.max_age_steps = rig_.max_input_age_steps,
              .stale_rule = rig_.stale_rule,
              .full_state_every = rig_.full_state_every},
             {.in = &inputs_,
              .out = &snapshots_,
              .steps = rig_.recording_path.empty() ? nullptr : &steps_,
              .states = rig_.recording_path.empty() ? nullptr : &states_,
              .wake_fd = endpoint_.wake_fd()}) {}

LiveRun::~LiveRun() {
  if (loop_.joinable()) stop("abandoned");
}

void LiveRun::run_loop() {
  try {
    set_up_.set_value(rt::set_up_loop_thread(realtime_settings(rig_)));
  } catch (...) {
    set_up_.set_exception(std::current_exception());
    return;
  }
  go_.get_future().wait();
  rt::MonotonicClock clock;
  rt::run_deadline_loop(clock, rig_.period_ns, stopping_,
                        [this](const rt::TickTiming& timing) noexcept { cycle_.tick(timing); });
}

std::string LiveRun::fault() const {
  const rt::Fault fault = cycle_.fault();
  if (!fault.latched) return {};
  return describe_fault(mechanism_.mechanism, fault.status, fault.body, fault.joint);
}

// On the network thread: from totals and histograms that may be read live.
void LiveRun::describe_loop(wire::StatusReport& report) const {
  constexpr std::size_t kMaxFaultBytes = 150;  // a report is one datagram
  report.set_loop_state(cycle_.fault().latched ? wire::FAULTED : wire::RUNNING);
  report.set_fault_number(cycle_.fault().number);
  report.set_fault(wire::printable(fault(), kMaxFaultBytes));
  const auto count = [&report](const char* name, std::uint64_t value) {
    wire::Counter& counter = *report.add_counter();
    counter.set_name(name);
    counter.set_count(value);
  };
  count("missed_deadlines", cycle_.missed_deadlines());
  count("lost_records", cycle_.lost_records());
  const auto distribute = [&report](const char* name, const rt::Histogram& histogram) {
    wire::Distribution& distribution = *report.add_distribution();
    distribution.set_name(name);
    distribution.set_count(histogram.count());
    distribution.set_p50(histogram.percentile(50.0));
    distribution.set_p99(histogram.percentile(99.0));
    distribution.set_p999(histogram.percentile(99.9));
    distribution.set_max(histogram.max());
  };
  distribute("wake_up_ns", cycle_.wake_up_ns());
  distribute("step_ns", cycle_.step_ns());
  distribute("input_age_steps", cycle_.input_age_steps());
}

void LiveRun::keep_event(const RigEvent& event) {
  const std::lock_guard lock(events_mutex_);
  if (events_.size() < kMaxEvents) events_.push_back(event);
}

std::vector<RigEvent> LiveRun::take_events() {
  const std::lock_guard lock(events_mutex_);
  return std::exchange(events_, {});
}

void LiveRun::start() {
  loop_ = std::thread([this] { run_loop(); });
  try {
    for (const rt::Grant& grant : set_up_.get_future().get()) realtime_.push_back(grant);
    if (!rig_.recording_path.empty()) {
      std::vector<std::string> lines;
      for (const rt::Grant& grant : realtime_) lines.push_back(rt::to_string(grant));
      const wire::RecordingHeader header = recording_header(mechanism_, &rig_, stepper_, lines);
      recorder_ = std::make_unique<Recorder>(rig_.recording_path, header, steps_, states_);
      recorder_->start();
    }
    endpoint_.start();
  } catch (...) {
    stopping_.store(true);
    go_.set_value();
    loop_.join();
    throw;
  }
  started_ = std::chrono::steady_clock::now();
  go_.set_value();
}

LiveSummary LiveRun::stop(const std::string& reason) {
  stopping_.store(true);
  loop_.join();
  const auto ended = std::chrono::steady_clock::now();
  endpoint_.stop();
  LiveSummary summary;
  summary.mechanism = mechanism_.mechanism.name();
  summary.seconds = std::chrono::duration<double>(ended - started_).count();
  summary.steps = stepper_.state().step;
  summary.missed_deadlines = cycle_.missed_deadlines();
  summary.lost_records = cycle_.lost_records();
  if (recorder_) {
    wire::RecordingFooter footer;
    footer.set_lost_records(summary.lost_records);
    footer.set_missed_deadlines(summary.missed_deadlines);
    footer.set_reason(reason);
    summary.recording = rig_.recording_path;
    summary.recording_error = recorder_->stop(footer);
    summary.recorded_steps = recorder_->steps_written();
    if (!summary.recording_error.empty())  // what the loop handed over did not all arrive
      summary.lost_records = summary.steps - std::min(summary.steps, summary.recorded_steps);
  }
  summary.wake_up_us = distribution(cycle_.wake_up_ns(), 1e-3);
  summary.step_us = distribution(cycle_.step_ns(), 1e-3);
  summary.input_age_steps = distribution(cycle_.input_age_steps(), 1.0);
  summary.link = endpoint_.counters();
  summary.fault = fault();
  summary.faults = cycle_.fault().number;
  summary.last_status = cycle_.record().status;
  return summary;
}

}  // namespace rigstep::server
