#include "rt/thread_setup.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace rigstep::rt {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;  // more than the loop ever uses
constexpr int kCapIpcLock = 14;                  // numbers of <linux/capability.h>
constexpr int kCapSysNice = 23;

std::string reason(int error) { return "(" + std::generic_category().message(error) + ")"; }

// The value of a field of /proc/self/status, or an empty string.
std::string process_status(const std::string& field) {
  std::ifstream status("/proc/thread-self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) != 0) continue;
    const std::size_t value = line.find_first_not_of(" \t", field.size() + 1);
    return value == std::string::npos ? std::string() : line.substr(value);
  }
  return {};
}

bool has_capability(int number) {
  const std::string effective = process_status("CapEff");
  return !effective.empty() && (std::stoull(effective, nullptr, 16) >> number & 1u) != 0;
}

rlim_t limit(__rlimit_resource_t resource) {
  rlimit value{};
  return ::getrlimit(resource, &value) == 0 ? value.rlim_cur : 0;
}

// Of the calling thread; none where the kernel does not tell.
cpu_set_t allowed_cores() noexcept {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  ::sched_getaffinity(0, sizeof(cpus), &cpus);
  return cpus;
}

// The allowed cores as "0-2,5".
std::string list(const cpu_set_t& cpus) {
  std::string text;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &cpus)) continue;
    int last = cpu;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &cpus)) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cpu);
    if (last > cpu) text += "-" + std::to_string(last);
    cpu = last;
  }
  return text;
}

Grant lock_memory() {
  Grant grant{.what = "memory lock", .granted = false, .detail = {}};
  const std::string remedy = ": run with CAP_IPC_LOCK or set `ulimit -l unlimited`";
  const rlim_t allowed = limit(RLIMIT_MEMLOCK);
  if (allowed != RLIM_INFINITY && !has_capability(kCapIpcLock)) {
    // it might succeed now and make a later allocation fail
    grant.detail = "(limited to " + std::to_string(allowed / 1024) + " KiB)" + remedy;
    return grant;
  }
  if (::mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    grant.detail = reason(errno) + remedy;
    return grant;
  }
  const std::string locked = process_status("VmLck");
  grant.granted = !locked.empty() && locked != "0 kB";
  grant.detail = grant.granted ? locked + " locked" : "(the kernel reports nothing locked)" + remedy;
  return grant;
}

Grant keep_heap() {
  const bool kept = ::mallopt(M_TRIM_THRESHOLD, -1) == 1 && ::mallopt(M_MMAP_MAX, 0) == 1;
  return {"heap is kept", kept, kept ? "never returned to the system" : "(not supported by this C library)"};
}

Grant flush_denormals() {
  set_floating_point_mode();
#if defined(__x86_64__)
  const bool on = (_mm_getcsr() & 0x8040u) == 0x8040u;
  return {"denormals flushed", on, on ? "FTZ and DAZ set" : "(FTZ or DAZ not supported)"};
#elif defined(__aarch64__)
  std::uint64_t fpcr = 0;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  const bool on = (fpcr >> 24 & 1u) != 0;
  return {"denormals flushed", on, on ? "FZ set" : "(FZ not supported)"};
#else
  return {"denormals flushed", false, "(not known for this processor): steps may take longer near standstill"};
#endif
}

[[gnu::noinline]] Grant prefault_stack() {
  volatile std::byte touched[kStackBytes];
  for (std::size_t at = 0; at < kStackBytes; at += 1024) touched[at] = std::byte{1};
  return {"stack prefault", touched[0] == std::byte{1}, std::to_string(kStackBytes / 1024) + " KiB touched"};
}

// before SCHED_FIFO, which has no slack of its own and ignores the request
Grant tighten_timer() {
  ::prctl(PR_SET_TIMERSLACK, 1ul);
  const int slack_ns = ::prctl(PR_GET_TIMERSLACK);
  const bool tight = slack_ns == 0 || slack_ns == 1;
  return {"timer slack", tight, (tight ? "" : "(still) ") + std::to_string(slack_ns) + " ns"};
}

int last_of(const cpu_set_t& cpus) noexcept {
  for (int cpu = CPU_SETSIZE - 1; cpu > 0; --cpu) {
    if (CPU_ISSET(cpu, &cpus)) return cpu;
  }
  return 0;
}

Grant pin(std::optional<int> requested) {
  const cpu_set_t allowed = allowed_cores();
  const int cpu = requested.value_or(last_of(allowed));
  Grant grant{.what = "loop core " + std::to_string(cpu), .granted = false, .detail = {}};
  const std::string remedy = ": choose one of " + list(allowed) + " or widen the cpuset";
  if (cpu < 0 || cpu >= CPU_SETSIZE) {
    grant.detail = "(no such core)" + remedy;
    return grant;
  }

  // tried even if not in the mask: isolated cores are outside of it and yet permitted
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  const int error = ::sched_setaffinity(0, sizeof(only), &only) == 0 ? 0 : errno;
  const cpu_set_t achieved = allowed_cores();
  grant.granted = error == 0 && CPU_EQUAL(&achieved, &only);
  if (!grant.granted) {
    grant.detail = (error != 0 ? reason(error) : "(the thread may run on " + list(achieved) + ")") + remedy;
  } else {
    grant.detail = CPU_COUNT(&allowed) == 1 ? "the only core allowed, shared with every other thread"
                                            : "pinned, of " + list(allowed) + " allowed";
  }
  return grant;
}

std::string remedy_for_fifo(int error, int priority) {
  if (error == EINVAL) return ": use a priority from 1 to 99";
  const bool entitled = has_capability(kCapSysNice) || limit(RLIMIT_RTPRIO) >= static_cast<rlim_t>(priority);
  // entitled and yet refused: the control group has no share of real-time
  if (entitled) return ": give the control group real-time (cpu.rt_runtime_us, CONFIG_RT_GROUP_SCHED)";
  return ": run with CAP_SYS_NICE or set `ulimit -r " + std::to_string(priority) + "`";
}

Grant raise_priority(int priority) {
  Grant grant{.what = "SCHED_FIFO priority " + std::to_string(priority), .granted = false, .detail = {}};
  sched_param requested{};
  requested.sched_priority = priority;
  const int error = ::sched_setscheduler(0, SCHED_FIFO, &requested) == 0 ? 0 : errno;
  sched_param achieved{};
  ::sched_getparam(0, &achieved);
  const int policy = ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  grant.granted = error == 0 && policy == SCHED_FIFO && achieved.sched_priority == priority;
  if (grant.granted) {
    grant.detail = "in force";
  } else if (error != 0) {
    grant.detail = reason(error) + remedy_for_fifo(error, priority);
  } else {
    grant.detail = "(policy " + std::to_string(policy) + " priority " + std::to_string(achieved.sched_priority) +
                   " in force)" + remedy_for_fifo(EPERM, priority);
  }
  return grant;
}

void append(ThreadReport& report, Grant grant, const RealtimeSettings& settings) {
  if (settings.enforce && !grant.granted) throw RealtimeError(std::move(grant));
  report.push_back(std::move(grant));
}

}  // namespace

RealtimeError::RealtimeError(Grant refused_) : Error(to_string(refused_)), refused(std::move(refused_)) {}

std::string to_string(const Grant& grant) { return grant.what + (grant.granted ? ": " : ": refused ") + grant.detail; }

ThreadReport set_up_process_memory(const RealtimeSettings& settings) {
  ThreadReport report;
  append(report, keep_heap(), settings);
  append(report, lock_memory(), settings);
  return report;
}

ThreadReport set_up_loop_thread(const RealtimeSettings& settings) {
  ThreadReport report;
  append(report, flush_denormals(), settings);
  append(report, prefault_stack(), settings);
  append(report, tighten_timer(), settings);
  append(report, pin(settings.cpu), settings);
  append(report, raise_priority(settings.priority), settings);
  return report;
}

namespace {

constexpr double kReserve = 0.1;                   // of all time, left to others beyond what the kernel asks for
constexpr std::int64_t kWorkerSpinNs = 2'000'000;  // of a team's worker after each step, on slow processors
constexpr const char* kThrottle = "/proc/sys/kernel/sched_rt_runtime_us";

// Share of all time that the kernel leaves to real-time threads; 1: no limit.
double realtime_share() {
  std::ifstream runtime_file(kThrottle), period_file("/proc/sys/kernel/sched_rt_period_us");
  double runtime_us = -1.0, period_us = 0.0;
  runtime_file >> runtime_us;
  period_file >> period_us;
  return runtime_us < 0.0 || !(period_us > 0.0) ? 1.0 : runtime_us / period_us;
}

bool has_fifo(pthread_t thread) {
  sched_param parameter{};
  int policy = 0;
  return ::pthread_getschedparam(thread, &policy, &parameter) == 0 && (policy & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
}

std::string percent(double share) { return std::to_string(std::lround(100.0 * share)) + " %"; }

Grant pin_worker(pthread_t worker, std::size_t number, int core) {
  Grant grant{.what = "team thread " + std::to_string(number), .granted = false, .detail = {}};
  if (core < 0) {
    grant.detail = "(no core is left for it): allow more cores, or give fewer `threads`";
    return grant;
  }
  cpu_set_t only, achieved;
  CPU_ZERO(&only);
  CPU_ZERO(&achieved);
  CPU_SET(core, &only);
  const int error = ::pthread_setaffinity_np(worker, sizeof only, &only);
  ::pthread_getaffinity_np(worker, sizeof achieved, &achieved);
  grant.granted = error == 0 && CPU_EQUAL(&achieved, &only);
  grant.detail = grant.granted ? "pinned to core " + std::to_string(core) : reason(error) + ": widen the cpuset";
  return grant;
}

Grant raise_workers(std::span<const pthread_t> workers, std::int64_t period_ns, int priority) {
  Grant grant{.what = "team SCHED_FIFO priority " + std::to_string(priority), .granted = false, .detail = {}};
  const double share = realtime_share();
  if (share < 1.0 && static_cast<double>(kWorkerSpinNs) > (share - kReserve) * static_cast<double>(period_ns)) {
    grant.detail =
        "(workers spin for a millisecond or two after each step, the kernel stops real-time threads that "
        "use " +
        percent(share) + " of a second): write -1 to " + kThrottle + ", or leave it: they are pinned";
    return grant;
  }
  sched_param requested{};
  requested.sched_priority = priority;
  int error = 0;
  grant.granted = true;
  for (const pthread_t worker : workers) {
    if (const int refused = ::pthread_setschedparam(worker, SCHED_FIFO, &requested); refused != 0) error = refused;
    grant.granted = grant.granted && has_fifo(worker);
  }
  grant.detail = grant.granted ? "in force" : reason(error) + remedy_for_fifo(error, priority);
  return grant;
}

}  // namespace

ThreadReport set_up_team(std::span<const std::thread::native_handle_type> workers, int requested,
                         std::int64_t period_ns, const RealtimeSettings& settings) {
  ThreadReport report;
  const bool complete = workers.size() == static_cast<std::size_t>(requested);
  append(report,
         {"team of " + std::to_string(requested + 1), complete,
          complete ? "OpenMP gave all of them" : "(OpenMP gave fewer): unset OMP_THREAD_LIMIT and OMP_DYNAMIC"},
         settings);
  const cpu_set_t allowed = allowed_cores();
  const int loop_core = settings.cpu.value_or(last_of(allowed));
  int core = CPU_SETSIZE;
  for (std::size_t k = 0; k < workers.size(); ++k) {
    ::pthread_setname_np(workers[k], "rigstep-team");
    do --core;
    while (core >= 0 && (core == loop_core || !CPU_ISSET(core, &allowed)));
    append(report, pin_worker(workers[k], k + 1, core), settings);
  }
  append(report, raise_workers(workers, period_ns, settings.priority), settings);
  return report;
}

BusyPoll set_up_busy_poll(std::int64_t spin_ns, const RealtimeSettings& settings, ThreadReport& report) {
  if (spin_ns == 0) return {};
  Grant grant{.what = "busy-poll " + std::to_string(spin_ns / 1000) + " us", .granted = true, .detail = "of each wait"};
  const double share = has_fifo(::pthread_self()) ? realtime_share() : 1.0;
  const double awake = share < 1.0 ? share - kReserve : 1.0;
  if (awake <= 0.0) {
    grant.granted = false;
    grant.detail = "(the kernel leaves real-time threads " + percent(share) + "): raise " + std::string(kThrottle);
  } else if (share < 1.0) {
    grant.detail += "; it sleeps instead where it would be awake for more than " + percent(awake) +
                    " of the time: the kernel stops real-time threads that use " + percent(share) + " of a second";
  }
  const bool granted = grant.granted;
  append(report, std::move(grant), settings);
  return granted ? BusyPoll(spin_ns, static_cast<std::int64_t>(awake * BusyPoll::kWindowNs)) : BusyPoll();
}

NoDeepIdle::NoDeepIdle(const RealtimeSettings& settings, ThreadReport& report) {
  const std::int32_t most_us = 0;
  file_ = ::open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
  const bool held = file_ >= 0 && ::write(file_, &most_us, sizeof most_us) == sizeof most_us;
  const int error = held ? 0 : errno;
  try {
    append(report,
           {"no deep idle states", held,
            held ? "/dev/cpu_dma_latency held at 0 us"
                 : reason(error) + ": let this user write to /dev/cpu_dma_latency, or boot with idle=poll"},
           settings);
  } catch (...) {
    if (file_ >= 0) ::close(file_);
    throw;
  }
}

NoDeepIdle::~NoDeepIdle() {
  if (file_ >= 0) ::close(file_);
}

bool clear_openmp_environment() {
  bool changed = false;
  for (const char* name : {"OMP_DYNAMIC", "OMP_THREAD_LIMIT", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"}) {
    changed = changed || std::getenv(name) != nullptr;
    ::unsetenv(name);
  }
  return changed;
}

void set_floating_point_mode() noexcept {
#if defined(__x86_64__)
  constexpr unsigned kFlushToZero = 1u << 15;
  constexpr unsigned kDenormalsAreZero = 1u << 6;
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
#elif defined(__aarch64__)
  std::uint64_t fpcr = 0;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  asm volatile("msr fpcr, %0" : : "r"(fpcr | std::uint64_t{1} << 24));
#endif
}

ThreadUsage thread_usage() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return {usage.ru_minflt + usage.ru_majflt, usage.ru_nivcsw};
}

int last_allowed_core() noexcept { return last_of(allowed_cores()); }

StayOnCores::StayOnCores(Which which, int cpu) noexcept {
  cpu_set_t requested = allowed_cores();
  static_assert(sizeof(requested) == sizeof(before_));
  std::memcpy(before_.data(), &requested, sizeof(requested));
  if (which == Which::only) {
    CPU_ZERO(&requested);
    CPU_SET(static_cast<std::size_t>(cpu), &requested);
  } else {
    CPU_CLR(static_cast<std::size_t>(cpu), &requested);
  }
  ::sched_setaffinity(0, sizeof(requested), &requested);
}
StayOnCores::~StayOnCores() {
  cpu_set_t before;
  std::memcpy(&before, before_.data(), sizeof(before));
  ::sched_setaffinity(0, sizeof(before), &before);
}

}  // namespace rigstep::rt
