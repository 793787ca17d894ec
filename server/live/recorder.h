// Drains the record rings of a cycle on a thread of its own, so that the loop never waits for a disk: to a recording,
// and into the memory of a black box, which is written to a file of its own when a fault is latched or on request.
// Owned by a live run, and by its own thread: where a disk does not come back, that thread is left behind.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/mechanism/signals.h"
#include "proto/recording_writer.h"
#include "rt/ring.h"
#include "server/live/black_box.h"
#include "server/live/output_selection.h"

namespace rigstep::server {

wire::RecordedStep to_message(const StepRecord& record);
StepRecord from_message(const wire::RecordedStep& message);

// What the loop hands over.
struct RecordRings {
  RecordRings(std::size_t record_bytes, std::size_t records, std::size_t state_bytes, std::size_t full_states)
      : steps(record_bytes, records), states(state_bytes, full_states) {}
  rt::Ring steps;   // slots of rt::step_record_bytes()
  rt::Ring states;  // slots of rt::full_state_bytes()
};

class Recorder : public std::enable_shared_from_this<Recorder> {
 public:
  Recorder(std::shared_ptr<RecordRings> rings, RecordedOutputs outputs)
      : rings_(std::move(rings)), outputs_(std::move(outputs)) {}

  // Both before start(), either may be left out. record_to() creates the file; throws wire::RecordingWriteError.
  void record_to(const std::string& path, const wire::RecordingHeader& header);
  void keep_black_box(const BlackBoxSettings& settings, const wire::RecordingHeader& header);

  void start();
  bool is_running() const noexcept { return thread_.joinable(); }
  std::size_t black_box_bytes() const { return black_box_ ? black_box_->bytes() : 0; }  // of memory
  // Drains what is left, closes the file properly and returns an error text, empty if all was written. A disk that has
  // not taken it by then is waited for no longer. After start(), once.
  std::string stop(const wire::RecordingFooter& footer, std::chrono::milliseconds patience = std::chrono::hours(1));
  // After stop(): all was written, but the disk has not confirmed it.
  bool is_unconfirmed() const noexcept { return left_behind_ && whole_.load(); }

  // Has black box `number`, counted from 1, written soon unless it was begun already; any thread.
  void request_black_box(std::uint32_t number) noexcept;
  std::uint32_t black_boxes_begun() const noexcept { return black_boxes_begun_.load(); }
  // What became of black boxes since the last call: "PATH" or an error, for people. Requests that were refused are only
  // counted.
  struct Written {
    bool good = false;
    bool refused = false;  // by the limits of the rig file
    std::string text;
  };
  std::vector<Written> take_written();
  // For the status. Never waits: texts are empty while they are being changed.
  struct BlackBoxes {
    std::uint32_t count = 0;  // written, failed or refused since the start
    bool newest_failed = false;
    std::string newest = {};    // its path, or why it could not be written
    std::string of_fault = {};  // what became of the one that fault `fault_number` wrote, for people
  };
  BlackBoxes black_boxes(std::uint32_t fault_number) const;
  // Not written because of the limits of the rig file; `newest` above tells why.
  std::uint32_t refused_black_boxes() const noexcept { return black_boxes_refused_.load(); }

  // Steps that are with the operating system.
  std::uint64_t steps_written() const noexcept { return steps_written_.load(std::memory_order_relaxed); }
  // Why the recording ended early; empty: it goes on. Any thread, never waits.
  std::string error() const { return recording_failed_.load() ? error_ : std::string(); }

 private:
  void run();
  void finish();
  void drain();
  void take(const StepRecord& record);
  void flush();
  void write_states_before(std::uint64_t step, std::uint32_t transitions);
  void write_black_box(BlackBox::Cause cause, const std::string& reason);
  Written try_black_box(BlackBox::Cause cause, const std::string& reason);
  void write_black_box_if_wanted();
  template <class Write>
  void write_recording(const Write& write);

  std::unique_ptr<wire::RecordingWriter> writer_;  // null: no recording, or it failed
  std::unique_ptr<BlackBox> black_box_;
  const std::shared_ptr<RecordRings> rings_;
  RecordedOutputs outputs_;
  wire::RecordedState state_message_;
  wire::RecordedStep step_message_;
  std::int64_t newest_log_time_ns_ = 0;
  std::uint64_t steps_taken_ = 0;
  wire::RecordingFooter footer_;  // before stopping_ is set
  std::atomic<bool> stopping_{false};
  std::promise<void> finished_;
  std::atomic<bool> whole_{false};  // what remains is to wait for the disk
  bool left_behind_ = false;
  std::atomic<std::uint32_t> black_box_wanted_{0}, black_boxes_begun_{0}, black_boxes_written_{0},
      black_boxes_refused_{0};
  std::atomic<std::uint64_t> steps_written_{0};
  std::uint32_t faults_ = 0;  // recorded: the number of the newest, as long as none was lost
  mutable std::mutex written_mutex_;
  std::vector<Written> written_;
  Written newest_written_;
  std::string written_by_fault_;
  std::uint32_t fault_that_wrote_ = 0;  // its number, 0: none
  std::string error_;                   // written once, before the next is set
  std::atomic<bool> recording_failed_{false};
  std::thread thread_;
};

}  // namespace rigstep::server
