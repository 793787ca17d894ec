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

// A record in a slot: all before its input channels, these, the number of outputs, and the outputs.
constexpr std::size_t kStepHeadBytes = offsetof(StepRecord, inputs) + offsetof(Inputs, value);
constexpr std::size_t kOutputCountBytes = sizeof(std::int64_t);

void put_step(const StepRecord& record, std::byte* slot) noexcept {
  const std::size_t inputs_end = kStepHeadBytes + static_cast<std::size_t>(record.inputs.count) * sizeof(double);
  std::memcpy(slot, &record, inputs_end);
  const std::int64_t outputs = record.outputs.count;
  std::memcpy(slot + inputs_end, &outputs, sizeof outputs);
  std::memcpy(slot + inputs_end + sizeof outputs, record.outputs.value.data(),
              static_cast<std::size_t>(outputs) * sizeof(double));
}

void take_step(const std::byte* slot, StepRecord& record) noexcept {
  std::memcpy(static_cast<void*>(&record), slot, kStepHeadBytes);
  const std::size_t input_bytes = static_cast<std::size_t>(record.inputs.count) * sizeof(double);
  std::memcpy(record.inputs.value.data(), slot + kStepHeadBytes, input_bytes);
  const std::byte* const after_inputs = slot + kStepHeadBytes + input_bytes;
  std::int64_t outputs = 0;
  std::memcpy(&outputs, after_inputs, sizeof outputs);
  record.outputs.count = static_cast<int>(outputs);
  std::memcpy(record.outputs.value.data(), after_inputs + sizeof outputs,
              static_cast<std::size_t>(outputs) * sizeof(double));
}

constexpr std::uint32_t kOriginFlags = kStaleInput | kNoInputYet | kInputLimited | kMissedTooOften;

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

// Fault in one word, from the lowest bit: latched 1, number 15, status 7, by_misses 1, body + 1 and joint + 1 20 each.
// An output that is not finite has no body: its channel stands in that place.
constexpr std::uint64_t kFaultNumbers = 0x7FFF;
constexpr std::uint64_t kFaultIndices = 0xFFFFF;

std::uint64_t pack(const Fault& fault) noexcept {
  const int place = fault.status == StepStatus::output_not_finite ? fault.output : fault.body;
  return (fault.latched ? 1u : 0u) | (fault.number & kFaultNumbers) << 1 |
         static_cast<std::uint64_t>(fault.status) << 16 | (fault.by_misses ? 1ull << 23 : 0u) |
         (static_cast<std::uint64_t>(place + 1) & kFaultIndices) << 24 |
         (static_cast<std::uint64_t>(fault.joint + 1) & kFaultIndices) << 44;
}

Fault unpack(std::uint64_t word) noexcept {
  const auto status = static_cast<StepStatus>(word >> 16 & 0x7F);
  const int place = static_cast<int>(word >> 24 & kFaultIndices) - 1;
  const bool is_output = status == StepStatus::output_not_finite;
  return {.number = static_cast<std::uint32_t>(word >> 1 & kFaultNumbers),
          .latched = (word & 1) != 0,
          .status = status,
          .by_misses = (word >> 23 & 1) != 0,
          .body = is_output ? -1 : place,
          .joint = static_cast<int>(word >> 44 & kFaultIndices) - 1,
          .output = is_output ? place : -1};
}

// The rule of all channels, where they have none of their own.
std::vector<InputPolicy> policies(const CycleSettings& settings, std::size_t channels) {
  if (!settings.inputs.empty()) return settings.inputs;
  return std::vector<InputPolicy>(channels, {.rule = settings.stale_rule, .max_age_steps = settings.max_age_steps});
}

struct FullStateHead {
  std::uint64_t step;
  std::int64_t sim_time_ns;
};
static_assert(sizeof(FullStateHead) % alignof(double) == 0);

}  // namespace

Cycle::Cycle(index3::Stepper& stepper, const CycleSettings& settings, const CyclePorts& ports)
    : stepper_(stepper),
      settings_(settings),
      ports_(ports),
      guard_(policies(settings, stepper.mechanism().input_channels().size()), settings.fault_after_steps),
      miss_guard_(settings.miss_limits, stepper.settings().dt_ns) {
  assert(settings.max_age_steps > 0);
  assert(settings.inputs.empty() || settings.inputs.size() == stepper.mechanism().input_channels().size());
  assert(ports.steps == nullptr ||
         ports.steps->slot_bytes() >=
             step_record_bytes(guard_.at_rest().count, static_cast<int>(stepper.mechanism().output_channels().size())));
  assert(ports.states == nullptr || ports.states->slot_bytes() == full_state_bytes(stepper.state()));
  newest_.inputs = record_.inputs = guard_.at_rest();
  // a fault in the very first step must have something good to repeat
  take_step_index();
  stepper_.read_outputs(StepReport{}, snapshot_.outputs);
}

Fault Cycle::fault() const noexcept { return unpack(fault_.load(std::memory_order_acquire)); }

void Cycle::latch_fault(bool by_misses) noexcept {
  faulted_ = true;
  Fault fault = this->fault();
  // 0 stands for no fault at all
  fault.number = fault.number == kFaultNumbers ? 1 : fault.number + 1;
  fault.latched = true;
  fault.status = record_.status;
  fault.by_misses = by_misses;
  fault.body = failed(record_.status) ? record_.failed_body : -1;
  fault.joint = failed(record_.status) ? record_.failed_joint : -1;
  fault.output = failed(record_.status) ? record_.failed_output : -1;
  good_outputs_ = snapshot_.outputs;
  ticks_since_fault_ = 0;
  fault_.store(pack(fault), std::memory_order_release);
}

// What the rig sent before the fault is not applied again.
void Cycle::clear_fault() noexcept {
  faulted_ = false;
  connected_ = false;
  age_steps_ = 0;
  newest_.inputs = guard_.at_rest();
  snapshot_.outputs = good_outputs_;
  snapshot_.flags &= ~(kFaulted | kMissedTooOften);
  record_.flags &= ~kMissedTooOften;
  snapshot_.status = StepStatus::ok;
  Fault fault = this->fault();
  fault.latched = false;
  fault_.store(pack(fault), std::memory_order_release);
}

// A request lives for one tick: none can wait for a fault that has not come.
void Cycle::take_reset() noexcept {
  if (reset_request_.load(std::memory_order_relaxed) == 0) return;
  const std::uint32_t number = reset_request_.exchange(0, std::memory_order_relaxed);
  if (faulted_ && number == fault().number) clear_fault();
}

const Snapshot& Cycle::tick(const TickTiming& timing) noexcept {
  advance(timing);
  keep();
  return snapshot_;
}

void Cycle::advance(const TickTiming& timing) noexcept {
  take_reset();
  take_newest();
  InputGuard::Verdict verdict;
  bool missed_too_often = false;
  if (!faulted_) {
    verdict = guard_.apply(connected_ ? &newest_.inputs : nullptr, age_steps_, record_.inputs);
    missed_too_often = miss_guard_.has_enough(timing.missed_deadlines);
  } else {
    verdict.stale = connected_ && guard_.is_stale(age_steps_);
  }
  if (verdict.limited) add(limited_inputs_, 1);
  run({.sequence = newest_.sequence,
       .rig_time_ns = newest_.rig_time_ns,
       .age_steps = age_steps_,
       .flags = (connected_ ? 0u : kNoInputYet) | (verdict.stale ? kStaleInput : 0u) |
                (verdict.limited ? kInputLimited : 0u) | (missed_too_often ? kMissedTooOften : 0u),
       .fault = verdict.stop || missed_too_often},
      timing);
}

const Snapshot& Cycle::repeat(const StepRecord& recorded) noexcept {
  if (faulted_ && (recorded.flags & kFaulted) == 0) clear_fault();
  if (!faulted_) record_.inputs = recorded.inputs;
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

void Cycle::take_newest() noexcept {
  const Inputs older = newest_.inputs;
  if (ports_.in != nullptr && ports_.in->take(newest_)) {
    guard_.note_rate(older, newest_.inputs, connected_ ? age_steps_ + 1 : 0);
    connected_ = true;
    age_steps_ = 0;
  } else if (connected_ && age_steps_ < std::numeric_limits<std::uint32_t>::max()) {
    ++age_steps_;
  }
}

void Cycle::run(const InputOrigin& origin, const TickTiming& timing) noexcept {
  count(origin, timing);
  const bool was_faulted = faulted_;
  if (!was_faulted) {
    if (origin.fault) {
      record_.status = StepStatus::ok;
      record_.step_ns = 0;
      latch_fault((origin.flags & kMissedTooOften) != 0);
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
  } else if (gap_) {
    push_fault_again();
  }
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
  if (failed(report.status)) latch_fault();
  if (report.status == StepStatus::not_converged) count_not_converged();
}

void Cycle::count_not_converged() noexcept {
  add(not_converged_steps_, 1);
  if (first_not_converged_step() == 0) first_not_converged_step_.store(snapshot_.step, std::memory_order_relaxed);
}

void Cycle::take_step_index() noexcept {
  snapshot_.step = stepper_.state().step;
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
  if (faulted_) {
    snapshot_.flags |= kFaulted | (record_.flags & kMissedTooOften);
    ramp_outputs();
  }
  snapshot_.scheduled_ns = timing.scheduled_ns;
  snapshot_.missed_before = saturate(timing.missed_deadlines - timing.missed_asleep);
  snapshot_.missed_asleep = saturate(timing.missed_asleep);
  snapshot_.written_ns = MonotonicClock::now_ns();
  if (ports_.out != nullptr) ports_.out->publish(snapshot_);
  if (ports_.wake_fd >= 0) wake(ports_.wake_fd);
}

void Cycle::describe(const InputOrigin& origin, const TickTiming& timing) noexcept {
  record_.step = snapshot_.step;
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
  if (ports_.states == nullptr || faulted_) return;
  if (settings_.full_state_every != 0 && snapshot_.step % settings_.full_state_every == 0) full_state_due_ = true;
  if (!full_state_due_) return;
  const std::span<std::byte> slot = ports_.states->try_claim();
  if (slot.empty()) return;  // still due
  const FullStateHead head{snapshot_.step, snapshot_.sim_time_ns};
  std::memcpy(slot.data(), &head, sizeof(head));
  double* const flat = reinterpret_cast<double*>(slot.data() + sizeof(head));
  stepper_.state().flatten({flat, (slot.size() - sizeof(head)) / sizeof(double)});
  ports_.states->publish();
  full_state_due_ = false;
}

std::size_t step_record_bytes(int input_channels, int output_channels) noexcept {
  return kStepHeadBytes + kOutputCountBytes +
         static_cast<std::size_t>(input_channels + output_channels) * sizeof(double);
}

bool try_pop_step(Ring& steps, StepRecord& record) noexcept {
  const std::span<const std::byte> slot = steps.front();
  if (slot.empty()) return false;
  take_step(slot.data(), record);
  steps.pop();
  return true;
}

std::size_t full_state_bytes(const index3::State& state) noexcept {
  return sizeof(FullStateHead) + state.flat_size() * sizeof(double);
}

FullState read_full_state(std::span<const std::byte> slot) noexcept {
  FullStateHead head{};
  std::memcpy(&head, slot.data(), sizeof(head));
  const double* const flat = reinterpret_cast<const double*>(slot.data() + sizeof(head));
  return {head.step, head.sim_time_ns, {flat, (slot.size() - sizeof(head)) / sizeof(double)}};
}

}  // namespace rigstep::rt
