// A rig file (protobuf text format, schema rig.proto) -> settings of a run. Load time only. Every error carries
// file:line: field: what is wrong: what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "core/mechanism/signals.h"
#include "proto/config_text.h"
#include "proto/load_mechanism.h"

namespace rigstep::config {

struct RigConfig {
  std::string mechanism_path;  // relative paths are resolved against the rig file
  std::int64_t period_ns = 1'000'000;
  int iterations = 3;
  int threads = 1;                    // that share a step
  double relative_compliance = -1.0;  // negative: automatic
  int projection_passes = 0;          // 0: automatic
  int order = 2;                      // of accuracy: 2 or 4
  ErrorLimit error_limit;             // of a step of order 4
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
  std::uint32_t outputs_every = 1;            // steps; 0: outputs are not recorded
  std::vector<std::string> recorded_outputs;  // empty: all
  std::uint32_t max_input_age_steps = 20;
  StaleRule stale_rule = StaleRule::ramp;
  std::uint32_t ramp_steps = 250;           // of the rule ramp, where the channel has none of its own
  std::uint32_t fault_after_steps = 2000;   // age of inputs from which stepping stops; 0: never
  std::uint32_t consecutive_misses = 1000;  // of deadlines, from which on stepping stops; 0: no limit
  std::uint32_t misses_per_second = 750;    // likewise
  bool lockstep = false;                    // the rig paces
  std::int64_t busy_poll_ns = 0;            // of each wait, spun through
  struct WrittenUnit {
    std::string field, unit;
    int line = 0;
  };
  template <class Treatment>
  struct OfChannel {
    std::string channel;  // its name; input_policies() and safe_outputs() look it up
    Treatment treatment;
    int line = 0;
    std::vector<WrittenUnit> units;  // of its numbers; input_policies() and safe_outputs() check them
  };
  std::vector<OfChannel<InputPolicy>> inputs;
  std::vector<OfChannel<SafeOutput>> safe_outputs;
  std::string black_box_folder;  // empty: no black box
  double black_box_seconds = 30.0;
  double black_box_least_interval_s = 10.0;  // between two that are asked for
  std::uint32_t most_black_boxes = 50;       // of a run; those that are asked for: half of it, likewise of the bytes
  std::uint64_t most_black_box_bytes = std::uint64_t{1024} << 20;
  std::uint64_t disk_reserve_bytes = std::uint64_t{100} << 20;  // that black boxes leave free
  StartMode start = StartMode::when_controlled;
  ControlLost control_lost = ControlLost::go_on;
  std::uint32_t soft_start_steps = 0;
  struct Page {
    std::string address = "127.0.0.1";
    std::uint16_t port = 8470;
    std::string token_path;  // empty: no token
    bool control = false;
  };
  std::optional<Page> page;          // that is served beside the loop
  std::vector<std::string> outputs;  // empty: all
  struct StartValue {
    ParameterSetting setting;  // load_mechanism.h
    int line = 0;
    std::vector<WrittenUnit> units;  // of its value; set_start_parameters() checks them
  };
  std::vector<StartValue> parameters;  // of the mechanism, that the run starts with
  std::string snapshot_path;           // file that the run starts from; empty: from the mechanism's start
  std::string text;                    // the file's content
  std::string path;                    // as given
};

RigConfig load_rig(const std::string& path);
// path: for messages, and the folder of relative paths.
RigConfig parse_rig(std::string text, const std::string& path);

// "file:line: field" of a field of the rig file, such as link.address, for what is found wrong with it after loading;
// without the line where the file leaves it out. index: of a repeated field.
std::string place_in(const RigConfig& rig, const std::string& field, int index = 0);

// Declares the values that `start` gives. Throws ConfigError with the line of the one that is wrong.
void set_start_parameters(LoadedMechanism& mechanism, const RigConfig& rig);

// One per input channel of the mechanism: the rig file's own, or what stale_input says. Both throw ConfigError, with
// its line, for a name that is no channel.
std::vector<InputPolicy> input_policies(const RigConfig& rig, const Mechanism& mechanism);
std::vector<SafeOutput> safe_outputs(const RigConfig& rig, const Mechanism& mechanism);

}  // namespace rigstep::config
