// What a recording says about its run, without a replay. Offline.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proto/recording_reader.h"

namespace rigstep::server {

// Something that happened in a run, for people.
struct RunEvent {
  std::uint64_t step = 0;
  double time = 0.0;  // simulated [s]
  std::string text;
};

// Deadlines that were missed in one part of the period, and the longest time that this part took where it missed some.
struct Misses {
  std::uint64_t deadlines = 0;
  double longest_us = 0.0;
};

struct RunInfo {
  std::string path, mechanism, mechanism_file, rig_file, product_version, recorded_on, variant_of, from_snapshot;
  std::string started;  // UTC
  double dt = 0.0;      // [s]
  std::uint64_t first_step = 0, last_step = 0, steps = 0;
  std::uint64_t missed_deadlines = 0, not_converged = 0, limited_inputs = 0, lost_steps = 0, steps_without_input = 0,
                steps_with_stale_input = 0, inaccurate = 0;
  double largest_error = -1.0;  // position that a step has added to the error, estimated [m]; -1: steps of order 2
  std::uint64_t largest_error_step = 0;
  std::string largest_error_body;  // that erred most then
  // Of the missed deadlines: by a wait, where nothing but the machine delays the loop; by the step of the tick before;
  // by the rest of that tick; by a tick that is not recorded.
  Misses missed_waiting, missed_in_step, missed_beside_step;
  std::uint64_t missed_unplaced = 0;
  std::uint64_t steps_with_outputs = 0, full_states = 0, bytes = 0;
  std::vector<std::string> inputs, outputs, recorded_outputs;  // name [unit]
  std::vector<std::string> realtime;                           // what was granted and refused
  nlohmann::json commissioning;                                // null: none
  std::vector<RunEvent> events;                                // in order; of many of a kind the first ones
  std::uint64_t events_left_out = 0;
  std::vector<wire::RecordedDistribution> distributions;
  std::string reason;  // why the run ended, empty: it did not end cleanly
  std::string damage;  // why the file could not be read to its end, empty: it could

  nlohmann::json json() const;
  std::string text() const;
};

// Throws as RecordedRun does.
RunInfo describe_run(const std::string& path, const std::function<void(std::uint64_t)>& progress);

}  // namespace rigstep::server
