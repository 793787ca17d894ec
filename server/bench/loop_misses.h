// Which deadlines a loop misses, and why: whether something else had its core, whether the core stood still, or whether
// the loop's own work takes too long. Offline, though what it measures is not.
//
// The loop reads at both ends of each tick how much processor time the system counts for its thread. What the clock
// says more is time in which something else had the core: interrupts, other programs, a hypervisor that tells of it. A
// hypervisor may also stop a core without telling. In a wait that is spun through this shows as a jump between two
// looks at the clock; in a tick by making the same step again: a step has the same work each time, so what it took
// longer in the loop was not its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "proto/load_rig.h"

namespace rigstep::server {

struct LoopMisses {
  double seconds = 0.0;
  std::uint64_t deadlines = 0;  // kept and missed
  // missed deadlines, by what they are explained by
  std::uint64_t core_taken = 0;    // the thread got no processor time for as long as it was late
  std::uint64_t clock_jumped = 0;  // ... the clock jumped, in a wait that only looked at it
  std::uint64_t slower = 0;        // a tick that made again would have been in time
  std::uint64_t woken_late = 0;    // the loop slept
  std::uint64_t own_work = 0;      // by none of these: the tick takes too long
  double longest_late_us = 0.0;    // after a deadline that was missed
  // medians: a late step made again, what a tick takes beside its step, how much longer slower ticks took
  double step_us = 0.0, beside_us = 0.0, longer_us = 0.0;
  std::uint64_t not_kept = 0;         // missed besides, more than are kept to be explained
  std::string problem;                // why stepping stopped, or why ticks were not made again; empty: neither
  std::vector<std::string> realtime;  // what was granted

  std::uint64_t missed() const { return core_taken + clock_jumped + slower + woken_late + own_work + not_kept; }
  std::string text() const;
  nlohmann::json json() const;
};

// rig: its mechanism, period, policies and real-time settings, without its limits of misses; inputs are zero. progress:
// how far it is, 0 to 1. Ends early, with what it has, once `stop` is set. Throws what LiveRun throws. The
// calling thread has set_floating_point_mode().
LoopMisses measure_loop_misses(const config::RigConfig& rig, double seconds, const std::atomic<bool>& stop,
                               const std::function<void(double done)>& progress);

}  // namespace rigstep::server
