// Which step, iterations, projection passes and threads a mechanism needs on this machine: every setting of a grid is
// run against a reference and timed. The reference is the stepper itself at half and a quarter of the grid's common
// step, extrapolated to dt = 0; that the stepper converges to the right motion is verify's to show. Offline.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proto/load_mechanism.h"

namespace rigstep::server {

// First line of the files that TuneReport::rig_file writes.
inline constexpr const char* kTuneMark = "# Written by rigstep tune.";

struct TuneRequest {
  std::string mechanism;                             // file
  std::vector<config::ParameterSetting> parameters;  // values instead of those that the mechanism file declares
  std::string inputs;                                // CSV of input channels over time; empty: zero
  double deadline_us = 0.0;                          // longest time that a step with its outputs may take [us]
  double error = 0.0;     // largest distance that a body may have from the reference: of its mass centre, or its angle
                          // times its longest arm to a joint or its radius of gyration, whichever is longer [m]
  double duration = 1.0;  // simulated time [s]
  std::vector<int> dt_us{100, 200, 500, 1000, 2000, 5000, 10000};
  std::vector<int> iterations{1, 2, 3, 4};
  std::vector<int> projection_passes{1, 2};
  std::vector<int> orders{2, 4};  // of accuracy
  std::vector<int> threads;       // none: 1, 2, 4, ... as many as there are cores
  int samples = 5000;             // steps that are timed for each setting, at least; the run is repeated for that
};

struct TuneSetting {
  int dt_us = 0, iterations = 0, projection_passes = 0, threads = 1, order = 2;
  double error = 0.0;                                // [m]
  double p50_us = 0.0, p999_us = 0.0, max_us = 0.0;  // of a step with its outputs
  std::size_t not_converged = 0;                     // steps of the run that is compared
  std::size_t samples = 0;                           // steps that were timed: those that no other process interrupted
  std::string problem = {};                          // why there are no numbers; empty: there are
  bool on_front = false;                             // no other has both a smaller error and a smaller load

  double load() const { return p999_us / dt_us; }  // share of a core, by the 99.9th percentile
};

struct TuneReport {
  TuneRequest request;
  std::string mechanism;              // its name
  std::string machine;                // processor
  double reference_dt_us = 0.0;       // the finest step of the reference
  double uncertainty = 0.0;           // of the reference [m]
  std::vector<TuneSetting> settings;  // all, by load
  std::optional<std::size_t> chosen;  // the least load of those that meet both demands

  // In time: 99.9 % of the steps take less than the deadline and less than dt.
  bool in_time(const TuneSetting& setting) const;
  // Accurate: every step converges, and error and the reference's uncertainty together are within what was demanded.
  bool accurate(const TuneSetting& setting) const;

  std::string text() const;
  nlohmann::json json() const;
  // A rig file with the chosen setting, for a file in `folder`. There must be one.
  std::string rig_file(const std::string& folder) const;
};

// progress: how far it is, 0..1; may throw to stop. Throws MechanismFileError, config::ConfigError for demands and
// grids that make no sense, and StepFailed where not even the reference can be stepped.
TuneReport tune(const TuneRequest& request, const std::function<void(double done)>& progress);

// Marks the smallest error of all that cost no more, in settings that are sorted by load.
void mark_front(std::vector<TuneSetting>& settings);

}  // namespace rigstep::server
