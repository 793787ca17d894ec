// Drains the record rings of a cycle to a file on a thread of its own, so that the loop never waits for a disk.
// Owned by a live run.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "core/mechanism/signals.h"
#include "proto/recording.h"
#include "rt/ring.h"

namespace rigstep::server {

wire::RecordedStep to_message(const StepRecord& record);
StepRecord from_message(const wire::RecordedStep& message);

class Recorder {
 public:
  // Creates the file. Throws wire::RecordingWriteError.
  Recorder(const std::string& path, const wire::RecordingHeader& header, rt::Ring& steps, rt::Ring& states);
  ~Recorder();

  void start();
  // Drains what is left, closes the file properly and returns an error text, empty if all was written.
  std::string stop(const wire::RecordingFooter& footer);

  // Steps that are with the operating system.
  std::uint64_t steps_written() const noexcept { return steps_written_.load(std::memory_order_relaxed); }
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

 private:
  void run();
  void drain();
  void flush();
  void write_states_before(std::uint64_t step);

  wire::RecordingWriter writer_;
  rt::Ring& steps_;
  rt::Ring& states_;
  wire::RecordedState state_message_;
  wire::RecordedStep step_message_;
  std::int64_t newest_log_time_ns_ = 0;
  std::uint64_t steps_taken_ = 0;  // recorder thread, then whoever joined it
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> steps_written_{0};
  std::string error_;  // recorder thread, then whoever joined it
  std::thread thread_;
};

}  // namespace rigstep::server
