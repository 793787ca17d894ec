// What `rigstep check` knows of a mechanism, at the joint or body that it is about. Load time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/index3/outputs/diagnostics.h"
#include "core/mechanism/mechanism.h"

namespace rigstep::server {

struct CheckFinding {
  enum class Severity { error, warning, note };
  Severity severity = Severity::note;
  int joint = -1;  // -1: none
  int body = -1;
  std::string text;             // for people: what, why, what to do
  std::string connection = {};  // name of the force element, empty: none
};

const char* to_string(CheckFinding::Severity severity);

// Joints that are not closed at the start as written, redundant constraints, a singular start, bodies that hang on
// nothing, springs that start far from their rest. rank: of the start, where it is known; else it is found, unless
// there are so many bodies that it takes too long at each change of a file.
std::vector<CheckFinding> find_problems(const Mechanism& mechanism, const index3::StartRank* rank = nullptr);

// Empty where there are so many bodies that it takes too long, or the start is none.
std::optional<index3::StartRank> rank_of_start(const Mechanism& mechanism);
// Of each joint, whether some of its constraints repeat what others say at the start: its reactions are not unique.
// Empty where the rank is not known.
std::vector<bool> redundant_joints(const Mechanism& mechanism, const std::optional<index3::StartRank>& rank);

}  // namespace rigstep::server
