// One tick of a rig: newest inputs -> their policies -> step -> outputs -> snapshot -> record. Driven by a deadline, by
// a datagram or by a recorded file, and cannot tell which.
//
// Owned by a session, which also owns everything the cycle refers to. Construction is load time; tick(), advance(),
// keep() and repeat() belong to the one thread that steps. They do not allocate, lock, log, throw or touch a file; the
// only system call is one write to the eventfd. Totals and histograms may be read live from any thread.
//
// Contract:
//   - Before the first sample inputs have their safe values, zero unless a policy says otherwise, and are never stale
//     (kNoInputYet). From a channel's max_age_steps ticks without a new sample on it is stale (kStaleInput) and its
//     rule decides; from fault_after_steps on it is a fault. Values outside a channel's range or rate are limited to it
//     (kInputLimited); what is applied is what is recorded.
//   - A step that fails, one with an output that is not finite, or the rule `fault`, latches kFaulted: time stands, the
//     last good step, time and outputs are repeated (those in safe_outputs go to their safe values), while sequence,
//     rig time and age go on being echoed. request_reset() clears it: steps go on from the last good state, as before
//     the first sample, until a new one comes.
//   - lifecycle.h says when it steps. While time stands, the answer is repeated (kReady, kHolding); it is no fault then
//     that inputs age or deadlines are missed. A reset to the start or to a snapshot changes the state, and with it
//     what drivers take for the time; the number of steps and the simulated time of the run go on. Inputs rest until
//     new ones come. Steps after a start may have their inputs faded in.
//   - A snapshot is kept here and handed out. A run that resumes from one, with the same inputs, has the bits of the
//     one that was saved.
//   - Parameters change between two steps, before the inputs of the next one are applied; while a fault is latched they
//     wait. A reset takes back the values of its state with what was still to come of ramps then, and ends what was
//     asked for. Each change is recorded with the values of all parameters.
//   - Simulated time is step * dt: missed deadlines do not skip it.
//   - The fault itself is recorded once, with the step index of the last good state; nothing is recorded after it
//     until a reset. A step recorded after a fault says that there was one. Each transition is recorded, and behind a
//     reset a full state.
//   - A full ring costs records, never time: they are counted, and kRecordLost stands in every snapshot until a
//     record gets through, which carries it too. A full state follows such a gap, so that a replay can go on there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/index3/stepper.h"
#include "core/mechanism/signals.h"
#include "rt/clock.h"
#include "rt/histogram.h"
#include "rt/input_guard.h"
#include "rt/lifecycle.h"
#include "rt/mailbox.h"
#include "rt/miss_guard.h"
#include "rt/parameter_ramps.h"
#include "rt/pose_mailbox.h"
#include "rt/record_slots.h"
#include "rt/ring.h"
#include "rt/saved_run.h"

namespace rigstep::rt {

struct CycleSettings {
  std::uint32_t max_age_steps = 20;  // of all channels where `inputs` is empty, and the rule likewise
  StaleRule stale_rule = StaleRule::hold;
  std::uint32_t fault_after_steps = 0;  // age of inputs from which stepping stops whatever the rules; 0: never
  MissLimits miss_limits = {};
  std::uint32_t full_state_every = 1000;  // [steps]; 0: only the first one and after a gap
  std::vector<InputPolicy> inputs = {};   // one per input channel, or none
  std::vector<SafeOutput> safe_outputs = {};
  ErrorLimit error_limit = {};  // of a step; above it the step is flagged and counted
  StartMode start = StartMode::at_once;
  ControlLost control_lost = ControlLost::go_on;
  std::uint32_t soft_start_steps = 0;  // over which inputs go from their safe values to what is sent, after each start
};

// What the cycle is connected to; nullptr or -1: nothing.
struct CyclePorts {
  Mailbox<InputSample>* in = nullptr;
  Mailbox<Snapshot>* out = nullptr;
  Mailbox<Snapshot>* display = nullptr;  // the same for people
  Ring* steps = nullptr;                 // slots of step_record_bytes(), or larger
  Ring* states = nullptr;                // slots of full_state_bytes()
  Ring* saved = nullptr;                 // slots of saved_run_bytes(): one for each snapshot, while there is room
  Ring* given = nullptr;                 // likewise: what Transition::reset_to_file leads to, the newest of them
  PoseMailbox* poses = nullptr;          // of all bodies, for people
  int wake_fd = -1;                      // non-blocking eventfd, written after each snapshot
};

// The newest fault.
struct Fault {
  std::uint32_t number = 0;            // faults so far, modulo 2^14; the newest one's number
  bool latched = false;                // not reset
  StepStatus status = StepStatus::ok;  // ok: stopped without a step that failed
  bool by_misses = false;
  bool by_control_lost = false;
  int body = -1;    // where a failed step began, index or -1
  int joint = -1;   // likewise
  int output = -1;  // output channel that was not finite, index or -1
};

// Steps of a kind, and the first of them.
struct StepCount {
  std::uint64_t steps = 0, first = 0;  // first 0: none
  int body = -1;                       // that the first is about, index or -1
};

// Counted by the stepping thread, read by any.
class StepCounter {
 public:
  void count(std::uint64_t step, int body = -1) noexcept;
  StepCount now() const noexcept {
    return {steps_.load(std::memory_order_relaxed), first_.load(std::memory_order_relaxed),
            body_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint64_t> steps_{0}, first_{0};
  std::atomic<int> body_{-1};
};

class Cycle {
 public:
  Cycle(index3::Stepper& stepper, const CycleSettings& settings, const CyclePorts& ports);

  // Live: inputs from the mailbox, subject to their policies.
  const Snapshot& tick(const TickTiming& timing) noexcept;

  // The same in two, so that the answer can be sent before it is recorded: every advance() needs its keep().
  void advance(const TickTiming& timing) noexcept;
  void keep() noexcept;

  // Replay and simulation: inputs as applied then. Of the record only what went in counts: inputs, sequence, age,
  // input flags, timing, and whether it stopped without a step.
  const Snapshot& repeat(const StepRecord& recorded) noexcept;

  // Clears fault `number` at the next tick, if it is the latched one then; otherwise the request is void. Any thread.
  void request_reset(std::uint32_t number) noexcept { reset_request_.store(number, std::memory_order_relaxed); }
  // Stepping thread: carries out what was requested at once, for when no tick is due. log_time_ns: wall clock.
  void take_requests(std::int64_t log_time_ns) noexcept;
  // Replay: goes on from a state that was recorded after `step` of the run; state_step: that the state counts;
  // parameters: values of all that act then, none: those that act now.
  void resume_at(std::span<const double> flat, std::uint64_t step, std::uint64_t state_step,
                 std::span<const double> parameters) noexcept;

  // Load time, before the first tick: begins with a run that was saved, its inputs and ramps included, in place of the
  // stepper's start. Where its state lies then is what a reset to the start leads to.
  void resume(const SavedRun& run) noexcept;
  // What of this run can be saved, as it is. Load time, or the stepping thread; run.state has the size of the state.
  void save(SavedRun& run) const noexcept;

  Fault fault() const noexcept;  // any thread

  // Any thread; carried out at the next tick, or for when none is due by take_requests().
  void request(const LifecycleRequest& request) noexcept { lifecycle_.request(request); }
  // Any thread: whether a rig is in control.
  void set_controlled(bool controlled) noexcept { lifecycle_.set_controlled(controlled); }
  LifecycleStatus lifecycle() const noexcept { return lifecycle_.status(); }

  ParameterRamps& parameters() noexcept { return parameters_; }

  const Snapshot& answer() const noexcept { return snapshot_; }  // of the last tick; stepping thread only

  // Of the last tick, whether or not it got through to the ring. Stepping thread only.
  const StepRecord& record() const noexcept { return record_; }

  std::uint64_t lost_records() const noexcept { return lost_records_.load(std::memory_order_relaxed); }
  std::uint64_t missed_deadlines() const noexcept { return missed_deadlines_.load(std::memory_order_relaxed); }
  // The first and the newest step before which deadlines were missed; 0: none was.
  std::uint64_t first_miss_step() const noexcept { return first_miss_step_.load(std::memory_order_relaxed); }
  std::uint64_t newest_miss_step() const noexcept { return newest_miss_step_.load(std::memory_order_relaxed); }
  // Steps whose inputs were limited to their range or rate.
  std::uint64_t limited_inputs() const noexcept { return limited_inputs_.load(std::memory_order_relaxed); }
  // Steps that had not converged, and those whose error is above its limit.
  StepCount not_converged() const noexcept { return not_converged_.now(); }
  StepCount inaccurate() const noexcept { return inaccurate_.now(); }
  // From the deadline to the start of the tick; skipped deadlines count, too: see record_with_skipped().
  const Histogram& wake_up_ns() const noexcept { return wake_up_ns_; }
  // From the inputs to the output channels.
  const Histogram& step_ns() const noexcept { return step_ns_; }
  const Histogram& input_age_steps() const noexcept { return input_age_steps_; }

 private:
  // What is known about the inputs of a tick besides their values.
  struct InputOrigin {
    std::uint64_t sequence;
    std::int64_t rig_time_ns;
    std::uint32_t age_steps;
    std::uint32_t flags;  // kStaleInput, kNoInputYet, kInputLimited, kMissedTooOften, kControlLost
    bool fault;           // stop here instead of stepping
  };

  bool faulted() const noexcept { return lifecycle_.state() == LifecycleState::faulted; }
  bool take_newest() noexcept;
  void take_fault_reset() noexcept;
  bool make_transitions(bool has_input, std::int64_t log_time_ns) noexcept;
  void make(Transition transition, std::int64_t log_time_ns) noexcept;
  void change_state(Transition transition) noexcept;
  void change_parameters(std::int64_t log_time_ns, bool no_step) noexcept;
  void set_all_parameters(std::span<const double> values) noexcept;
  std::span<const double> all_parameters() noexcept;
  void restore(std::span<const double> flat, std::uint64_t step) noexcept;
  void go_back_to(const SavedRun& run) noexcept;
  void keep_snapshot() noexcept;
  void take_given() noexcept;
  std::uint32_t changes() const noexcept { return (lifecycle_.transitions() + parameter_changes_) & 0xFFFFFF; }
  void rest_inputs() noexcept;
  void fade_in_inputs() noexcept;
  void stand(const TickTiming& timing) noexcept;
  std::uint32_t standing_flag() const noexcept;
  void latch_fault(std::uint32_t cause) noexcept;
  void clear_fault() noexcept;
  void run(const InputOrigin& origin, const TickTiming& timing) noexcept;
  void count(const InputOrigin& origin, const TickTiming& timing) noexcept;
  void step() noexcept;
  bool is_inaccurate() const noexcept;
  void forget_report() noexcept;
  void take_step_index() noexcept;
  void ramp_outputs() noexcept;
  void answer(const InputOrigin& origin, const TickTiming& timing) noexcept;
  void describe(const InputOrigin& origin, const TickTiming& timing) noexcept;
  void push_record() noexcept;
  void push_transition(Transition transition, std::int64_t log_time_ns) noexcept;
  bool try_push_step() noexcept;
  void push_fault_again() noexcept;
  void push_full_state() noexcept;

  index3::Stepper& stepper_;
  const CycleSettings settings_;
  const CyclePorts ports_;

  Lifecycle lifecycle_;
  InputGuard guard_;
  MissGuard miss_guard_;
  ParameterRamps parameters_;
  ParameterValues now_;            // room for all_parameters()
  SavedRun start_, kept_, given_;  // where it started, the newest snapshot, and what came from outside
  std::uint32_t parameter_changes_ = 0;
  std::uint64_t step_origin_ = 0;  // steps of the run less those that the state counts
  std::uint32_t steps_since_start_ = 0;
  InputSample newest_;
  std::uint32_t age_steps_ = 0;  // ticks since newest_ arrived
  bool connected_ = false;       // a sample has arrived
  bool gap_ = false;             // the newest record did not get through
  bool keep_due_ = false;        // record_ is new
  bool full_state_due_ = true;
  Snapshot snapshot_;
  Outputs good_outputs_;  // of the last good step, once faulted
  std::uint32_t ticks_since_fault_ = 0;
  StepRecord record_;  // of the newest step, or of the fault once faulted

  std::atomic<std::uint64_t> fault_{0};          // packed, so that it is read in one piece
  std::atomic<std::uint32_t> reset_request_{0};  // number of the fault to clear, 0: none
  std::atomic<std::uint64_t> lost_records_{0};
  std::atomic<std::uint64_t> missed_deadlines_{0}, first_miss_step_{0}, newest_miss_step_{0};
  std::atomic<std::uint64_t> limited_inputs_{0};
  StepCounter not_converged_, inaccurate_;
  Histogram wake_up_ns_;
  Histogram step_ns_;
  Histogram input_age_steps_;
};

}  // namespace rigstep::rt
