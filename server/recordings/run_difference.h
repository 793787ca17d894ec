// What differs between two recorded runs, instant by instant. Offline.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/recordings/recorded_run.h"

namespace rigstep::server {

// Of a channel that both runs have.
struct ChannelDifference {
  std::string name, unit;
  double largest = 0.0;    // of |b - a| [unit]; infinite where only one of the two is a number
  double rms = 0.0;        // root of the mean square over the common instants [unit]
  double range = 0.0;      // highest less lowest value of a [unit]
  double at = 0.0;         // time of the largest [s]
  double tolerance = 0.0;  // [unit]
  bool within() const { return largest <= tolerance; }
};

struct RunDifference {
  std::string a, b;
  bool same_mechanism = false;
  bool same_settings = false;  // period, iterations, compliance, passes
  bool same_start = false;
  std::uint64_t instants = 0;                         // common ones
  std::uint64_t only_a = 0, only_b = 0;               // rows without a partner in the other run
  std::optional<double> first_input_difference = {};  // time of the first row whose inputs differ [s]
  std::optional<double> first_state_difference = {};  // likewise of the states, by their hashes, of the same mechanism
  std::vector<ChannelDifference> inputs, outputs;
  std::vector<std::string> channels_of_a, channels_of_b;  // that the other run has not
  std::string damage_of_a, damage_of_b;                   // why a file could not be read to its end, empty: it could

  // Both ran over the same instants, and no channel differs by more than its tolerance.
  bool within_tolerance() const;
  nlohmann::json json() const;
  std::string text() const;
};

// Tolerance of each channel in its own unit.
struct Tolerances {
  double all = 0.0;
  std::vector<std::pair<std::string, double>> of_channel;
  double of(const std::string& name) const;
};

// The inputs and the outputs that both have, or of these the named ones.
RunDifference compare_runs(const RecordedRun& a, const RecordedRun& b, const RunSelection& selection,
                           const Tolerances& tolerances, const RecordedRun::Progress& progress);

}  // namespace rigstep::server
