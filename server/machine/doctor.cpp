#include "server/machine/doctor.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "server/network_error.h"

namespace rigstep::server {

namespace {

namespace fs = std::filesystem;
using Cpus = std::set<int>;

constexpr int kCapIpcLock = 14;  // numbers of <linux/capability.h>
constexpr int kCapSysNice = 23;

template <class T = long>
std::optional<T> number(std::string_view text, int base = 10) {
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// "0-2,5"; nothing where that is no list.
std::optional<Cpus> parse_cpus(const std::string& text) {
  Cpus cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto dash = part.find('-');
    const auto first = number<int>(part);
    const auto last = dash == std::string::npos ? first : number<int>(std::string_view(part).substr(dash + 1));
    if (!first || !last) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

std::string list(const Cpus& cpus) { return fmt::format("{}", fmt::join(cpus, ",")); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What every check looks at.
class View {
 public:
  explicit View(const Machine& looked_at) : machine(looked_at) {
    if (const auto allowed = status("Cpus_allowed_list")) allowed_ = parse_cpus(*allowed);
    if (machine.cpu)
      loop_cpu_ = machine.cpu;
    else if (allowed_ && !allowed_->empty())
      loop_cpu_ = *allowed_->rbegin();
  }

  // A file's content without blanks at its end.
  std::optional<std::string> read(const std::string& path) const {
    std::ifstream file(machine.root / path.substr(1));
    if (!file) return std::nullopt;
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (file.bad()) return std::nullopt;
    text.erase(text.find_last_not_of(" \t\n") + 1);
    return text;
  }
  bool exists(const std::string& path) const {
    std::error_code ignored;
    return fs::exists(machine.root / path.substr(1), ignored);
  }
  std::vector<std::string> names(const std::string& folder) const {
    std::error_code ignored;
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(machine.root / folder.substr(1), ignored))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::optional<Cpus> cpus(const std::string& path) const {
    const auto text = read(path);
    return text ? parse_cpus(*text) : std::nullopt;
  }
  // A field of /proc/self/status.
  std::optional<std::string> status(const std::string& field) const {
    for (const std::string& line : lines_of(read("/proc/self/status").value_or("")))
      if (line.starts_with(field + ":"))
        return line.substr(std::min(line.size(), line.find_first_not_of(" \t", field.size() + 1)));
    return std::nullopt;
  }
  std::optional<bool> has_capability(const char* set, int which) const {
    const auto bits = number<std::uint64_t>(status(set).value_or(""), 16);
    if (!bits) return std::nullopt;
    return (*bits >> which & 1u) != 0;
  }
  const std::optional<Cpus>& allowed() const { return allowed_; }
  const std::optional<int>& loop_cpu() const { return loop_cpu_; }

  const Machine& machine;

 private:
  std::optional<Cpus> allowed_;
  std::optional<int> loop_cpu_;
};

Check pass(const char* check, std::string reason) { return {check, Health::pass, std::move(reason), {}}; }

Check untold(const char* check, const std::string& what, std::string remedy) {
  return {check, Health::warn, "cannot be told: " + what, std::move(remedy)};
}

std::string unreadable(const std::string& path) { return path + " is not there or cannot be read"; }

constexpr const char* kAskTheHost = "ask who runs the host, or trust what `rigstep commission` measures";

// "none voluntary (full)" -> "full"
std::string chosen(const std::string& text, char open, char close) {
  const auto from = text.find(open), to = text.find(close);
  return from == std::string::npos || to == std::string::npos || to < from ? std::string()
                                                                           : text.substr(from + 1, to - from - 1);
}

std::string preemption_model(const View& view, const std::string& version) {
  if (view.read("/sys/kernel/realtime").value_or("") == "1" || version.find("PREEMPT_RT") != std::string::npos)
    return "PREEMPT_RT";
  const std::string now = chosen(view.read("/sys/kernel/debug/sched/preempt").value_or(""), '(', ')');
  if (!now.empty()) return now;
  const std::string command_line = view.read("/proc/cmdline").value_or("");
  if (const auto at = command_line.find("preempt="); at != std::string::npos)
    return command_line.substr(at + 8, command_line.find(' ', at) - at - 8);
  if (version.find("PREEMPT_DYNAMIC") != std::string::npos) return "dynamic, its choice is not readable";
  return version.find("PREEMPT") != std::string::npos ? "full" : "voluntary or none";
}

Check kernel(const View& view) {
  const char* check = "kernel";
  const auto version = view.read("/proc/version");
  if (!version) return untold(check, unreadable("/proc/version"), kAskTheHost);
  const std::string release = version->substr(0, version->find(" ("));
  const std::string model = preemption_model(view, *version);
  if (model == "PREEMPT_RT") return pass(check, release + ", PREEMPT_RT");
  return {
      check, Health::warn, release + ", preemption model " + model + ": wake-ups may take milliseconds under load",
      "apt-get install linux-image-rt-amd64, or boot with preempt=full; `rigstep commission` measures the difference"};
}

Check privileges(const View& view) {
  const char* check = "privileges";
  const auto nice = view.has_capability("CapEff", kCapSysNice), lock = view.has_capability("CapEff", kCapIpcLock);
  if (!nice || !lock) return untold(check, unreadable("CapEff in /proc/self/status"), kAskTheHost);
  if (*nice && *lock) return pass(check, "CAP_SYS_NICE and CAP_IPC_LOCK");
  return {check, Health::warn,
          fmt::format("without {}{}{}: the limits below decide", *nice ? "" : "CAP_SYS_NICE",
                      *nice || *lock ? "" : " and ", *lock ? "" : "CAP_IPC_LOCK"),
          "sudo setcap cap_sys_nice,cap_ipc_lock+ep \"$(command -v rigstep)\""};
}

// Soft limit of a row of /proc/self/limits; -1: unlimited.
std::optional<long> soft_limit(const View& view, const std::string& name) {
  for (const std::string& line : lines_of(view.read("/proc/self/limits").value_or(""))) {
    if (!line.starts_with(name)) continue;
    const auto at = line.find_first_not_of(' ', name.size());
    if (at == std::string::npos) return std::nullopt;
    return line.compare(at, 9, "unlimited") == 0 ? -1 : number(std::string_view(line).substr(at));
  }
  return std::nullopt;
}

std::string limit_remedy(const char* item, const std::string& value) {
  return fmt::format("echo \"$USER - {} {}\" | sudo tee -a /etc/security/limits.d/rigstep.conf, then log in anew", item,
                     value);
}

Check rtprio(const View& view) {
  const char* check = "rtprio limit";
  const auto limit = soft_limit(view, "Max realtime priority");
  if (!limit) return untold(check, unreadable("/proc/self/limits"), kAskTheHost);
  const int requested = view.machine.priority;
  const std::string text = *limit < 0 ? "unlimited" : std::to_string(*limit);
  if (*limit < 0 || *limit >= requested)
    return pass(check, fmt::format("{}, priority {} is requested", text, requested));
  if (view.has_capability("CapEff", kCapSysNice).value_or(false))
    return pass(check, text + ", which does not bind with CAP_SYS_NICE");
  return {check, Health::fail,
          fmt::format("{}, priority {} is requested: the loop gets no SCHED_FIFO", text, requested),
          limit_remedy("rtprio", std::to_string(requested))};
}

Check memlock(const View& view) {
  const char* check = "memlock limit";
  const auto limit = soft_limit(view, "Max locked memory");
  if (!limit) return untold(check, unreadable("/proc/self/limits"), kAskTheHost);
  if (*limit < 0) return pass(check, "unlimited");
  const std::string text = fmt::format("{} KiB", *limit / 1024);
  if (view.has_capability("CapEff", kCapIpcLock).value_or(false))
    return pass(check, text + ", which does not bind with CAP_IPC_LOCK");
  return {check, Health::fail, text + ": memory is not locked, the loop may wait for a page",
          limit_remedy("memlock", "unlimited")};
}

// What was asked of the kernel, and what it said.
std::vector<Check> tried(const View& view) {
  std::vector<Check> findings;
  for (const rt::Grant& grant : view.machine.tried) {
    Check finding{"tried: " + grant.what, grant.granted ? Health::pass : Health::fail, grant.detail, {}};
    if (const auto remedy = grant.detail.find("): "); !grant.granted && remedy != std::string::npos) {
      finding.reason = "refused " + grant.detail.substr(0, remedy + 1);
      finding.remedy = grant.detail.substr(remedy + 3);
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

Check governor(const View& view) {
  const char* check = "governor";
  const char* remedy =
      "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor (cpupower frequency-set -g "
      "performance)";
  if (!view.loop_cpu()) return untold(check, unreadable("Cpus_allowed_list in /proc/self/status"), kAskTheHost);
  const std::string path = fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", *view.loop_cpu());
  const auto now = view.read(path);
  if (!now) return untold(check, unreadable(path) + ": host or firmware choose the frequency", kAskTheHost);
  if (*now == "performance") return pass(check, "performance");
  return {check, Health::warn, *now + ": the core's frequency follows its load, which a loop that sleeps hardly is",
          remedy};
}

Check smt(const View& view) {
  const char* check = "SMT";
  if (!view.loop_cpu()) return untold(check, unreadable("Cpus_allowed_list in /proc/self/status"), kAskTheHost);
  const int loop = *view.loop_cpu();
  const std::string path = fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", loop);
  auto siblings = view.cpus(path);
  if (!siblings) return untold(check, unreadable(path), kAskTheHost);
  siblings->erase(loop);
  if (siblings->empty()) return pass(check, fmt::format("core {} has no sibling, as far as this system is told", loop));
  return {check, Health::warn,
          fmt::format("core {} shares its units with {}: a step takes longer while that works", loop, list(*siblings)),
          fmt::format("echo 0 | sudo tee /sys/devices/system/cpu/cpu{}/online, or for all: echo off | sudo tee "
                      "/sys/devices/system/cpu/smt/control",
                      *siblings->begin())};
}

Check isolation(const View& view) {
  const char* check = "isolated CPUs";
  const auto isolated = view.cpus("/sys/devices/system/cpu/isolated");
  if (!isolated) return untold(check, unreadable("/sys/devices/system/cpu/isolated"), kAskTheHost);
  if (!view.loop_cpu()) return untold(check, unreadable("Cpus_allowed_list in /proc/self/status"), kAskTheHost);
  const int loop = *view.loop_cpu();
  if (isolated->empty())
    return {check, Health::warn, fmt::format("none: every other process may run on the loop's core {}", loop),
            fmt::format("boot with isolcpus=managed_irq,domain,{0} nohz_full={0} rcu_nocbs={0} (GRUB_CMDLINE_LINUX in "
                        "/etc/default/grub, then sudo update-grub)",
                        loop)};
  if (!isolated->contains(loop))
    return {check, Health::warn, fmt::format("{}, but the loop's core is {}", list(*isolated), loop),
            fmt::format("write realtime {{ cpu: {} }} in the rig file", *isolated->rbegin())};
  const auto tickless = view.cpus("/sys/devices/system/cpu/nohz_full");
  if (!tickless || !tickless->contains(loop))
    return {check, Health::warn, fmt::format("{}, but the tick still interrupts core {}", list(*isolated), loop),
            fmt::format("boot with nohz_full={0} rcu_nocbs={0} too (a kernel with CONFIG_NO_HZ_FULL)", loop)};
  return pass(check, fmt::format("{}, without the tick; the loop's core is {}", list(*isolated), loop));
}

Check cpuset(const View& view) {
  const char* check = "cpuset";
  const auto online = view.cpus("/sys/devices/system/cpu/online");
  if (!view.allowed()) return untold(check, unreadable("Cpus_allowed_list in /proc/self/status"), kAskTheHost);
  if (!online) return untold(check, unreadable("/sys/devices/system/cpu/online"), kAskTheHost);
  const Cpus& allowed = *view.allowed();
  const int loop = view.loop_cpu().value_or(-1);
  const std::string widen =
      "widen the cpuset: docker run --cpuset-cpus=..., AllowedCPUs= in a systemd unit, or taskset -c";
  const std::string text = fmt::format("{} of {}", list(allowed), list(*online));
  const auto isolated = view.cpus("/sys/devices/system/cpu/isolated").value_or(Cpus());
  if (!online->contains(loop) || (!allowed.contains(loop) && !isolated.contains(loop)))
    return {check, Health::fail, fmt::format("{}: the loop's core {} is not among them", text, loop), widen};
  const int threads = view.machine.threads;
  if (static_cast<int>(allowed.size()) < threads)
    return {check, Health::fail, fmt::format("{}: {} threads share a step", text, threads), widen};
  if (allowed.size() == 1) return {check, Health::warn, text + ": loop, network and recorder share one core", widen};
  return pass(check, text);
}

// Folders of the control groups that this process is in, from its own to the outermost that is visible.
std::vector<std::string> groups(const View& view, const std::string& controller) {
  std::vector<std::string> folders;
  for (const std::string& line : lines_of(view.read("/proc/self/cgroup").value_or(""))) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find("," + controller + ",") == std::string::npos) continue;
    for (fs::path path = line.substr(second + 1);; path = path.parent_path()) {
      const std::string tail = path == "/" ? "" : path.string();
      if (!unified) folders.push_back(fmt::format("/sys/fs/cgroup/{}{}", controllers, tail));
      if (unified) folders.push_back("/sys/fs/cgroup" + tail);
      if (unified) folders.push_back("/sys/fs/cgroup/unified" + tail);
      if (path == path.parent_path()) break;
    }
  }
  std::erase_if(folders, [&view](const std::string& folder) { return !view.exists(folder); });
  return folders;
}

// "cpu.max" or its two files of version 1: the share that a group may use, as text; nothing where there is no limit.
std::optional<std::string> quota(const View& view, const std::string& group) {
  std::string text = view.read(group + "/cpu.max").value_or("");
  if (const auto old = view.read(group + "/cpu.cfs_quota_us"); text.empty() && old)
    text = *old + " " + view.read(group + "/cpu.cfs_period_us").value_or("100000");
  const auto runtime = number(text);  // "max" and -1 are no limit
  if (!runtime || *runtime < 0) return std::nullopt;
  const auto blank = text.find(' ');
  return fmt::format("{} of each {} us", *runtime, blank == std::string::npos ? "100000" : text.substr(blank + 1));
}

Check cgroup_limits(const View& view) {
  const char* check = "cgroup limits";
  const std::vector<std::string> cpu = groups(view, "cpu"), memory = groups(view, "memory");
  if (cpu.empty()) return untold(check, "no control group of this process is visible in /sys/fs/cgroup", kAskTheHost);
  for (const std::string& group : cpu) {
    if (const auto limit = quota(view, group))
      return {check, Health::fail,
              fmt::format("{} may run {}: all but SCHED_FIFO stand still when that is used up", group, *limit),
              "docker run without --cpus, systemctl set-property UNIT CPUQuota=, or echo max | sudo tee " + group +
                  "/cpu.max"};
    if (view.read(group + "/cpu.rt_runtime_us").value_or("") == "0")
      return {check, Health::fail, group + " has no share of real time: SCHED_FIFO is refused",
              "echo 950000 | sudo tee " + group + "/cpu.rt_runtime_us"};
  }
  constexpr std::uint64_t kLittle = 128u << 20;  // what serve locks with recording and a large mechanism
  for (const std::string& group : memory) {
    const auto limit = number<std::uint64_t>(
        view.read(group + "/memory.max").value_or(view.read(group + "/memory.limit_in_bytes").value_or("")));
    const auto used = number<std::uint64_t>(
        view.read(group + "/memory.current").value_or(view.read(group + "/memory.usage_in_bytes").value_or("")));
    if (limit && *limit < used.value_or(0) + kLittle)
      return {check, Health::fail,
              fmt::format("{} may use {} MiB and uses {}: locked memory does not fit", group, *limit >> 20,
                          used.value_or(0) >> 20),
              "docker run without --memory or with more, or echo max | sudo tee " + group + "/memory.max"};
  }
  return pass(check, fmt::format("no processor quota, memory suffices ({} groups looked at)", cpu.size()));
}

Check throttling(const View& view) {
  const char* check = "RT throttling";
  const char* path = "/proc/sys/kernel/sched_rt_runtime_us";
  const auto runtime = number(view.read(path).value_or(""));
  const auto period = number(view.read("/proc/sys/kernel/sched_rt_period_us").value_or(""));
  if (!runtime || !period) return untold(check, unreadable(path), kAskTheHost);
  const std::string remedy = "sudo sysctl -w kernel.sched_rt_runtime_us=-1";
  if (*runtime < 0 || *runtime >= *period) return pass(check, "off");
  const std::string text = fmt::format("real time gets {} of each {} us", *runtime, *period);
  if (*runtime == 0) return {check, Health::fail, text, remedy};
  return {check, Health::warn,
          text + ": a core whose real-time threads use that up stands still for them until the period is over", remedy};
}

// What an interrupt is called in the last column of /proc/interrupts.
std::string interrupt_name(const View& view, const std::string& irq) {
  for (const std::string& line : lines_of(view.read("/proc/interrupts").value_or(""))) {
    const auto at = line.find_first_not_of(' ');
    if (at != std::string::npos && line.compare(at, irq.size() + 1, irq + ":") == 0)
      return line.substr(line.find_last_of(' ') + 1);
  }
  return {};
}

Check irq_affinity(const View& view) {
  const char* check = "IRQ affinity";
  const auto online = view.cpus("/sys/devices/system/cpu/online");
  if (!view.loop_cpu() || !online) return untold(check, unreadable("/sys/devices/system/cpu/online"), kAskTheHost);
  const int loop = *view.loop_cpu();
  std::vector<std::string> here, names;
  int readable = 0;
  for (const std::string& irq : view.names("/proc/irq")) {
    auto served = view.cpus("/proc/irq/" + irq + "/effective_affinity_list");
    if (!served || served->empty()) served = view.cpus("/proc/irq/" + irq + "/smp_affinity_list");
    if (!served) continue;
    ++readable;
    const std::string name = interrupt_name(view, irq);
    if (!served->contains(loop) || name.empty()) continue;  // without a name nobody uses it
    here.push_back(irq);
    if (names.size() < 4) names.push_back(name);
  }
  if (readable == 0) return untold(check, unreadable("/proc/irq/*/smp_affinity_list"), kAskTheHost);
  if (here.empty()) return pass(check, fmt::format("none of {} interrupts is served by core {}", readable, loop));
  Cpus others = *online;
  others.erase(loop);
  const std::string reason = fmt::format("core {} serves {} of {} interrupts ({}{})", loop, here.size(), readable,
                                         fmt::join(names, ", "), here.size() > names.size() ? ", ..." : "");
  if (others.empty()) return {check, Health::warn, reason + " and is the only one", "give the machine a second core"};
  return {check, Health::warn, reason,
          fmt::format("sudo systemctl stop irqbalance; for i in {}; do echo {} | sudo tee "
                      "/proc/irq/$i/smp_affinity_list; done",
                      fmt::join(here, " "), list(others))};
}

Check huge_pages(const View& view) {
  const char* check = "transparent huge pages";
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  const std::string mode = chosen(view.read(path).value_or(""), '[', ']');
  if (mode.empty()) return untold(check, unreadable(path), kAskTheHost);
  if (mode != "always") return pass(check, mode);
  return {check, Health::warn, "always: the kernel may copy pages together while the loop uses them",
          "echo madvise | sudo tee " + path};
}

Check clock_source(const View& view) {
  const char* check = "clock source";
  const std::string folder = "/sys/devices/system/clocksource/clocksource0/";
  const auto now = view.read(folder + "current_clocksource");
  if (!now) return untold(check, unreadable(folder + "current_clocksource"), kAskTheHost);
  const std::set<std::string> quick{"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"};
  if (quick.contains(*now)) return pass(check, *now + ", read without a system call");
  const std::string available = " " + view.read(folder + "available_clocksource").value_or("") + " ";
  const bool there = available.find(" tsc ") != std::string::npos;
  return {check, Health::fail, *now + ": every look at the clock is a system call, and a slow one",
          there ? "echo tsc | sudo tee " + folder + "current_clocksource"
                : "boot with tsc=reliable, or ask why the kernel gave up the TSC: dmesg | grep -i tsc"};
}

std::vector<std::string> links_up(const View& view) {
  std::vector<std::string> links;
  for (const std::string& link : view.names("/sys/class/net")) {
    const auto flags = number<unsigned>(view.read("/sys/class/net/" + link + "/flags").value_or(""), 16).value_or(0);
    if ((flags & IFF_UP) != 0 && (flags & IFF_LOOPBACK) == 0) links.push_back(link);
  }
  return links;
}

Check coalescing_of(const View& view, const std::string& link) {
  const char* check = "NIC coalescing";
  const std::string folder = "/sys/class/net/" + link;
  if (!view.exists(folder))
    return {check, Health::fail, link + ": there is no such interface",
            fmt::format("use one of {}: ip link", fmt::join(view.names("/sys/class/net"), ", "))};
  const auto flags = number<unsigned>(view.read(folder + "/flags").value_or(""), 16).value_or(0);
  if ((flags & IFF_LOOPBACK) != 0) return pass(check, link + ": loopback, nothing is gathered");
  if (!view.exists(folder + "/device")) return pass(check, link + ": virtual, nothing is gathered in it");
  if (!view.machine.coalescing) return untold(check, link + ": nobody to ask", kAskTheHost);
  const Coalescing now = view.machine.coalescing(link);
  if (now.error != 0)
    return untold(check, link + ": its driver does not tell (" + std::generic_category().message(now.error) + ")",
                  "ethtool -c " + link + "; `rigstep commission` measures the round trip");
  if (now.rx_usecs == 0 && now.tx_usecs == 0 && !now.adaptive_rx && !now.adaptive_tx)
    return pass(check, link + ": off");
  return {check, Health::warn,
          fmt::format("{}: packets wait up to {} us on arrival{} and {} us when sent{}", link, now.rx_usecs,
                      now.adaptive_rx ? " (adaptive)" : "", now.tx_usecs, now.adaptive_tx ? " (adaptive)" : ""),
          fmt::format("sudo ethtool -C {} adaptive-rx off adaptive-tx off rx-usecs 0 tx-usecs 0", link)};
}

std::vector<Check> coalescing(const View& view) {
  const std::vector<std::string> links = view.machine.links.empty() ? links_up(view) : view.machine.links;
  std::vector<Check> findings;
  findings.reserve(links.size());
  for (const std::string& link : links) findings.push_back(coalescing_of(view, link));
  if (!links.empty()) return findings;
  if (!view.exists("/sys/class/net")) return {untold("NIC coalescing", unreadable("/sys/class/net"), kAskTheHost)};
  return {pass("NIC coalescing", "no interface but loopback is up")};
}

// A team has its own barrier and its own cores: what matters is whether the runtime gives it all its threads, unbound.
Check openmp(const View& view) {
  const char* check = "OpenMP environment";
  for (const char* name : {"OMP_THREAD_LIMIT", "OMP_DYNAMIC", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"})
    if (const auto set = view.machine.environment.find(name); set != view.machine.environment.end())
      return {
          check, Health::warn,
          fmt::format("{}={} may take threads or cores from a step; `rigstep serve` starts anew without it, programs "
                      "with the stepper inside do not",
                      name, set->second),
          fmt::format("unset {}", name)};
  return pass(check, "nothing that takes threads or cores away; a step's threads wait by Rigstep's own rule");
}

std::optional<std::string> container(const View& view) {
  if (view.exists("/.dockerenv")) return "docker";
  if (view.exists("/run/.containerenv")) return "podman";
  if (const auto name = view.read("/run/systemd/container")) return *name;
  const std::string own = view.read("/proc/self/cgroup").value_or("");
  for (const char* name : {"docker", "kubepods", "libpod", "lxc"})
    if (own.find(name) != std::string::npos) return name;
  return std::nullopt;
}

Check container_limits(const View& view) {
  const char* check = "container limits";
  const auto kind = container(view);
  const auto nice = view.has_capability("CapBnd", kCapSysNice), lock = view.has_capability("CapBnd", kCapIpcLock);
  const auto no_new = view.status("NoNewPrivs"), filters = view.status("Seccomp");
  if (!nice || !lock || !no_new || !filters)
    return untold(check, "CapBnd, NoNewPrivs or Seccomp is not in /proc/self/status", kAskTheHost);
  const std::string where = kind ? "a container (" + *kind + ")" : "no container known";
  if (!*nice || !*lock)
    return {check, Health::fail,
            where + ": " + (*nice ? "" : "CAP_SYS_NICE ") + (*lock ? "" : "CAP_IPC_LOCK ") + "cannot be had in it",
            "docker run --cap-add SYS_NICE --cap-add IPC_LOCK --ulimit rtprio=99 --ulimit memlock=-1 ... "
            "(docker/compose.yaml)"};
  if (*filters != "0" && kind)
    return {check, Health::warn, where + ", system calls are filtered: see what was tried above",
            "docker run --security-opt seccomp=unconfined, if something above is refused for no other reason"};
  return pass(check, where + (*no_new == "1" ? ", no new privileges: setcap has no effect here" : ""));
}

Coalescing ask_driver(const std::string& link) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  if (socket < 0) return {.error = errno};
  ethtool_coalesce answer{};
  answer.cmd = ETHTOOL_GCOALESCE;
  ifreq request{};
  link.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&answer);
  const int error = ::ioctl(socket, SIOCETHTOOL, &request) == 0 ? 0 : errno;
  ::close(socket);
  return {.error = error,
          .rx_usecs = answer.rx_coalesce_usecs,
          .tx_usecs = answer.tx_coalesce_usecs,
          .adaptive_rx = answer.use_adaptive_rx_coalesce != 0,
          .adaptive_tx = answer.use_adaptive_tx_coalesce != 0};
}

// The interface that has a numeric address; empty for "any".
std::string link_of(const std::string& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) throw NetworkError("the addresses of this machine cannot be listed: use --interface");
  std::string link;
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    char text[INET6_ADDRSTRLEN] = "";
    if (family == AF_INET)
      ::inet_ntop(family, &reinterpret_cast<sockaddr_in*>(entry->ifa_addr)->sin_addr, text, sizeof text);
    if (family == AF_INET6)
      ::inet_ntop(family, &reinterpret_cast<sockaddr_in6*>(entry->ifa_addr)->sin6_addr, text, sizeof text);
    if (address == text) link = entry->ifa_name;
  }
  ::freeifaddrs(all);
  if (link.empty())
    throw NetworkError(address + " is no address of this machine: correct link.address in the rig file (ip address)");
  return link;
}

}  // namespace

const char* to_string(Health health) noexcept {
  return health == Health::pass ? "pass" : health == Health::warn ? "warn" : "fail";
}

Machine this_machine(const config::RigConfig& rig) {
  Machine machine;
  machine.priority = rig.priority;
  machine.cpu = rig.cpu;
  machine.threads = rig.threads;
  machine.coalescing = ask_driver;
  if (!rig.path.empty() && rig.address != "0.0.0.0" && rig.address != "::") machine.links = {link_of(rig.address)};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) machine.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  const rt::RealtimeSettings settings{.enforce = false, .priority = rig.priority, .cpu = rig.cpu};
  machine.tried = rt::set_up_process_memory(settings);
  for (rt::Grant& grant : std::async(std::launch::async, [&] { return rt::set_up_loop_thread(settings); }).get())
    machine.tried.push_back(std::move(grant));
  const rt::NoDeepIdle idle(settings, machine.tried);
  return machine;
}

std::vector<Check> diagnose(const Machine& machine) {
  const View view(machine);
  std::vector<Check> findings{kernel(view), privileges(view), rtprio(view), memlock(view)};
  for (Check& finding : tried(view)) findings.push_back(std::move(finding));
  for (const auto& check :
       {governor, smt, isolation, cpuset, cgroup_limits, throttling, irq_affinity, huge_pages, clock_source})
    findings.push_back(check(view));
  for (Check& finding : coalescing(view)) findings.push_back(std::move(finding));
  findings.push_back(openmp(view));
  findings.push_back(container_limits(view));
  return findings;
}

Health worst(const std::vector<Check>& findings) noexcept {
  Health health = Health::pass;
  for (const Check& finding : findings) health = std::max(health, finding.health);
  return health;
}

std::string to_text(const std::vector<Check>& findings) {
  std::string text;
  int count[3] = {0, 0, 0};
  for (const Check& finding : findings) {
    ++count[static_cast<int>(finding.health)];
    text += fmt::format("{}  {:<32}{}\n", to_string(finding.health), finding.check, finding.reason);
    if (!finding.remedy.empty()) text += fmt::format("      {:<32}fix: {}\n", "", finding.remedy);
  }
  return text + fmt::format("verdict: {}: {} pass, {} warn, {} fail\n", to_string(worst(findings)), count[0], count[1],
                            count[2]);
}

nlohmann::json to_json(const std::vector<Check>& findings) {
  nlohmann::json all = nlohmann::json::array();
  for (const Check& finding : findings)
    all.push_back({{"check", finding.check},
                   {"health", to_string(finding.health)},
                   {"reason", finding.reason},
                   {"remedy", finding.remedy}});
  return {{"schema", 1}, {"verdict", to_string(worst(findings))}, {"findings", all}};
}

}  // namespace rigstep::server
