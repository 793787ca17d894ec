// One live run: a rig file brought to life. Owns the stepper, the cycle, the link, the recorder and their threads.
//
//   network thread   receives inputs, sends states         UdpEndpoint
//   loop thread      one tick per deadline                 Cycle in run_deadline_loop
//                    in lockstep one per datagram, and the network itself: UdpEndpoint::serve_lockstep
//   recorder thread  record rings to the file              Recorder
//
// Constructed, started and stopped on the main thread.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "rt/cycle.h"
#include "rt/thread_setup.h"
#include "server/link/key_watch.h"
#include "server/link/udp_endpoint.h"
#include "server/live/live_parameters.h"
#include "server/live/live_snapshots.h"
#include "server/live/live_summary.h"
#include "server/live/recorder.h"
#include "server/live/session.h"
#include "server/rig/operator_key.h"

namespace rigstep::server {

// The transition that a command asks for.
Transition transition_of(wire::Command::Kind kind);

// What a rig file says of inputs, misses, recording and the lifecycle.
rt::CycleSettings cycle_settings(const config::RigConfig& rig, const Mechanism& mechanism);
rt::RealtimeSettings realtime_settings(const config::RigConfig& rig);

// What a rig file permits and would better not, and a disk that is too full for its black boxes: for people, at each
// start.
std::vector<std::string> start_warnings(const config::RigConfig& rig);

class LiveRun {
 public:
  // Loads everything, locks memory, binds the port. A black box's folder must be there. A recording never replaces a
  // file: where there is one, the time goes into the new one's name. Throws MechanismFileError, config::ConfigError,
  // wire::KeyError, NetworkError.
  // with_outputs: look() has them, for people to watch.
  explicit LiveRun(config::RigConfig rig, bool with_outputs = false);
  ~LiveRun();

  // Sets up the loop thread, opens the recording and begins to step. Throws rt::RealtimeError where the rig file
  // enforces what is not granted, wire::RecordingError.
  void start();
  // Ends all threads in order and closes the recording.
  LiveSummary stop(const std::string& reason);

  const config::RigConfig& rig() const { return rig_; }
  const config::LoadedMechanism& mechanism() const { return mechanism_; }
  std::uint16_t port() const { return endpoint_.local_port(); }
  const rt::ThreadReport& realtime() const { return realtime_; }
  bool keeps_records() const { return !rig_.recording_path.empty() || !rig_.black_box_folder.empty(); }
  std::uint64_t missed_deadlines() const { return cycle_.missed_deadlines(); }
  std::uint64_t newest_miss_step() const { return cycle_.newest_miss_step(); }
  std::uint64_t lost_records() const { return cycle_.lost_records(); }
  rt::LifecycleStatus lifecycle() const { return cycle_.lifecycle(); }
  // A line that tells how it goes, and where asked for the newest outputs, a line each. Main thread.
  std::string look();
  // Why stepping stopped and, once it is known, where the black box of that is; empty if it did not or was reset.
  std::string fault() const;
  // The black box of the latched fault is still being written.
  bool awaits_black_box() const;
  // What is held in memory until the disk has it: seconds and MiB, for people.
  std::string memory_text() const;
  // Why nothing is recorded any more, empty if it is; stepping goes on.
  std::string recording_error() const { return recorder_ != nullptr ? recorder_->error() : std::string(); }
  // Has the black box written; false: the rig file asks for none.
  bool request_black_box();
  // What there is to tell about keys since the last call: the key file was read again, or cannot be; memory that is not
  // locked; no key for this user's `rigstep reset`.
  std::vector<std::string> take_key_events();
  // What became of black boxes since the last call.
  std::vector<Recorder::Written> take_black_boxes();
  // Those refused so far because of the rig file's limits, and why the newest of all was not written.
  std::uint32_t refused_black_boxes() const;
  std::string newest_black_box() const;
  // Rigs that came and went, and faults that were reset since the last call; at most a hundred are kept.
  std::vector<RigEvent> take_events();

 private:
  void run_loop();
  void start_recorder();
  void stop_recorder(const std::string& reason, LiveSummary& summary);
  template <class Add>
  void add_distributions(const Add& add) const;
  void keep_event(const RigEvent& event);
  void describe_loop(wire::StatusReport& report) const;
  bool request_black_box_after(std::uint32_t written);
  std::optional<std::string> command(const wire::Command& command);
  std::string set_parameters(const wire::ParameterSet& set);
  void take_requests_in_lockstep();
  void note_control(const RigEvent& event);
  std::string control_text();

  config::RigConfig rig_;
  std::optional<wire::SnapshotFile> started_from_;
  config::LoadedMechanism mechanism_;  // with the values of its parameters that the run started with
  rt::ThreadUsage loop_usage_;         // loop thread, then whoever joined it
  double loop_seconds_ = 0.0;          // likewise
  rt::ThreadReport realtime_;          // memory first: everything below shall be locked
  rt::NoDeepIdle no_deep_idle_;
  index3::Stepper stepper_;
  rt::Mailbox<InputSample> inputs_;
  rt::Mailbox<Snapshot> snapshots_;
  rt::Mailbox<Snapshot> displayed_;
  rt::PoseMailbox poses_;
  Snapshot newest_displayed_;
  const bool with_outputs_;
  std::shared_ptr<RecordRings> rings_;
  SnapshotRings snapshot_rings_;
  std::mutex events_mutex_;  // between the network thread and the main thread
  std::string in_control_;   // the rig's name
  std::vector<RigEvent> events_;
  std::optional<OperatorKey> operator_key_;  // where there is no key file
  KeyWatch key_watch_;
  std::vector<std::string> key_events_;
  wire::ServerCodec codec_;
  UdpEndpoint endpoint_;
  rt::Cycle cycle_;
  LiveParameters parameters_;
  LiveSnapshots snapshot_files_;
  std::shared_ptr<Recorder> recorder_;
  std::vector<std::string> black_boxes_;

  std::promise<rt::ThreadReport> set_up_;
  std::promise<void> go_;
  std::atomic<bool> stopping_{false};
  std::thread loop_;
};

}  // namespace rigstep::server
