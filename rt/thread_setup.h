// What makes a process and its loop thread fit for deadlines, and an honest report of what was granted. Every line
// tells what the kernel says afterwards, not what was asked for.
// Load time only; the exception is set_floating_point_mode(). Needs CAP_SYS_NICE and CAP_IPC_LOCK, or the limits
// rtprio and memlock; without them the best effort runs on and says what is missing.
#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep::rt {

struct RealtimeSettings {
  bool enforce = false;    // the first refusal is an error
  int priority = 80;       // SCHED_FIFO priority of the loop, 1..99
  std::optional<int> cpu;  // core of the loop; none: the last one of those allowed
};

// One line of the report.
struct Grant {
  std::string what;  // "SCHED_FIFO priority 80"
  bool granted = false;
  std::string detail;  // what is in force; or the reason of the refusal and its remedy
};
using ThreadReport = std::vector<Grant>;

// "SCHED_FIFO priority 80: refused (Operation not permitted): run with CAP_SYS_NICE or set `ulimit -r 80`"
std::string to_string(const Grant& grant);

// A refusal under `enforce`: what was refused, why, and what to do about it.
struct RealtimeError : Error {
  using Error::Error;
};

// Main thread, before other threads start: locks all memory, present and future, and keeps the heap from giving any
// back. Throws RealtimeError under `enforce`.
ThreadReport set_up_process_memory(const RealtimeSettings& settings);

// The loop thread on itself, before the first deadline: floating point mode, stack, timer slack, core, SCHED_FIFO.
// Threads it creates later inherit core and priority. Throws RealtimeError under `enforce`.
ThreadReport set_up_loop_thread(const RealtimeSettings& settings);

// Keeps the calling thread on the last allowed core, where the loop of a team belongs, as long as it lives: for those
// who step outside the loop. Make the stepper first, so that its team may use the other cores.
class LastCoreOnly {
 public:
  LastCoreOnly() noexcept;
  ~LastCoreOnly();
  LastCoreOnly(const LastCoreOnly&) = delete;
  LastCoreOnly& operator=(const LastCoreOnly&) = delete;

 private:
  cpu_set_t before_;
};

// Flushes denormal numbers to zero, in results and operands: they cost time when motion dies out. Decides bits, so
// every thread that steps calls it before its first step: live, replay and simulation alike.
void set_floating_point_mode() noexcept;

}  // namespace rigstep::rt
