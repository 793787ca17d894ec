// What a step of each solver costs over bodies and threads.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "server/bench/request.h"
#include "server/machine/timing.h"

namespace rigstep::server {

// One line of the table.
struct StepCost {
  std::string mechanism, solver, version;
  int bodies = 0, threads = 1;
  double dt = 0.0;
  StepTimes times;
  double bytes_per_body = 0.0;  // 0: not known
  double speedup = 1.0;         // against one thread
  double multiply_adds = 0.0;   // per step; 0: not counted
  // share of each phase in a step, as the solver measures it; empty where it does not
  std::vector<std::pair<std::string, double>> phases;
  double gap = -1.0;    // by which joints stand open after the measured steps [m]; negative: not known
  std::string differs;  // how the solver's mechanism differs; empty: nowhere
  std::string problem;  // why there are no numbers

  double us_per_body() const { return times.median / bodies; }
  double efficiency() const { return speedup / threads; }
};

struct StepCosts {
  std::vector<StepCost> rows;
  std::map<std::string, std::string> missing;  // solver -> package
  std::string peers_problem;
  double peak = 0.0;  // multiply-adds per second
};

// Ends early, with what it has, where `stop` becomes true; progress: number of mechanisms done. Throws ConfigError,
// StepFailed.
StepCosts measure_step_costs(const BenchRequest& request, const std::atomic<bool>& stop,
                             const std::function<void(double)>& progress);

nlohmann::json to_json(const StepCosts& costs);
void print(const StepCosts& costs);
// Tables (CSV, JSON), and for each chain the figures 12 to 14 of [001].
void write_step_costs(const StepCosts& costs, const std::filesystem::path& folder);

// What both kinds of measurement say of the machine, and of engines that were not there. peak: 0 where not measured.
nlohmann::json machine_json(double peak);
void print_machine(const nlohmann::json& machine);
void print_missing(const std::map<std::string, std::string>& missing, const std::string& problem);

}  // namespace rigstep::server
