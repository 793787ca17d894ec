#include "server/live/live_run.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <system_error>
#include <utility>

#include "core/index3/compile/plan.h"
#include "proto/key_file.h"
#include "proto/printable.h"
#include "rt/deadline_loop.h"
#include "server/output/live_display.h"

namespace rigstep::server {

namespace {

constexpr std::int64_t kRingNs = 16'400'000'000;  // of records: more than any disk stall
constexpr std::size_t kLeastSlots = 1024;
constexpr std::size_t kStateRingBytes = 32u << 20;  // at least 4 states
constexpr std::size_t kMaxEvents = 100;
// for the disk when the run ends: with all else, it has ended two seconds after it was asked to
constexpr std::chrono::milliseconds kPatience{1500};

// They refer to `rig`. operator_key: made where rigs need no key.
UdpOptions udp_options(const config::RigConfig& rig, std::optional<OperatorKey>& operator_key) {
  UdpOptions options{.address = rig.address,
                     .port = rig.port,
                     .allow_unauthenticated = rig.allow_unauthenticated,
                     .timeout_steps = rig.timeout_steps,
                     .max_input_delay_ms = rig.max_input_delay_ms,
                     .place = [&rig] { return config::place_in(rig, "link.address"); }};
  if (!rig.key_path.empty())
    options.keys = {std::make_shared<const wire::Secret<wire::KeyRing>>(wire::read_key_ring(rig.key_path)), true};
  else
    options.keys = {operator_key.emplace().ring(), false};
  return options;
}

// Steps that the black box keeps, and how often a full state stands among them.
std::uint64_t black_box_steps(const config::RigConfig& rig) {
  return static_cast<std::uint64_t>(std::llround(rig.black_box_seconds * 1e9 / static_cast<double>(rig.period_ns)));
}

std::uint32_t full_state_every(const config::RigConfig& rig) {
  if (rig.black_box_folder.empty()) return rig.full_state_every;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(rig.full_state_every, black_box_steps(rig)));
}

// What somebody may ask for in this state, for people.
std::string permitted_commands(rt::LifecycleState state) {
  std::string list;
  for (const wire::Command::Kind kind :
       {wire::Command::RUN, wire::Command::HOLD, wire::Command::STEP, wire::Command::SNAPSHOT,
        wire::Command::RESET_TO_START, wire::Command::RESET_TO_SNAPSHOT, wire::Command::RESET_TO_FILE})
    if (rt::next_state(state, transition_of(kind)))
      list += (list.empty() ? "" : ", ") + std::string(to_string(transition_of(kind)));
  return list;
}

wire::LoopState loop_state(rt::LifecycleState state) {
  switch (state) {
    case rt::LifecycleState::ready:
      return wire::READY;
    case rt::LifecycleState::holding:
      return wire::HOLDING;
    case rt::LifecycleState::faulted:
      return wire::FAULTED;
    case rt::LifecycleState::running:
      break;
  }
  return wire::RUNNING;
}

// The step ring holds the same time at any period, the state ring as many states as that has and memory allows.
std::shared_ptr<RecordRings> make_rings(const config::RigConfig& rig, const index3::Stepper& stepper) {
  const std::size_t state_bytes = rt::full_state_bytes(stepper.state(), stepper.mechanism().parameters().size());
  const std::size_t record_bytes = rt::step_record_bytes(static_cast<int>(stepper.mechanism().input_channels().size()),
                                                         static_cast<int>(stepper.mechanism().output_channels().size()),
                                                         static_cast<int>(stepper.mechanism().parameters().size()));
  if (rig.recording_path.empty() && rig.black_box_folder.empty())
    return std::make_shared<RecordRings>(record_bytes, 1, state_bytes, 1);
  const auto steps = std::max(kLeastSlots, static_cast<std::size_t>(kRingNs / rig.period_ns));
  const std::size_t states =
      std::clamp<std::size_t>(kStateRingBytes / state_bytes, 4, 4 + steps / full_state_every(rig));
  return std::make_shared<RecordRings>(record_bytes, steps, state_bytes, states);
}

// a fault is no time to find out
config::RigConfig with_black_box_folder(config::RigConfig rig) {
  if (!rig.black_box_folder.empty() && ::access(rig.black_box_folder.c_str(), W_OK | X_OK) != 0) {
    const std::string cause = std::generic_category().message(errno);
    throw config::ConfigError(config::place_in(rig, "black_box.folder") + ": cannot write to \"" +
                              rig.black_box_folder + "\" (" + cause + "): make this folder, or name another");
  }
  return rig;
}

config::RigConfig with_fresh_recording(config::RigConfig rig) {
  rig.recording_path = fresh_recording_path(rig.recording_path);
  return rig;
}

std::optional<wire::SnapshotFile> snapshot_named_by(const config::RigConfig& rig) {
  if (rig.snapshot_path.empty()) return std::nullopt;
  return config::read_snapshot(rig.snapshot_path);
}

config::LoadedMechanism mechanism_for(const config::RigConfig& rig, const std::optional<wire::SnapshotFile>& snapshot) {
  config::LoadedMechanism mechanism = load_mechanism_of(rig);
  if (snapshot) config::set_start_parameters(mechanism, *snapshot, rig.snapshot_path);
  return mechanism;
}

LiveSummary::Distribution distribution(const rt::Histogram& histogram, double unit) {
  const auto value = [&](double percent) { return unit * static_cast<double>(histogram.percentile(percent)); };
  return {value(50.0), value(99.0), value(99.9), unit * static_cast<double>(histogram.max())};
}

// From the first quarter that has any to the last.
void set_quarters(const rt::Histogram& histogram, wire::Distribution& distribution) {
  const auto counts = histogram.quarters();
  const auto has_any = [](std::uint64_t count) { return count > 0; };
  const auto first = std::find_if(counts.begin(), counts.end(), has_any);
  const auto last = std::find_if(counts.rbegin(), counts.rend(), has_any).base();
  distribution.set_first_quarter(static_cast<std::uint32_t>(first - counts.begin()));
  for (auto count = first; count < last; ++count) distribution.add_count_of_quarter(*count);
}

}  // namespace

rt::RealtimeSettings realtime_settings(const config::RigConfig& rig) {
  return {.enforce = rig.enforce_realtime, .priority = rig.priority, .cpu = rig.cpu};
}

rt::CycleSettings cycle_settings(const config::RigConfig& rig, const Mechanism& mechanism) {
  return {.max_age_steps = rig.max_input_age_steps,
          .stale_rule = rig.stale_rule,
          .fault_after_steps = rig.fault_after_steps,
          .miss_limits = {.consecutive = rig.consecutive_misses, .per_second = rig.misses_per_second},
          .full_state_every = full_state_every(rig),
          .inputs = config::input_policies(rig, mechanism),
          .safe_outputs = config::safe_outputs(rig, mechanism),
          .error_limit = rig.error_limit,
          .start = rig.start,
          .control_lost = rig.control_lost,
          .soft_start_steps = rig.soft_start_steps};
}

Transition transition_of(wire::Command::Kind kind) {
  switch (kind) {
    case wire::Command::HOLD:
      return Transition::hold;
    case wire::Command::STEP:
      return Transition::step;
    case wire::Command::SNAPSHOT:
      return Transition::snapshot;
    case wire::Command::RESET_TO_START:
      return Transition::reset_to_start;
    case wire::Command::RESET_TO_SNAPSHOT:
      return Transition::reset_to_snapshot;
    case wire::Command::RESET_TO_FILE:
      return Transition::reset_to_file;
    default:
      return Transition::run;
  }
}

std::vector<std::string> start_warnings(const config::RigConfig& rig) {
  std::vector<std::string> texts;
  if (rig.allow_unauthenticated && rig.key_path.empty())
    texts.push_back(config::place_in(rig, "link.allow_unauthenticated") + ": whoever reaches " + rig.address +
                    " may steer this rig; make a key with `rigstep keygen` and name it in `link.key_file`");
  if (rig.black_box_folder.empty()) return texts;
  const std::uint64_t free = free_disk_bytes(rig.black_box_folder);
  if (free < rig.disk_reserve_bytes)
    texts.push_back(
        fmt::format("{}: no black box will be written while only {} MiB of its disk are free and {} MiB are "
                    "left to the recording; free space, or lower black_box.reserve_mebibytes",
                    config::place_in(rig, "black_box.folder"), free >> 20, rig.disk_reserve_bytes >> 20));
  return texts;
}

LiveRun::LiveRun(config::RigConfig rig, bool with_outputs)
    : rig_(with_black_box_folder(with_fresh_recording(std::move(rig)))),
      started_from_(snapshot_named_by(rig_)),
      mechanism_(mechanism_for(rig_, started_from_)),
      realtime_(rt::set_up_process_memory(realtime_settings(rig_))),
      no_deep_idle_(realtime_settings(rig_), realtime_),
      stepper_(make_stepper(mechanism_, settings_of(rig_))),
      poses_(mechanism_.mechanism.bodies().size(), mechanism_.mechanism.input_channels().size(), rig_.period_ns),
      with_outputs_(with_outputs),
      rings_(make_rings(rig_, stepper_)),
      snapshot_rings_(rt::saved_run_bytes({.numbers = {}, .state = std::vector<double>(stepper_.state().flat_size())})),
      key_watch_(rig_.key_path),
      codec_(mechanism_.mechanism, selected_channels(rig_, "output", rig_.outputs, mechanism_.mechanism),
             rig_.period_ns, product_version()),
      endpoint_(udp_options(rig_, operator_key_), codec_, inputs_, snapshots_,
                {.on_event = [this](const RigEvent& event) { keep_event(event); },
                 .describe_loop = [this](wire::StatusReport& report) { describe_loop(report); },
                 .reset_fault =
                     [this](std::uint32_t number) {
                       const rt::Fault fault = cycle_.fault();
                       if (fault.latched && fault.number == number) cycle_.request_reset(number);
                       take_requests_in_lockstep();
                     },
                 .write_black_box = [this](std::uint32_t written) { return request_black_box_after(written); },
                 .command = [this](const wire::Command& asked) { return command(asked); },
                 .set_parameters = [this](const wire::ParameterSet& set) { return set_parameters(set); },
                 .describe_parameters = [this](wire::ParameterReport& report) { parameters_.describe(report); },
                 .save_snapshot = [this](const wire::SnapshotQuery& query,
                                         wire::SnapshotPiece& piece) { return snapshot_files_.save(query, piece); },
                 .load_snapshot = [this](const wire::SnapshotPiece& piece,
                                         wire::SnapshotPiece& receipt) { return snapshot_files_.load(piece, receipt); },
                 .mechanism_text = mechanism_.text,
                 .poses = &poses_}),
      cycle_(stepper_, cycle_settings(rig_, mechanism_.mechanism),
             {.in = &inputs_,
              .out = rig_.lockstep ? nullptr : &snapshots_,
              .display = with_outputs ? &displayed_ : nullptr,
              .steps = keeps_records() ? &rings_->steps : nullptr,
              .states = keeps_records() ? &rings_->states : nullptr,
              .saved = &snapshot_rings_.saved,
              .given = &snapshot_rings_.given,
              .poses = &poses_,
              .wake_fd = rig_.lockstep ? -1 : endpoint_.wake_fd()}),
      parameters_(mechanism_.mechanism, cycle_),
      snapshot_files_(mechanism_, stepper_, cycle_, snapshot_rings_, [this] { take_requests_in_lockstep(); }) {
  if (started_from_)
    cycle_.resume(
        run_in(*started_from_, rig_.snapshot_path, mechanism_.mechanism, stepper_.settings(), stepper_.state()));
  if (!endpoint_.keys_locked())
    key_events_.push_back(
        "keys: the system does not lock their memory, which may come into swap space: raise `ulimit -l`");
  if (!operator_key_) return;
  if (const std::string problem = operator_key_->publish(endpoint_.local_port()); !problem.empty())
    key_events_.push_back("keys: `rigstep reset` and `rigstep blackbox` will not work here, no place for their key: " +
                          problem);
}

LiveRun::~LiveRun() {
  if (loop_.joinable()) stop("abandoned");
}

void LiveRun::run_loop() {
  rt::BusyPoll busy_poll;
  try {
    const rt::RealtimeSettings settings = realtime_settings(rig_);
    rt::ThreadReport report = rt::set_up_loop_thread(settings);
    busy_poll = rt::set_up_busy_poll(rig_.busy_poll_ns, settings, report);
    set_up_.set_value(report);
  } catch (...) {
    set_up_.set_exception(std::current_exception());
    return;
  }
  go_.get_future().wait();
  if (stopping_.load()) return;  // something else did not start
  const rt::ThreadUsage before = rt::thread_usage();
  const auto started = std::chrono::steady_clock::now();
  if (rig_.lockstep) {
    const Lockstep lockstep{.step = [this](const rt::TickTiming& timing) { cycle_.advance(timing); },
                            .keep = [this] { cycle_.keep(); },
                            .answer = cycle_.answer()};
    endpoint_.serve_lockstep(lockstep, busy_poll);
  } else {
    rt::MonotonicClock clock;
    const auto tick = [this](const rt::TickTiming& timing) noexcept { cycle_.tick(timing); };
    rt::run_deadline_loop(clock, rig_.period_ns, stopping_, tick, busy_poll);
  }
  loop_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const rt::ThreadUsage after = rt::thread_usage();
  loop_usage_ = {after.page_faults - before.page_faults, after.involuntary_switches - before.involuntary_switches};
}

std::string LiveRun::fault() const {
  const rt::Fault fault = cycle_.fault();
  if (!fault.latched) return {};
  const std::string why =
      failed(fault.status)
          ? describe_fault(mechanism_.mechanism, fault.status, fault.body, fault.joint, fault.output)
          : describe_stop((fault.by_misses ? kMissedTooOften : 0u) | (fault.by_control_lost ? kControlLost : 0u));
  const std::string box = recorder_ ? recorder_->black_boxes(fault.number).of_fault : std::string();
  return box.empty() ? why : why + "; " + box;
}

bool LiveRun::awaits_black_box() const {
  const rt::Fault fault = cycle_.fault();
  return fault.latched && !rig_.black_box_folder.empty() && recorder_->black_boxes(fault.number).of_fault.empty();
}

// add: gives a new wire::Distribution or wire::RecordedDistribution to fill in.
template <class Add>
void LiveRun::add_distributions(const Add& add) const {
  const std::pair<const char*, const rt::Histogram*> histograms[] = {{"wake_up_ns", &cycle_.wake_up_ns()},
                                                                     {"step_ns", &cycle_.step_ns()},
                                                                     {"input_age_steps", &cycle_.input_age_steps()},
                                                                     {"hand_off_ns", &endpoint_.hand_off_ns()},
                                                                     {"reply_ns", &endpoint_.reply_ns()}};
  for (const auto& [name, histogram] : histograms) {
    auto* const distribution = add();
    distribution->set_name(name);
    distribution->set_count(histogram->count());
    distribution->set_p50(histogram->percentile(50.0));
    distribution->set_p99(histogram->percentile(99.0));
    distribution->set_p999(histogram->percentile(99.9));
    distribution->set_max(histogram->max());
    if constexpr (requires { distribution->first_quarter(); }) set_quarters(*histogram, *distribution);
  }
}

// On the network thread, in lockstep the loop thread: from totals and histograms that may be read live.
void LiveRun::describe_loop(wire::StatusReport& report) const {
  constexpr std::size_t kMaxTextBytes = 250;  // a report is one datagram
  const rt::LifecycleStatus lifecycle = cycle_.lifecycle();
  report.set_loop_state(loop_state(lifecycle.state));
  report.set_transitions(lifecycle.transitions);
  report.set_fault_number(cycle_.fault().number);
  report.set_fault(wire::printable(fault(), kMaxTextBytes));
  report.set_recording_error(wire::printable(recording_error(), kMaxTextBytes));
  const auto count = [&report](const char* name, std::uint64_t value) {
    wire::Counter& counter = *report.add_counter();
    counter.set_name(name);
    counter.set_count(value);
  };
  count("missed_deadlines", cycle_.missed_deadlines());
  count("lost_records", cycle_.lost_records());
  count("first_miss_step", cycle_.first_miss_step());
  count("newest_miss_step", cycle_.newest_miss_step());
  count("limited_inputs", cycle_.limited_inputs());
  count("not_converged_steps", cycle_.not_converged().steps);
  count("inaccurate_steps", cycle_.inaccurate().steps);
  count("refused_black_boxes", refused_black_boxes());
  add_distributions([&report] { return report.add_distribution(); });
  parameters_.describe(report);
  if (!recorder_) return;
  const Recorder::BlackBoxes boxes = recorder_->black_boxes(cycle_.fault().number);
  report.set_black_boxes(boxes.count);
  report.set_black_box(wire::printable(boxes.newest, kMaxTextBytes));
  report.set_black_box_failed(boxes.newest_failed);
}

// On the network thread, in lockstep the loop thread; as UdpHooks.command.
std::optional<std::string> LiveRun::command(const wire::Command& command) {
  const rt::LifecycleStatus now = cycle_.lifecycle();
  if (now.transitions != command.transitions()) return std::nullopt;
  const Transition transition = transition_of(command.kind());
  if (!rt::next_state(now.state, transition))
    return fmt::format("the run is {}, and {} is not possible then. Possible: {}.", rt::to_string(now.state),
                       to_string(transition), permitted_commands(now.state));
  if (transition == Transition::reset_to_file)
    if (std::string refusal = snapshot_files_.give(command.transfer()); !refusal.empty()) return refusal;
  cycle_.request({.transition = transition, .steps = command.steps(), .after = command.transitions()});
  take_requests_in_lockstep();
  return "";
}

// Likewise.
std::string LiveRun::set_parameters(const wire::ParameterSet& set) {
  std::string refusal = parameters_.set(set);
  take_requests_in_lockstep();
  return refusal;
}

// That is the loop thread then, and no tick may be due.
void LiveRun::take_requests_in_lockstep() {
  if (rig_.lockstep) cycle_.take_requests(rt::MonotonicClock::wall_ns());
}

// Whether a rig is in control, as events tell it, and which.
void LiveRun::note_control(const RigEvent& event) {
  using Kind = RigEvent::Kind;
  if (event.observer) return;
  const bool comes = event.kind == Kind::connected || event.kind == Kind::reconnected;
  const bool goes = event.kind == Kind::left || event.kind == Kind::timed_out || event.kind == Kind::key_removed;
  if (!comes && !goes) return;
  cycle_.set_controlled(comes);
  const std::lock_guard lock(events_mutex_);
  in_control_ = comes ? event.rig_name : std::string();
}

void LiveRun::keep_event(const RigEvent& event) {
  note_control(event);
  const std::lock_guard lock(events_mutex_);
  if (events_.size() < kMaxEvents) events_.push_back(event);
}

std::vector<RigEvent> LiveRun::take_events() {
  const std::lock_guard lock(events_mutex_);
  return std::exchange(events_, {});
}

std::vector<std::string> LiveRun::take_key_events() {
  if (const auto change = key_watch_.look()) {
    if (change->ring != nullptr) {
      endpoint_.offer_keys(change->ring);
      key_events_.push_back("keys: read again, " + std::to_string((**change->ring).all().size()) +
                            " participants: " + rig_.key_path);
    } else {
      key_events_.push_back("keys: those known before stay, " + change->problem);
    }
  }
  return std::exchange(key_events_, {});
}

bool LiveRun::request_black_box() {
  if (rig_.black_box_folder.empty()) return false;
  recorder_->request_black_box(recorder_->black_boxes_begun() + 1);
  return true;
}

// On the network thread, in lockstep the loop thread.
bool LiveRun::request_black_box_after(std::uint32_t written) {
  if (rig_.black_box_folder.empty()) return false;
  if (written == recorder_->black_boxes(0).count) recorder_->request_black_box(written + 1);
  return true;
}

std::uint32_t LiveRun::refused_black_boxes() const { return recorder_ ? recorder_->refused_black_boxes() : 0; }

std::string LiveRun::newest_black_box() const {
  return recorder_ ? recorder_->black_boxes(cycle_.fault().number).newest : std::string();
}

std::vector<Recorder::Written> LiveRun::take_black_boxes() {
  if (!recorder_) return {};
  std::vector<Recorder::Written> written = recorder_->take_written();
  for (const Recorder::Written& each : written)
    if (each.good) black_boxes_.push_back(each.text);
  return written;
}

void LiveRun::start_recorder() {
  if (!keeps_records()) return;
  std::vector<std::string> lines;
  for (const rt::Grant& grant : realtime_) lines.push_back(rt::to_string(grant));
  const RecordedOutputs outputs = recorded_outputs(rig_, mechanism_.mechanism);
  wire::RecordingHeader header = recording_header(mechanism_, &rig_, stepper_, outputs, lines);
  if (started_from_) set_start(header, rig_.snapshot_path, cycle_.answer().step);
  recorder_ = std::make_shared<Recorder>(rings_, outputs);
  if (!rig_.recording_path.empty()) recorder_->record_to(rig_.recording_path, header);
  if (!rig_.black_box_folder.empty())
    recorder_->keep_black_box(
        {.folder = rig_.black_box_folder,
         .steps = black_box_steps(rig_),
         .full_state_every = full_state_every(rig_),
         .least_interval = std::chrono::nanoseconds(std::llround(1e9 * rig_.black_box_least_interval_s)),
         .most_files = rig_.most_black_boxes,
         .most_bytes = rig_.most_black_box_bytes,
         .disk_reserve_bytes = rig_.disk_reserve_bytes},
        header);
  recorder_->start();
}

std::string LiveRun::control_text() {
  const std::lock_guard lock(events_mutex_);
  return in_control_.empty() ? "no rig in control" : "\"" + wire::printable(in_control_) + "\" in control";
}

std::string LiveRun::look() {
  const auto p99_us = [](const rt::Histogram& ns) { return 1e-3 * static_cast<double>(ns.percentile(99.0)); };
  const UdpCounters link = endpoint_.counters();
  std::string text = fmt::format(
      "{}: {}, {}, {} steps, wake-up p99 {:.0f} us, step p99 {:.0f} us, {} deadlines missed, {} datagrams in, {} out",
      mechanism_.mechanism.name(), rt::to_string(cycle_.lifecycle().state), control_text(), cycle_.step_ns().count(),
      p99_us(cycle_.wake_up_ns()), p99_us(cycle_.step_ns()), cycle_.missed_deadlines(), link.accepted, link.sent);
  if (!with_outputs_) return text;
  displayed_.take(newest_displayed_);
  text += fmt::format("\n  step {}, {:.3f} s, input {} steps old", newest_displayed_.step,
                      1e-9 * static_cast<double>(newest_displayed_.sim_time_ns), newest_displayed_.input_age_steps);
  return text + channel_table(mechanism_.mechanism.output_channels(), newest_displayed_.outputs);
}

std::string LiveRun::memory_text() const {
  const auto mebibytes = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const double seconds = 1e-9 * static_cast<double>(rig_.period_ns) * static_cast<double>(rings_->steps.capacity());
  std::string text = fmt::format(
      "in memory until the disk has them: records of {:.1f} s in {:.1f} MiB, {} full states in {:.1f} MiB", seconds,
      mebibytes(rings_->steps.bytes()), rings_->states.capacity(), mebibytes(rings_->states.bytes()));
  if (!rig_.black_box_folder.empty())
    text += fmt::format("; the black box takes {:.1f} MiB", mebibytes(recorder_->black_box_bytes()));
  return text;
}

void LiveRun::start() {
  loop_ = std::thread([this] { run_loop(); });
  ::pthread_setname_np(loop_.native_handle(), "rigstep-loop");
  try {
    for (const rt::Grant& grant : set_up_.get_future().get()) realtime_.push_back(grant);
    if (stepper_.threads() > 1) {
      const auto team =
          rt::set_up_team(stepper_.workers(), stepper_.threads() - 1, rig_.period_ns, realtime_settings(rig_));
      realtime_.insert(realtime_.end(), team.begin(), team.end());
    }
    start_recorder();
    if (!rig_.lockstep) endpoint_.start();
  } catch (...) {
    stopping_.store(true);
    go_.set_value();
    loop_.join();
    if (recorder_ && recorder_->is_running()) recorder_->stop({}, kPatience);
    throw;
  }
  go_.set_value();
}

LiveSummary LiveRun::stop(const std::string& reason) {
  stopping_.store(true);
  if (rig_.lockstep) endpoint_.stop();
  loop_.join();
  endpoint_.stop();
  LiveSummary summary;
  summary.mechanism = mechanism_.mechanism.name();
  summary.lockstep = rig_.lockstep;
  summary.seconds = loop_seconds_;
  summary.steps = cycle_.answer().step;
  summary.steps_with_input = cycle_.input_age_steps().count();
  summary.missed_deadlines = cycle_.missed_deadlines();
  summary.first_miss_step = cycle_.first_miss_step();
  summary.newest_miss_step = cycle_.newest_miss_step();
  summary.limited_inputs = cycle_.limited_inputs();
  summary.not_converged_steps = cycle_.not_converged().steps;
  summary.first_not_converged_step = cycle_.not_converged().first;
  const rt::StepCount inaccurate = cycle_.inaccurate();
  summary.inaccurate_steps = inaccurate.steps;
  summary.first_inaccurate_step = inaccurate.first;
  if (inaccurate.body >= 0) summary.first_inaccurate_body = mechanism_.mechanism.bodies()[inaccurate.body].name;
  summary.lost_records = cycle_.lost_records();
  summary.loop_thread = loop_usage_;
  summary.wake_up_us = distribution(cycle_.wake_up_ns(), 1e-3);
  summary.step_us = distribution(cycle_.step_ns(), 1e-3);
  summary.input_age_steps = distribution(cycle_.input_age_steps(), 1.0);
  summary.hand_off_us = distribution(endpoint_.hand_off_ns(), 1e-3);
  summary.reply_us = distribution(endpoint_.reply_ns(), 1e-3);
  summary.link = endpoint_.counters();
  summary.fault = fault();
  summary.faults = cycle_.fault().number;
  summary.last_status = cycle_.record().status;
  if (recorder_) stop_recorder(reason, summary);
  return summary;
}

void LiveRun::stop_recorder(const std::string& reason, LiveSummary& summary) {
  wire::RecordingFooter footer;
  footer.set_lost_records(summary.lost_records);
  footer.set_missed_deadlines(summary.missed_deadlines);
  footer.set_reason(reason);
  footer.set_first_miss_step(summary.first_miss_step);
  footer.set_newest_miss_step(summary.newest_miss_step);
  footer.set_limited_inputs(summary.limited_inputs);
  footer.set_not_converged_steps(summary.not_converged_steps);
  footer.set_first_not_converged_step(summary.first_not_converged_step);
  footer.set_inaccurate_steps(summary.inaccurate_steps);
  footer.set_first_inaccurate_step(summary.first_inaccurate_step);
  add_distributions([&footer] { return footer.add_distribution(); });
  summary.recording_error = recorder_->stop(footer, kPatience);
  summary.unconfirmed = recorder_->is_unconfirmed();
  take_black_boxes();
  summary.black_boxes = black_boxes_;
  summary.refused_black_boxes = recorder_->refused_black_boxes();
  if (rig_.recording_path.empty()) return;
  summary.recording = rig_.recording_path;
  summary.recorded_steps = recorder_->steps_written();
  if (!summary.recording_error.empty())  // what the loop handed over did not all arrive
    summary.lost_records = summary.steps - std::min(summary.steps, summary.recorded_steps);
}

}  // namespace rigstep::server
