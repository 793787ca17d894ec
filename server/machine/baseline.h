// What this machine does without Rigstep: wake-ups as cyclictest measures them, raw UDP datagrams there and back, and
// the pauses of the loop's core. A loop and its link are judged beside these. Offline, though what they measure
// is not.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "proto/load_rig.h"
#include "server/rig/rig.h"

namespace rigstep::server {

// The thread that cyclictest measures.
struct LoopThread {
  std::int64_t period_ns = 1'000'000;
  int priority = 80;
  int cpu = 0;
};

// Wake-ups after the scheduled instant; cyclictest has whole microseconds, fractions cut off: their middles.
struct Cyclictest {
  Times wake_up = {};
  std::string problem = {};  // why there are no numbers; empty: there are
};
Cyclictest run_cyclictest(const LoopThread& thread, double seconds, const std::atomic<bool>& stop);
Cyclictest parse_cyclictest(const std::string& output);  // printed with --histogram

// The core that the loop of a rig file takes: its own, or the last one allowed.
LoopThread loop_of(const config::RigConfig& rig);

// When the loop's core stood still for a thread that did nothing but look at the clock there, with the loop's priority:
// interrupts, firmware or a hypervisor had it; other programs, too, where the system refused core or priority.
struct Pauses {
  double seconds = 0.0;     // looked at the clock
  double per_second = 0.0;  // those longer than a microsecond
  double share = 0.0;       // of the time, 0..1
  double longest_us = 0.0;
  bool undisturbed = true;  // core and priority were granted
  std::string text() const;
  nlohmann::json json() const;
};
Pauses measure_pauses(const LoopThread& thread, double seconds, const std::atomic<bool>& stop);

// Datagrams there and back between two threads over the same address, under the conditions of a live loop: the far end
// has the loop's core and, where it blocks, its priority; no core idles deeply.
struct UdpEchoOptions {
  std::string address = "127.0.0.1";
  LoopThread thread = {};      // of the far end
  std::int64_t period_ns = 0;  // between datagrams; 0: one after the other
  bool polling = false;        // both ask again and again instead of blocking
};
struct UdpEcho {
  Times round_trip = {};
  std::uint64_t lost = 0;
  std::string problem = {};  // why there are no numbers; empty: there are
};
UdpEcho run_udp_echo(const UdpEchoOptions& options, double seconds, const std::atomic<bool>& stop,
                     const std::function<void(double done)>& progress);

}  // namespace rigstep::server
