// What the link tells and asks the run that it belongs to.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/mechanism/signals.h"
#include "proto/wire.pb.h"
#include "rt/deadline_loop.h"
#include "rt/pose_mailbox.h"

namespace rigstep::server {

// For the log. Names are printable and short.
struct RigEvent {
  enum class Kind { connected, reconnected, left, timed_out, key_removed, reset_fault, black_box, command, parameters };
  Kind kind = Kind::connected;
  bool observer = false;
  std::string rig_name = {};                         // empty for what an operator may ask for, too
  std::string product_version = {};                  // of the rig's software
  std::string address = {};                          // "10.0.0.7:40112"
  wire::Command::Kind command = wire::Command::RUN;  // of `command`
};

// What steps in lockstep. All outlive serve_lockstep().
struct Lockstep {
  // Makes one step with the newest of `inputs`, or says in `answer` why not. Must not throw.
  std::function<void(const rt::TickTiming&)> step;
  std::function<void()> keep;  // records it, after the answer was sent
  const Snapshot& answer;      // of the last step
};

// Called on the network thread, in lockstep the loop thread; absent: nothing to tell, nobody to ask.
struct UdpHooks {
  std::function<void(const RigEvent&)> on_event = {};
  std::function<void(wire::StatusReport&)> describe_loop = {};  // fills in what the loop knows; at most every 100 ms
  std::function<void(std::uint32_t)> reset_fault = {};          // with the number of the fault to clear
  // Has a black box written unless more than so many were; false: none is kept.
  std::function<bool(std::uint32_t)> write_black_box = {};
  // Asks for a transition of the run. Returns why it is not permitted, for people; empty: it is; nullopt: void, since
  // there were not so many transitions before.
  std::function<std::optional<std::string>(const wire::Command& command)> command = {};
  // Has the loop change parameters, unless this request was made before. Returns why it cannot, for people; empty: it
  // does.
  std::function<std::string(const wire::ParameterSet& set)> set_parameters = {};
  // Fills in the parameters from report.first() on, and since when report.request() acts.
  std::function<void(wire::ParameterReport& report)> describe_parameters = {};
  // Fills in the piece of a snapshot file that is asked for; takes one, and tells how much has come. Both return why
  // they cannot, for people; empty: they do.
  std::function<std::string(const wire::SnapshotQuery& query, wire::SnapshotPiece& piece)> save_snapshot = {};
  std::function<std::string(const wire::SnapshotPiece& piece, wire::SnapshotPiece& receipt)> load_snapshot = {};
  std::string_view mechanism_text = {};  // the file, for who may read states; outlives the link
  rt::PoseMailbox* poses = nullptr;      // for who subscribes to them; outlives the link
};

}  // namespace rigstep::server
