// The file in which `rigstep commission` leaves its verdict for `rigstep serve`, which embeds it in every recording,
// and for what it holds: this content of the rig file, this mechanism, machine and build. Load time only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "proto/load_rig.h"

namespace rigstep::server {

// Beside the rig file: bench.textproto -> bench.commissioned.json
std::string commission_verdict_path(const std::string& rig_path);

// What a verdict holds for.
nlohmann::json commission_identity(const config::RigConfig& rig, const Mechanism& mechanism);

struct CommissionVerdict {
  std::string json = {};     // the file's content; empty: there is none that holds
  bool carried = false;      // it says yes
  std::string problem = {};  // why there is none: what differs and what to do
};

// The verdict beside the rig file, if it is about what runs here and now.
CommissionVerdict read_commission_verdict(const config::RigConfig& rig, const Mechanism& mechanism);

// What a text from a file or a recording says; discarded where it is no JSON, or nests deeper than any verdict.
nlohmann::json parse_commission_verdict(const std::string& text);

// The file holds a verdict, whatever it is about.
bool is_commission_verdict(const std::string& path);

// One line of what a verdict says, for people; the verdict may be anything that came from a file.
std::string commission_verdict_text(const nlohmann::json& verdict);

}  // namespace rigstep::server
