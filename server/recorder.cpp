#include "server/recorder.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "rt/cycle.h"

namespace rigstep::server {

namespace {

using namespace std::chrono_literals;
constexpr auto kPoll = 10ms;
constexpr auto kFlush = 100ms;  // a killed process loses at most this and one poll

void fill(const StepRecord& record, wire::RecordedStep& message) {
  message.set_step(record.step);
  message.set_sim_time_ns(record.sim_time_ns);
  message.clear_input();
  for (int k = 0; k < record.inputs.count; ++k) message.add_input(record.inputs.value[k]);
  message.set_sequence(record.sequence);
  message.set_input_age_steps(record.input_age_steps);
  message.set_status(static_cast<std::uint32_t>(record.status));
  message.set_flags(record.flags);
  message.set_missed_deadlines(record.missed_deadlines);
  message.set_wake_up_ns(record.wake_up_ns);
  message.set_step_ns(record.step_ns);
  message.set_state_hash(record.state_hash);
  message.clear_failed_body();
  message.clear_failed_joint();
  if (record.failed_body >= 0) message.set_failed_body(static_cast<std::uint32_t>(record.failed_body));
  if (record.failed_joint >= 0) message.set_failed_joint(static_cast<std::uint32_t>(record.failed_joint));
}

}  // namespace

wire::RecordedStep to_message(const StepRecord& record) {
  wire::RecordedStep message;
  fill(record, message);
  return message;
}

StepRecord from_message(const wire::RecordedStep& message) {
  StepRecord record;
  record.step = message.step();
  record.sim_time_ns = message.sim_time_ns();
  record.inputs.count = std::min(message.input_size(), kMaxChannels);
  for (int k = 0; k < record.inputs.count; ++k) record.inputs.value[k] = message.input(k);
  record.sequence = message.sequence();
  record.input_age_steps = message.input_age_steps();
  record.status = static_cast<StepStatus>(message.status());
  record.flags = message.flags();
  record.missed_deadlines = message.missed_deadlines();
  record.wake_up_ns = message.wake_up_ns();
  record.step_ns = message.step_ns();
  record.state_hash = message.state_hash();
  if (message.has_failed_body()) record.failed_body = static_cast<std::int32_t>(message.failed_body());
  if (message.has_failed_joint()) record.failed_joint = static_cast<std::int32_t>(message.failed_joint());
  return record;
}

Recorder::Recorder(const std::string& path, const wire::RecordingHeader& header, rt::Ring& steps, rt::Ring& states)
    : writer_(path, header), steps_(steps), states_(states) {}

Recorder::~Recorder() {
  stopping_.store(true);
  if (thread_.joinable()) thread_.join();
}

void Recorder::start() {
  thread_ = std::thread([this] { run(); });
}

std::string Recorder::stop(const wire::RecordingFooter& footer) {
  stopping_.store(true);
  if (thread_.joinable()) thread_.join();
  if (!error_.empty()) return error_;
  try {
    drain();
    write_states_before(std::numeric_limits<std::uint64_t>::max());
    wire::RecordingFooter counted = footer;
    counted.set_steps(steps_taken_);
    writer_.finish(counted);
    steps_written_.store(steps_taken_);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void Recorder::run() {
  auto flushed = std::chrono::steady_clock::now();
  try {
    while (!stopping_.load()) {
      drain();
      const auto now = std::chrono::steady_clock::now();
      if (now - flushed >= kFlush) {
        flush();
        flushed = now;
      }
      std::this_thread::sleep_for(kPoll);
    }
  } catch (const std::exception& error) {
    error_ = error.what();
    failed_.store(true);
  }
}

void Recorder::flush() {
  writer_.flush();
  steps_written_.store(steps_taken_, std::memory_order_relaxed);
}

// A full state stands right behind its step: the cycle hands it over before the next step.
void Recorder::drain() {
  StepRecord record;
  while (rt::try_pop(steps_, record)) {
    write_states_before(record.step);
    fill(record, step_message_);
    newest_log_time_ns_ = record.log_time_ns;
    writer_.write(step_message_, record.log_time_ns);
    if ((record.flags & kFaulted) == 0) ++steps_taken_;  // the record of a fault is no step
  }
}

void Recorder::write_states_before(std::uint64_t step) {
  for (auto slot = states_.front(); !slot.empty(); slot = states_.front()) {
    const rt::FullState full = rt::read_full_state(slot);
    if (full.step >= step) return;
    state_message_.set_step(full.step);
    state_message_.set_sim_time_ns(full.sim_time_ns);
    state_message_.mutable_state()->Assign(full.state.begin(), full.state.end());
    states_.pop();
    writer_.write(state_message_, newest_log_time_ns_);
  }
}

}  // namespace rigstep::server
