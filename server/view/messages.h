// What the page is sent, as server/page/src/model.ts reads it. Load time and display rate, never the loop.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "server/recordings/run_info.h"
#include "server/view/findings.h"
#include "server/view/scene.h"

namespace rigstep::server {

// What a scene has beside the mechanism.
struct SceneContext {
  const char* kind = "mechanism";  // or "recording", "live"
  std::string source;              // file or address, for people
  std::vector<Channel> columns;    // of the values of each instant
  std::vector<Finding> findings = {};
  std::vector<std::string> tracks = {};            // names of recordings
  std::vector<std::vector<RunEvent>> events = {};  // of each of them
  double period = 1e-3;                            // [s]
  bool control = false;
};

std::string scene_message(const Mechanism& mechanism, const Scene& scene, const SceneContext& context);

// Of Subject::mesh.
std::string mesh_message(const TriangleMesh& mesh);

// One instant: time [s] and step as doubles, counts of values, pose numbers and reaction numbers, 0, then values as
// doubles, poses (7 a body) and reactions (3 a joint, or none) as floats; little-endian.
std::string motion_message(double time, std::uint64_t step, std::span<const double> values, const Poses& poses,
                           std::span<const float> reactions);

}  // namespace rigstep::server
