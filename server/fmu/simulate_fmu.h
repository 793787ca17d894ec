// A whole run of any unit for co-simulation: what `rigstep fmusim` does. Offline.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "proto/load_mechanism.h"
#include "server/fmu/fmu.h"

namespace rigstep::server {

struct FmuRun {
  std::string inputs, output;                        // tables; empty: none. output: - is standard output
  double stop_time = 0.0, step_size = 0.0;           // [s]; 0: those of the description
  std::vector<config::ParameterSetting> parameters;  // set before the start
  std::function<void(double time)> progress;         // [s]; throws to stop
  std::function<void(const std::string&)> tell;      // what the unit says
};

struct FmuRunResult {
  std::uint64_t steps = 0;
  double time = 0.0;       // reached [s]
  double wall = 0.0;       // of the steps alone [s]
  std::string failure;     // why it ended before its stop time
  std::string state_hash;  // of a unit of this project, else empty
  std::vector<std::string> violations;
};

// Throws FmuError, with the violations that were found until then, ConfigError and FileError.
FmuRunResult simulate_fmu(const std::filesystem::path& unit, const FmuRun& run);

}  // namespace rigstep::server
