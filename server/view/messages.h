// What the page is sent, as server/page/src/model.ts reads it. Load time and display rate, never the loop.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/mechanism/signals.h"
#include "rt/histogram.h"
#include "server/recordings/run_info.h"
#include "server/view/acting_forces.h"
#include "server/view/findings.h"
#include "server/view/scene.h"

namespace rigstep::server {

// What a scene has beside the mechanism.
struct SceneContext {
  const char* kind = "mechanism";  // or "recording", "live"
  std::string source;              // file or address, for people
  std::vector<Channel> columns;    // of the values of each instant
  std::vector<CheckFinding> findings = {};
  std::vector<std::string> tracks = {};            // names of recordings
  std::vector<std::vector<RunEvent>> events = {};  // of each of them
  double period = 1e-3;                            // [s]
  bool control = false;
  std::vector<bool> in_loop = {};        // (joints) that loops go through
  std::vector<bool> redundant = {};      // likewise, as redundant_joints() has them
  std::vector<ActingForce> forces = {};  // whose numbers each instant has
  std::vector<InputPolicy> limits = {};  // (input channels) of the rig file; empty: not known
};

// What is wrong with an instant: bits.
enum InstantMark : std::uint32_t {
  kMarkNotConverged = 1,
  kMarkNearSingular = 2,
  kMarkFaulted = 4,
  kMarkInaccurate = 8
};

struct MotionInstant {
  double time = 0.0;  // [s]
  std::uint64_t step = 0;
  std::uint32_t marks = 0;
  std::span<const double> values = {};  // of SceneContext::columns
  std::span<const float> forces = {};   // 6 a joint, its reaction; then 9 of each of SceneContext::forces; or none
};

std::string scene_message(const Mechanism& mechanism, const Scene& scene, const SceneContext& context);

// Of Subject::mesh.
std::string mesh_message(const TriangleMesh& mesh);

// One instant: time [s], step and marks as doubles, counts of values, pose numbers and force numbers, 0, then values as
// doubles, poses (7 a body) and forces as floats; little-endian.
std::string motion_message(const MotionInstant& instant, const Poses& poses);

// Reactions of all joints and what else acts, as MotionInstant::forces has them.
std::vector<float> force_numbers(const index3::Stepper& stepper, const Inputs& inputs, ActingForces& acting);

// A whole number of a command, within these bounds. Throws Error where the field is none.
int whole_number(const nlohmann::json& request, const char* field, int least, int most);

// A distribution of times as the page draws it, with the counts by quarters of octaves (rt/histogram.h).
nlohmann::json distribution_json(const std::string& name, const rt::Histogram& histogram);

}  // namespace rigstep::server
