// The picture of a mechanism file or of a recording at an instant. Offline.
#pragma once

#include <string>
#include <vector>

#include "server/view/picture.h"

namespace rigstep::server {

struct StillOptions {
  std::string source;               // a mechanism file, or a recording (.mcap)
  double time = 0.0;                // that is shown: simulated, or of the recording [s]
  double dt = 1e-3;                 // of a simulation [s]
  std::vector<std::string> traces;  // "BODY", or "BODY:x,y,z" for a point of it [m], body frame; up to `time`
  PictureOptions picture;
};

// A path to a file with a recording's ending.
bool is_recording(const std::string& path);

// SVG text. A mechanism is stepped from its start with inputs of zero; a recording is replayed.
// Throws MechanismFileError, wire::RecordingError, config::ConfigError for a trace of a body that there is not or a
// time that the run does not have, Error where a step fails.
std::string still_picture(const StillOptions& options);

}  // namespace rigstep::server
