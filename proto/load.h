// Text files (protobuf text format) -> Mechanism and rig settings. Load time only. Every error carries
// file:line: field: what is wrong: what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "core/mechanism/signals.h"
#include "proto/bounds.h"

namespace rigstep::wire {

// A file that cannot be used as written; what() is "file:line: field: problem: remedy" (no line where there is none).
struct ConfigError : Error {
  using Error::Error;
};

struct LoadedMechanism {
  rigstep::Mechanism mechanism;
  std::string text;             // the file's content
  std::string path;             // as given
  std::vector<int> joint_line;  // line of each joint, from 1
  std::vector<int> coupling_line;
  std::vector<int> driver_line;

  // The error about joint j as it reads for the person who wrote the file. Couplings and drivers count on after the
  // joints.
  ConfigError at_joint(int j, const MechanismError& error) const;
};

LoadedMechanism load_mechanism(const std::string& path);
// path: for messages only.
LoadedMechanism parse_mechanism(std::string text, const std::string& path);

// The mechanism file with the start poses and velocities of `bodies` in place of its own. Joints placed at_start are
// written as they are built into the bodies, so that they stay the same joints. Comments are lost.
std::string with_start(const LoadedMechanism& loaded, const std::vector<rigstep::Body>& bodies);

struct RigConfig {
  std::string mechanism_path;  // relative paths are resolved against the rig file
  std::int64_t period_ns = 1'000'000;
  int iterations = 3;
  int threads = 1;                    // that share a step
  double relative_compliance = -1.0;  // negative: automatic
  int projection_passes = 0;          // 0: automatic
  std::string address = "127.0.0.1";
  std::uint16_t port = 47001;
  std::string key_path;  // of the link's key, relative paths resolved against the rig file; empty: none
  bool allow_unauthenticated = false;
  std::uint32_t max_input_delay_ms = 100;  // 0: inputs may be as old as they are
  std::uint32_t timeout_steps = 2000;      // two seconds of periods unless the file says otherwise
  bool enforce_realtime = false;
  int priority = 80;
  std::optional<int> cpu;
  std::string recording_path;  // empty: no recording
  std::uint32_t full_state_every = 1000;
  std::uint32_t max_input_age_steps = 20;
  rigstep::StaleRule stale_rule = rigstep::StaleRule::ramp;
  std::uint32_t ramp_steps = 250;           // of the rule ramp, where the channel has none of its own
  std::uint32_t fault_after_steps = 2000;   // age of inputs from which stepping stops; 0: never
  std::uint32_t consecutive_misses = 1000;  // of deadlines, from which on stepping stops; 0: no limit
  std::uint32_t misses_per_second = 750;    // likewise
  bool lockstep = false;                    // the rig paces
  std::int64_t busy_poll_ns = 0;            // of each wait, spun through
  template <class Treatment>
  struct OfChannel {
    std::string channel;  // its name; input_policies() and safe_outputs() look it up
    Treatment treatment;
    int line = 0;
  };
  std::vector<OfChannel<rigstep::InputPolicy>> inputs;
  std::vector<OfChannel<rigstep::SafeOutput>> safe_outputs;
  std::string black_box_folder;  // empty: no black box
  double black_box_seconds = 30.0;
  double black_box_least_interval_s = 10.0;  // between two that are asked for
  std::uint32_t most_black_boxes = 50;       // of a run; those that are asked for: half of it, likewise of the bytes
  std::uint64_t most_black_box_bytes = std::uint64_t{1024} << 20;
  std::uint64_t disk_reserve_bytes = std::uint64_t{100} << 20;  // that black boxes leave free
  std::vector<std::string> outputs;                             // empty: all
  std::string text;                                             // the file's content
  std::string path;                                             // as given
};

RigConfig load_rig(const std::string& path);
// path: for messages, and the folder of relative paths.
RigConfig parse_rig(std::string text, const std::string& path);

// "file:line: field" of a field of the rig file, such as link.address, for what is found wrong with it after loading;
// without the line where the file leaves it out. index: of a repeated field.
std::string place_in(const RigConfig& rig, const std::string& field, int index = 0);

// One per input channel of the mechanism: the rig file's own, or what stale_input says. Both throw ConfigError, with
// its line, for a name that is no channel.
std::vector<rigstep::InputPolicy> input_policies(const RigConfig& rig, const rigstep::Mechanism& mechanism);
std::vector<rigstep::SafeOutput> safe_outputs(const RigConfig& rig, const rigstep::Mechanism& mechanism);

// A whole regular file of UTF-8 text. Throws ConfigError if it cannot be read, is none, or has more than `most_bytes`.
std::string read_text_file(const std::string& path, std::size_t most_bytes = kLargestConfigFile);

// What every text in files and datagrams is.
bool is_utf8(const std::string& text);

}  // namespace rigstep::wire
