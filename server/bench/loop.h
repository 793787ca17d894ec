// The loop and the lockstep link beside what the machine does without Rigstep, in alternating rounds of one run:
// wake-ups beside cyclictest, and with browsers that watch beside without, round trips beside raw UDP datagrams there
// and back. Offline, though what it measures is not.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/bench/loop_phases.h"
#include "server/machine/baseline.h"

namespace rigstep::server {

struct LoopBenchRequest {
  std::string rig_file;  // its mechanism, period, address and real-time settings; nothing is recorded
  double seconds = 2.0;  // of each measurement in each round
  int rounds = 5;
  double misses_seconds = 0.0;  // instead of all this, so long (loop_misses.h)
};

// A rig file for measurements: nothing is recorded, and the port is any free one.
config::RigConfig bare_rig(const std::string& rig_file);

// Medians over the rounds [us].
struct LoopBenchRow {
  std::string what;
  double ours = 0.0;
  double step = 0.0;      // of it, in the stepper: not compared
  double machine = 0.0;   // what it is compared with
  double at_most = 0.0;   // (ours - step) / machine that a loop to trust has
  std::string problem{};  // why there are no numbers; empty: there are

  double ratio() const { return (ours - step) / machine; }
};

struct LoopBenchReport {
  std::vector<std::string> realtime;  // what was granted
  std::vector<LoopBenchRow> rows;
  Pauses pauses;  // medians over the rounds; the longest of all rounds
  LoopPhases phases;
  std::uint64_t deadlines = 0, missed = 0, missed_watched = 0;  // of all rounds; with viewers in the same time

  std::string text() const;
  nlohmann::json json() const;
};

// progress: what is running and how far all is, 0 to 1. Ends early, with what it has, once `stop` is set. Throws what
// LiveRun and RigClient throw.
LoopBenchReport bench_loop(const LoopBenchRequest& request, const std::atomic<bool>& stop,
                           const std::function<void(const char* what, double done)>& progress);

}  // namespace rigstep::server
