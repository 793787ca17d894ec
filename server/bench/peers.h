// The executable rigstep_bench_peers, which steps the same mechanisms with other multibody engines: run as a process of
// its own, so that the rigstep binary needs none of them. Offline.
//
//   rigstep_bench_peers time  --mechanism NAME --bodies N [--file FILE] --dt S [--quick]
//   rigstep_bench_peers error --mechanism NAME --bodies N [--file FILE] --reference FILE [--quick]
//
// prints one JSON document:
//   {"peers": [{"solver", "version", "lowest_us", "median_us", "p999_us", "samples", "gap_m", "differs"} or
//              {"solver", "version", "points": [{"dt", "error", "us_per_step", "ms_per_second"}]} or
//              {"solver", "version", "problem"}],
//    "missing": [{"solver", "package"}]}
// FILE of --reference: server::to_json(ReferenceMotion). Points of a peer that closes loops by springs have
// "time_constant_steps", too.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/bench/mechanisms.h"

namespace rigstep::server {

// The executable given, or else one beside the running binary or in the tests folder of the same build; empty if there
// is none. Throws config::ConfigError if the one given does not exist.
std::string find_peers(const std::string& given);

// Runs it; no value if it failed.
std::optional<nlohmann::json> run_peers(const std::string& executable, const std::vector<std::string>& arguments);

std::vector<std::string> peer_arguments(const std::string& what, const BenchMechanism& which, bool quick);

}  // namespace rigstep::server
