// What `rigstep bench` is asked to measure.
#pragma once

#include <string>
#include <vector>

#include "server/bench/mechanisms.h"

namespace rigstep::server {

struct BenchRequest {
  std::vector<BenchMechanism> mechanisms;
  std::vector<int> threads;     // numbers of them, the first is 1
  bool has_own_step = true;     // 1 ms for mechanisms with springs, which have a time scale of their own
  double duration = 10.0;       // simulated [s]
  std::string peers;            // executable that runs other engines; empty: none
  std::string peers_problem;    // why there is none
  std::string instruction_set;  // of the stepper; empty: the fastest of this processor
  bool quick = false;
};

inline constexpr const char* kChains[] = {"spherical_chain", "revolute_chain", "motor_chain"};

}  // namespace rigstep::server
