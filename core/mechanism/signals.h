// What crosses the boundary of one step: plain fixed-capacity structures, safe to copy in the loop.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/mechanism/mechanism.h"

namespace rigstep {

// Values of the input channels in the mechanism's order [channel's unit].
struct Inputs {
  int count = 0;
  std::array<double, kMaxChannels> value{};
};

// Values of the output channels in the mechanism's order [channel's unit].
struct Outputs {
  std::array<double, kMaxChannels> value{};
  int count = 0;
};

// Values of all parameters in the mechanism's order [parameter's unit].
struct ParameterValues {
  int count = 0;
  std::array<double, kMaxParameters> value{};
};

// Index of the first channel that is infinite or no number, or -1.
int first_not_finite(const Outputs& outputs) noexcept;

// Ordered by severity. From `diverged` on the step is not committed and the state stays at the last good one.
enum class StepStatus : std::uint8_t {
  ok = 0,
  not_converged = 1,      // the last iteration still moved a body by more than the tolerance, or a constraint is open
                          // by more than the mechanism's residual limits; the result is used
  diverged = 2,           // it moved one by more than a radian or the largest arm, or a joint is open by 1 % of that
  singular = 3,           // a joint, coupling, driver, primal body or force element could not be eliminated
  not_finite = 4,         // a result is NaN or infinite
  output_not_finite = 5,  // the motion is finite, an output channel of it is not
};

// The step was not committed.
inline bool failed(StepStatus status) noexcept { return status >= StepStatus::diverged; }

const char* to_string(StepStatus status) noexcept;

// What one step says about itself.
struct StepReport {
  StepStatus status = StepStatus::ok;
  int body = -1;                       // body that failed, or -1
  int joint = -1;                      // joint that failed (couplings, then drivers count on after), or -1
  int output = -1;                     // output channel that is not finite, or -1
  double last_increment = 0.0;         // largest displacement [m] or rotation [rad] of a body in the last iteration
  double position_residual = 0.0;      // largest constraint row [m] or [-]
  double velocity_residual = 0.0;      // [m/s] or [1/s]
  double acceleration_residual = 0.0;  // [m/s^2] or [1/s^2]
  // Of order 4: estimate of the local error of its half steps, of the worst body; that of the state that is reached is
  // far smaller. Order 2 has none: -1.
  double position_error = -1.0;     // [m]
  double orientation_error = -1.0;  // [rad]
  int error_body = -1;              // the body that errs most, position beside the largest arm, or -1
};

// What a user asks of the estimated error of a step, of order 4.
struct ErrorLimit {
  double position = std::numeric_limits<double>::infinity();     // [m]
  double orientation = std::numeric_limits<double>::infinity();  // [rad]

  bool is_none() const noexcept { return std::isinf(position) && std::isinf(orientation); }
  bool holds(double position_error, double orientation_error) const noexcept {
    return position_error <= position && orientation_error <= orientation;
  }
};

// Bits of Snapshot.flags and StepRecord.flags.
enum Flag : std::uint32_t {
  kStaleInput = 1u << 0,      // no input within the allowed age: the stale rule was applied
  kOverrun = 1u << 1,         // deadlines were missed and skipped since the last step
  kRecordLost = 1u << 2,      // the recorder does not keep up: from a lost record until one gets through
  kNotConverged = 1u << 3,    // StepStatus::not_converged; the result is used
  kFaulted = 1u << 4,         // stopped by a failed step, inputs or deadlines: outputs repeat the last good state
  kNoInputYet = 1u << 5,      // no rig has sent inputs so far
  kInputLimited = 1u << 6,    // an input was outside its range or rate: the nearest value inside was applied
  kMissedTooOften = 1u << 7,  // with kFaulted: more deadlines were missed than allowed, stepping stopped
  kReady = 1u << 8,           // before the first step from a start: time stands, the state is repeated
  kHolding = 1u << 9,         // time stands, the last state is repeated
  kControlLost = 1u << 10,    // with kFaulted: the rig in control has left or fallen silent
  kInaccurate = 1u << 11,     // the estimated error of the step is above what was asked for; the result is used
};

// What leads from one state of a run to another; rt/lifecycle.h says which does. Recorded as these numbers.
enum class Transition : std::uint8_t {
  none = 0,
  control_gained = 1,  // the first input of a rig that has taken control
  run = 2,
  hold = 3,
  step = 4,  // so many steps, then steps_done
  steps_done = 5,
  control_lost = 6,
  snapshot = 7,           // the present state is kept for reset_to_snapshot
  reset_to_start = 8,     // to the state before the first step
  reset_to_snapshot = 9,  // to the newest snapshot, or before there is one to the start
  fault = 10,
  clear_fault = 11,
  parameters = 12,     // values of parameters change; leads to no other state
  reset_to_file = 13,  // to the state of a snapshot file that somebody sent
};
inline constexpr int kTransitions = 14;

// Whether it sets the state back.
constexpr bool is_reset(Transition transition) noexcept {
  return transition == Transition::reset_to_start || transition == Transition::reset_to_snapshot ||
         transition == Transition::reset_to_file;
}

const char* to_string(Transition transition) noexcept;  // "reset to start"

// What is applied when the newest input is older than allowed.
enum class StaleRule : std::uint8_t {
  hold,   // the last value
  zero,   // zero
  fault,  // nothing: stepping stops
  ramp,   // linearly to the safe value
  rate,   // on at the last rate until twice the allowed age, then held
};

// When the first step is made.
enum class StartMode : std::uint8_t {
  when_controlled,  // with the first input of a rig that has taken control
  at_once,
  held,  // when somebody asks for it
};

// What follows when the rig in control leaves or falls silent.
enum class ControlLost : std::uint8_t {
  go_on,  // the rules for stale inputs decide
  hold,
  fault,
};

// How one input channel is treated before it is applied [channel's unit].
struct InputPolicy {
  StaleRule rule = StaleRule::hold;
  std::uint32_t max_age_steps = 20;  // age from which the rule applies
  double safe = 0.0;                 // applied before the first input and after a reset, and where a ramp ends
  std::uint32_t ramp_steps = 0;      // of `ramp`, from the value at which it begins; 0: at once
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  double most_change_per_step = std::numeric_limits<double>::infinity();  // between two applied values
};

// Where an output channel goes while a fault is latched.
struct SafeOutput {
  int channel = 0;               // index of the output channel
  double value = 0.0;            // [channel's unit]
  std::uint32_t ramp_steps = 0;  // from the last good value; 0: at once
};

// An input set as it arrived from the rig.
struct InputSample {
  Inputs inputs;
  std::uint64_t sequence = 0;    // the rig's count, from 1
  std::int64_t rig_time_ns = 0;  // the rig's clock, echoed and never compared with ours
};

// The answer to the rig after one step.
struct Snapshot {
  std::uint64_t step = 0;        // steps so far; a reset of the state does not change it
  std::int64_t sim_time_ns = 0;  // step * dt
  std::uint64_t sequence = 0;    // newest input sequence used
  std::int64_t rig_time_ns = 0;  // its rig time
  StepStatus status = StepStatus::ok;
  std::uint32_t flags = 0;
  std::uint32_t input_age_steps = 0;
  Outputs outputs;
  // for the accounting on this machine, never sent
  std::int64_t scheduled_ns = 0;    // deadline of the tick, or arrival of the datagram that asked for it; monotonic
  std::int64_t written_ns = 0;      // when the answer was complete; monotonic
  std::uint32_t missed_before = 0;  // deadlines skipped just before the tick's own,
  std::uint32_t missed_asleep = 0;  // and just after it, because the loop woke up so late
};

// One step as recorded: replaying `inputs` from the start state gives `state_hash` again.
struct StepRecord {
  std::uint64_t step = 0;
  std::int64_t sim_time_ns = 0;
  std::int64_t log_time_ns = 0;  // wall clock at the step [ns since 1970]
  std::uint64_t sequence = 0;    // of the newest input used, 0 if none
  std::uint32_t input_age_steps = 0;
  StepStatus status = StepStatus::ok;
  std::int32_t failed_body = -1;  // where a failed step began, index or -1
  std::int32_t failed_joint = -1;
  std::int32_t failed_output = -1;  // output channel that was not finite, index or -1
  std::uint32_t flags = 0;
  std::uint32_t missed_deadlines = 0;  // skipped before this step
  std::uint32_t wake_up_ns = 0;        // from the deadline to the start of the tick
  std::uint32_t step_ns = 0;           // from the inputs to the output channels
  std::uint64_t state_hash = 0;
  Transition transition = Transition::none;  // otherwise this is no step, but what happened after the step before it
  std::uint32_t transitions = 0;             // so far, changes of parameters included
  double last_increment = 0.0;               // as in StepReport, and the three after it
  double position_residual = 0.0;
  double velocity_residual = 0.0;
  double acceleration_residual = 0.0;
  double position_error = -1.0;  // likewise, and the two after it
  double orientation_error = -1.0;
  std::int32_t error_body = -1;
  Inputs inputs;               // as applied; the channels stand last, so that a queue holds only as many as there are
  Outputs outputs;             // as answered
  ParameterValues parameters;  // of Transition::parameters: those that act from the next step on

  // Not the record of a fault or of another transition.
  bool is_step() const noexcept { return (flags & kFaulted) == 0 && transition == Transition::none; }
};

}  // namespace rigstep
