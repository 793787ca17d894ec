// What each solver costs for errors of 10, 1 and 0.1 mm.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/bench/accuracy.h"
#include "server/bench/request.h"

namespace rigstep::server {

struct ErrorCost {
  std::string mechanism, solver, version;
  std::string problem;  // why there are no points
  std::string differs;  // what of the mechanism's file is not in what was measured
  int bodies = 0;
  std::vector<AccuracyPoint> points;
};

// The cheapest of the points that stay within the tolerance [m], and not by luck: of their series, that of their
// iterations and time constant, the smaller steps down to half of theirs do so, too, and one of half or less is there.
// Null if none does.
const AccuracyPoint* cheapest(const std::vector<AccuracyPoint>& points, double tolerance);

struct ErrorCosts {
  std::vector<ErrorCost> rows;
  std::map<std::string, std::string> missing;
  std::string peers_problem;
};

// Ends early, with what it has, where `stop` becomes true; progress: number of mechanisms done. Throws ConfigError.
ErrorCosts measure_error_costs(const BenchRequest& request, const std::atomic<bool>& stop,
                               const std::function<void(double)>& progress);

// duration: simulated [s].
nlohmann::json to_json(const ErrorCosts& costs, double duration);
void print(const ErrorCosts& costs, double duration);
void write_error_costs(const ErrorCosts& costs, double duration, const std::filesystem::path& folder);

}  // namespace rigstep::server
