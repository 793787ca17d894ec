// What makes a process and its loop thread fit for deadlines, and an honest report of what was granted. Every line
// tells what the kernel says afterwards, not what was asked for.
// Load time only; the exception is set_floating_point_mode(). Needs CAP_SYS_NICE and CAP_IPC_LOCK, or the limits
// rtprio and memlock; without them the best effort runs on and says what is missing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "rt/deadline_loop.h"

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
  explicit RealtimeError(Grant refused);
  Grant refused;
};

// Main thread, before other threads start: locks all memory, present and future, and keeps the heap from giving any
// back. Throws RealtimeError under `enforce`.
ThreadReport set_up_process_memory(const RealtimeSettings& settings);

// The loop thread on itself, before the first deadline: floating point mode, stack, timer slack, core, SCHED_FIFO.
// Threads it creates later inherit core and priority. Throws RealtimeError under `enforce`.
ThreadReport set_up_loop_thread(const RealtimeSettings& settings);

// Main thread, once the loop thread is set up: the other threads of a team, each with a core of its own that is not the
// loop's, and with its priority. SCHED_FIFO is refused where the kernel would stop them for spinning between steps (see
// BusyPoll). workers: see Stepper::workers(); requested: how many there should be. Throws RealtimeError under
// `enforce`.
ThreadReport set_up_team(std::span<const std::thread::native_handle_type> workers, int requested,
                         std::int64_t period_ns, const RealtimeSettings& settings);

// The loop thread on itself, after set_up_loop_thread(): how it may spin for `spin_ns` of each wait. Adds a line to the
// report. Throws RealtimeError under `enforce` if it may not spin at all.
BusyPoll set_up_busy_poll(std::int64_t spin_ns, const RealtimeSettings& settings, ThreadReport& report);

// Keeps the processor out of idle states that take long to leave, as long as it lives.
class NoDeepIdle {
 public:
  // Adds a line to the report. Throws RealtimeError under `enforce` if it is refused.
  NoDeepIdle(const RealtimeSettings& settings, ThreadReport& report);
  ~NoDeepIdle();
  NoDeepIdle(const NoDeepIdle&) = delete;
  NoDeepIdle& operator=(const NoDeepIdle&) = delete;

 private:
  int file_ = -1;
};

// Takes away what would keep the OpenMP runtime from giving the team as many threads as asked for, or pin them
// elsewhere. The runtime reads its environment before main; true: something was there, so start the program anew.
bool clear_openmp_environment();

// What the kernel counted of the calling thread.
struct ThreadUsage {
  long page_faults = 0;           // with and without a disk
  long involuntary_switches = 0;  // taken off its core
};
ThreadUsage thread_usage() noexcept;

// The last core that the calling thread may run on: the loop belongs there unless its rig file names another.
int last_allowed_core() noexcept;

// Keeps the calling thread on one core, or off it, as long as this lives, if the system lets it. Who steps outside the
// loop with a team belongs on the last allowed core; the stepper first, so that its team may use the others.
class StayOnCores {
 public:
  enum class Which { only, others };

  StayOnCores(Which which, int cpu) noexcept;
  ~StayOnCores();
  StayOnCores(const StayOnCores&) = delete;
  StayOnCores& operator=(const StayOnCores&) = delete;

 private:
  std::array<unsigned char, 128> before_;  // the kernel's set of allowed cores
};

// Flushes denormal numbers to zero, in results and operands: they cost time when motion dies out. Decides bits, so
// every thread that steps calls it before its first step: live, replay and simulation alike.
void set_floating_point_mode() noexcept;

}  // namespace rigstep::rt
