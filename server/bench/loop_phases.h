// What a tick of the loop takes beside its step, part by part: inputs and their policies, counters, the hash of the
// state, what is handed to other threads. At full speed, without a deadline and without other threads. Offline, though
// what it measures is not.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proto/load_rig.h"

namespace rigstep::server {

struct LoopPhases {
  struct Phase {
    std::string what;
    double us = 0.0;  // median over the ticks, the lowest of the rounds
  };
  std::vector<Phase> phases;
  int channels = 0;  // inputs and outputs

  double sum_us() const;
  std::string text() const;
  nlohmann::json json() const;
};

// rig: its mechanism, policies and channels. Ends early, with what it has, once `stop` is set.
LoopPhases measure_loop_phases(const config::RigConfig& rig, int rounds, const std::atomic<bool>& stop);

}  // namespace rigstep::server
