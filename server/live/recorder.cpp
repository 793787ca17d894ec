#include "server/live/recorder.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "rt/cycle.h"
#include "server/live/session.h"

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
  message.set_transition(static_cast<std::uint32_t>(record.transition));
  message.set_transitions(record.transitions);
  message.clear_parameter();
  for (int k = 0; k < record.parameters.count; ++k) message.add_parameter(record.parameters.value[k]);
  message.clear_failed_body();
  message.clear_failed_joint();
  message.clear_failed_output();
  if (record.failed_body >= 0) message.set_failed_body(static_cast<std::uint32_t>(record.failed_body));
  if (record.failed_joint >= 0) message.set_failed_joint(static_cast<std::uint32_t>(record.failed_joint));
  if (record.failed_output >= 0) message.set_failed_output(static_cast<std::uint32_t>(record.failed_output));
  message.set_last_increment(record.last_increment);
  message.set_position_residual(record.position_residual);
  message.set_velocity_residual(record.velocity_residual);
  message.set_acceleration_residual(record.acceleration_residual);
  message.clear_error_body();
  message.clear_position_error();
  message.clear_orientation_error();
  if (record.error_body >= 0) message.set_error_body(static_cast<std::uint32_t>(record.error_body));
  if (record.position_error < 0.0) return;
  message.set_position_error(record.position_error);
  message.set_orientation_error(record.orientation_error);
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
  record.transition = static_cast<Transition>(message.transition());
  record.transitions = message.transitions();
  record.parameters.count = std::min(message.parameter_size(), kMaxParameters);
  for (int k = 0; k < record.parameters.count; ++k) record.parameters.value[k] = message.parameter(k);
  if (message.has_failed_body()) record.failed_body = static_cast<std::int32_t>(message.failed_body());
  if (message.has_failed_joint()) record.failed_joint = static_cast<std::int32_t>(message.failed_joint());
  if (message.has_failed_output()) record.failed_output = static_cast<std::int32_t>(message.failed_output());
  record.last_increment = message.last_increment();
  record.position_residual = message.position_residual();
  record.velocity_residual = message.velocity_residual();
  record.acceleration_residual = message.acceleration_residual();
  if (message.has_position_error()) record.position_error = message.position_error();
  if (message.has_orientation_error()) record.orientation_error = message.orientation_error();
  if (message.has_error_body()) record.error_body = static_cast<std::int32_t>(message.error_body());
  return record;
}

void Recorder::record_to(const std::string& path, const wire::RecordingHeader& header) {
  writer_ = std::make_unique<wire::RecordingWriter>(path, header);
}

void Recorder::keep_black_box(const BlackBoxSettings& settings, const wire::RecordingHeader& header) {
  black_box_ = std::make_unique<BlackBox>(settings, header, rings_->states.slot_bytes());
}

void Recorder::start() {
  thread_ = std::thread([self = shared_from_this()] { self->run(); });
  ::pthread_setname_np(thread_.native_handle(), "rigstep-record");
}

std::string Recorder::stop(const wire::RecordingFooter& footer, std::chrono::milliseconds patience) {
  footer_ = footer;
  stopping_.store(true);
  if (finished_.get_future().wait_for(patience) == std::future_status::ready) {
    thread_.join();
    return error();
  }
  // it may hang in the system for ever; what it needs is its own
  thread_.detach();
  left_behind_ = true;
  if (whole_.load()) return {};
  return "the disk has not taken what was left within " + std::to_string(patience.count()) +
         " ms and is waited for no longer: look at it; what it took before is whole";
}

// On the recorder thread, when the loop has ended.
void Recorder::finish() {
  drain();
  write_states_before(std::numeric_limits<std::uint64_t>::max(), 0);
  write_black_box_if_wanted();
  write_recording([this](wire::RecordingWriter& writer) {
    footer_.set_steps(steps_taken_);
    writer.complete(footer_);
    steps_written_.store(steps_taken_);
    whole_.store(true);
    writer.sync();
  });
}

// A recording that fails ends; what else is kept goes on.
template <class Write>
void Recorder::write_recording(const Write& write) {
  if (!writer_) return;
  try {
    write(*writer_);
  } catch (const std::exception& error) {
    writer_.reset();
    error_ = error.what();
    recording_failed_.store(true);
  }
}

void Recorder::run() {
  auto flushed = std::chrono::steady_clock::now();
  while (!stopping_.load()) {
    drain();
    write_black_box_if_wanted();
    const auto now = std::chrono::steady_clock::now();
    if (now - flushed >= kFlush) {
      flush();
      flushed = now;
    }
    std::this_thread::sleep_for(kPoll);
  }
  finish();
  finished_.set_value();
}

void Recorder::flush() {
  write_recording([this](wire::RecordingWriter& writer) {
    writer.flush();
    steps_written_.store(steps_taken_, std::memory_order_relaxed);
  });
}

// A full state stands right behind its step: the cycle hands it over before the next step.
void Recorder::drain() {
  StepRecord record;
  while (rt::try_pop_step(rings_->steps, record)) {
    write_states_before(record.step, record.transitions);
    take(record);
  }
}

void Recorder::take(const StepRecord& record) {
  fill(record, step_message_);
  newest_log_time_ns_ = record.log_time_ns;
  std::span<const double> outputs;
  if (record.transition == Transition::none) outputs = outputs_.of(record.step, record.outputs);
  write_recording([&](wire::RecordingWriter& writer) { writer.write(step_message_, outputs, record.log_time_ns); });
  if (black_box_) black_box_->keep(step_message_, outputs, record.log_time_ns);
  if (record.is_step()) ++steps_taken_;
  if ((record.flags & kFaulted) == 0) return;
  ++faults_;
  if (!black_box_) return;
  const char* why = rigstep::failed(record.status) ? rigstep::to_string(record.status) : describe_stop(record.flags);
  write_black_box(BlackBox::Cause::fault, "fault after step " + std::to_string(record.step) + ": " + why);
  const std::lock_guard lock(written_mutex_);
  written_by_fault_ = newest_written_.good ? "what came before is in " + newest_written_.text : newest_written_.text;
  fault_that_wrote_ = faults_;
}

// Those of earlier steps, and of earlier transitions after the same step.
void Recorder::write_states_before(std::uint64_t step, std::uint32_t transitions) {
  rt::Ring& states = rings_->states;
  for (auto slot = states.front(); !slot.empty(); slot = states.front()) {
    const rt::FullState full = rt::read_full_state(slot);
    if (std::pair(full.step, full.transitions) >= std::pair(step, transitions)) return;
    to_message(full, state_message_);
    if (black_box_) black_box_->keep_state(slot);
    states.pop();
    write_recording([&](wire::RecordingWriter& writer) { writer.write(state_message_, newest_log_time_ns_); });
  }
}

void Recorder::request_black_box(std::uint32_t number) noexcept {
  for (std::uint32_t requested = black_box_wanted_.load();
       requested < number && !black_box_wanted_.compare_exchange_weak(requested, number);) {
  }
}

void Recorder::write_black_box_if_wanted() {
  if (black_box_ && black_box_wanted_.load() > black_boxes_begun_.load())
    write_black_box(BlackBox::Cause::request, "asked for by the operator");
}

Recorder::Written Recorder::try_black_box(BlackBox::Cause cause, const std::string& reason) {
  const auto now = std::chrono::steady_clock::now();
  if (const std::string refusal = black_box_->refusal(cause, now); !refusal.empty()) {
    black_boxes_refused_.fetch_add(1);
    return {.good = false, .refused = true, .text = "the black box was refused: " + refusal};
  }
  try {
    return {.good = true, .text = black_box_->write(cause, reason, now)};
  } catch (const std::exception& error) {
    return {.good = false, .text = std::string("the black box could not be written: ") + error.what()};
  }
}

void Recorder::write_black_box(BlackBox::Cause cause, const std::string& reason) {
  black_boxes_begun_.fetch_add(1);
  Written written = try_black_box(cause, reason);
  const std::lock_guard lock(written_mutex_);
  newest_written_ = written;
  // anybody may ask again and again: those are counted
  const bool only_counted = written.refused && cause == BlackBox::Cause::request;
  if (!only_counted) written_.push_back(std::move(written));
  black_boxes_written_.fetch_add(1);
}

std::vector<Recorder::Written> Recorder::take_written() {
  const std::lock_guard lock(written_mutex_);
  return std::exchange(written_, {});
}

// counted first: what is told then is that one or a newer one
Recorder::BlackBoxes Recorder::black_boxes(std::uint32_t fault_number) const {
  BlackBoxes boxes{.count = black_boxes_written_.load()};
  const std::unique_lock lock(written_mutex_, std::try_to_lock);
  if (!lock || boxes.count == 0) return boxes;
  boxes.newest_failed = !newest_written_.good;
  boxes.newest = newest_written_.text;
  if (fault_that_wrote_ == fault_number) boxes.of_fault = written_by_fault_;
  return boxes;
}

}  // namespace rigstep::server
