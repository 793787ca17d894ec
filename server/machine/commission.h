// Whether this machine and link carry a mechanism at its period: the rig file's own loop, protocol and recording for
// some seconds, with a rig in software or a real one; afterwards cyclictest and a raw UDP echo, which show what of it
// is the machine's. The verdict follows from rules that it states. Offline, though what it measures is not.
#pragma once

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/live/live_run.h"
#include "server/machine/baseline.h"
#include "server/rig/rig.h"

namespace rigstep::server {

struct CommissionRequest {
  std::string rig_file;
  double seconds = 10.0;            // of the live run; what is measured beside it gets as long
  std::vector<std::string> drives;  // of the rig in software, see Drive::parse
  bool rig_elsewhere = false;       // wait for a real rig instead
  int port = -1;                    // instead of the rig file's; 0: any free one
};

// Holds where the value is at most the limit.
struct CommissionRule {
  std::string what;
  double value = 0.0, limit = 0.0;
  std::string unit;

  bool holds() const { return value <= limit; }
};

// What a rule demands at most, for people. All rules, in their order.
struct CommissionLimit {
  std::string what, most;
};
std::vector<CommissionLimit> commission_limits();

struct CommissionReport {
  std::string rig_file;
  std::string measured;  // when it began, UTC
  std::int64_t period_ns = 0;
  LiveSummary live;
  std::optional<RigReport> rig;  // none: it was elsewhere
  std::vector<std::string> realtime;
  Cyclictest cyclictest;
  UdpEcho echo;
  Pauses pauses;
  std::vector<CommissionRule> rules;
  nlohmann::json identity;  // commission_identity()

  bool carried() const;  // every rule holds
  // What is left of the scarcest time, 0..1; negative where it does not suffice.
  double margin() const;
  std::string text() const;
  nlohmann::json json() const;
};

// The rules on what was measured in so many seconds [s]: for every number its limit.
std::vector<CommissionRule> commission_rules(const config::RigConfig& rig, double seconds, const LiveSummary& live,
                                             const std::optional<RigReport>& seen);

// progress: what is running and how far it is, 0..1. Ends early, with what it has, once `stop` is set. Throws what
// LiveRun and run_rig throw, and NetworkError where no rig comes from elsewhere.
CommissionReport commission(const CommissionRequest& request, const std::atomic<bool>& stop,
                            const std::function<void(const char* what, double done)>& progress);

}  // namespace rigstep::server
