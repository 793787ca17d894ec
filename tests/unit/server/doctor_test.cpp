#include "server/machine/doctor.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace rigstep;
using server::Check;
using server::Health;
using server::Machine;
namespace fs = std::filesystem;

namespace {

using Files = std::map<std::string, std::string>;

const char* const kStatus =
    "Name:\trigstep\nCapEff:\t000001ffffffffff\nCapBnd:\t000001ffffffffff\nNoNewPrivs:\t0\nSeccomp:\t0\n"
    "Cpus_allowed_list:\t0-3\n";
const char* const kPlainUser =
    "Name:\trigstep\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nNoNewPrivs:\t0\nSeccomp:\t0\n"
    "Cpus_allowed_list:\t0-3\n";
const char* const kNoCapabilities =
    "Name:\trigstep\nCapEff:\t0000000000000000\nCapBnd:\t00000000a80425fb\nNoNewPrivs:\t0\nSeccomp:\t2\n"
    "Cpus_allowed_list:\t0-3\n";
const char* const kLimits =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max locked memory         unlimited            unlimited            bytes     \n"
    "Max realtime priority     99                   99                             \n";
const char* const kTightLimits =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max locked memory         65536                65536                bytes     \n"
    "Max realtime priority     0                    0                              \n";
const char* const kCpu3 = "/sys/devices/system/cpu/cpu3/";
const char* const kClock = "/sys/devices/system/clocksource/clocksource0/";

// A prepared bench: four cores, of which the last is isolated.
Files prepared() {
  return {{"/proc/version", "Linux version 6.1.0-31-rt-amd64 (gcc) #1 SMP PREEMPT_RT Debian\n"},
          {"/sys/kernel/realtime", "1\n"},
          {"/proc/cmdline", "quiet isolcpus=3\n"},
          {"/proc/self/status", kStatus},
          {"/proc/self/limits", kLimits},
          {"/proc/self/cgroup", "0::/user.slice/bench.scope\n"},
          {"/sys/fs/cgroup/user.slice/bench.scope/cpu.max", "max 100000\n"},
          {"/sys/fs/cgroup/user.slice/bench.scope/memory.max", "max\n"},
          {"/sys/fs/cgroup/user.slice/bench.scope/memory.current", "10000000\n"},
          {std::string(kCpu3) + "cpufreq/scaling_governor", "performance\n"},
          {std::string(kCpu3) + "topology/thread_siblings_list", "3\n"},
          {"/sys/devices/system/cpu/isolated", "3\n"},
          {"/sys/devices/system/cpu/nohz_full", "3\n"},
          {"/sys/devices/system/cpu/online", "0-3\n"},
          {"/proc/sys/kernel/sched_rt_runtime_us", "-1\n"},
          {"/proc/sys/kernel/sched_rt_period_us", "1000000\n"},
          {"/proc/irq/24/smp_affinity_list", "0-2\n"},
          {"/proc/irq/24/effective_affinity_list", "1\n"},
          {"/proc/interrupts",
           "           CPU0       CPU1       CPU2       CPU3\n 24:  5  0  0  0  PCI-MSI 1-edge  eth0-rx\n"},
          {"/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
          {std::string(kClock) + "current_clocksource", "tsc\n"},
          {std::string(kClock) + "available_clocksource", "tsc hpet acpi_pm\n"},
          {"/sys/class/net/lo/flags", "0x9\n"},
          {"/sys/class/net/eth0/flags", "0x1003\n"},
          {"/sys/class/net/eth0/device/vendor", "0x8086\n"}};
}

class FakeMachine {
 public:
  explicit FakeMachine(const Files& files) {
    std::string name = (fs::temp_directory_path() / "rigstep_doctor_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    machine.root = name;
    machine.coalescing = [](const std::string&) { return server::Coalescing{}; };
    for (const auto& [path, content] : files) {
      const fs::path file = machine.root / path.substr(1);
      fs::create_directories(file.parent_path());
      std::ofstream(file) << content;
    }
  }
  ~FakeMachine() { fs::remove_all(machine.root); }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  Check operator[](const std::string& check) const {
    for (const Check& finding : server::diagnose(machine))
      if (finding.check == check) return finding;
    FAIL("no finding called " << check);
    return {};
  }

  Machine machine;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void check_finding(const Check& finding, Health health, const std::string& reason, const std::string& remedy) {
  CAPTURE(finding.check);
  CAPTURE(finding.reason);
  CAPTURE(finding.remedy);
  CHECK(finding.health == health);
  CHECK(contains(finding.reason, reason));
  CHECK(contains(finding.remedy, remedy));
  CHECK(finding.remedy.empty() == (health == Health::pass));
}

}  // namespace

TEST_CASE("a prepared bench passes every check of the doctor") {
  const FakeMachine bench(prepared());
  const std::vector<Check> findings = server::diagnose(bench.machine);
  CHECK(findings.size() == 16);
  for (const Check& finding : findings) {
    CAPTURE(finding.reason);
    CHECK_MESSAGE(finding.health == Health::pass, finding.check);
  }
  CHECK(server::worst(findings) == Health::pass);
  CHECK(contains(server::to_text(findings), "verdict: pass: 16 pass, 0 warn, 0 fail"));
}

TEST_CASE("on a machine that tells nothing nothing passes but what needs no file") {
  const FakeMachine empty{Files{}};
  int untold = 0;
  for (const Check& finding : server::diagnose(empty.machine)) {
    CAPTURE(finding.check);
    if (finding.check == "OpenMP environment") continue;
    CHECK(finding.health == Health::warn);
    CHECK(finding.reason.rfind("cannot be told: ", 0) == 0);
    CHECK_FALSE(finding.remedy.empty());
    ++untold;
  }
  CHECK(untold == 15);
}

TEST_CASE("each thing that is wrong with a machine is found, with its reason and what fixes it") {
  struct Case {
    const char* check;
    Files changed;  // an empty content takes the file away
    Health health;
    const char *reason, *remedy;
  };
  const std::string cpu3 = kCpu3, clock = kClock, group = "/sys/fs/cgroup/user.slice/bench.scope/";
  const Case cases[] = {
      {"kernel",
       {{"/proc/version", "Linux version 6.1.0 (gcc) #1 SMP PREEMPT_DYNAMIC"}, {"/sys/kernel/realtime", ""}},
       Health::warn,
       "model dynamic",
       "linux-image-rt"},
      {"kernel",
       {{"/proc/version", "Linux version 6.1.0 (gcc) #1 SMP PREEMPT_DYNAMIC"},
        {"/sys/kernel/realtime", ""},
        {"/sys/kernel/debug/sched/preempt", "none (voluntary) full\n"}},
       Health::warn,
       "model voluntary:",
       "preempt=full"},
      {"kernel",
       {{"/proc/version", "Linux version 6.1.0 (gcc) #1 SMP PREEMPT_DYNAMIC"}, {"/sys/kernel/realtime", "1"}},
       Health::pass,
       "PREEMPT_RT",
       ""},
      {"privileges", {{"/proc/self/status", kPlainUser}}, Health::warn, "CAP_SYS_NICE and CAP_IPC_LOCK", "setcap"},
      {"rtprio limit", {{"/proc/self/status", kPlainUser}}, Health::pass, "99, priority 80", ""},
      {"rtprio limit", {{"/proc/self/limits", kTightLimits}}, Health::pass, "does not bind", ""},
      {"rtprio limit",
       {{"/proc/self/status", kPlainUser}, {"/proc/self/limits", kTightLimits}},
       Health::fail,
       "0, priority 80",
       "rtprio 80"},
      {"memlock limit", {{"/proc/self/limits", kTightLimits}}, Health::pass, "64 KiB", ""},
      {"memlock limit",
       {{"/proc/self/status", kPlainUser}, {"/proc/self/limits", kTightLimits}},
       Health::fail,
       "64 KiB",
       "memlock unlimited"},
      {"governor", {{cpu3 + "cpufreq/scaling_governor", "schedutil\n"}}, Health::warn, "schedutil", "performance"},
      {"governor", {{cpu3 + "cpufreq/scaling_governor", ""}}, Health::warn, "cannot be told", "commission"},
      {"SMT", {{cpu3 + "topology/thread_siblings_list", "1,3\n"}}, Health::warn, "with 1:", "cpu1/online"},
      {"isolated CPUs",
       {{"/sys/devices/system/cpu/isolated", "\n"}},
       Health::warn,
       "none",
       "isolcpus=managed_irq,domain,3"},
      {"isolated CPUs", {{"/sys/devices/system/cpu/isolated", "1-2\n"}}, Health::warn, "1,2, but", "cpu: 2"},
      {"isolated CPUs", {{"/sys/devices/system/cpu/nohz_full", ""}}, Health::warn, "the tick", "nohz_full=3"},
      {"cpuset", {{"/sys/devices/system/cpu/online", "0-1\n"}}, Health::fail, "core 3 is not", "cpuset"},
      {"cgroup limits", {{group + "cpu.max", "50000 100000\n"}}, Health::fail, "50000 of each 100000 us", "cpu.max"},
      {"cgroup limits",
       {{"/sys/fs/cgroup/user.slice/cpu.max", "1 2\n"}},
       Health::fail,
       "user.slice may run 1 of",
       "cpu.max"},
      {"cgroup limits", {{group + "memory.max", "67108864\n"}}, Health::fail, "64 MiB", "--memory"},
      {"cgroup limits",
       {{"/proc/self/cgroup", "3:cpu,cpuacct:/docker/1\n0::/\n"},
        {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "20000\n"},
        {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "50000\n"}},
       Health::fail,
       "20000 of each 50000 us",
       "--cpus"},
      {"cgroup limits",
       {{"/proc/self/cgroup", "3:cpu:/a\n"}, {"/sys/fs/cgroup/cpu/a/cpu.rt_runtime_us", "0\n"}},
       Health::fail,
       "no share of real time",
       "cpu.rt_runtime_us"},
      {"RT throttling",
       {{"/proc/sys/kernel/sched_rt_runtime_us", "950000"}},
       Health::warn,
       "950000 of each 1000000",
       "sysctl"},
      {"RT throttling", {{"/proc/sys/kernel/sched_rt_runtime_us", "0"}}, Health::fail, "gets 0", "sysctl"},
      {"IRQ affinity",
       {{"/proc/irq/24/effective_affinity_list", "3\n"}},
       Health::warn,
       "serves 1 of 1 interrupts (eth0-rx)",
       "for i in 24; do echo 0,1,2"},
      {"IRQ affinity", {{"/proc/irq/24/effective_affinity_list", ""}}, Health::pass, "none of 1", ""},
      {"transparent huge pages",
       {{"/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"}},
       Health::warn,
       "always",
       "echo madvise"},
      {"clock source", {{clock + "current_clocksource", "hpet\n"}}, Health::fail, "hpet", "echo tsc"},
      {"clock source",
       {{clock + "current_clocksource", "hpet\n"}, {clock + "available_clocksource", "hpet acpi_pm\n"}},
       Health::fail,
       "hpet",
       "tsc=reliable"},
      {"container limits",
       {{"/proc/self/status", kNoCapabilities}},
       Health::fail,
       "CAP_SYS_NICE",
       "--cap-add SYS_NICE"},
      {"container limits", {{"/.dockerenv", "x"}}, Health::pass, "docker", ""},
  };
  for (const Case& each : cases) {
    Files files = prepared();
    for (const auto& [path, content] : each.changed)
      if (content.empty())
        files.erase(path);
      else
        files[path] = content;
    check_finding(FakeMachine(files)[each.check], each.health, each.reason, each.remedy);
  }
}

TEST_CASE("what is in no file is diagnosed from what was asked") {
  FakeMachine bench(prepared());
  SUBCASE("a network driver that gathers packets, and one that does not tell") {
    bench.machine.coalescing = [](const std::string&) { return server::Coalescing{.rx_usecs = 50}; };
    check_finding(bench["NIC coalescing"], Health::warn, "eth0: packets wait up to 50 us", "ethtool -C eth0");
    bench.machine.coalescing = [](const std::string&) { return server::Coalescing{.error = EOPNOTSUPP}; };
    check_finding(bench["NIC coalescing"], Health::warn, "cannot be told", "ethtool -c eth0");
    bench.machine.links = {"eth7"};
    check_finding(bench["NIC coalescing"], Health::fail, "eth7: there is no such", "eth0, lo");
    bench.machine.links = {"lo"};
    check_finding(bench["NIC coalescing"], Health::pass, "loopback", "");
  }
  SUBCASE("a runtime that takes threads or cores away") {
    bench.machine.environment["OMP_THREAD_LIMIT"] = "1";
    check_finding(bench["OpenMP environment"], Health::warn, "OMP_THREAD_LIMIT=1", "unset OMP_THREAD_LIMIT");
    bench.machine.environment = {{"OMP_PROC_BIND", "close"}, {"OMP_WAIT_POLICY", "active"}};
    check_finding(bench["OpenMP environment"], Health::warn, "OMP_PROC_BIND=close", "unset OMP_PROC_BIND");
    bench.machine.environment = {{"OMP_WAIT_POLICY", "active"}};  // nothing to a team that waits by its own rule
    check_finding(bench["OpenMP environment"], Health::pass, "own rule", "");
  }
  SUBCASE("more threads than cores, and a loop core that is not there") {
    bench.machine.threads = 5;
    check_finding(bench["cpuset"], Health::fail, "5 threads", "cpuset");
    bench.machine.cpu = 9;
    check_finding(bench["cpuset"], Health::fail, "core 9", "cpuset");
  }
  SUBCASE("what the kernel refused when it was asked") {
    bench.machine.tried = {{"memory lock", true, "5 kB locked"},
                           {"SCHED_FIFO priority 80", false, "(Operation not permitted): set `ulimit -r 80`"}};
    check_finding(bench["tried: memory lock"], Health::pass, "5 kB locked", "");
    check_finding(bench["tried: SCHED_FIFO priority 80"], Health::fail, "refused (Operation not permitted)",
                  "set `ulimit -r 80`");
    CHECK(server::worst(server::diagnose(bench.machine)) == Health::fail);
    CHECK(server::to_json(server::diagnose(bench.machine))["verdict"] == "fail");
  }
}
