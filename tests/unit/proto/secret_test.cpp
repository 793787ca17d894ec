#include "proto/secret.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace rigstep::wire {
namespace {

// What the kernel says of a part of this process's memory.
struct Mapping {
  std::uintptr_t begin = 0, end = 0;
  std::string access;  // "rw-p"
  std::string flags;   // of VmFlags, each between spaces
};

std::vector<Mapping> mappings() {
  std::vector<Mapping> all;
  std::ifstream file("/proc/self/smaps");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first, access;
    words >> first >> access;
    if (const auto dash = first.find('-'); dash != std::string::npos && first.back() != ':')
      all.push_back({std::stoul(first.substr(0, dash), nullptr, 16), std::stoul(first.substr(dash + 1), nullptr, 16),
                     access, ""});
    else if (first == "VmFlags:")
      all.back().flags = line.substr(first.size()) + " ";
  }
  return all;
}

#ifdef __SANITIZE_ADDRESS__
constexpr bool kLocksNothing = true;  // the sanitizer takes the place of mlock
#else
constexpr bool kLocksNothing = false;
#endif

TEST_CASE("memory of a key is left out of core dumps, locked where that is told, and ends at a guard") {
  const Secret<std::array<std::uint8_t, 32>> secret;
  const auto address = reinterpret_cast<std::uintptr_t>(&*secret);
  const std::vector<Mapping> all = mappings();
  bool found = false, guarded = false;
  for (const Mapping& each : all) {
    if (each.begin <= address && address < each.end) {
      found = true;
      CAPTURE(each.flags);
      CHECK(each.flags.find(" dd ") != std::string::npos);
      if (!kLocksNothing) CHECK((each.flags.find(" lo ") != std::string::npos) == secret.locked());
      for (const Mapping& next : all) guarded = guarded || (next.begin == each.end && next.access == "---p");
    }
  }
  CHECK(found);
  CHECK(guarded);
}

TEST_CASE("memory of a key is gone once it is given back") {
  std::uintptr_t address = 0;
  {
    const Secret<std::array<std::uint8_t, 32>> secret;
    address = reinterpret_cast<std::uintptr_t>(&*secret);
  }
  for (const Mapping& each : mappings()) CHECK(!(each.begin <= address && address < each.end));
}

}  // namespace
}  // namespace rigstep::wire
