#include "rt/cycle.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/sensors.h"

namespace rigstep::rt {
namespace {

constexpr std::uint32_t kStopFlags = kMissedTooOften | kControlLost;  // why it stopped without a step that failed
constexpr std::uint32_t kOriginFlags = kStaleInput | kNoInputYet | kInputLimited | kStopFlags;

template <class Integer>
std::uint32_t saturate(Integer value) noexcept {
  constexpr Integer kLargest = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<Integer>(value, 0, kLargest));
}

// one writer: load and store instead of a locked increment
void add(std::atomic<std::uint64_t>& total, std::uint64_t amount) noexcept {
  total.store(total.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

void wake(int fd) noexcept {
  const std::uint64_t one = 1;
  // refused only when a wake-up is already pending, which is as good
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof(one));
}

// Fault in one word, from the lowest bit: latched 1, number 14, status 7, by_misses 1, by_control_lost 1, body + 1 and
// joint + 1 20 each. An output that is not finite has no body: its channel stands in that place.
constexpr std::uint64_t kFaultNumbers = 0x3FFF;
constexpr std::uint64_t kFaultIndices = 0xFFFFF;

std::uint64_t pack(const Fault& fault) noexcept {
  const int place = fault.status == StepStatus::output_not_finite ? fault.output : fault.body;
  return (fault.latched ? 1u : 0u) | (fault.number & kFaultNumbers) << 1 |
         static_cast<std::uint64_t>(fault.status) << 15 | (fault.by_misses ? 1ull << 22 : 0u) |
         (fault.by_control_lost ? 1ull << 23 : 0u) | (static_cast<std::uint64_t>(place + 1) & kFaultIndices) << 24 |
         (static_cast<std::uint64_t>(fault.joint + 1) & kFaultIndices) << 44;
}

Fault unpack(std::uint64_t word) noexcept {
  const auto status = static_cast<StepStatus>(word >> 15 & 0x7F);
  const int place = static_cast<int>(word >> 24 & kFaultIndices) - 1;
  const bool is_output = status == StepStatus::output_not_finite;
  return {.number = static_cast<std::uint32_t>(word >> 1 & kFaultNumbers),
          .latched = (word & 1) != 0,
          .status = status,
          .by_misses = (word >> 22 & 1) != 0,
          .by_control_lost = (word >> 23 & 1) != 0,
          .body = is_output ? -1 : place,
          .joint = static_cast<int>(word >> 44 & kFaultIndices) - 1,
          .output = is_output ? place : -1};
}

// The rule of all channels, where they have none of their own.
std::vector<InputPolicy> policies(const CycleSettings& settings, std::size_t channels) {
  if (!settings.inputs.empty()) return settings.inputs;
  return std::vector<InputPolicy>(channels, {.rule = settings.stale_rule, .max_age_steps = settings.max_age_steps});
}

}  // namespace

void StepCounter::count(std::uint64_t step, int body) noexcept {
  add(steps_, 1);
  if (first_.load(std::memory_order_relaxed) != 0) return;
  body_.store(body, std::memory_order_relaxed);
  first_.store(step, std::memory_order_relaxed);
}

Cycle::Cycle(index3::Stepper& stepper, const CycleSettings& settings, const CyclePorts& ports)
    : stepper_(stepper),
      settings_(settings),
      ports_(ports),
      lifecycle_(settings.start, settings.control_lost),
      guard_(policies(settings, stepper.mechanism().input_channels().size()), settings.fault_after_steps),
      miss_guard_(settings.miss_limits, stepper.settings().dt_ns),
      parameters_(stepper.mechanism()) {
  all_parameters();
  assert(settings.max_age_steps > 0);
  assert(settings.inputs.empty() || settings.inputs.size() == stepper.mechanism().input_channels().size());
  assert(ports.steps == nullptr ||
         ports.steps->slot_bytes() >= step_record_bytes(guard_.at_rest().count,
                                                        static_cast<int>(stepper.mechanism().output_channels().size()),
                                                        now_.count));
  assert(ports.states == nullptr ||
         ports.states->slot_bytes() == full_state_bytes(stepper.state(), stepper.mechanism().parameters().size()));
  newest_.inputs = record_.inputs = guard_.at_rest();
  // a fault in the very first step must have something good to repeat
  take_step_index();
  stepper_.read_outputs(StepReport{}, snapshot_.outputs);
  start_.state.resize(stepper.state().flat_size());
  save(start_);
  kept_ = given_ = start_;
  assert(ports.saved == nullptr || ports.saved->slot_bytes() >= saved_run_bytes(start_));
  assert(ports.given == nullptr || ports.given->slot_bytes() >= saved_run_bytes(start_));
}

void Cycle::save(SavedRun& run) const noexcept {
  SavedRun::Numbers& to = run.numbers;
  to.step = snapshot_.step;
  to.state_step = stepper_.state().step;
  to.steps_since_start = steps_since_start_;
  to.age_steps = age_steps_;
  to.connected = connected_;
  to.newest = newest_.inputs;
  to.applied = record_.inputs;
  to.guard = guard_.memory();
  const std::vector<Parameter>& all = stepper_.mechanism().parameters();
  to.parameters.count = static_cast<int>(all.size());
  for (std::size_t k = 0; k < all.size(); ++k) to.parameters.value[k] = all[k].value;
  std::copy(parameters_.ramps().begin(), parameters_.ramps().end(), to.ramp.begin());
  stepper_.state().flatten(run.state);
}

void Cycle::resume(const SavedRun& run) noexcept {
  const SavedRun::Numbers& from = run.numbers;
  snapshot_.step = from.step;
  go_back_to(run);
  steps_since_start_ = from.steps_since_start;
  age_steps_ = from.age_steps;
  connected_ = from.connected;
  newest_.inputs = from.newest;
  record_.inputs = from.applied;
  guard_.resume(from.guard);
  start_ = kept_ = run;
}

Fault Cycle::fault() const noexcept { return unpack(fault_.load(std::memory_order_acquire)); }

// cause: kMissedTooOften, kControlLost or 0.
void Cycle::latch_fault(std::uint32_t cause) noexcept {
  lifecycle_.make(Transition::fault);
  Fault fault = this->fault();
  // 0 stands for no fault at all
  fault.number = fault.number == kFaultNumbers ? 1 : fault.number + 1;
  fault.latched = true;
  fault.status = record_.status;
  fault.by_misses = (cause & kMissedTooOften) != 0;
  fault.by_control_lost = (cause & kControlLost) != 0;
  fault.body = failed(record_.status) ? record_.failed_body : -1;
  fault.joint = failed(record_.status) ? record_.failed_joint : -1;
  fault.output = failed(record_.status) ? record_.failed_output : -1;
  good_outputs_ = snapshot_.outputs;
  ticks_since_fault_ = 0;
  fault_.store(pack(fault), std::memory_order_release);
}

// The fault is no longer latched; the lifecycle goes on where its transition leads.
void Cycle::clear_fault() noexcept {
  rest_inputs();
  snapshot_.outputs = good_outputs_;
  snapshot_.flags &= ~(kFaulted | kStopFlags);
  record_.flags &= ~(kFaulted | kStopFlags);
  forget_report();
  Fault fault = this->fault();
  fault.latched = false;
  fault_.store(pack(fault), std::memory_order_release);
}

// What the rig sent so far is not applied again.
void Cycle::rest_inputs() noexcept {
  connected_ = false;
  age_steps_ = 0;
  newest_.inputs = guard_.at_rest();
}

// A request lives for one tick: none can wait for a fault that has not come.
void Cycle::take_fault_reset() noexcept {
  if (reset_request_.load(std::memory_order_relaxed) == 0) return;
  const std::uint32_t number = reset_request_.exchange(0, std::memory_order_relaxed);
  if (!faulted() || number != fault().number) return;
  lifecycle_.make(Transition::clear_fault);
  clear_fault();
}

void Cycle::take_requests(std::int64_t log_time_ns) noexcept {
  take_fault_reset();
  make_transitions(false, log_time_ns);
  change_parameters(log_time_ns, true);
}

// True: the rig in control is lost, which is a fault here.
bool Cycle::make_transitions(bool has_input, std::int64_t log_time_ns) noexcept {
  take_given();
  for (Transition due = lifecycle_.due(has_input); due != Transition::none; due = lifecycle_.due(has_input)) {
    if (due == Transition::fault) return true;
    make(due, log_time_ns);
  }
  return false;
}

void Cycle::make(Transition transition, std::int64_t log_time_ns) noexcept {
  const bool was_ready = lifecycle_.state() == LifecycleState::ready;
  if (faulted()) clear_fault();
  lifecycle_.make(transition);
  if (was_ready && lifecycle_.state() == LifecycleState::running) steps_since_start_ = 0;
  // what came before a long hold is too old to go on with
  if (lifecycle_.state() == LifecycleState::running && guard_.is_stale(age_steps_)) rest_inputs();
  change_state(transition);
  snapshot_.flags = (snapshot_.flags & ~(kReady | kHolding)) | standing_flag();
  push_transition(transition, log_time_ns);
}

std::uint32_t Cycle::standing_flag() const noexcept {
  if (!lifecycle_.stands()) return 0;
  return lifecycle_.state() == LifecycleState::ready ? kReady : kHolding;
}

// no_step: none follows at once, and ramps wait for it.
void Cycle::change_parameters(std::int64_t log_time_ns, bool no_step) noexcept {
  if (faulted()) return;
  const std::span<const ParameterValue> due = parameters_.due(snapshot_.step + 1, no_step);
  if (due.empty() || !stepper_.set_parameters(due)) return;
  parameters_.note(stepper_.mechanism().parameters());
  parameter_changes_ = (parameter_changes_ + 1) & 0xFFFFFF;
  all_parameters();
  record_.parameters = now_;
  push_transition(Transition::parameters, log_time_ns);
  record_.parameters.count = 0;
}

// Of a reset or of a recording. Those that are fixed have their values already.
void Cycle::set_all_parameters(std::span<const double> values) noexcept {
  const std::vector<Parameter>& all = stepper_.mechanism().parameters();
  std::array<ParameterValue, kMaxParameters> tunable;
  std::size_t count = 0;
  for (std::size_t k = 0; k < std::min(all.size(), values.size()); ++k)
    if (all[k].tunable) tunable[count++] = {static_cast<int>(k), values[k]};
  stepper_.set_parameters({tunable.data(), count});
  parameters_.note(all);
  parameters_.stop();
}

std::span<const double> Cycle::all_parameters() noexcept {
  const std::vector<Parameter>& all = stepper_.mechanism().parameters();
  now_.count = static_cast<int>(all.size());
  for (std::size_t k = 0; k < all.size(); ++k) now_.value[k] = all[k].value;
  return {now_.value.data(), all.size()};
}

void Cycle::resume_at(std::span<const double> flat, std::uint64_t step, std::uint64_t state_step,
                      std::span<const double> parameters) noexcept {
  set_all_parameters(parameters);
  snapshot_.step = step;
  restore(flat, state_step);
}

// What a transition does to the state.
void Cycle::change_state(Transition transition) noexcept {
  if (transition == Transition::reset_to_start) go_back_to(start_);
  if (transition == Transition::reset_to_snapshot) go_back_to(kept_);
  if (transition == Transition::reset_to_file) {
    take_given();  // what was asked for with it is there
    go_back_to(given_);
  }
  if (transition == Transition::snapshot) keep_snapshot();
}

void Cycle::go_back_to(const SavedRun& run) noexcept {
  const auto parameters = static_cast<std::size_t>(run.numbers.parameters.count);
  set_all_parameters({run.numbers.parameters.value.data(), parameters});
  parameters_.resume({run.numbers.ramp.data(), parameters});
  restore(run.state, run.numbers.state_step);
}

void Cycle::keep_snapshot() noexcept {
  save(kept_);
  if (ports_.saved == nullptr) return;
  const std::span<std::byte> slot = ports_.saved->try_claim();
  if (slot.empty()) return;  // whoever asked for it has not taken the ones before
  put_saved_run(kept_, slot);
  ports_.saved->publish();
}

void Cycle::take_given() noexcept {
  if (ports_.given == nullptr) return;
  for (std::size_t k = 0; k < ports_.given->capacity(); ++k) {
    const std::span<const std::byte> slot = ports_.given->front();
    if (slot.empty()) return;
    take_saved_run(slot, given_);
    ports_.given->pop();
  }
}

void Cycle::restore(std::span<const double> flat, std::uint64_t step) noexcept {
  stepper_.restore(flat, step);
  step_origin_ = snapshot_.step - step;
  take_step_index();
  rest_inputs();
  forget_report();
  record_.inputs = guard_.at_rest();
  stepper_.read_outputs(StepReport{}, snapshot_.outputs);
  full_state_due_ = true;
}

// The k-th of the first steps applies k of soft_start_steps of what lies between the safe value and what was sent.
void Cycle::fade_in_inputs() noexcept {
  if (steps_since_start_ >= settings_.soft_start_steps) return;
  const double part = static_cast<double>(++steps_since_start_) / settings_.soft_start_steps;
  const Inputs safe = guard_.at_rest();
  for (int k = 0; k < record_.inputs.count; ++k)
    record_.inputs.value[k] = std::lerp(safe.value[k], record_.inputs.value[k], part);
}

const Snapshot& Cycle::tick(const TickTiming& timing) noexcept {
  advance(timing);
  keep();
  return snapshot_;
}

void Cycle::advance(const TickTiming& timing) noexcept {
  take_fault_reset();
  const bool has_input = take_newest();
  const bool control_lost = make_transitions(has_input, timing.log_time_ns);
  change_parameters(timing.log_time_ns, lifecycle_.stands());
  if (lifecycle_.stands()) return stand(timing);
  InputGuard::Verdict verdict;
  bool missed_too_often = false;
  if (!faulted()) {
    verdict = guard_.apply(connected_ ? &newest_.inputs : nullptr, age_steps_, record_.inputs);
    fade_in_inputs();
    missed_too_often = miss_guard_.has_enough(timing.missed_deadlines);
  } else {
    verdict.stale = connected_ && guard_.is_stale(age_steps_);
  }
  if (verdict.limited) add(limited_inputs_, 1);
  run({.sequence = newest_.sequence,
       .rig_time_ns = newest_.rig_time_ns,
       .age_steps = age_steps_,
       .flags = (connected_ ? 0u : kNoInputYet) | (verdict.stale ? kStaleInput : 0u) |
                (verdict.limited ? kInputLimited : 0u) | (missed_too_often ? kMissedTooOften : 0u) |
                (control_lost ? kControlLost : 0u),
       .fault = verdict.stop || missed_too_often || control_lost},
      timing);
  lifecycle_.count_step();
}

// Time stands: the answer is that of the present state.
void Cycle::stand(const TickTiming& timing) noexcept {
  const InputOrigin origin{.sequence = newest_.sequence,
                           .rig_time_ns = newest_.rig_time_ns,
                           .age_steps = age_steps_,
                           .flags = (connected_ ? 0u : kNoInputYet) | standing_flag(),
                           .fault = false};
  count(origin, timing);
  answer(origin, timing);
  keep_due_ = false;
}

const Snapshot& Cycle::repeat(const StepRecord& recorded) noexcept {
  if (faulted() && (recorded.flags & kFaulted) == 0) {
    lifecycle_.make(Transition::clear_fault);
    clear_fault();
  }
  if (recorded.transition != Transition::none) {
    if (recorded.transition == Transition::parameters)
      set_all_parameters({recorded.parameters.value.data(), static_cast<std::size_t>(recorded.parameters.count)});
    change_state(recorded.transition);
    return snapshot_;
  }
  if (!faulted()) record_.inputs = recorded.inputs;
  // a fault without a failed step was decided by the stale rule; a failed step fails again by itself
  const bool stopped = (recorded.flags & kFaulted) != 0 && !failed(recorded.status);
  run({.sequence = recorded.sequence,
       .rig_time_ns = 0,
       .age_steps = recorded.input_age_steps,
       .flags = recorded.flags & kOriginFlags,
       .fault = stopped},
      {.missed_deadlines = recorded.missed_deadlines,
       .wake_up_ns = recorded.wake_up_ns,
       .log_time_ns = recorded.log_time_ns});
  keep();
  return snapshot_;
}

// True: there is a new one.
bool Cycle::take_newest() noexcept {
  const Inputs older = newest_.inputs;
  if (ports_.in != nullptr && ports_.in->take(newest_)) {
    guard_.note_rate(older, newest_.inputs, connected_ ? age_steps_ + 1 : 0);
    connected_ = true;
    age_steps_ = 0;
    return true;
  }
  if (connected_ && age_steps_ < std::numeric_limits<std::uint32_t>::max()) ++age_steps_;
  return false;
}

void Cycle::run(const InputOrigin& origin, const TickTiming& timing) noexcept {
  count(origin, timing);
  const bool was_faulted = faulted();
  if (!was_faulted) {
    if (origin.fault) {
      forget_report();
      record_.step_ns = 0;
      latch_fault(origin.flags & kStopFlags);
    } else {
      step();
    }
  }
  answer(origin, timing);
  keep_due_ = !was_faulted;
  if (keep_due_) describe(origin, timing);
}

void Cycle::keep() noexcept {
  if (keep_due_) {
    record_.state_hash = stepper_.state().hash();
    push_record();
    push_full_state();
    keep_due_ = false;
  } else if (gap_ && faulted()) {
    push_fault_again();
  }
  if (ports_.poses != nullptr) ports_.poses->offer(stepper_.state(), record_, snapshot_.step, snapshot_.sim_time_ns);
}

void Cycle::count(const InputOrigin& origin, const TickTiming& timing) noexcept {
  add(missed_deadlines_, timing.missed_deadlines);
  if (timing.missed_deadlines > 0) {
    const std::uint64_t step = snapshot_.step + 1;
    if (first_miss_step() == 0) first_miss_step_.store(step, std::memory_order_relaxed);
    newest_miss_step_.store(step, std::memory_order_relaxed);
  }
  record_with_skipped(wake_up_ns_, timing.wake_up_ns, stepper_.settings().dt_ns,
                      timing.missed_deadlines - timing.missed_asleep, timing.missed_asleep);
  if ((origin.flags & kNoInputYet) == 0) input_age_steps_.record(origin.age_steps);
}

void Cycle::step() noexcept {
  const std::int64_t start_ns = MonotonicClock::now_ns();
  const StepReport report = stepper_.step(record_.inputs, snapshot_.outputs);
  take_step_index();
  const std::int64_t duration_ns = MonotonicClock::now_ns() - start_ns;
  step_ns_.record(duration_ns);
  record_.step_ns = saturate(duration_ns);
  record_.status = report.status;
  record_.failed_body = report.body;
  record_.failed_joint = report.joint;
  record_.failed_output = report.output;
  record_.last_increment = report.last_increment;
  record_.position_residual = report.position_residual;
  record_.velocity_residual = report.velocity_residual;
  record_.acceleration_residual = report.acceleration_residual;
  record_.position_error = report.position_error;
  record_.orientation_error = report.orientation_error;
  record_.error_body = report.error_body;
  if (failed(report.status)) latch_fault(0);
  if (report.status == StepStatus::not_converged) not_converged_.count(snapshot_.step);
  if (is_inaccurate()) inaccurate_.count(snapshot_.step, report.error_body);
}

// What the last step said of itself, which is not where the state comes from any more.
void Cycle::forget_report() noexcept {
  record_.status = snapshot_.status = StepStatus::ok;
  record_.position_error = record_.orientation_error = -1.0;
  record_.error_body = -1;
  snapshot_.flags &= ~(kNotConverged | kInaccurate);
}

bool Cycle::is_inaccurate() const noexcept {
  return !failed(record_.status) && !settings_.error_limit.holds(record_.position_error, record_.orientation_error);
}

void Cycle::take_step_index() noexcept {
  snapshot_.step = step_origin_ + stepper_.state().step;
  snapshot_.sim_time_ns = static_cast<std::int64_t>(snapshot_.step) * stepper_.settings().dt_ns;
}

void Cycle::ramp_outputs() noexcept {
  if (ticks_since_fault_ < std::numeric_limits<std::uint32_t>::max()) ++ticks_since_fault_;
  for (const SafeOutput& safe : settings_.safe_outputs) {
    const double from = good_outputs_.value[safe.channel];
    double& output = snapshot_.outputs.value[safe.channel];
    output = ticks_since_fault_ >= safe.ramp_steps
                 ? safe.value
                 : std::lerp(from, safe.value, static_cast<double>(ticks_since_fault_) / safe.ramp_steps);
  }
}

void Cycle::answer(const InputOrigin& origin, const TickTiming& timing) noexcept {
  snapshot_.sequence = origin.sequence;
  snapshot_.rig_time_ns = origin.rig_time_ns;
  snapshot_.input_age_steps = origin.age_steps;
  snapshot_.status = record_.status;
  snapshot_.flags = origin.flags;
  if (timing.missed_deadlines > 0) snapshot_.flags |= kOverrun;
  if (gap_) snapshot_.flags |= kRecordLost;
  if (record_.status == StepStatus::not_converged) snapshot_.flags |= kNotConverged;
  if (is_inaccurate()) snapshot_.flags |= kInaccurate;
  if (faulted()) {
    snapshot_.flags |= kFaulted | (record_.flags & kStopFlags);
    ramp_outputs();
  }
  snapshot_.scheduled_ns = timing.scheduled_ns;
  snapshot_.missed_before = saturate(timing.missed_deadlines - timing.missed_asleep);
  snapshot_.missed_asleep = saturate(timing.missed_asleep);
  snapshot_.written_ns = MonotonicClock::now_ns();
  if (ports_.out != nullptr) ports_.out->publish(snapshot_);
  if (ports_.display != nullptr) ports_.display->publish(snapshot_);
  if (ports_.wake_fd >= 0) wake(ports_.wake_fd);
}

void Cycle::describe(const InputOrigin& origin, const TickTiming& timing) noexcept {
  record_.step = snapshot_.step;
  record_.transitions = changes();
  record_.sim_time_ns = snapshot_.sim_time_ns;
  record_.log_time_ns = timing.log_time_ns;
  record_.sequence = origin.sequence;
  record_.input_age_steps = origin.age_steps;
  record_.flags = snapshot_.flags;
  record_.missed_deadlines = saturate(timing.missed_deadlines);
  record_.wake_up_ns = saturate(timing.wake_up_ns);
  record_.outputs.count = snapshot_.outputs.count;
  std::copy_n(snapshot_.outputs.value.begin(), snapshot_.outputs.count, record_.outputs.value.begin());
}

// In the record of the newest step, whose other numbers stay.
void Cycle::push_transition(Transition transition, std::int64_t log_time_ns) noexcept {
  record_.transition = transition;
  record_.transitions = changes();
  record_.log_time_ns = log_time_ns;
  record_.state_hash = stepper_.state().hash();
  push_record();
  record_.transition = Transition::none;
  // the start is in the header
  if (full_state_due_ && (snapshot_.step > 0 || is_reset(transition))) push_full_state();
}

bool Cycle::try_push_step() noexcept {
  const std::span<std::byte> slot = ports_.steps->try_claim();
  if (slot.empty()) return false;
  put_step(record_, slot.data());
  ports_.steps->publish();
  return true;
}

void Cycle::push_record() noexcept {
  if (ports_.steps == nullptr) return;
  if (try_push_step()) {
    full_state_due_ = full_state_due_ || gap_;
    gap_ = false;
  } else {
    add(lost_records_, 1);
    gap_ = true;
  }
}

// Why it stopped matters more than any other record: it is not given up.
void Cycle::push_fault_again() noexcept {
  if (!try_push_step()) return;
  gap_ = false;
  full_state_due_ = true;
  lost_records_.store(lost_records() - 1, std::memory_order_relaxed);
}

void Cycle::push_full_state() noexcept {
  if (ports_.states == nullptr || faulted()) return;
  if (settings_.full_state_every != 0 && snapshot_.step % settings_.full_state_every == 0) full_state_due_ = true;
  if (!full_state_due_) return;
  const std::span<std::byte> slot = ports_.states->try_claim();
  if (slot.empty()) return;  // still due
  put_full_state({.step = snapshot_.step,
                  .state_step = stepper_.state().step,
                  .sim_time_ns = snapshot_.sim_time_ns,
                  .transitions = changes(),
                  .parameters = all_parameters(),
                  .state = {}},
                 stepper_.state(), slot);
  ports_.states->publish();
  full_state_due_ = false;
}

}  // namespace rigstep::rt
