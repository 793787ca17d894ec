// What a step costs through the C library and through functional mock-up units, beside one of the stepper. Offline.
#pragma once

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rigstep::server {

// Of one mechanism, inputs set and all outputs read at each step [us]: the lowest of all rounds.
struct PluginCost {
  std::string mechanism;
  double stepper = 0.0, library = 0.0, fmi2 = 0.0, fmi3 = 0.0;
};

// The ways are measured by turns in each round. files: mechanism files. Ends early, with what it has, once `stop` is
// set. Throws FmuError where the library or the binaries are not beside the program.
std::vector<PluginCost> measure_plugin_costs(const std::vector<std::string>& files, bool quick,
                                             const std::atomic<bool>& stop,
                                             const std::function<void(double)>& progress);

std::string plugin_costs_text(const std::vector<PluginCost>& costs);
nlohmann::json to_json(const std::vector<PluginCost>& costs);

}  // namespace rigstep::server
