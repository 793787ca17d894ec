// What of a machine keeps a loop from its deadlines, as far as the system tells: each check passes, warns or fails with
// the reason and the command that fixes it. What cannot be read is said, never passed. Measuring is commission's job.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proto/load_rig.h"
#include "rt/thread_setup.h"

namespace rigstep::server {

enum class Health { pass, warn, fail };
const char* to_string(Health health) noexcept;

struct Check {
  std::string check;  // "clock source"
  Health health = Health::pass;
  std::string reason;
  std::string remedy;  // a command, or where there is none a sentence; empty where it passes
};

// How a network card gathers packets before it interrupts.
struct Coalescing {
  int error = 0;                             // errno of the question; the rest says nothing then
  std::uint32_t rx_usecs = 0, tx_usecs = 0;  // [us]
  bool adaptive_rx = false, adaptive_tx = false;
};

// What is looked at: the files below `root`, and what is in no file.
struct Machine {
  std::filesystem::path root = "/";
  int priority = 80;               // that the loop will ask for
  std::optional<int> cpu;          // core of the loop; none: the last one allowed
  int threads = 1;                 // that share a step
  std::vector<std::string> links;  // network interfaces; none: all that are up, without loopback
  std::map<std::string, std::string> environment;
  std::function<Coalescing(const std::string& link)> coalescing;
  rt::ThreadReport tried;  // what the kernel granted when it was asked
};

// This machine, for a loop as in the rig file. Asks for memory lock, priority and core on a thread of its own, which
// leaves the process with its memory locked where that is granted. Throws NetworkError where link.address is of no
// interface.
Machine this_machine(const config::RigConfig& rig);

std::vector<Check> diagnose(const Machine& machine);

// The worst of all.
Health worst(const std::vector<Check>& findings) noexcept;

std::string to_text(const std::vector<Check>& findings);
nlohmann::json to_json(const std::vector<Check>& findings);

}  // namespace rigstep::server
