// Costs of steps against those of an earlier run on the same type of processor. Times of two runs differ with what else
// the machine does, so each run is measured by its own steps of the printed form of the algorithm.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "server/bench/step_costs.h"

namespace rigstep::server {

// One row of both runs.
struct StepChange {
  std::string mechanism;
  int bodies = 0, threads = 1;
  double before = 0.0, now = 0.0;  // lowest time of a step over the mean time of the printed form [-]

  double change() const { return now / before - 1.0; }
};

// A step that became slower by more than this is reported as slower; less is the noise of a quiet machine [-].
inline constexpr double kSlowerStep = 0.05;

// Lowest times of steps [us] by mechanism, bodies, solver and threads.
using LowestTimes = std::map<std::tuple<std::string, int, std::string, int>, double>;

struct EarlierCosts {
  std::string path;
  LowestTimes lowest;
};

// A file written by `rigstep bench step --output` or with --json. Throws config::ConfigError where it is no such result
// or comes from another processor.
EarlierCosts read_earlier_costs(const std::string& path);

// Rows that only one run has are left out. The measure of a run is the geometric mean of the lowest times of the
// printed form over the chains that both runs have. Throws config::ConfigError where there is none.
std::vector<StepChange> compare(const EarlierCosts& earlier, const StepCosts& now);

bool is_slower(const std::vector<StepChange>& changes);
nlohmann::json to_json(const std::vector<StepChange>& changes);
void print(const std::vector<StepChange>& changes, const EarlierCosts& earlier);

}  // namespace rigstep::server
